"""From the rows that hold events of a kind to those that count: their end, their attribution window, their bounds.

These rules concern events, not displays: where bad rows are left out, the display stays, without that event.

*Until when a log was followed*, where its spec says "until its end", is the latest event, but for strays. A log holds
what came until someone stopped looking. Its end is the last display, or the last conversion if the log was followed on.
One stray conversion, entered by hand or with a wrong clock, would move that end and turn all young displays into judged
ones. So the last conversions count only if the log looks followed until then: the others say how many conversions
displays bring at each age, hence how many should have come since the one before the strays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import ParameterError, UsageError
from evaluator.log import Log
from evaluator.log.log_tables import EventKind, beyond_bound, bounds_of, merge_events, with_kind
from evaluator.log.schema import EVENTS, to_numpy
from evaluator.log.times import with_date
from evaluator.reading.event_rows import EventRules, deduplicated, spec_delay
from evaluator.reading.row_breaches import Breaches
from evaluator.reading.spec import FileSpec
from evaluator.units import ROUND, SECONDS, duration_ticks, parse_whole, ticks_words

Ints = npt.NDArray[np.int64]
# Counts of the conversions that were cut, of those before `min_delay`, and of those whose user has no display.
CUT, SOONER = "conversions_beyond_attribution_window", "conversions_before_min_delay"
WITHOUT = "conversions_without_display"
Floats = npt.NDArray[np.float64]
# So many conversions may be strays.
_MOST_STRAYS = 10
# They are if at least so many should have come meanwhile, and so many times as many as came: at most one of 30 comes by
# chance with a probability of 3e-12; of 10, had rates fallen to a third, with 5e-4.
_FEWEST_DUE, _TIMES_DUE = 30.0, 10.0
_BINS = 4096


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The events of a kind that count, and how long they were looked for.

    `events` are one a row: ``display`` (number), ``time`` (ticks), ``value``; `rows` is the number of those that hold
    one; `counts` and `notes` say what was dropped, and why.
    """

    events: pl.DataFrame
    rows: int
    kind: EventKind
    counts: dict[str, float]
    notes: tuple[str, ...]

    @property
    def judged_until(self) -> int | None:
        """Time (ticks) of the last display that was followed long enough; None where all were."""
        until = self.kind.observed_until
        return None if until is None else until - (self.kind.attribution_window or 0)


def find_outcomes(
    found: Iterable[pl.DataFrame],
    spec: FileSpec,
    rules: EventRules,
    breaches: Breaches,
    *,
    times: Callable[[], Iterable[Ints]],
    last: int,
    window: str | int | None,
    without: int = 0,
) -> Outcomes:
    """Return the events that count; those that break a rule are recorded in `breaches`.

    Rows that hold an event, some at a time, have ``display``, ``shown``, ``time``, ``value``, and where in the files
    they are. `times` gives the times of all displays in ticks, sorted, in arrays of shape (m,), some at a time; `last`
    is that of the last one. What comes later than a `window`, a duration or ticks in place of the spec's, is no breach,
    but cut. Of events joined by user and time, so many are `without` a display, and those are that came later than
    their window.

    Memory: 24 bytes an event that counts; all of each where a display may have several, or they have keys, or where
    they say themselves until when they were followed.
    """
    stated, cut = spec_delay(rules.attribution_window, spec.tick, name=spec.name), asked_window(window, spec.tick)
    several = rules.columns.source is not None or rules.columns.key or rules.observed_until == "end"
    events: list[pl.DataFrame] = []
    counts: dict[str, float] = {}
    height = 0
    for rows in [pl.concat(found)] if several else found:
        height += rows.height
        near, dropped = _near(rows, rules, stated if cut is None else cut)
        near, until = _followed(near, spec, rules, breaches, times=times, last=last, stated=stated, cut=cut)
        kept, said = deduplicated(near, rules)
        said |= dropped
        if cut is not None:
            before = kept.height
            kept = kept.filter(kept["time"] - kept["shown"] <= cut)
            said[CUT] = before - kept.height
        elif stated is not None:
            kept = _within(kept, stated, spec, rules, breaches)
        events.append(_bounded(kept, rules, breaches).select("display", "time", "value"))
        counts = {name: counts.get(name, 0) + number for name, number in said.items()}
    if rules.by_user:
        counts[WITHOUT] += without
    return Outcomes(
        events=pl.concat(events),
        rows=height,
        kind=replace(rules.kind, observed_until=until, attribution_window=stated if cut is None else cut),
        counts=counts,
        notes=tuple(_notes(counts, rules, window, spec.tick)),
    )


