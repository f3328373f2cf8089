"""A log whose displays earn so much at most or at least: because its user says so, or because what is beyond is cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.running_sums import extremes
from evaluator.log.schema import to_numpy

# Sums of money are rounded.
_ROUNDING = 1e-9


class CapLoss(NamedTuple):
    """What a cap leaves out.

    Parameters
    ----------
    cap
        Largest reward of a display after the cap, in the log's own unit.
    displays
        Number of displays that earn more than the cap.
    left_out
        Sum of what they earn beyond the cap, in the log's own unit.
    share
        Share of the log's whole reward that is left out.
    refunds
        Whether the log has refunds.
    """

    cap: float
    displays: int
    left_out: float
    share: float
    refunds: bool = False


def with_bounds(log: Log, *, least: float | None = None, most: float | None = None) -> Log:
    """Return a log of which is said that no display can ever have earned less than `least`, or more than `most`.

    Raises
    ------
    ParameterError
        A display does at some time; the message names the first.
    """
    display, lowest, highest = extremes(*_conversions(log))
    for name, bound, reward, sign, word, hint in (
        ("reward_max", most, highest, 1.0, "more", "at most, or count no more of it than that: `cap={:g}`."),
        ("reward_min", least, lowest, -1.0, "less", "at least, 0 or less: what its refunds can take back."),
    ):
        if bound is None:
            continue
        beyond = np.flatnonzero(sign * reward > sign * bound + _ROUNDING * abs(bound))
        if len(beyond):
            raise ParameterError(
                f"`{name}={bound:g}`: {len(beyond):,} displays of log {log.meta.name!r} earn {word} (display "
                f"{display[beyond[0]]}: {reward[beyond[0]]:g}).",
                hint=f"name what a display can earn {hint.format(bound)}",
            )
        log = log.with_meta(**{name: bound})
    return log


def with_cap(log: Log, cap: float) -> tuple[Log, CapLoss]:
    """Return a log whose displays earn min(reward, cap), and what that leaves out.

    Conversions of a display count in the order of their times until the cap is reached, as a live system that caps
    would count them: at any time it has earned min(sum so far, cap). So a refund first takes back what is above the
    cap, and counts once the sum falls below it.
    """
    of, value = _conversions(log)
    first = np.flatnonzero(np.diff(of, prepend=-1))
    sums = np.cumsum(value)
    before = np.repeat(sums[first] - value[first], np.diff(np.append(first, len(value)))) if len(value) else sums
    # Of a display's running sum; differences of large sums would round values that no cap touches.
    so_far = sums - before
    touched = np.maximum.reduceat(so_far, first) > cap if len(value) else np.zeros(0, np.bool_)
    inside = np.repeat(touched, np.diff(np.append(first, len(value))))
    counted = np.minimum(so_far, cap)
    counted[1:] -= np.where(of[1:] == of[:-1], counted[:-1], 0.0)
    kept = np.where(inside, counted, value)
    if len(first):  # by rounding, parts may add up to more than the whole
        over, last = np.maximum(np.add.reduceat(kept, first) - cap, 0.0), np.append(first[1:], len(kept)) - 1
        kept[last] -= np.where(touched, 2.0 * over, 0.0)
    total, left = float(value.sum()), float(value.sum() - kept.sum())
    at = log.conversions.schema.get_field_index("value")
    capped = log.with_conversions(log.conversions.set_column(at, "value", pa.array(kept)))
    known = log.meta.reward_max
    found = CapLoss(cap, int(touched.sum()), left, left / total if total > 0 else 0.0, bool((value < 0.0).any()))
    return capped.with_meta(reward_max=cap if known is None else min(cap, known)), found


def _conversions(log: Log) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the display and the value of each conversion."""
    of = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    return of, to_numpy(log.conversions["value"]).astype(np.float64, copy=False)
