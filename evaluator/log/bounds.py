"""Bounds of what a display earns, which users of a log set or cuts make, and the running sums of its events."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import ParameterError
from evaluator.log.contract import Log
from evaluator.log.schema import to_numpy
from evaluator.results.json_documents import AboveZero, Count, NotNegative

# Sums of money are rounded.
_ROUNDING = 1e-9
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CapLoss:
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
        Share of what is earned in all, refunds taken off, that is left out.
    refunds
        Whether the log has refunds.
    """

    cap: AboveZero
    displays: Count
    left_out: NotNegative
    share: NotNegative
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
                remedy=f"name what a display can earn {hint.format(bound)}",
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


def running_sums(display: npt.NDArray[np.int64], value: Floats) -> Floats:
    """Return what the display of each conversion has earned with it and those before it, shape (c,).

    Parameters
    ----------
    display, value
        Display and value of each conversion, shape (c,), sorted by display, then time.

    Examples
    --------
    >>> running_sums(np.array([0, 0, 3]), np.array([5.0, -2.0, 1.0])).tolist()
    [5.0, 3.0, 1.0]
    """
    sums = value.astype(np.float64)
    if not len(value):
        return sums
    first = np.flatnonzero(np.diff(display, prepend=display[0] - 1))
    # Display by display, as differences of one long sum would round; all second conversions at once, then all third.
    rank = np.arange(len(value)) - np.repeat(first, np.diff(np.append(first, len(value))))
    later = np.flatnonzero(rank)
    later = later[np.argsort(rank[later], kind="stable")]
    bounds = np.flatnonzero(np.diff(rank[later], prepend=0, append=np.iinfo(np.int64).max))
    for low, high in pairwise(bounds):
        sums[later[low:high]] += sums[later[low:high] - 1]
    return sums


def extremes(display: npt.NDArray[np.int64], value: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the distinct displays, and the smallest and largest sum that each has earned at some time.

    The smallest counts the time before its first conversion, and so is never above 0. Parameters as of `running_sums`.
    """
    sums = running_sums(display, value)
    first = np.flatnonzero(np.diff(display, prepend=-1))
    if not len(first):
        return display[first], np.zeros(0), np.zeros(0)
    least = np.minimum(np.minimum.reduceat(sums, first), 0.0)
    return display[first], least, np.maximum.reduceat(sums, first)
