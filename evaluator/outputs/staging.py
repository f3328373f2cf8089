"""The staging folder beside an output: it holds the parts of the output until they are put in place."""

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

from evaluator.errors import EvaluatorError
from evaluator.outputs.failures import writing
from evaluator.outputs.locks import base_name, locked
from evaluator.outputs.signals import held_back, undone_if_abandoned

_SCHEMA = "evaluate.partial/1"
_AT_FDCWD = -100
_EXCHANGE = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
# What systems and file systems without an exchange say.
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def hidden_folder(target: Path, names: Sequence[str] | None = None) -> Iterator[tuple[Path, Path]]:
    """Hold the lock of an output and give where it goes and a new folder beside it, whose entries have final names.

    The folder's name is random: process ids repeat in other containers. What killed processes left of this output is
    settled first, and what the block leaves at its end.

    Parameters
    ----------
    target
        Path of the output, which need not be there.
    names
        Names of the entries that the folder is for; None for the output's own name.

    Yields
    ------
    Path, Path
        Path of the output with links resolved, and the folder beside it.

    Raises
    ------
    OutputInUseError
        Another process writes this output.
    OutputError
        The output cannot be written there.
    """
    place = Path(os.path.realpath(target))
    folder = place.with_name(f".{base_name(place.name)}.partial-{secrets.token_hex(8)}")
    with ExitStack() as stack:
        with writing(target):
            # Without locks nobody knows whether a folder is left or in use.
            if stack.enter_context(locked(target)):
                for left in _left(place):
                    settle(left, place)
            stack.callback(settle, folder, place)
            stack.enter_context(undone_if_abandoned(partial(settle, folder, place)))
            _make(folder, [place.name] if names is None else names)
        yield place, folder


def collect(target: Path) -> None:
    """Settle what killed processes left of an output, unless another process writes it now."""
    place = Path(os.path.realpath(target))
    if not place.name:  # the root, beside which nothing is
        return
    with suppress(EvaluatorError, OSError), locked(target) as held:
        for left in _left(place) if held else ():
            settle(left, place)


def aside(folder: Path) -> Path:
    """Return where in the hidden folder the old output waits until the new one is in place."""
    return folder / f"{folder.name}.old"  # no output has this name: it is random


def mark(folder: Path, names: Sequence[str]) -> None:
    """Write into a new hidden folder that it is ours, and the names of the outputs that it is for."""
    marker = _marker(folder)
    marker.write_text(json.dumps({"schema": _SCHEMA, "outputs": list(names)}) + "\n", encoding="utf-8")
    sync(marker)


def _marker(folder: Path) -> Path:
    return folder / folder.name


@held_back()
def _make(folder: Path, names: Sequence[str]) -> None:
    folder.mkdir()
    try:
        mark(folder, names)
        for name in names:  # one that is too long is found before the work
            with suppress(FileNotFoundError):
                (folder / name).lstat()
    except BaseException:
        _marker(folder).unlink(missing_ok=True)
        folder.rmdir()
        raise


def _outputs(folder: Path) -> list[str] | None:
    """Return the names of the outputs that a hidden folder is for, None if it is not ours."""
    marker = _marker(folder)
    try:
        said = None if marker.is_symlink() else json.loads(marker.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("schema") != _SCHEMA or not isinstance(said.get("outputs"), list):
        return None
    names = said["outputs"]
    return names if all(isinstance(name, str) and name == os.path.basename(name) for name in names) else None


def _left(place: Path) -> list[Path]:
    ours = re.compile(re.escape(f".{base_name(place.name)}.partial-") + "[0-9a-f]{16}")
    found = [path for path in place.parent.iterdir() if ours.fullmatch(path.name)]
    return [path for path in found if path.is_dir() and not path.is_symlink()]


@held_back()
def settle(folder: Path, place: Path) -> None:
    """Take back what was put in place in part only, and remove the hidden folder; not one that someone else made.

    It may itself be killed anywhere and called again: the entries that tell what was done are removed last.
    """
    names = _outputs(folder)
    if names is None:
        _remove_unmarked(folder)
    elif place.name in names:
        _settle(folder, place, names)


def _remove_unmarked(folder: Path) -> None:
    """Remove what a kill between the folder and its marker leaves; whatever holds anything is not ours."""
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
        # Files put in place keep their name in the folder. The output's own is put there last: then all are there.
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
    """Put a folder in place, in one step where the system has it.

    Parameters
    ----------
    new
        Folder to put in place. Afterwards its path holds what was at `place`, or nothing.
    place
        Path where it goes, which may be taken.
    aside
        Path where what was at `place` goes if two steps are needed. Between them nothing is at `place`.
    """
    if not os.path.lexists(place):
        # Over nothing but an empty folder, should one appear meanwhile.
        new.rename(place)
    elif not exchange(new, place):
        place.rename(aside)
        new.rename(place)


def exchange(one: Path, other: Path) -> bool:
    """Exchange what two names stand for, in one step; return False where that cannot be done."""
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
    """Give a file a second name, which is free; move it there where files have one name only.

    Raises
    ------
    FileExistsError
        The name is taken.
    """
    try:
        os.link(part, place)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        part.rename(place)


def sync(path: Path) -> None:
    """Have the disk hold a file's content or a folder's names before anything else is done."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
