"""Converted logs in object stores: written beside what is there, and not there before all of it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from evaluator.datasets.log_folders import ObjectFolder
from evaluator.datasets.meta_file import FILES, META, is_part
from evaluator.errors import OutputExistsError, OutputInUseError


def refuse_taken(folder: ObjectFolder) -> None:
    """Raise before the work is done if a log cannot be written there. What a killed conversion left is no hindrance.

    Raises
    ------
    OutputExistsError
        A log is there, or something else; or the folder would lie in a converted log.
    SourceError
        The store cannot be reached, or refuses.
    """
    names = set(folder.objects)
    if META in names:
        raise OutputExistsError(f"Output {folder} exists.", hint="name another folder, or remove this one.")
    if foreign := [name for name in names if name not in FILES and not is_part(name)]:
        raise OutputExistsError(
            f"Output {folder} holds {min(foreign)}, which is not of a converted log.", hint="name another folder."
        )
    for above in PurePosixPath(folder.key).parents:
        meta = META if str(above) == "." else f"{above}/{META}"
        if folder.store.head(meta) is not None:
            place = folder.store.url(meta).removesuffix(f"/{META}")
            raise OutputExistsError(
                f"Output {folder} would lie in {place}, which is a converted log.", hint="name a place beside it."
            )


def upload(log: Path, folder: ObjectFolder) -> None:
    """Write the files of a converted log, ``meta.json`` last, by which it is one: who is killed before leaves no log.

    Raises
    ------
    OutputExistsError
        Another command has written a log there meanwhile.
    OutputInUseError
        Another command is writing one, too: no log is there then, and the same command goes on.
    SourceError
        The store does not take a file.
    """
    refuse_taken(folder := folder.listed_anew())
    files = {path.name: path for path in sorted(log.iterdir())}
    folder.store.delete([found.key for name, found in folder.objects.items() if name not in files])
    key = {name: f"{folder.key}/{name}".lstrip("/") for name in files}
    tags: dict[str, str] = {}
    for name in (name for name in files if name != META):
        if folder.store.head(key[META]) is not None:
            raise OutputExistsError(f"Output {folder} exists.", hint="name another folder, or remove this one.")
        tags[name] = folder.store.write(key[name], files[name])
    _refuse_others(folder, tags)
    folder.store.write(key[META], files[META], new=True)
    try:
        _refuse_others(folder, tags)
    except OutputInUseError:
        folder.store.delete([key[META]])
        raise


def _refuse_others(folder: ObjectFolder, tags: Mapping[str, str]) -> None:
    """Raise if an object is not the one that was written, by its tag; one that a store gave no tag is not told."""
    there = folder.listed_anew().objects
    for name, tag in tags.items():
        if tag and (name not in there or there[name].tag != tag):
            raise OutputInUseError(
                f"Output {folder}: another command is writing a log there.", hint="wait until it is done, and look."
            )
