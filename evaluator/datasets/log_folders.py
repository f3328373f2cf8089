"""Folders of converted logs, on disk and in object stores."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaluator.datasets.sources.stores import Store, StoredObject, is_address, open_store
from evaluator.log.log_files import LogFile, RemoteFile

# What a Path makes of an address: two slashes become one.
_AS_PATH = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")


@dataclass(frozen=True)
class ObjectFile(RemoteFile):
    """An object of a converted log.

    Parameters
    ----------
    folder
        Folder that holds it.
    name
        Name within the folder.
    """

    folder: ObjectFolder
    name: str

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"

    @property
    def parent(self) -> ObjectFolder:
        """Folder that holds it."""
        return self.folder

    @property
    def size(self) -> int:
        """Number of bytes; FileNotFoundError where there was no such object when the folder was listed."""
        return self._listed.size

    def state(self) -> object:
        """Return its ETag and size as listed, by which every read of it goes; None where it is not there."""
        return self.folder.objects.get(self.name)

    def read(self, start: int, end: int) -> bytes:
        """Return its bytes from one place to before another."""
        return self.folder.store.read(self._listed, start, end)

    @property
    def _listed(self) -> StoredObject:
        if (found := self.folder.objects.get(self.name)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found


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
        return ObjectFile(self, name)

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
    address = _AS_PATH.sub(r"\1://", str(place)) if isinstance(place, Path) else str(place)
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
    assert isinstance(file, Path | ObjectFile)
    return file.parent