def _near(found: pl.DataFrame, rules: EventRules, longest: int | None) -> tuple[pl.DataFrame, dict[str, float]]:
    """Return the events that may be of their display by the time between them, and the number of the others."""
    if rules.by_user:
        near = found if longest is None else found.filter(found["time"] - found["shown"] <= longest)
        return near, {WITHOUT: found.height - near.height}
    if rules.min_delay:
        late = found.filter(found["time"] - found["shown"] >= rules.min_delay)
        return late, {SOONER: found.height - late.height}
    return found, {}


def _within(kept: pl.DataFrame, stated: int, spec: FileSpec, rules: EventRules, breaches: Breaches) -> pl.DataFrame:
    """Return the events that come within the spec's window."""
    rows, said = breaches.check(kept), rules.attribution_window
    cut_them = "" if rules.kind.name else f"cut such conversions with `attribution_window='{said}'`, or "
    rows.add(
        rules.clock, kept["time"] - kept["shown"] > stated,
        f"{rules.word} later after its display than attribution_window = {said!r}",
        f"{cut_them}raise attribution_window in [{rules.log_table}]", values=_instants(kept["time"], spec),
    )  # fmt: skip
    return _where(kept, rows.close())


def _notes(counts: Mapping[str, float], rules: EventRules, window: str | int | None, tick: str) -> Iterator[str]:
    """Yield what is to be said of the events that count for none."""
    if few := int(counts.get(WITHOUT, 0)):
        longest = rules.attribution_window if window is None else window
        within = "" if longest is None else f" within {longest}"
        yield f"{few:,} {rules.word}s have no display of their user before them{within}: they count for none."
    if few := int(counts.get(SOONER, 0)):
        yield f"{few:,} {rules.word}s sooner than {rules.columns.min_delay} after their display are none of it."
    if window is not None and (few := int(counts.get(CUT, 0))):
        yield cut_note(few, window, tick)


def _followed(
    found: pl.DataFrame,
    spec: FileSpec,
    rules: EventRules,
    breaches: Breaches,
    *,
    times: Callable[[], Iterable[Ints]],
    last: int,
    stated: int | None,
    cut: int | None,
) -> tuple[pl.DataFrame, int | None]:
    """Return the events that came while they were followed, and until when they were."""
    until = rules.observed_until
    if until == "complete":
        return found, None
    shown, time = found["shown"].to_numpy(), found["time"].to_numpy()
    rows, seconds = breaches.check(found), SECONDS.get(spec.tick)
    if isinstance(until, int):
        rows.add(
            rules.clock, found["time"] > until, f"{rules.word} later than observed_until = {with_date(until, seconds)}",
            f"raise observed_until in [{rules.log_table}], or drop the row", values=_instants(found["time"], spec),
        )  # fmt: skip
        return _where(found, rows.close()), until
    # What the window of the spec refuses says nothing about the end.
    inside = np.full(len(time), True) if stated is None or cut is not None else time - shown <= stated
    end = find_end(times, last=last, shown=shown[inside], time=time[inside])
    stray = np.zeros(len(time), np.bool_)
    stray[inside] = end.stray
    if cut is not None:
        stray &= time - shown <= cut
    if not stray.any():
        return found, end.until
    many = int(end.stray.sum())
    since = (
        with_date(end.until, seconds) if spec.time.unit != "datetime" else _instants(pl.Series([end.until]), spec)[0]
    )
    rows.add(
        rules.clock, pl.Series(stray), f"stray {rules.word}, it would move the end of the log from {since}: had the "
        f"log been followed until then, about {end.expected:,.0f} {rules.word}s should have come since, and {many} did",
        f"drop the row, or say in [{rules.log_table}] until when the log was followed, observed_until = a time",
        values=_instants(found["time"], spec),
    )  # fmt: skip
    return _where(found, rows.close()), end.until


