"""Write a dataset once in canonical form, so that replays scan it at disk speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from evaluator.atomic import refuse_existing, whole_folder
from evaluator.datasets.adapter import Reading
from evaluator.datasets.canonical import is_canonical, write_canonical
from evaluator.datasets.resolve import read

QUARANTINE_FILE = "quarantine.parquet"


def convert(dataset: str | Path, out: str | Path, *, overwrite: bool = False, **options: Any) -> Reading:
    """Write a dataset to the canonical folder `out` and return it, with rows left out in ``quarantine.parquet``.

    Parameters
    ----------
    dataset, options
        As in `evaluator.datasets.load`.
    out
        Folder to write; parents are made.
    overwrite
        Replace a canonical folder that is there already.

    Raises
    ------
    OutputExistsError
        `out` exists and `overwrite` is false, or it exists and is no canonical folder.
    """
    target = Path(out)
    replaceable = is_canonical if overwrite else None
    refuse_existing(target, replaceable=replaceable, hint="name another folder, or overwrite it (--overwrite).")
    reading = read(dataset, **options)
    with whole_folder(target, replaceable=replaceable) as folder:
        write_canonical(reading.log, folder)
        if reading.quarantine.num_rows:
            pq.write_table(reading.quarantine, folder / QUARANTINE_FILE)
    return reading
