"""Folders and files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evaluator.errors import OutputExistsError, UsageError


def refuse_existing(
    target: Path,
    *,
    replaceable: Callable[[Path], bool] | None = None,
    hint: str = "name another folder, or remove this one.",
) -> None:
    """Raise before the work is done, not after.

    Parameters
    ----------
    target
        Folder to be written.
    replaceable
        None when nothing may be overwritten; else says whether what is there is of the kind that may.
    hint
        What to do about a folder that is in the way.

    Raises
    ------
    OutputExistsError
        The folder exists and may not be replaced.
    """
    if not target.exists():
        return
    if replaceable is None:
        raise OutputExistsError(f"Output {target} exists.", hint=hint)
    if not replaceable(target):
        raise OutputExistsError(
            f"Output {target} exists and is of another kind.", hint="name another folder: it would be deleted."
        )


@contextmanager
def whole_folder(target: Path, *, replaceable: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """Give a sibling folder to write to, which becomes `target` when all is written and vanishes if anything fails.

    Ctrl-C and SIGTERM count as failures; a kill leaves the old output, and at worst a hidden folder named after this
    process.

    Raises
    ------
    OutputExistsError
        See `refuse_existing`.
    """
    refuse_existing(target, replaceable=replaceable)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.parent / f".{target.name}.partial-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for path in (*partial.iterdir(), partial):
            _sync(path)
        refuse_existing(target, replaceable=replaceable)
        _put_in_place(partial, target)
        _sync(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def refuse_outputs(targets: Sequence[Path]) -> None:
    """Raise before the work is done if an output exists or its folder does not.

    Raises
    ------
    OutputExistsError
        One of the files exists.
    UsageError
        Their folder does not.
    """
    for target in targets:
        refuse_existing(target, hint="name another file, or remove this one.")
        if not target.parent.is_dir():
            raise UsageError(f"No folder {target.parent}.", hint="make it, or name a file elsewhere.")


@contextmanager
def whole_files(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Give files to write in a hidden sibling folder, which become `targets`, the last one last.

    Whoever finds the last target finds the others. Any failure, Ctrl-C included, leaves none of them.
    """
    refuse_outputs(targets)
    partial = targets[-1].parent / f".{targets[-1].name}.partial-{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    placed: list[Path] = []
    try:
        parts = [partial / target.name for target in targets]
        yield parts
        for part in parts:
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
        refuse_outputs(targets)
        for part, target in zip(parts, targets, strict=True):
            part.rename(target)
            placed.append(target)
    except BaseException:
        for target in placed:
            target.unlink()
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, target: Path) -> None:
    if not target.exists():
        partial.rename(target)
        return
    old = target.parent / f".{target.name}.old-{os.getpid()}"
    target.rename(old)
    try:
        partial.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
