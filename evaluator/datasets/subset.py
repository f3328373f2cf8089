"""Parts of a log in canonical form: its first displays, some of its actions; less of its file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.datasets.actions import USED, ShownActions, choose_actions, kept_propensities
from evaluator.log import StoredLog
from evaluator.log.schema import ELIGIBLE, WEIGHT, to_numpy


def first_displays(log: StoredLog, n: int) -> StoredLog:
    """Return the first `n` displays and their conversions."""
    conversions = int(np.searchsorted(to_numpy(log.conversions["display_id"]), n, side="left"))
    selection = replace(log.selection, rows=n, kept=n)
    return StoredLog(
        log.path, selection, conversions=log.conversions.slice(0, conversions), actions=log.actions, meta=log.meta
    )


def only_actions(log: StoredLog, wanted: str | Sequence[str]) -> StoredLog:
    """Return the displays of some actions, as `evaluator.datasets.load` does while reading files.

    Delays still count the displays of all actions: the log has the column ``position``. Propensities become those of
    the fewer actions where `evaluator.datasets.actions.kept_propensities` knows them.

    Raises
    ------
    UsageError, UnknownNameError
        The choice of actions is no such choice, or names one that is not there; see
        `evaluator.datasets.actions.choose_actions`.
    """
    meta = log.meta
    logged = meta.propensity in ("logged", "estimated")
    seen = ShownActions(log.n_actions)
    judged = np.zeros(log.n_actions, np.int64)
    until = None if meta.observed_until is None else meta.observed_until - (meta.attribution_window or 0)
    for _, batch in log.batches(["action", "time", *["propensity"] * logged, *[WEIGHT] * (WEIGHT in log.schema.names)]):
        action = batch["action"]
        seen.read(action, batch.get("propensity"), batch.get(WEIGHT))
        mature = action if until is None else action[: np.searchsorted(batch["time"], until, side="right")]
        judged += np.bincount(mature, minlength=log.n_actions)
    shown = seen.shown
    old = np.array(choose_actions(log.labels, judged if wanted == USED else shown, wanted))
    new_action = np.full(log.n_actions, -1, np.int32)
    new_action[old] = np.arange(len(old), dtype=np.int32)
    kept = int(shown[old].sum())
    found = kept_propensities(log.meta.propensity, seen, old, sets=ELIGIBLE in log.schema.names)
    conversions = _renumbered(log, new_action)
    counts = {
        **log.meta.counts,
        "displays_dropped_by_actions": len(log) - kept,
        "share_of_displays_kept": kept / len(log),
        "conversions_dropped_by_actions": log.conversions.num_rows - conversions.num_rows,
        "displays": kept,
        "conversions": conversions.num_rows,
    }
    return StoredLog(
        log.path,
        replace(log.selection, kept=kept, new_action=new_action, propensity=found.of_action),
        conversions=conversions,
        actions=log.actions.take(pa.array(old)).set_column(0, "action", pa.array(np.arange(len(old), dtype=np.int32))),
        meta=replace(
            log.meta,
            counts=counts,
            notes=(*log.meta.notes, *found.notes),
            kept_share=log.meta.kept_share * found.kept_share,
        ),
    )


def _renumbered(log: StoredLog, new_action: npt.NDArray[np.int32]) -> pa.Table:
    """Return the conversions of the kept displays, with the numbers these have among themselves."""
    of = to_numpy(log.conversions["display_id"]).astype(np.int64)
    number = np.full(len(of), -1, np.int64)
    before = 0
    for first, batch in log.batches(["action"]):
        kept = new_action[batch["action"]] >= 0
        place = before + np.cumsum(kept) - 1
        low, high = np.searchsorted(of, [first, first + len(kept)])
        at = of[low:high] - first
        number[low:high] = np.where(kept[at], place[at], -1)
        before += int(kept.sum())
    conversions = log.conversions.filter(pa.array(number >= 0))
    return conversions.set_column(0, "display_id", pa.array(number[number >= 0]))
