"""Checks that replacing an output deletes no file that this package did not write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from evaluator.errors import OutputExistsError

# Files by which a folder is recognised as a converted log, together with the first file of its displays.
LOG_FILES = ("meta.json", "actions.parquet")
DISPLAYS = ("displays.parquet", "displays-00001.parquet")


def refuse_foreign(
    folder: Path, ours: Callable[[Path], bool], *, kind: str, remedy: str = "name another folder, or move it elsewhere."
) -> None:
    """Raise if a folder that is to be deleted holds anything but files that this package writes.

    Parameters
    ----------
    folder
        Existing folder that is to be deleted.
    ours
        Function that tells whether this package writes such a file. Links and folders are always refused.
    kind
        Name of the kind of folder that is expected, such as ``"a converted log"``.
    remedy
        Sentence that says what to do about the other files.

    Raises
    ------
    OutputExistsError
        The folder holds another entry, which the message names.
    """
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or not ours(path):
            raise OutputExistsError(
                f"Output {folder} holds {path.name}, which is not of {kind}: it would be deleted.",
                remedy=remedy,
            )


def refuse_sources(target: Path, sources: Iterable[Path]) -> None:
    """Raise if a source that is read lies in the folder that is to be replaced, also where a link leads there.

    Raises
    ------
    OutputExistsError
        A source lies in the folder.
    """
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
    """Raise if an output would lie in a converted log, which may hold no other files.

    Raises
    ------
    OutputExistsError
        A folder above the output is a converted log.
    """
    for folder in Path(os.path.realpath(target)).parents:
        has = [os.path.isfile(folder / name) for name in DISPLAYS]
        if any(has) and all(os.path.isfile(folder / name) for name in LOG_FILES):
            raise OutputExistsError(
                f"Output {target} would lie in {folder}, which is a converted log.", remedy="name a place beside it."
            )
