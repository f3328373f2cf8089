"""From the rows that hold a conversion to the rewards of a log: its end, its attribution window, its bounds.

These rules concern conversions, not displays: where bad rows are left out, the display stays, without that conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.datasets.attribution import CUT, asked_window, cut_note, spec_window
from evaluator.datasets.conversions import ConversionRules, deduplicated
from evaluator.datasets.followed import find_end
from evaluator.datasets.metadata import tick_of
from evaluator.datasets.row_breaches import Breaches
from evaluator.datasets.spec import FileSpec
from evaluator.log.beyond_bounds import beyond_bound, bounds_of
from evaluator.log.times import with_date
from evaluator.units import SECONDS

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The conversions that count, and how long they were looked for.

    Parameters
    ----------
    rewards
        Conversions that count, one a row: ``display`` (number), ``time`` (ticks), ``value``.
    observed_until, attribution_window
        End of the follow-up and attribution window, in ticks, as in `evaluator.log.LogMeta`; None where there is none.
    counts, notes
        Numbers of conversions that were dropped, by reason, and the sentences about them.
    """

    rewards: pl.DataFrame
    observed_until: int | None
    attribution_window: int | None
    counts: dict[str, float]
    notes: tuple[str, ...]

    @property
    def judged_until(self) -> int | None:
        """Time (ticks) of the last display that was followed long enough; None where all were."""
        return None if self.observed_until is None else self.observed_until - (self.attribution_window or 0)


def find_outcomes(
    found: pl.DataFrame,
    spec: FileSpec,
    rules: ConversionRules,
    breaches: Breaches,
    *,
    times: Callable[[], Iterable[Ints]],
    last: int,
    window: str | int | None,
) -> Outcomes:
    """Return the conversions that count; those that break a rule are recorded in `breaches`.

    Parameters
    ----------
    found
        Rows that hold a conversion: ``display``, ``shown``, ``time``, ``value``, and where in the files they are.
    spec, rules
        Spec of the dataset, and how conversions become rewards.
    breaches
        Collector of the breaches of the files that hold the conversions.
    times
        Function that gives the times of all displays in ticks, sorted, in arrays of shape (m,), some at a time.
    last
        Time of the last display in ticks.
    window
        Attribution window that replaces that of the spec, a duration or ticks: what is later is no breach, but cut.
        None keeps the spec's.
    """
    tick = tick_of(spec)
    stated = spec_window(spec.log.attribution_window, tick, name=spec.name)
    cut = asked_window(window, tick)
    found, until = _followed(found, spec, breaches, times=times, last=last, stated=stated, cut=cut)
    rewards, counts = deduplicated(found, rules)
    notes: tuple[str, ...] = ()
    delay = rewards["time"] - rewards["shown"]
    if cut is not None and window is not None:
        kept = rewards.filter(delay <= cut)
        counts[CUT] = rewards.height - kept.height
        notes = (cut_note(rewards.height - kept.height, window, tick),) if kept.height < rewards.height else ()
        rewards = kept
    elif stated is not None:
        rows = breaches.check(rewards)
        said = spec.log.attribution_window
        rows.add(
            _clock(spec), delay > stated, f"conversion later after its display than attribution_window = {said!r}",
            f"cut such conversions with `attribution_window='{said}'`, or raise "
            "attribution_window in [log]", values=_instants(rewards["time"], spec),
        )  # fmt: skip
        rewards = rewards.filter(pl.Series(rows.close()))
    rewards = _bounded(rewards, spec, breaches)
    return Outcomes(
        rewards=rewards,
        observed_until=until,
        attribution_window=stated if cut is None else cut,
        counts=counts,
        notes=notes,
    )


def _followed(
    found: pl.DataFrame,
    spec: FileSpec,
    breaches: Breaches,
    *,
    times: Callable[[], Iterable[Ints]],
    last: int,
    stated: int | None,
    cut: int | None,
) -> tuple[pl.DataFrame, int | None]:
    """Return the conversions that came while the log was followed, and until when it was."""
    until = spec.log.observed_until
    if until == "complete":
        return found, None
    shown, time = found["shown"].to_numpy(), found["time"].to_numpy()
    rows, seconds = breaches.check(found), SECONDS.get(tick_of(spec))
    if isinstance(until, int):
        rows.add(
            _clock(spec), found["time"] > until, f"conversion later than observed_until = {with_date(until, seconds)}",
            "raise observed_until in [log], or drop the row", values=_instants(found["time"], spec),
        )  # fmt: skip
        return found.filter(pl.Series(rows.close())), until
    # What the window of the spec refuses says nothing about the end.
    inside = np.full(len(time), True) if stated is None or cut is not None else time - shown <= stated
    end = find_end(times, last=last, shown=shown[inside], time=time[inside])
    stray = np.zeros(len(time), np.bool_)
    stray[inside] = end.stray
    if cut is not None:
        stray &= time - shown <= cut
    many = int(end.stray.sum())
    since = (
        with_date(end.until, seconds) if spec.time.unit != "datetime" else _instants(pl.Series([end.until]), spec)[0]
    )
    rows.add(
        _clock(spec), pl.Series(stray), f"stray conversion, it would move the end of the log from {since}: had the log "
        f"been followed until then, about {end.expected:,.0f} conversions should have come since, and {many} did",
        "drop the row, or say in [log] until when the log was followed, observed_until = a time",
        values=_instants(found["time"], spec),
    )  # fmt: skip
    return found.filter(pl.Series(rows.close())), end.until


def _bounded(rewards: pl.DataFrame, spec: FileSpec, breaches: Breaches) -> pl.DataFrame:
    """Return the rewards without those that take a display's beyond `reward_max` or below `reward_min`."""
    column = spec.conversion.value if isinstance(spec.conversion.value, str) else _clock(spec)
    for bound in bounds_of(spec.log.reward_min, spec.log.reward_max):
        total, beyond = beyond_bound(
            rewards["display"].to_numpy(), rewards["time"].to_numpy(), rewards["value"].to_numpy(), bound
        )
        rows = breaches.check(rewards)
        more, name, change = ("more", "reward_max", "raise") if bound.sign > 0 else ("less", "reward_min", "lower")
        rows.add(
            column, pl.Series(beyond),
            f"the display earns {more} than {name} = {bound.value:g}, all its conversions together",
            f"{change} {name} in [log], or repair the values or the rows that repeat", values=pl.Series(total),
        )  # fmt: skip
        rewards = rewards.filter(pl.Series(rows.close()))
    return rewards


def _clock(spec: FileSpec) -> str:
    """Return the column that says when a conversion came, or that it did."""
    c = spec.conversion
    return str(c.time or c.delay or c.indicator)


def _instants(time: pl.Series, spec: FileSpec) -> pl.Series:
    """Return times as the source writes them: ticks, or dates."""
    if spec.time.unit != "datetime":
        return time
    return time.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S")
