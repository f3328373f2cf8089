"""Results of finished jobs, one file each, which are kept until the command has written its output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.outputs.kept_folder import RESULT, part_files, part_name, read_kept, write_kept

_COLUMN = "found"


class KeptJobs:
    """Results of jobs as texts, in files named by the key of the job and the checksum of the content.

    Each file is complete or absent, whenever the process is killed.

    Parameters
    ----------
    folder
        Folder of the results, which is made with the first of them.
    say
        Function that is called with a sentence: once when results are found, and when results are damaged.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = lambda sentence: None) -> None:
        self.folder = folder
        self._say = say
        self._has_reported = False

    def find(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the kept results of the jobs with these keys; damaged files are removed."""
        wanted = set(keys)
        texts, damaged = {}, 0
        for file, (key, digest) in part_files(self.folder).items():
            if key in wanted:
                text = _read_text(read_kept(file, digest), key)
                if text is None:
                    file.unlink(missing_ok=True)
                    damaged += 1
                else:
                    texts[key] = text
        if texts and not self._has_reported:
            self._say(f"Took up what was finished before, from {self.folder}.")
            self._has_reported = True
        if damaged:
            self._say(f"Damaged, so computed anew: {damaged:,} kept in {self.folder}.")
        return texts

    def keep(self, key: str, text: str) -> None:
        """Write the results of a job.

        Raises
        ------
        OutputError
            The folder cannot be written.
        """
        table = pa.table({_COLUMN: [text]}).replace_schema_metadata({RESULT: json.dumps({"key": key})})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        write_kept(self.folder, part_name, key, sink.getvalue().to_pybytes())


def _read_text(content: bytes | None, key: str) -> str | None:
    if content is None:
        return None
    try:
        table = pq.read_table(pa.BufferReader(content))
        if json.loads(table.schema.metadata[RESULT])["key"] != key:
            return None
        text: str = table[_COLUMN][0].as_py()
    except (pa.ArrowException, ValueError, KeyError, TypeError, IndexError):
        return None
    return text
