"""Objects of a store as files that are read by ranges of bytes."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from evaluator.datasets.sources.stores import Store, StoredObject
from evaluator.log.log_files import RemoteFile


@dataclass(frozen=True)
class ObjectFile(RemoteFile):
    """An object as it was listed.

    Parameters
    ----------
    store
        Store that holds it.
    key
        Path of the object within the bucket.
    listed
        Object as it was listed; None where there was none of this name.
    """

    store: Store
    key: str
    listed: StoredObject | None

    def __str__(self) -> str:
        return self.store.url(self.key)

    @property
    def name(self) -> str:
        """Last part of its key."""
        return self.key.rsplit("/", 1)[-1]

    @property
    def size(self) -> int:
        """Number of bytes; FileNotFoundError where there was no such object."""
        return self._listed.size

    def state(self) -> object:
        """Return its ETag and size as listed, by which every read of it goes; None where it is not there."""
        return self.listed

    def read(self, start: int, end: int) -> bytes:
        """Return its bytes from one place to before another."""
        return self.store.read(self._listed, start, end)

    @property
    def _listed(self) -> StoredObject:
        if self.listed is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.listed
