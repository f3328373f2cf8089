"""Parts of a log in canonical form: its first displays, some of its actions; less of its file is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.datasets.actions import USED, ShownActions, choose_actions, kept_propensities
from evaluator.log import StoredLog
from evaluator.log.eligible import SetCodes, any_eligible, sizes
from evaluator.log.schema import ELIGIBLE, WEIGHT, to_numpy


def first_displays(log: StoredLog, n: int) -> StoredLog:
    """Return the first `n` displays and their events."""

    def of_these(events: pa.Table) -> pa.Table:
        return events.slice(0, int(np.searchsorted(to_numpy(events["display_id"]), n, side="left")))

    selection = replace(log.selection, rows=n, kept=n)
    return log.changed(selection=selection, conversions=of_these(log.conversions), outcomes=of_these(log.outcomes))


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
    found = kept_propensities(log.meta.propensity, seen, old, choosable=_choosable(log, old))
    conversions, outcomes = _renumbered(log, new_action, log.conversions, log.outcomes)
    counts = {
        **log.meta.counts,
        "displays_dropped_by_actions": len(log) - kept,
        "share_of_displays_kept": kept / len(log),
        "conversions_dropped_by_actions": log.conversions.num_rows - conversions.num_rows,
        "displays": kept,
        "conversions": conversions.num_rows,
    }
    return log.changed(
        selection=replace(log.selection, kept=kept, new_action=new_action, propensity=found.of_action),
        conversions=conversions,
        outcomes=outcomes,
        actions=log.actions.take(pa.array(old)).set_column(0, "action", pa.array(np.arange(len(old), dtype=np.int32))),
        meta=replace(
            log.meta,
            counts=counts,
            propensity=found.kind,
            notes=(*log.meta.notes, *found.notes),
            kept_share=log.meta.kept_share * found.kept_share,
        ),
    )


def _choosable(log: StoredLog, actions: npt.NDArray[np.integer]) -> float | None:
    """Return the weight of the displays at which one of these actions is eligible; None where displays have no sets.

    Displays that are themselves left of a choice of actions stand for others with such sets: 1/p of the one that was
    shown is |E| on average, however often the logger showed one of the set.
    """
    if ELIGIBLE not in log.schema.names:
        return None
    share, total = log.meta.kept_share, 0.0
    reads = [ELIGIBLE, *[WEIGHT] * (WEIGHT in log.schema.names), *["propensity"] * (share < 1.0)]
    for _, batch in log.batches(reads, coded=True):
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        of = np.where(any_eligible(sets, actions), batch.get(WEIGHT, 1.0), 0.0)
        total += float((of if share == 1.0 else of * share / (batch["propensity"] * sizes(sets))).sum())
    return total


def _renumbered(log: StoredLog, new_action: npt.NDArray[np.int32], *tables: pa.Table) -> list[pa.Table]:
    """Return the events of the kept displays, with the numbers these have among themselves."""
    displays = [to_numpy(events["display_id"]).astype(np.int64) for events in tables]
    numbers = [np.full(len(of), -1, np.int64) for of in displays]
    before = 0
    for first, batch in log.batches(["action"]):
        kept = new_action[batch["action"]] >= 0
        place = before + np.cumsum(kept) - 1
        for of, number in zip(displays, numbers, strict=True):
            low, high = np.searchsorted(of, [first, first + len(kept)])
            at = of[low:high] - first
            number[low:high] = np.where(kept[at], place[at], -1)
        before += int(kept.sum())
    found = []
    for events, number in zip(tables, numbers, strict=True):
        rest, at = events.filter(pa.array(number >= 0)), events.schema.get_field_index("display_id")
        found.append(rest.set_column(at, "display_id", pa.array(number[number >= 0])))
    return found
