"""Write a dataset once in canonical form, so that replays scan it at disk speed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluator.datasets.adapter import Reading
from evaluator.datasets.canonical import is_canonical
from evaluator.datasets.resolve import read
from evaluator.log import StoredLog
from evaluator.outputs.failures import writing
from evaluator.outputs.whole import refuse_existing, whole_folder

QUARANTINE_FILE = "quarantine.parquet"


def convert(
    dataset: str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    advance: Callable[[int], None] = lambda rows: None,
    **options: Any,
) -> Reading:
    """Write a dataset to the canonical folder `out` and return it, with rows left out in ``quarantine.parquet``.

    Memory does not grow with the number of displays (`evaluator.datasets.adapter.read_files` says what it holds); the
    log returned reads them from `out`. Until it is done the folder takes some 20 bytes a display more, and twice the
    columns read if it sorts.

    Parameters
    ----------
    dataset, options
        As in `evaluator.datasets.load`.
    out
        Folder to write; parents are made.
    overwrite
        Replace a canonical folder that is there already.
    advance
        Called with the number of rows read since the last call.

    Raises
    ------
    OutputExistsError
        `out` exists and `overwrite` is false, or it exists and is no canonical folder.
    OutputError
        `out` cannot be written; what was there before is left as it was.
    """
    target = Path(out)
    replaceable = is_canonical if overwrite else None
    refuse_existing(target, replaceable=replaceable, hint="name another folder, or overwrite it (--overwrite).")
    with writing(target), whole_folder(target, replaceable=replaceable) as folder:
        done = read(dataset, into=folder, advance=advance, **options)
        if done.quarantine.num_rows:
            pq.write_table(done.quarantine, folder / QUARANTINE_FILE)
    log = done.log
    assert isinstance(log, StoredLog)
    moved = StoredLog(
        target / log.path.name, log.selection, conversions=log.conversions, actions=log.actions, meta=log.meta
    )
    return Reading(moved.as_sound_as(log), done.quarantine)
