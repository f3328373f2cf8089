"""Delays and their limits as arrays, checked against each other, with row numbers where they are wrong."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.errors import DataError, ParameterError

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
# int64, or float64 where fractions of ticks are welcome.
Ticks: TypeAlias = NDArray[Any]


def checked_delays(
    delays: ArrayLike, limits: ArrayLike | None = None, *, whole: bool = True
) -> tuple[Ticks, Ticks | None]:
    """Return delays, shape (n,), and limits, shape (n,) or (), after checking them against each other, in ticks.

    A limit is the longest delay that could have been seen of its conversion, and at least the delay; None is no
    cut-off. With `whole`, fractions of ticks are refused; otherwise both arrays come back as float64 when either holds
    one. Raises DataError where there are no delays, one is below 0, not finite, or above its limit (first row named),
    or shapes differ.
    """
    delay = _ticks(delays, "Delay", whole)
    if not delay.size:
        raise DataError("There are no delays to fit.", remedy="the log needs conversions that were seen.")
    early = delay < 0
    if early.any():
        first = int(early.argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, below 0 ({early.sum()} such in all).",
            remedy="a conversion cannot precede its display: check which clicks and conversions were joined.",
        )
    if limits is None:
        return delay, None
    given = np.asarray(limits)
    limit = _ticks(np.full(delay.shape, given) if given.ndim == 0 else given, "Limit", whole)
    if limit.shape != delay.shape:
        raise DataError(f"There are {delay.size} delays but {limit.size} limits.", remedy="pass one limit a delay.")
    late = delay > limit
    if late.any():
        first = int(late.argmax())
        raise DataError(
            f"Delay {first} is {delay[first]}, above its limit {limit[first]} ({late.sum()} such in all).",
            remedy="a limit is the longest delay that could have been seen: the log's end minus the display.",
        )
    if delay.dtype != limit.dtype:
        delay, limit = delay.astype(np.float64), limit.astype(np.float64)
    return delay, limit


def seen_within(delay: Ticks, limit: Ticks | None, longest: float) -> tuple[Ticks, Ticks | None]:
    """Return the delays of at most `longest`, shape (m,), and their limits, cut there too.

    Their law is F(a) / F(longest): that of delays which nobody could have seen later than `longest`. Raises
    ParameterError where all delays are longer.
    """
    short = delay <= longest
    if not short.any():
        raise ParameterError(
            f"The shortest of {delay.size} delays is {delay.min()}, above longest={longest}.", remedy="raise `longest`."
        )
    return delay[short], None if limit is None else np.minimum(limit[short], longest)


def _ticks(values: ArrayLike, name: str, whole: bool) -> Ticks:
    """Return values as int64 or, where fractions are welcome and present, float64."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise DataError(f"{name}s have shape {given.shape}.", remedy="pass shape (n,).")
    if given.dtype == np.int64:
        return given
    with np.errstate(invalid="ignore"):
        ticks = given.astype(np.int64)
    if np.array_equal(ticks, given):
        return ticks
    bad = ticks != given if whole else ~np.isfinite(given)
    if not bad.any():
        return given.astype(np.float64)
    first = int(bad.argmax())
    hint = "count delays in whole rounds." if whole else "leave out conversions without a delay."
    raise DataError(f"{name} {first} is {given[first]}.", remedy=hint)
