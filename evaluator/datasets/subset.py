"""Parts of a log that is already in canonical form: its first displays, some of its actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.datasets.actions import index_actions
from evaluator.datasets.metadata import FILTERED_ACTIONS
from evaluator.errors import UsageError
from evaluator.log import Log
from evaluator.log.contract import fixed_size_lists, to_numpy

_PER_ACTION = ("action_set", "expected_reward")


def first_displays(log: Log, n: int) -> Log:
    """Return the first `n` displays and their conversions.

    Raises
    ------
    UsageError
        `n` is below 1.
    """
    if n < 1:
        raise UsageError(f"limit={n}.", hint="give the number of displays to read, at least 1.")
    conversions = int(np.searchsorted(to_numpy(log.conversions["display_id"]), n, side="left"))
    return replace(log, displays=log.displays.slice(0, n), conversions=log.conversions.slice(0, conversions))


def only_actions(log: Log, wanted: str | Sequence[str]) -> Log:
    """Return the displays of some actions, as `evaluator.datasets.load` does while reading files.

    Logged propensities stay those of the full action set; uniform ones become 1/K of the kept actions.

    Raises
    ------
    UsageError, UnknownNameError
        See `evaluator.datasets.actions.index_actions`.
    """
    action = log.column("action")
    kept = index_actions(pl.Series(log.labels, dtype=pl.String).gather(action), wanted)
    shown = kept.index >= 0
    new_id = np.where(shown, np.cumsum(shown) - 1, -1)
    displays = log.displays.filter(pa.array(shown))
    columns: dict[str, pa.Array | pa.ChunkedArray] = {c: displays[c] for c in displays.column_names}
    columns["display_id"] = pa.array(np.arange(displays.num_rows))
    columns["action"] = pa.array(kept.index[shown])
    if log.meta.propensity == "uniform":
        columns["propensity"] = pa.array(np.full(displays.num_rows, 1.0 / len(kept.labels)))
    where = np.array([log.labels.index(label) for label in kept.labels])
    for name in _PER_ACTION:
        if name in columns:
            columns[name] = fixed_size_lists(to_numpy(columns[name])[:, where])
    of: npt.NDArray[np.int64] = new_id[to_numpy(log.conversions["display_id"])]
    conversions = log.conversions.filter(pa.array(of >= 0))
    conversions = conversions.set_column(0, "display_id", pa.array(of[of >= 0]))
    actions = log.actions.take(pa.array(where)).set_column(0, "action", pa.array(np.arange(len(where), dtype=np.int32)))
    counts = {
        **log.meta.counts,
        "displays_dropped_by_actions": int((~shown).sum()),
        "kept_share": float(shown.mean()),
        "displays": displays.num_rows,
        "conversions": conversions.num_rows,
    }
    notes = (*log.meta.notes, FILTERED_ACTIONS) if log.meta.propensity == "logged" else log.meta.notes
    return Log(pa.table(columns), conversions, actions, replace(log.meta, counts=counts, notes=notes)).validated()
