"""Parts of a log: what is left of its displays when some never got into the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.datasets import load
from evaluator.log import Log, StoredLog
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import write_canonical


def part_of(log: Log, keep: npt.NDArray[np.bool_], **columns: npt.NDArray[Any]) -> Log:
    """Return the displays to keep and their conversions, with further columns, shape (n,) before the choice."""
    displays = log.displays.filter(pa.array(keep))
    displays = displays.set_column(0, "display_id", pa.array(np.arange(len(displays))))
    for name, column in columns.items():
        displays = displays.append_column(name, pa.array(column[keep]))
    of = to_numpy(log.conversions["display_id"])
    number = pa.array((np.cumsum(keep) - 1)[of[keep[of]]])
    conversions = log.conversions.filter(pa.array(keep[of])).set_column(0, "display_id", number)
    return Log(displays, conversions, log.actions, log.meta)


def converted(log: Log) -> npt.NDArray[np.bool_]:
    """Return which displays converted, shape (n,)."""
    out = np.zeros(len(log), np.bool_)
    out[to_numpy(log.conversions["display_id"])] = True
    return out


def stored(log: Log, folder: Path, **options: Any) -> StoredLog:
    """Write a log into a new folder and read it with options."""
    folder.mkdir()
    write_canonical(log, folder)
    found = load(folder, **options)
    assert isinstance(found, StoredLog)
    return found
