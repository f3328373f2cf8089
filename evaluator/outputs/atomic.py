"""Folders and files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from evaluator.errors import OutputExistsError, UsageError
from evaluator.outputs.failures import writing
from evaluator.outputs.ownership import refuse_inside_log
from evaluator.outputs.staging import aside, collect, hidden_folder, put_file, put_folder, sync
from evaluator.store_addresses import as_given, is_address

_READ_WRITE = 0o666


def refuse_existing(
    target: Path,
    *,
    check_old: Callable[[Path], None] | None = None,
    remedy: str = "name another folder, or remove this one.",
) -> None:
    """Raise before the work is done, not after.

    What killed processes left of an output that is refused is removed all the same.

    Parameters
    ----------
    target
        Folder to be written, or a link to where it goes.
    check_old
        Function that looks at the folder that is there, and raises unless it may be deleted; None when nothing may be
        replaced.
    remedy
        Sentence that says what to do about a folder that is in the way.

    Raises
    ------
    OutputExistsError
        The folder exists and may not be replaced, or would lie in a converted log.
    UsageError
        It is the address of a store.
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

    At every moment `target` is what it was or all of the new, on disk, also for who is killed or loses power: it is
    put in place in one step, with the rights of what it replaces. (Where the system cannot exchange two folders, a
    kill between two steps can leave nothing at `target`: the next run puts the old one back.) Until the block ends
    nobody else can write this output. If `target` is a link, what it points to is written.

    Failures of the block itself are passed on as they are: `writing` is for those.

    Parameters
    ----------
    target
        Path of the folder to write; its parents are made.
    check_old
        Function that lets an old folder be replaced, as in `refuse_existing`; None when nothing may be replaced.

    Raises
    ------
    OutputExistsError
        The folder may not be written, as in `refuse_existing`; raised before the block, or after it if a folder
        appeared meanwhile.
    OutputInUseError
        Another process writes this output.
    OutputError
        The folder cannot be written there; this too is found before the block.
    """
    refuse_existing(target, check_old=check_old)
    with writing(target):
        touched = _make_parents(Path(os.path.realpath(target)))
    with hidden_folder(target) as (place, hidden):
        # The old output may have been put back.
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
            for folder in touched:
                sync(folder)


def _make_parents(place: Path) -> list[Path]:
    """Make the folders above `place`; return those that have a new entry, its own among them."""
    absent = [folder for folder in place.parents if not folder.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    return [place.parent, *(folder.parent for folder in absent)]


def refuse_outputs(targets: Sequence[Path]) -> None:
    """Raise before the work is done if an output exists or its folder does not; see `refuse_existing`.

    Raises
    ------
    OutputExistsError
        One of the files exists, or would lie in a converted log.
    UsageError
        The folder of the files does not exist, or it is the address of a store.
    """
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
    """Raise if a place is the address of a store: it would become a folder called ``s3:``."""
    if is_address(address := as_given(target)):
        raise UsageError(
            f"Output {address} is an address, and outputs are written to disk.",
            remedy="name a place on disk, and copy it from there; `evaluate datasets convert` alone writes to a store.",
        )


@contextmanager
def whole_files(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Give files to write, which become `targets`, new files of one folder, the last one last.

    Whoever finds the last target finds the others. Any failure leaves none of them, and what a kill leaves is taken
    back by the next run for the same last target. (Where files cannot have two names, as on exFAT, a kill between two
    of the targets leaves the first.)

    Raises
    ------
    OutputExistsError, UsageError
        A file may not be written, as in `refuse_outputs`. A file that appears meanwhile is not overwritten.
    OutputInUseError, OutputError
        The files cannot be written, as in `whole_folder`.
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
    """Give a file to write, which replaces `target`, or what that links to, when all is written.

    Raises
    ------
    OutputExistsError
        The file would lie in a converted log.
    OutputInUseError, OutputError
        The file cannot be written, as in `whole_folder`; a missing folder is not made.
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

    The owner may do all that writing takes: a folder must be filled, and can be removed if that fails.
    """
    found = old.stat()
    if hasattr(os, "chown"):
        made = new.stat()
        if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
            with suppress(OSError):
                os.chown(new, found.st_uid, found.st_gid)
    _set_mode(new, stat.S_IMODE(found.st_mode) | (stat.S_IRWXU if new.is_dir() else stat.S_IRUSR))


def take_rights_inside(new: Path, old: Path) -> None:
    """Give what lies in a new folder the rights of what has its name in the old one.

    What has no counterpart there may be read and written by nobody who could not do so with the old folder.
    """
    most = stat.S_IMODE(old.stat().st_mode) & _READ_WRITE
    for path in new.iterdir():
        counterpart = old / path.name
        if counterpart.exists() and counterpart.is_dir() == path.is_dir():
            take_rights(path, counterpart)
        elif path.is_file():
            _set_mode(path, stat.S_IMODE(path.stat().st_mode) & most | stat.S_IRUSR)


def _set_mode(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) != mode:  # file systems without modes refuse others than they show
        path.chmod(mode)
