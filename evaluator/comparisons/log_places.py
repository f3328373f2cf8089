"""Where a log lies, so that another process can open the same one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.errors import EvaluatorError, WorkerError
from evaluator.jobs.workers import in_folder, this_folder, this_worker
from evaluator.log import Log, StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.reading.canonical import is_canonical, open_canonical, write_canonical
from evaluator.reading.log_folders import folder_of
from evaluator.reading.resolve import read


@dataclass(frozen=True)
class LogPlace:
    """Where a log lies: its dataset, options of its reading, the working folder, and the hash of what it holds."""

    dataset: str
    reading: tuple[tuple[str, Any], ...]
    folder: str
    content: str

    def opened(self) -> Log:
        """Return the log, if it is the one that was meant; WorkerError, which names worker and log, if it is not."""
        try:
            in_folder(self.folder)
            log = read(self.dataset, **dict(self.reading)).log
        except (EvaluatorError, OSError) as error:
            raise WorkerError(
                f"Worker {this_worker()} cannot open the log: {error}",
                remedy="convert the log to a folder that every worker sees under the same name, and name that.",
            ) from error
        if content_hash(log) != self.content:
            raise WorkerError(
                f"Worker {this_worker()} is refused: it reads another log under the name {self.dataset}.",
                remedy="let all workers see the same folder, or copy it to each.",
            )
        return log


def place_of(log: Log, dataset: str | None, reading: Mapping[str, Any]) -> LogPlace:
    """Return the place of a log that was read so; without a name, the bundled synthetic one."""
    named = "synthetic" if dataset is None else dataset
    return LogPlace(named, tuple(reading.items()), this_folder(), content_hash(log))


@contextmanager
def at_a_place(log: Log, named: str | None, reading: Mapping[str, Any]) -> Iterator[tuple[Log, LogPlace]]:
    """Give a log that workers can open, and its place: by the name of its dataset and how it was read.

    A log without a name is looked for in its own folder, or else written to one that ends with the block.
    """
    if named is not None:
        yield log, place_of(log, named, reading)
        return
    if isinstance(log, StoredLog) and is_canonical(own := folder_of(log.paths[0])):
        whole = open_canonical(own)
        if content_hash(whole) == content_hash(log):
            yield log, place_of(log, str(own.resolve() if isinstance(own, Path) else own), {})
            return
    with tempfile.TemporaryDirectory(prefix="evaluate-log-") as folder:
        # Its fingerprint too: results say what they say without workers.
        write_canonical(log, Path(folder), fingerprint=log.meta.fingerprint)
        stored = open_canonical(Path(folder))
        yield stored, place_of(stored, folder, {})
