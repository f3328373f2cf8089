"""When the conversions of a sample came, and how late."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import parse
from evaluator.datasets.column_looks import Look
from evaluator.datasets.drafted_times import WrittenTimes
from evaluator.units import SECONDS, format_duration


def longest_delay(times: WrittenTimes, shown: Look, clock: Look, ids: tuple[pl.Series, pl.Series] | None) -> str:
    """Return what is said of the longest delay in a sample, empty where none is seen.

    Parameters
    ----------
    times
        How times are written.
    shown, clock
        Columns of the times of displays, and of the times or delays of conversions.
    ids
        Ids of the displays in their own table and in that of the conversions; None where these are one.
    """
    if clock.says_delay:
        delay = None if clock.numbers is None else clock.numbers.filter(clock.present.is_not_null())
    else:
        displays, came = (
            parse(look.text, times.kind, [str(none) for none in look.none], times.form(look.name)).values
            for look in (shown, clock)
        )
        if ids is None:
            delay = came - displays
        else:
            of = pl.DataFrame({"id": ids[0], "shown": displays})
            both = pl.DataFrame({"id": ids[1], "came": came}).join(of, on="id")
            delay = both["came"] - both["shown"]
    longest = None if delay is None else delay.max()
    if longest is None:
        return ""
    unit = "us" if times.tick == "datetime" else times.tick
    if unit not in SECONDS:
        return f"; the longest seen is {float(longest):g} {unit}s"  # type: ignore[arg-type]
    return f"; the longest seen is {format_duration(float(longest) * SECONDS[unit])}"  # type: ignore[arg-type]


def clock_why(look: Look, times: list[Look], delays: list[Look]) -> str:
    """Return why a column is taken for that of when conversions came."""
    if look in times:
        share = float(look.present.is_not_null().mean() or 0)  # type: ignore[arg-type]
        return f"times on {share:.1%} of its rows"
    return "a delay, in ticks of the times" if look in delays else "0 and 1"


def narrows(flag: Look, clock: Look) -> bool:
    """Whether rows that have a time of conversion did not convert, says a flag; and all that did have one."""
    if flag.numbers is None or flag.numbers.null_count():
        return False
    timed, says = clock.present.is_not_null(), flag.numbers == 1
    return bool((timed & ~says).any()) and not bool((says & ~timed).any())
