"""Folders of converted logs as earlier versions of the format have them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import pyarrow.parquet as pq

from evaluator.reading.canonical import ROWS_PER_GROUP, WRITTEN, open_canonical
from evaluator.reading.log_folders import CONVERSIONS, EVENTS, META, OUTCOMES, stored_file


def rewrite(folder: Path, version: int) -> Path:
    """Make a folder of the newest version one of an earlier version: conversions and other events in two tables."""
    log = open_canonical(folder)
    (folder / EVENTS).unlink()
    pq.write_table(log.conversions, folder / CONVERSIONS, row_group_size=ROWS_PER_GROUP, **WRITTEN)
    if log.outcomes.num_rows:
        pq.write_table(log.outcomes, folder / OUTCOMES, row_group_size=ROWS_PER_GROUP, **WRITTEN)
    said = {
        "schema_version": version,
        "written_by": "delayed-replay 0.1.0",
        **log.meta.to_dict(),
        "encoder": None if log.meta.encoder is None else log.meta.encoder.to_dict(),
        "files": {path.name: asdict(stored_file(path)) for path in sorted(folder.glob("*.parquet"))},
    }
    since = {"written_by": 2, "files": 2, "encoder": 3, "outcomes": 4}
    said = {name: value for name, value in said.items() if version >= since.get(name, 1)}
    if version > 1:
        said["checksum"] = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    (folder / META).write_text(json.dumps(said))
    return folder