def _bounded(rewards: pl.DataFrame, rules: EventRules, breaches: Breaches) -> pl.DataFrame:
    """Return the events without those that take a display's sum beyond the largest or smallest possible."""
    value, verb = rules.columns.value, "has" if rules.kind.name else "earns"
    for bound in bounds_of(rules.kind):
        total, beyond = beyond_bound(
            rewards["display"].to_numpy(), rewards["time"].to_numpy(), rewards["value"].to_numpy(), bound
        )
        rows = breaches.check(rewards)
        least, most = rules.kind.bound_keys
        more, key, change = ("more", most, "raise") if bound.sign > 0 else ("less", least, "lower")
        rows.add(
            value if isinstance(value, str) else rules.clock, pl.Series(beyond),
            f"the display {verb} {more} than {key} = {bound.value:g}, all its {rules.word}s together",
            f"{change} {key} in [{rules.log_table}], or repair the values or the rows that repeat",
            values=pl.Series(total),
        )  # fmt: skip
        rewards = _where(rewards, rows.close())
    return rewards


def _where(events: pl.DataFrame, sound: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Return the events of sound rows, without a copy where all are."""
    return events if sound.all() else events.filter(pl.Series(sound))


def _instants(time: pl.Series, spec: FileSpec) -> pl.Series:
    """Return times as the source writes them: ticks, or dates."""
    if spec.time.unit != "datetime":
        return time
    return time.cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S")


def event_table(kinds: Sequence[str], events: list[pl.DataFrame], display_id: npt.NDArray[np.int64]) -> pa.Table:
    """Return the events of the displays that stay, as the contract has them.

    The `kinds` are names, the conversions' first. The `events` of each are taken out of their list, so that they are
    not in memory twice; `display_id` (n,) is the number of the display of each of all these, kind by kind, -1 where it
    was dropped.
    """
    numbers = np.split(display_id, np.cumsum([of.height for of in events])[:-1])
    parts = []
    for kind, number in zip(kinds, numbers, strict=True):
        of = events.pop(0)
        columns = {"display_id": number, **{name: of[name].to_numpy() for name in ("time", "value")}}
        if not (stay := number >= 0).all():
            columns = {name: column[stay] for name, column in columns.items()}
        kept = {name: pa.array(column, EVENTS[name]) for name, column in columns.items()}
        parts.append(with_kind(pa.table(kept), kind))
    return merge_events(*parts)


def asked_window(window: str | int | None, tick: str) -> int | None:
    """Return the window that a call asks for in ticks: ``8h``, or a number of ticks.

    Raises UsageError for a duration where the log counts rounds, or for less than a tick.
    """
    if window is None:
        return None
    text = str(window)
    try:
        ticks = parse_whole(text)
        if ticks is None and tick == ROUND:
            raise UsageError(f"`attribution_window={text!r}`, but this log counts rounds.", remedy="give rounds: 2000.")
        if ticks is None:
            ticks = round(duration_ticks(text, SECONDS[tick]))
    except ParameterError as error:
        raise UsageError(f"`attribution_window={text!r}` is no duration: {error.what}", remedy=error.remedy) from None
    if ticks < 1:
        raise UsageError(f"`attribution_window={text!r}` is less than a tick of the log ({tick}).", remedy="give more.")
    return ticks


def cut_note(conversions: int, window: str | int, tick: str) -> str:
    """Return the sentence that says what a shorter window cut."""
    text = str(window).strip()
    words = ticks_words(int(text), None if tick == ROUND else SECONDS[tick]) if text.isdecimal() else text
    return f"{conversions:,} conversions later than an attribution window of {words} were cut."


def cut_log(log: Log, window: str | int) -> Log:
    """Return a log that is followed for a shorter window, without the conversions later than it.

    Raises UsageError if the log was followed, or cut, for less than that, or if its known truth counts all conversions.
    """
    ticks, followed = asked_window(window, log.meta.tick), log.meta.attribution_window
    assert ticks is not None
    if followed is not None and ticks > followed:
        raise UsageError(
            f"`attribution_window={str(window)!r}` is longer than {ticks_words(followed, log.meta.tick_seconds)}: log "
            f"{log.meta.name!r} holds no conversion later than that after its display.",
            remedy="give a shorter one, or convert its source anew with the longer one.",
        )
    if "expected_reward" in log.schema.names:
        raise UsageError(
            f"`attribution_window` does not apply to {log.meta.name!r}: its known truth counts all conversions.",
            remedy="leave it out; `window` cuts them for the policy.",
        )
    of = to_numpy(log.conversions["display_id"])
    kept = to_numpy(log.conversions["time"]) - to_numpy(log.take(of, ["time"])["time"]) <= ticks
    cut = int(np.count_nonzero(~kept))
    conversions = log.conversions.filter(pa.array(kept))
    meta = log.meta
    counts = {**meta.counts, CUT: meta.counts.get(CUT, 0) + cut, "conversions": conversions.num_rows}
    notes = (*meta.notes, cut_note(cut, window, meta.tick)) if cut else meta.notes
    changed = log.with_meta(attribution_window=ticks, counts=counts, notes=notes)
    return changed.with_conversions(conversions).as_sound_as(log)


class FollowUpEnd(NamedTuple):
    """Until when a log was followed.

    `until` is the latest time (ticks) of an event that is no stray; `stray` (n,) says which conversions are; `expected`
    is how many should have come since `until`, had the log been followed to the strays, nan without strays.
    """

    until: int
    stray: npt.NDArray[np.bool_]
    expected: float = float("nan")


def find_end(times: Callable[[], Iterable[Ints]], *, last: int, shown: Ints, time: Ints) -> FollowUpEnd:
    """Return until when a log was followed. Cost: nothing, or a pass over the displays if conversions come after them.

    `times` gives the times of all displays in ticks, sorted, in arrays of shape (m,), some at a time; `last` is that of
    the last one; `shown` and `time` (n,) are those of each conversion's display, and of the conversion itself.
    """
    stray = np.zeros(len(time), np.bool_)
    late = np.flatnonzero(time > last)
    if len(late) == 0:
        return FollowUpEnd(last, stray)
    late = late[np.argsort(time[late], kind="stable")]
    middles, displays = _histogram(times, last)
    latest = int(time[late[-1]])
    end = FollowUpEnd(latest, stray)
    for n in range(1, min(_MOST_STRAYS, len(late)) + 1):
        before = int(time[late[-n - 1]]) if n < len(late) else last
        expected = _expected(middles, displays, shown, time, before, latest)
        if expected >= max(_FEWEST_DUE, _TIMES_DUE * n):
            stray = np.zeros(len(time), np.bool_)
            stray[late[-n:]] = True
            end = FollowUpEnd(before, stray, expected)
    return end


def _histogram(times: Callable[[], Iterable[Ints]], last: int) -> tuple[Floats, Ints]:
    """Return times (B,) and the number of displays around each (B,)."""
    counts, edges = np.zeros(_BINS, np.int64), None
    for some in times():
        if edges is None:
            edges = np.linspace(int(some[0]), max(last, int(some[0]) + 1), _BINS + 1)
        ends = [some.searchsorted(edges[:-1]), some.searchsorted(edges[-1:], side="right")]
        upto: Ints = np.concatenate(ends)
        counts += np.diff(upto)  # `numpy.histogram` sorts first
    assert edges is not None
    held = counts > 0
    return ((edges[:-1] + edges[1:]) / 2)[held], counts[held]


def _expected(middles: Floats, displays: Ints, shown: Ints, time: Ints, since: int, until: int) -> float:
    """Return how many conversions should come in (since, until], had the log been followed from its start to then.

    The conversions up to `since` give those that a display brings by age x, H(x) = sum over delays d <= x of
    1 / (displays followed for d by then). Beyond the age that half of the displays have reached nothing is expected.
    """
    known = time <= since
    delay = np.sort((time - shown)[known])
    of_age = np.concatenate([[0], np.cumsum(displays)])[np.searchsorted(middles, since - delay, side="right")]
    enough = of_age >= displays.sum() / 2
    delay, of_age = delay[enough], of_age[enough]
    brought = np.concatenate([[0.0], np.cumsum(1.0 / of_age)])
    ages = (np.searchsorted(delay, at - middles, side="right") for at in (until, since))
    more, so_far = (brought[age] for age in ages)
    return float(displays @ (more - so_far))
