"""Folders and files that are written whole or not at all, and that delete no file that this package did not write."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict

from evaluator.errors import OutputExistsError, UsageError
from evaluator.outputs.staging import aside, collect, hidden_folder, put_file, put_folder, sync, writing
from evaluator.store_addresses import as_given, is_address

# Files by which a folder is recognised as a converted log, together with the first file of its displays.
LOG_FILES = ("meta.json", "actions.parquet")
DISPLAYS = ("displays.parquet", "displays-00001.parquet")
_READ_WRITE = 0o666


def refuse_foreign(
    folder: Path, ours: Callable[[Path], bool], *, kind: str, remedy: str = "name another folder, or move it elsewhere."
) -> None:
    """Raise OutputExistsError if a folder that is to be deleted holds an entry that this package does not write.

    `ours` tells whether it writes such a file; links and folders are always refused. The message names the entry, the
    kind of folder that is expected, such as ``"a converted log"``, and what to do.
    """
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or not ours(path):
            raise OutputExistsError(
                f"Output {folder} holds {path.name}, which is not of {kind}: it would be deleted.", remedy=remedy
            )


def refuse_sources(target: Path, sources: Iterable[Path]) -> None:
    """Raise OutputExistsError if a source that is read lies in the folder to be replaced, also by a link."""
    elsewhere: set[Path] = set()
    for source in sources:
        real = Path(os.path.realpath(source))
        for folder in (real, *real.parents):
            if folder in elsewhere:
                break
            if folder.exists() and folder.samefile(target):
                raise OutputExistsError(
                    f"Output {target} would replace {source}, which is read.", remedy="name another folder."
                )
            elsewhere.add(folder)


def refuse_inside_log(target: Path) -> None:
    """Raise OutputExistsError if an output would lie in a converted log, which may hold no other files."""
    for folder in Path(os.path.realpath(target)).parents:
        has = [os.path.isfile(folder / name) for name in DISPLAYS]
        if any(has) and all(os.path.isfile(folder / name) for name in LOG_FILES):
            raise OutputExistsError(
                f"Output {target} would lie in {folder}, which is a converted log.", remedy="name a place beside it."
            )


def refuse_existing(
    target: Path,
    *,
    check_old: Callable[[Path], None] | None = None,
    remedy: str = "name another folder, or remove this one.",
) -> None:
    """Raise, before any work is done, if an output may not be written.

    OutputExistsError where the folder exists and may not be replaced, or would lie in a converted log; UsageError where
    the target is the address of a store. Files that killed processes left of a refused output are removed nevertheless.
    `check_old` raises unless the existing folder may be deleted; None if no folder may be replaced.
    """
    _refuse_address(target)
    refuse_inside_log(target)
    if not os.path.lexists(os.path.realpath(target)):
        return
    if check_old is None:
        collect(target)
        raise OutputExistsError(f"Output {target} exists.", remedy=remedy)
    if os.path.ismount(os.path.realpath(target)):
        raise OutputExistsError(
            f"Output {target} is a mount point, which cannot be replaced.", remedy="name a folder inside it."
        )
    check_old(target)


@contextmanager
def whole_folder(target: Path, *, check_old: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """Give an empty folder to write to, which becomes `target` when all is written and vanishes if anything fails.

    At every moment `target` on disk is either the old folder or the complete new one, also after a kill or a power
    failure: the new folder is put in place in one step, with the permissions of the old one. (Where the system cannot
    exchange two folders, a kill between two steps can leave nothing at `target`: the next run puts the old folder
    back.) No other process can write this output until the block ends. If `target` is a link, its destination is
    written; its parents are made. `check_old` is that of `refuse_existing`.

    Errors that the block raises are passed on unchanged; the block uses `writing` to name the output in them. Raises
    OutputExistsError as `refuse_existing` does, before the block, or after it if a folder appeared meanwhile; and
    before the block OutputInUseError where another process writes this output, and OutputError where it cannot be
    written.
    """
    refuse_existing(target, check_old=check_old)
    with writing(target):
        changed_folders = _make_parents(Path(os.path.realpath(target)))
    with hidden_folder(target) as (place, hidden):
        # The old output may have been put back meanwhile.
        refuse_existing(target, check_old=check_old)
        new = hidden / place.name
        with writing(target):
            new.mkdir()
            if place.exists():
                take_rights(new, place)
        yield new
        with writing(target):
            if place.exists():
                take_rights_inside(new, place)
            for path in (*new.rglob("*"), new):
                sync(path)
            refuse_existing(target, check_old=check_old)
            put_folder(new, place, aside=aside(hidden))
            for folder in changed_folders:
                sync(folder)


def _make_parents(place: Path) -> list[Path]:
    """Make the folders above `place`; return the folders that get a new entry, the one that holds `place` first."""
    absent = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    return [place.parent, *(folder.parent for folder in absent)]


def refuse_outputs(targets: Sequence[Path]) -> None:
    """Raise, before any work is done, if an output file exists or its folder does not; see `refuse_existing`."""
    if any(os.path.lexists(target) for target in targets):
        collect(targets[-1])
    for target in targets:
        _refuse_homeless(target)
        if os.path.lexists(target):
            raise OutputExistsError(f"Output {target} exists.", remedy="name another file, or remove this one.")


def _refuse_homeless(target: Path) -> None:
    _refuse_address(target)
    refuse_inside_log(target)
    if not target.parent.is_dir():
        raise UsageError(f"No folder {target.parent}.", remedy="make it, or name a file elsewhere.")


def _refuse_address(target: Path) -> None:
    """Raise if the target is the address of a store, which would become a local folder called ``s3:``."""
    if is_address(address := as_given(target)):
        raise UsageError(
            f"Output {address} is an address, and outputs are written to disk.",
            remedy="name a place on disk, and copy it from there; `evaluate datasets convert` alone writes to a store.",
        )


@contextmanager
def whole_files(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Give files to write, which become `targets`, new files of one folder, in their order.

    Where the last target exists, the others exist too. A failure leaves none of them, and files that a kill leaves are
    removed by the next run with the same last target. (Where files cannot have two names, as on exFAT, a kill between
    two targets leaves the first.) Errors are those of `refuse_outputs` and `whole_folder`; a file that another process
    creates is not overwritten.
    """
    last = targets[-1]
    _refuse_homeless(last)
    with hidden_folder(last, [target.name for target in targets]) as (_, hidden):
        refuse_outputs(targets)
        parts = [hidden / target.name for target in targets]
        yield parts
        with writing(last):
            for part in parts:
                sync(part)
            refuse_outputs(targets)
            for part, target in zip(parts, targets, strict=True):
                put_file(part, target)
                sync(target.parent)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give a file to write, which replaces `target`, or the destination of that link, when all is written.

    Errors are those of `whole_folder`; a missing folder is not made.
    """
    refuse_inside_log(target)
    with hidden_folder(target) as (place, hidden):
        part = hidden / place.name
        yield part
        with writing(target):
            if place.exists():
                take_rights(part, place)
            sync(part)
            part.replace(place)
            sync(place.parent)


def take_rights(new: Path, old: Path) -> None:
    """Give a new file or folder the mode of the old one and, where permitted, its owner and group.

    The owner always gets the permissions that writing needs: to fill a folder, and to remove it if that fails.
    """
    old_status = old.stat()
    if hasattr(os, "chown"):
        new_status = new.stat()
        if (new_status.st_uid, new_status.st_gid) != (old_status.st_uid, old_status.st_gid):
            with suppress(OSError):
                os.chown(new, old_status.st_uid, old_status.st_gid)
    _set_mode(new, stat.S_IMODE(old_status.st_mode) | (stat.S_IRWXU if new.is_dir() else stat.S_IRUSR))


def take_rights_inside(new: Path, old: Path) -> None:
    """Give each entry of a new folder the permissions of the entry with the same name in the old folder.

    An entry without such a counterpart may be read and written only by those who could do so with the old folder.
    """
    most = stat.S_IMODE(old.stat().st_mode) & _READ_WRITE
    for path in new.iterdir():
        counterpart = old / path.name
        if counterpart.exists() and counterpart.is_dir() == path.is_dir():
            take_rights(path, counterpart)
        elif path.is_file():
            _set_mode(path, stat.S_IMODE(path.stat().st_mode) & most | stat.S_IRUSR)


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:  # file systems without modes refuse any change
        path.chmod(mode)


class FileChecksum(TypedDict):
    """Size of a file in bytes, and the SHA-256 of its content in hexadecimal digits."""

    bytes: int
    sha256: str


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits; memory does not grow with the size of the file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def described(files: Path | Iterable[Path]) -> dict[str, FileChecksum]:
    """Return size and checksum of each file, by its name, in the order of names; of a folder, not its subfolders."""
    paths = [path for path in files.iterdir() if path.is_file()] if isinstance(files, Path) else files
    return {
        path.name: {"bytes": path.stat().st_size, "sha256": checksum(path)}
        for path in sorted(paths, key=lambda path: path.name)
    }
