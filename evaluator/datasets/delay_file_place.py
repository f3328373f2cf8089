"""Where a bare file of delays lies, so that another process can open the same one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluator.datasets.delay_file import read_delay_file
from evaluator.datasets.delay_file_options import DelayFileOptions
from evaluator.errors import EvaluatorError, WorkerError
from evaluator.executors.workers import in_folder, this_folder, this_worker
from evaluator.log.delay_content import delays_hash
from evaluator.log.delay_rows import DelayRows


@dataclass(frozen=True)
class DelayFilePlace:
    """Where a file of delays lies, how it is read, and what it holds.

    Parameters
    ----------
    file
        Path of the file, a glob, or a folder, as `evaluator.datasets.delay_file.read_delay_file` takes it.
    reading
        Options of the reading.
    folder
        Working folder of the command, in which relative names are looked up.
    content
        Hash of its delays (`evaluator.log.delay_content.delays_hash`).
    """

    file: str
    reading: DelayFileOptions
    folder: str
    content: str

    def opened(self) -> DelayRows:
        """Return the delays, if they are those that were meant.

        Raises
        ------
        WorkerError
            The file is not there for this worker, or another one is; the message names worker and file.
        """
        try:
            in_folder(self.folder)
            rows = read_delay_file(self.file, self.reading).rows
        except (EvaluatorError, OSError) as error:
            raise WorkerError(
                f"Worker {this_worker()} cannot open the file of delays: {error}",
                hint="put it where every worker sees it under the same name, and name that.",
            ) from error
        if delays_hash(rows) != self.content:
            raise WorkerError(
                f"Worker {this_worker()} is refused: it reads other delays under the name {self.file}.",
                hint="let all workers see the same file, or copy it to each.",
            )
        return rows


def place_of_file(file: Path, reading: DelayFileOptions, rows: DelayRows) -> DelayFilePlace:
    """Return the place of a file of delays that was read so."""
    return DelayFilePlace(str(file), reading, this_folder(), delays_hash(rows))
