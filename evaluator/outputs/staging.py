"""The staging folder beside an output, which holds its parts until they are put in place, and failures to write it."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from evaluator.errors import EvaluatorError, OutputError
from evaluator.outputs.locks import base_name, held_back, locked, undone_if_abandoned

_SCHEMA = "evaluate.partial/1"
_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
# Error numbers of systems and file systems that cannot exchange two names.
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn failures of the file system (a full disk, no permission) into one OutputError that names the output.

    The block may also read files. An error that concerns another file is passed on unchanged, and so is an error
    without the system's error number: a library raises it about the content of a file.
    """
    try:
        yield
    except EvaluatorError:
        raise
    except OSError as error:
        if error.errno is None or not _concerns(target, error.filename):
            raise
        remedy = "make room, or choose another place."
        raise OutputError(f"{target}: cannot be written ({os.strerror(error.errno)}).", remedy=remedy) from None


def _concerns(target: Path, named: object) -> bool:
    """Whether an error concerns an output: it names no file, the output, or a file in, above or hidden beside it."""
    if not isinstance(named, str | bytes):
        return True
    path = Path(os.path.abspath(os.fsdecode(named)))
    for place in (Path(os.path.abspath(target)), Path(os.path.realpath(target))):
        if place.is_relative_to(path) or path.is_relative_to(place):
            return True
        hidden = f".{base_name(place.name)}."
        if path.is_relative_to(place.parent) and path.relative_to(place.parent).parts[0].startswith(hidden):
            return True
    return False


@contextmanager
def hidden_folder(target: Path, names: Sequence[str] | None = None) -> Iterator[tuple[Path, Path]]:
    """Hold the lock of an output; give its real path and a new staging folder, whose entries have their final names.

    The folder's name is random, because process ids repeat in other containers. Folders that killed processes left of
    this output are settled first, and the new folder is settled when the block ends. Its entries are the output's own
    name, unless others are named. OutputInUseError if another process writes this output, OutputError if it cannot be
    written.
    """
    place = Path(os.path.realpath(target))
    folder = place.with_name(f".{base_name(place.name)}.partial-{secrets.token_hex(8)}")
    with ExitStack() as stack:
        with writing(target):
            # Without locks one cannot tell whether a folder is left over or in use.
            if stack.enter_context(locked(target)):
                for abandoned in _find_abandoned(place):
                    settle(abandoned, place)
            stack.callback(settle, folder, place)
            stack.enter_context(undone_if_abandoned(partial(settle, folder, place)))
            _make_marked(folder, [place.name] if names is None else names)
        yield place, folder


def collect(target: Path) -> None:
    """Settle the folders that killed processes left of an output, unless another process is writing it."""
    place = Path(os.path.realpath(target))
    if not place.name:  # the root folder has nothing beside it
        return
    with suppress(EvaluatorError, OSError), locked(target) as held:
        for abandoned in _find_abandoned(place) if held else ():
            settle(abandoned, place)


def aside(folder: Path) -> Path:
    """Return the path in the staging folder where the old output lies until the new one is in place."""
    return folder / f"{folder.name}.old"  # no output has this name: it is random


def mark(folder: Path, names: Sequence[str]) -> None:
    """Mark a new staging folder as ours by a file that names its outputs."""
    marker = _marker(folder)
    marker.write_text(json.dumps({"schema": _SCHEMA, "outputs": list(names)}) + "\n", encoding="utf-8")
    sync(marker)


def _marker(folder: Path) -> Path:
    return folder / folder.name


@held_back()
def _make_marked(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir()
    try:
        mark(folder, names)
        for name in names:  # a name that is too long fails here, before the work
            with suppress(FileNotFoundError):
                (folder / name).lstat()
    except BaseException:
        _marker(folder).unlink(missing_ok=True)
        folder.rmdir()
        raise


def _read_marker(folder: Path) -> list[str] | None:
    """Return the names of the outputs of a staging folder, or None if the folder is not ours."""
    marker = _marker(folder)
    try:
        record = None if marker.is_symlink() else json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("schema") != _SCHEMA or not isinstance(record.get("outputs"), list):
        return None
    names = record["outputs"]
    return names if all(isinstance(name, str) and name == os.path.basename(name) for name in names) else None


def _find_abandoned(place: Path) -> list[Path]:
    ours = re.compile(re.escape(f".{base_name(place.name)}.partial-") + "[0-9a-f]{16}")
    paths = [path for path in place.parent.iterdir() if ours.fullmatch(path.name)]
    return [path for path in paths if path.is_dir() and not path.is_symlink()]


@held_back()
def settle(folder: Path, place: Path) -> None:
    """Undo an output that was put in place only in part, and remove its staging folder if the folder is ours.

    The function may be killed anywhere and called again: the entries that record what was done are removed last.
    """
    names = _read_marker(folder)
    if names is None:
        _remove_unmarked(folder)
    elif place.name in names:
        _settle(folder, place, names)


def _remove_unmarked(folder: Path) -> None:
    """Remove a folder whose process was killed before it had marked it; a folder that holds more is not ours."""
    marker = _marker(folder)
    with suppress(OSError):
        if os.listdir(folder) == [marker.name] and marker.lstat().st_size == 0 and marker.is_file():
            marker.unlink()
        folder.rmdir()


def _settle(folder: Path, place: Path, names: Sequence[str]) -> None:
    new, old = folder / place.name, aside(folder)
    with writing(place):
        if old.exists() and new.exists() and not os.path.lexists(place):
            old.rename(place)
        # A file that was put in place keeps its name in the folder. The output's own file comes last: if it is in
        # place, all are.
        if not _same(new, place):
            for name in names:
                if _same(folder / name, place.with_name(name)):
                    place.with_name(name).unlink()
    with suppress(OSError):
        others = [folder / name for name in names if name != place.name]
        for part in (old, *others, new, _marker(folder)):
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)
        folder.rmdir()


def _same(part: Path, placed: Path) -> bool:
    try:
        return part.is_file() and os.path.samestat(part.lstat(), placed.lstat())
    except FileNotFoundError:
        return False


def put_folder(new: Path, place: Path, *, aside: Path) -> None:
    """Put a folder in place, in one step where the system can exchange two names.

    Afterwards `new` holds the old folder, or nothing. Where two steps are needed the old folder is moved `aside`, and
    between the steps nothing lies at `place`.
    """
    if not os.path.lexists(place):
        # If a folder appears meanwhile, this replaces it only if it is empty.
        new.rename(place)
    elif not exchange(new, place):
        place.rename(aside)
        new.rename(place)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return False where the system cannot do so."""
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "linux":
        name, words = "renameat2", (_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE)
    elif sys.platform == "darwin":
        name, words = "renamex_np", (*names, _EXCHANGE)
    else:
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return False
    if call(*words) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(one), None, str(other))


def put_file(part: Path, place: Path) -> None:
    """Give a file a second name, or raise FileExistsError; where files can have one name only, move the file there."""
    try:
        os.link(part, place)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        part.rename(place)


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
