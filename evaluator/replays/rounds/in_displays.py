"""Times and displays of a log counted in displays of its traffic (`evaluator.log.traffic`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.schema import POSITION
from evaluator.log.traffic import Counts, TrafficCount

# Rounding of a product of numbers that are exact.
_EXACT = 1e-9


def position_of(log: Log, display: int) -> int:
    """Return the number of a display in the traffic, counted from 0."""
    count = TrafficCount(log.schema)
    if not count.columns:
        return display
    for first, batch in log.batches(count.columns):
        n = len(batch[count.columns[0]])
        counts = count.read(first, batch, n)
        if display < first + n:
            return int(counts[display - first]) - 1
    raise IndexError(f"The log has no display {display}.")


def traffic_until(log: Log, *times: npt.NDArray[np.int64]) -> list[Counts]:
    """Return how many displays of the traffic came no later than each time, arrays of the shapes given, in one pass.

    Where displays were dropped between two of the log, as many of these as an even pace between the two makes
    expected: the error is below the number of displays dropped there, and 0 on average while the pace is steady; none
    where times number the displays. Displays that stand for several count when they are shown.
    """
    count = TrafficCount(log.schema)
    between = POSITION in count.columns
    order = [np.argsort(when, kind="stable") for when in times]
    waiting = [when[at] for when, at in zip(times, order, strict=True)]
    found = [np.zeros(len(when), np.int64) for when in times]
    done = [0] * len(times)
    before, total = None, 0
    for first, batch in log.batches(["time", *count.columns]):
        shown, counts = batch["time"], count.read(first, batch, len(batch["time"]))
        if before is None:
            before, total = int(shown[0]), int(counts[0])
        # The last display of the batch before, too.
        shown, counts = np.append(before, shown), np.append(total, counts)
        for i, when in enumerate(waiting):
            # Times from the batch's last display on may count displays of the next batch too.
            high = int(np.searchsorted(when, shown[-1], side="left"))
            mine = slice(done[i], max(high, done[i]))
            found[i][mine] = _counted(when[mine], shown, counts, between)
            done[i] = mine.stop
        before, total = int(shown[-1]), int(counts[-1])
    out = []
    for counted, at, first_left in zip(found, order, done, strict=True):
        counted[first_left:] = total
        back = np.empty_like(counted)
        back[at] = counted
        out.append(back)
    return out


def _counted(when: npt.NDArray[np.int64], shown: npt.NDArray[np.int64], counts: Counts, between: bool) -> Counts:
    """Return the counts at times that all lie before the last display."""
    after = np.searchsorted(shown, when, side="right")
    last = np.maximum(after - 1, 0)
    if not between:
        return np.asarray(counts[last])
    dropped = np.maximum(counts[after] - counts[last] - 1, 0)
    part = np.clip((when - shown[last]) / np.maximum(shown[after] - shown[last], 1), 0.0, 1.0)
    return np.asarray(counts[last] + np.ceil(dropped * part - _EXACT).astype(np.int64))
