"""What displays cost, as events of the log: an immediate negative value of each display.

So that whatever reads conversions (replays, references, bootstraps) counts a display's reward as its profit without
knowing of costs, a log whose objective is profit has, beside the conversions, one event for each display that costs
something, at the time of the display, marked by a column of its own. Whatever speaks of conversions leaves them out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.contract import Log
from evaluator.log.schema import COST, to_numpy

# Column of conversions that marks the costs among them; a log that was read has none.
MARK = "is_cost"
SAID = (
    "refunds are taken off at once: a display that sold something is worth, when it first sells, what is left in the "
    "end; nothing here tells how late refunds come"
)


def has_costs(log: Log) -> bool:
    """Whether the log says what its displays cost."""
    return COST in log.schema.names


def with_costs(log: Log) -> Log:
    """Return a log in whose conversions the cost of each display is an event of the display's own time, below 0.

    Memory: 25 bytes a display that costs something. A log that has them already is returned as it is.
    """
    if MARK in log.conversions.column_names:
        return log
    display, time, value = [], [], []
    for first, batch in log.batches(["time", COST]):
        at = np.flatnonzero(batch[COST])
        display.append(first + at)
        time.append(batch["time"][at])
        value.append(-batch[COST][at])
    own = [to_numpy(log.conversions[name]) for name in ("display_id", "time", "value")]
    costs = [np.concatenate(parts) for parts in (display, time, value)]
    # A display's cost comes first: before a conversion of the same time.
    order = np.argsort(np.concatenate([costs[0], own[0]]), kind="stable")
    names = {"display_id": pa.int64(), "time": pa.int64(), "value": pa.float64()}
    table = {
        name: pa.array(np.concatenate([cost, conversion])[order], kind)
        for (name, kind), cost, conversion in zip(names.items(), costs, own, strict=True)
    }
    mark = np.arange(len(order)) < len(costs[0])
    return log.with_conversions(pa.table({**table, MARK: pa.array(mark[order])})).as_sound_as(log)


def cost_events(conversions: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Return which conversions are costs, shape (c,), or None if the log has no costs."""
    return to_numpy(conversions[MARK]).astype(np.bool_) if MARK in conversions.column_names else None


def number_of_costs(conversions: pa.Table) -> int:
    """Return how many of some conversions are costs."""
    costs = cost_events(conversions)
    return 0 if costs is None else int(np.count_nonzero(costs))


def sales(conversions: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Return which conversions are sales, of which delays are those of the log: neither costs nor refunds, shape (c,).

    None where all are. Values of 0 count as sales.
    """
    value = to_numpy(conversions["value"])
    return None if not len(value) or value.min() >= 0.0 else np.asarray(value >= 0.0)


def refunds_at_once(log: Log) -> Log:
    """Return a log in which a display's conversions are one, at its first sale, worth their sum; others as they are."""
    sold = sales(log.conversions)
    if sold is None:
        return log
    of, time, value = (to_numpy(log.conversions[name]) for name in ("display_id", "time", "value"))
    first = np.flatnonzero(np.diff(of, prepend=-1))
    # The first sale of each display; of one with refunds alone, its first refund.
    order = np.lexsort((time, ~sold, of))
    table = {
        "display_id": pa.array(of[first]),
        "time": pa.array(time[order[first]]),
        "value": pa.array(np.add.reduceat(value, first)),
    }
    return log.with_conversions(pa.table(table)).with_meta(notes=(*log.meta.notes, SAID))
