"""Folders of converted logs, on disk and in object stores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluator.datasets.sources.remote_objects import ObjectFile
from evaluator.datasets.sources.stores import Store, StoredObject, open_store
from evaluator.log.log_files import LogFile
from evaluator.store_addresses import as_given, is_address


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of an object store, as it was when it was listed first.

    Parameters
    ----------
    store
        Store that holds it.
    key
        Path of the folder within the bucket, without a slash at the end; empty for the whole bucket.
    """

    store: Store
    key: str

    def __str__(self) -> str:
        return self.store.url(self.key).rstrip("/")

    def __truediv__(self, name: str) -> ObjectFile:
        return ObjectFile(self.store, f"{self.key}/{name}".lstrip("/"), self.objects.get(name))

    @property
    def name(self) -> str:
        """Last part of its address."""
        return str(self).rsplit("/", 1)[-1]

    @cached_property
    def objects(self) -> dict[str, StoredObject]:
        """What it holds, by the name within; one question, however many there are."""
        cut = len(self.key) + 1 if self.key else 0
        return {one.key[cut:]: one for one in self.store.objects(self.key)}

    def listed_anew(self) -> ObjectFolder:
        """Return it as it is now."""
        return ObjectFolder(self.store, self.key)


LogFolder = Path | ObjectFolder


def folder_at(place: str | Path) -> LogFolder:
    """Return the folder of a path or an address; credentials, endpoint and region are those of the environment.

    Raises
    ------
    SourceError
        It is an address, and none of an object store.
    UsageError
        The address holds a secret.
    """
    address = as_given(place)
    if not is_address(address):
        return Path(place)
    store, key = open_store(address, None)
    return ObjectFolder(store, key.strip("/"))


def names_in(folder: LogFolder) -> set[str]:
    """Return the names of all that a folder holds; OSError where it cannot be read."""
    return set(folder.objects) if isinstance(folder, ObjectFolder) else {path.name for path in folder.iterdir()}


def holds(folder: LogFolder, name: str) -> bool:
    """Whether a folder holds a file of a name."""
    return name in folder.objects if isinstance(folder, ObjectFolder) else (folder / name).is_file()


def folder_of(file: LogFile) -> LogFolder:
    """Return the folder of a file of a log."""
    if isinstance(file, Path):
        return file.parent
    assert isinstance(file, ObjectFile)
    return ObjectFolder(file.store, file.key.rpartition("/")[0])
