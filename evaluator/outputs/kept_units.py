"""Finished units of a command that was interrupted, a file each, kept until its output is written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.outputs.kept_folder import RESULT, part_files, part_name, read_kept, write_kept

_COLUMN = "found"


class KeptUnits:
    """What units found, as texts, named by the hash of all that fixes them and by a checksum of what they are.

    Files appear whole or not at all, whenever the process is killed.

    Parameters
    ----------
    folder
        Folder of the units; made with the first of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, keys: Iterable[str]) -> dict[str, str]:
        """Return what is there of the units with these keys; damaged files are removed."""
        asked = set(keys)
        found = {}
        for file, (key, digest) in part_files(self.folder).items():
            if key in asked:
                text = _text(read_kept(file, digest), key)
                if text is None:
                    file.unlink(missing_ok=True)
                else:
                    found[key] = text
        return found

    def keep(self, key: str, text: str) -> None:
        """Write what a unit found.

        Raises
        ------
        OutputError
            The folder cannot be written.
        """
        table = pa.table({_COLUMN: [text]}).replace_schema_metadata({RESULT: json.dumps({"key": key})})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        write_kept(self.folder, part_name, key, sink.getvalue().to_pybytes())


def _text(content: bytes | None, key: str) -> str | None:
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
