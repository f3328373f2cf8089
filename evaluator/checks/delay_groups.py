"""Checks of delays: of each action, of each day, along the log, and those of young displays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from evaluator.checks.result import Check, CheckResult, not_applicable
from evaluator.checks.significance import FEWEST, chi_square_tail, p_words
from evaluator.checks.tables import Flags, Floats, Ints, Tables
from evaluator.checks.timeline import TOO_SHORT
from evaluator.delays.product_limit import GroupCDFs, group_cdfs
from evaluator.delays.study.changes import DelayDrift, delay_drift
from evaluator.engine.kernels.solving import squared_length
from evaluator.estimates.simultaneous import holm
from evaluator.log.column import grouping_columns, read_values, renumbered
from evaluator.units import format_duration

FEWEST_CONVERSIONS = 50


# Delays are cut at these quantiles of all, which no assignment to groups changes.
_CUTS = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98)


# A group lacks what it has at most a third of, if that is so many conversions and so much of the group.
THIRD, _FEWEST_USUAL, MISSING = 1.0 / 3.0, 5.0, 0.02


# Change of the delays' place (0.5 without drift) that matters, and how many conversions are looked at.
DELAY_CHANGE, DELAY_ROWS = 0.02, 20_000


# Factors of the delays above this are not worth saying.
MOST_DELAYS_SHOWN = 5.0


# Change of the delays' place (0.5 for all) that matters; the fewest conversions, and how many are looked at.
SHIFT, _FEWEST_CONVERSIONS, _ROWS = 0.02, 100, 20_000


# A column of more values is a name rather than a group.
_MOST_VALUES = 50


# Conversions of a group whose mean place is told.
_TOLD = 30


def delays_of_days(t: Tables, level: float) -> CheckResult:
    """Test that no single day lacks short or long delays (hypergeometric, Bonferroni)."""
    timeline, follow = t.logged.timeline, t.logged.follow_up
    if timeline.ends is None:
        return not_applicable("the log counts rounds, or covers fewer than three days")
    day = timeline.period_of(t.logged.survey.display)
    whole = timeline.whole & (timeline.edges[1:] <= follow.mature)
    used = follow.counted(t.logged.survey.display) & whole[day]
    weekday = np.arange(timeline.periods) % 7 if timeline.period == "day" else None
    found = most_lacking(follow.delay[used], day[used], kin=weekday)
    if found is None:
        return not_applicable("too few conversions of whole days")
    name = timeline.name(found.group)
    return _finding(
        t, found, level, name,
        f"Conversions of {name} are written later or earlier than those of other days, or they were followed "
        "otherwise: a policy is told of them at the wrong time, and one law of delays does not hold for that day."
        + ("" if timeline.end - timeline.start >= 14 * 24 * timeline.hour else
           " The log is too short to tell whether that weekday is always so."),
        "Compare the clock and the time zone of that day's conversions with those of the days around; leave the day "
        "out if they cannot be repaired.",
    )  # fmt: skip


def delays_of_actions(t: Tables, level: float) -> CheckResult:
    """Test that no action lacks short or long delays (hypergeometric, Bonferroni)."""
    log, follow = t.logged.survey.log, t.logged.follow_up
    used = follow.counted(t.logged.survey.display)
    found = most_lacking(follow.delay[used], t.action[used])
    if found is None:
        return not_applicable("too few conversions of two actions")
    name = f"action {log.labels[found.group]}"
    return _finding(
        t, found, level, name,
        f"{name[0].upper()}{name[1:]} was followed for another time than the others, or its conversions come sooner "
        "or later: displays of one age tell more of one action than of another, and one law of delays, which policies "
        "that need one take for all, is wrong for it.",
        "If it was followed for less, cut all to what it has (`attribution_window`); if its delays are like that, "
        "replay policies that need no law of delays, or with `immature='correct'`, which has one for each action.",
    )  # fmt: skip


class MissingDelays(NamedTuple):
    """Delays that a group has fewer of than the others."""

    group: int  # Number of the group
    # Whether the short delays are missing, those below `cut`; else those of `cut` or more.
    short: bool
    cut: int  # Delay in ticks that separates the short ones from the others
    # Number of conversions of the group with such delays, and how many were to be expected.
    seen: int
    usual: float
    p: float  # P-value of this lack, adjusted for the number of groups and cuts


def most_lacking(delay: Ints, group: Ints, *, kin: Ints | None = None) -> MissingDelays | None:
    """Return the most significant lack of short or long delays, or None if nothing can be tested.

    If delays do not depend on the group, then given all delays those of a group are drawn without replacement, and the
    number below a cut is hypergeometric. `delay` (in ticks) and `group` (from 0) are of each conversion, shape (c,).
    `kin` is the kind of each group from 0, shape (G,) or longer, such as the weekday of a day: delays that all groups
    of one kind lack are not counted as lacking. With None all groups are of one kind.
    """
    n = len(delay)
    if n < FEWEST_CONVERSIONS or delay.min() == delay.max():
        return None
    cuts = np.unique(np.quantile(delay, _CUTS, method="higher"))
    cuts = cuts[cuts > delay.min()]
    size = np.bincount(group)
    cell = np.searchsorted(cuts, delay, side="right")
    counts = np.bincount(group * (len(cuts) + 1) + cell, minlength=len(size) * (len(cuts) + 1)).reshape(len(size), -1)
    below = np.cumsum(counts, axis=1)[:, :-1]
    seen = np.stack((below, size[:, None] - below))
    every = np.stack((below.sum(axis=0), n - below.sum(axis=0)))
    usual = size[None, :, None] * every[:, None, :] / n
    # Whole groups are not tested against nothing.
    tested = (usual >= _FEWEST_USUAL) & (size < n)[None, :, None]
    if not tested.any():
        return None
    tests = int(np.count_nonzero(tested))
    lacking = tested & (seen <= THIRD * usual) & (usual - seen >= MISSING * size[None, :, None])
    if kin is not None:
        of_kin = _usual_of_kin(seen, size, kin[: len(size)])
        lacking &= (of_kin >= _FEWEST_USUAL) & (seen <= THIRD * of_kin)
    best = MissingDelays(-1, True, 0, 0, 0.0, 1.0)
    for side, g, c in np.argwhere(lacking).tolist():
        p = min(hypergeometric_tail(int(seen[side, g, c]), n, int(every[side, c]), int(size[g])) * tests, 1.0)
        if p < best.p:
            best = MissingDelays(g, side == 0, int(cuts[c]), int(seen[side, g, c]), float(usual[side, g, c]), p)
    return best


def _usual_of_kin(seen: Ints, size: Ints, kin: Ints) -> Floats:
    """Return what the others of its kind let expect of each group, shape of `seen` (2, G, C); inf where none are."""
    alike = (kin[:, None] == kin) & ~np.eye(len(kin), dtype=bool)
    others = alike @ size
    share = np.einsum("gh,shc->sgc", alike.astype(np.float64), seen) / np.maximum(others, 1)[None, :, None]
    return np.where(others[None, :, None] > 0, share * size[None, :, None], np.inf)


def hypergeometric_tail(seen: int, population: int, marked: int, drawn: int) -> float:
    """Return P(at most `seen` marked ones among those drawn without replacement).

    >>> round(hypergeometric_tail(1, 10, 5, 4), 6)  # (5 + 50) of 210 ways
    0.261905
    """
    from scipy.special import gammaln

    k = np.arange(max(0, drawn + marked - population), seen + 1, dtype=np.float64)
    if not len(k):
        return 0.0

    def ways(n: float, of: Floats) -> Floats:
        return np.asarray(gammaln(n + 1.0) - gammaln(of + 1.0) - gammaln(n - of + 1.0))

    logs = ways(marked, k) + ways(population - marked, drawn - k) - ways(population, np.array([float(drawn)]))
    return float(min(np.exp(logs).sum(), 1.0))


def _finding(t: Tables, found: MissingDelays, level: float, group: str, bad: str, remedy: str) -> CheckResult:
    seconds = t.logged.survey.log.meta.tick_seconds
    wrong = found.group >= 0 and found.p <= level
    if found.group < 0:
        return CheckResult(
            verdict="pass", number="none lacks short or long delays", p_value=1.0, effect=0.0,
            what="Short and long delays are where they should be, as far as the log can tell.",
        )  # fmt: skip
    cut = f"{found.cut:,} rounds" if seconds is None else format_duration(found.cut * seconds)
    which = f"of less than {cut}" if found.short else f"of {cut} or more"
    number = f"{group}: {found.seen} delays {which}, {found.usual:.0f} usual, p {p_words(found.p)}"
    return CheckResult(
        verdict="warn" if wrong else "pass", number=number, p_value=found.p,
        effect=1.0 - found.seen / found.usual,
        numbers={"group": group, "short": found.short, "cut": found.cut, "seen": found.seen, "usual": found.usual},
        what=bad if wrong else "Short and long delays are where they should be, as far as the log can tell.",
        remedy=remedy if wrong else "",
    )  # fmt: skip


def delays_drift(t: Tables, level: float, seed: int) -> CheckResult:
    """Test that delays are the same in all periods, allowing for what each period could show (permutations)."""
    period, timeline = t.logged.timeline.period, t.logged.timeline
    survey, follow = t.logged.survey, t.logged.follow_up
    if timeline.about_a_day:
        return not_applicable(TOO_SHORT)
    delay, window = follow.delay, survey.log.meta.attribution_window
    days = timeline.period_of(survey.display)
    limit = None
    if follow.until is not None:
        # One limit a day: all its hours, of which some may have longer delays, are followed as long.
        limit = follow.until - (survey.shown_at if timeline.ends is None else timeline.ends[days])
    if window is not None:
        limit = np.full(len(delay), window) if limit is None else np.minimum(limit, window)
    usable = (delay >= 0) & timeline.whole[days]
    if limit is not None:
        usable &= delay <= limit
    delay, limit, days = delay[usable], None if limit is None else limit[usable], days[usable]
    if len(delay) < FEWEST_CONVERSIONS or delay.min() == delay.max():
        return not_applicable("too few conversions, or all with one delay")
    found = delay_drift(
        delay, limit, days=days, longest=None if limit is None else float(np.median(limit)), false_alarms=level,
        permutations=math.ceil(2.0 / level), rows=DELAY_ROWS, seed=seed,
    )  # fmt: skip
    places = [day.position for day in found.days if day.conversions >= 30 and math.isfinite(day.position)]
    shift = max((abs(place - 0.5) for place in places), default=0.0)
    wrong = found.changed and shift >= DELAY_CHANGE
    since = timeline.name(min((found.change_after or 0) + 1, timeline.periods - 1))
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"mean place shifts by {shift:.3f} by {period}, p {p_words(found.p)}",
        statistic=found.statistic, p_value=found.p, effect=shift,
        numbers={"change_after": found.change_after, "largest_shift": shift, "permutations": found.permutations,
                 "conversions": found.rows},
        shows=_delays_shown(found),
        what=(f"Conversions come sooner or later than before from about {since} on: "
               "one delay CDF for the whole log is wrong for parts of it." if wrong else
               "One law of delays does for the log."),
        remedy="Look at `evaluate delays`; replay with the delays known at the time (`delays_from='first:20%'`), or "
        "replay the time after the change." if wrong else "",
    )  # fmt: skip


def _delays_shown(found: DelayDrift) -> str:
    """Return by what factor delays must become longer at half time to be found."""
    half = found.shown[0].ratio if found.shown else None
    if half is None or half > MOST_DELAYS_SHOWN:
        return ""
    return f"delays that become {half:.2f} times as long at half time"


def young_delays(t: Tables, level: float) -> CheckResult:
    """Test that given the action, delays depend neither on the context nor on the time (log-rank, reverse time)."""
    survey, follow = t.logged.survey, t.logged.follow_up
    meta, n = survey.log.meta, len(survey.log)
    until = follow.until  # where a stray conversion set the log's end: without it
    if meta.observed_until is None or until is None:
        return not_applicable("the log followed every display to its end: none is young")
    window = meta.attribution_window
    if window is not None and survey.displays_until(meta.observed_until - window) == n:
        return not_applicable("every display was followed for the attribution window: none is young")
    limit = until - survey.shown_at
    limit = limit if window is None else np.minimum(limit, window)
    rows = np.flatnonzero((follow.delay >= 0) & (follow.delay <= limit))
    if len(rows) > _ROWS:
        rows = rows[np.arange(_ROWS) * len(rows) // _ROWS]
    if len(rows) < _FEWEST_CONVERSIONS or np.ptp(follow.delay[rows]) == 0:
        return not_applicable("too few conversions, or all with one delay")
    seen = SeenConversions(follow.delay[rows], limit[rows], t.action[rows])
    cdfs = group_cdfs(seen.delay, seen.limit, seen.action, n_groups=survey.log.n_actions)
    place = seen.places(cdfs)
    tests = [test for split in _splits(t, rows) for test in [_test(seen, split, place)] if test is not None]
    tests += _of_periods(t, rows, seen, cdfs)
    if not tests:
        return not_applicable("no contexts, and too few conversions a period")
    adjusted = holm([chi_square_tail(test.statistic, test.df) for test in tests]).tolist()
    found = [(test.shift >= SHIFT and p <= level, p, test) for test, p in zip(tests, adjusted, strict=True)]
    wrong, p, worst = min(found, key=lambda of: (not of[0], of[1], -of[2].shift))
    in_time = worst.split.by == "period"
    do = "Replay with `immature='drop'`" + ("." if in_time else " for policies that read contexts, or " + (
        f"`immature='correct:{worst.split.name}'`." if worst.split.by == "column"
        else f"keep the column {worst.split.column or 'behind it'} and correct by it: "
        f"`immature='correct:{worst.split.column or 'COLUMN'}'`."
    ))  # fmt: skip
    cause = (
        "Delays change with time, so that the young displays' are not those that the laws were fitted to, and "
        "`immature='correct'` makes too much or too little of them."
        if in_time
        else "Given the action, some displays convert later than others: `immature='correct'` makes too little of the "
        "young ones among them and too much of the others. Over all of an action's displays that cancels; for a policy "
        "that chooses by the context it does not."
    )
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"mean place shifts by {worst.shift:.3f} by {worst.split.name}, p {p_words(p)}",
        statistic=worst.statistic, p_value=p, effect=worst.shift,
        numbers={"chi_square": worst.statistic, "degrees_of_freedom": worst.df, "largest_shift": worst.shift,
                 "by": worst.split.name, "where": worst.worst, "conversions": worst.conversions, "tests": len(tests)},
        what=cause if wrong else "Given the action, delays depend on nothing that was tested, as `immature='correct'` "
        "takes for granted. Whether they depend on the action need not be tested: it corrects by action.",
        remedy=do if wrong else "",
    )  # fmt: skip


class RiskSets(NamedTuple):
    """The delays of one action in reverse time, however its conversions are grouped (`log_rank`)."""

    rows: Ints  # Numbers of its conversions among those seen, shape (n,)
    # Number of the delay of each, and of the first one that its limit excludes, shape (n,).
    at: Ints
    ended: Ints
    tells: Flags  # Delays at which not all conversions at risk end, shape (J,)
    # At these delays: conversions that have it and conversions at risk, of all groups.
    events: Ints
    at_risk: Ints


@dataclass(frozen=True, eq=False)
class SeenConversions:
    """Conversions: delay, the longest that could have been seen, and the action, each of shape (n,)."""

    delay: Ints
    limit: Ints
    action: Ints

    def taken(self, rows: Flags) -> SeenConversions:
        """Return some of them."""
        return SeenConversions(self.delay[rows], self.limit[rows], self.action[rows])

    def places(self, cdfs: GroupCDFs) -> Floats:
        """Return where each delay stands among those of its action that its limit admits, from 0 to 1."""
        # Delays whose weight the log does not identify (`product_limit`) have no place.
        most = np.maximum(cdfs(self.limit, self.action), 1e-300)
        place = (cdfs(self.delay, self.action) + cdfs(self.delay - 1, self.action)) / (2 * most)
        clipped: Floats = np.clip(place, 0.0, 1.0)
        return clipped

    @cached_property
    def risk_sets(self) -> list[RiskSets]:
        """The risk sets of each action."""
        sets = []
        for action in np.unique(self.action):
            rows = np.flatnonzero(self.action == action)
            support, at = np.unique(self.delay[rows], return_inverse=True)
            ended = np.searchsorted(support, self.limit[rows], side="right")
            events = np.bincount(at, minlength=len(support))
            at_risk = np.cumsum(events) - np.cumsum(np.bincount(ended, minlength=len(support) + 1))[:-1]
            tells = at_risk > np.maximum(events, 1)
            sets.append(RiskSets(rows, at, ended, tells, events[tells], at_risk[tells]))
        return sets


class ConversionGroups(NamedTuple):
    """Groups of conversions by something known at the display."""

    # What it is: a coordinate of the context, a column that the log keeps, or the period.
    by: Literal["context", "column", "period"]
    # Name of that, the group of each conversion, shape (n,), and the groups' names.
    name: str
    group: Ints
    labels: list[str]
    # Name of the column that it is or was made of; empty where the log does not say, or there are several or none.
    column: str = ""


def _splits(t: Tables, rows: Ints) -> list[ConversionGroups]:
    """Return the groups by each coordinate of the contexts, and by each column that the log keeps."""
    log, coordinates = t.logged.survey.log, t.logged.coordinates
    displays, of = np.unique(t.logged.survey.display[rows], return_inverse=True)
    out = []
    for j, edges in enumerate(coordinates.edges):
        names = [coordinates.bin_name(j, b) for b in range(len(edges) + 1)]
        told, group = coordinates.meaning[j], t.bins[j, rows].astype(np.int64)
        out.append(ConversionGroups("context", told.name, group, names, told.column))
    for column in read_values(log, grouping_columns(log), displays):
        if 1 < column.count <= _MOST_VALUES:
            order = np.argsort(column.labels).tolist()
            labels = [f"{column.by} {column.labels[i]}" for i in order]
            group = renumbered(column.code, order, column.count).astype(np.int64)[of]
            out.append(ConversionGroups("column", column.by, group, labels))
    return out


def _of_periods(t: Tables, rows: Ints, seen: SeenConversions, cdfs: GroupCDFs) -> list[_Tested]:
    """Return the test by whole days, all of a day followed for as long: delays may go with the hour."""
    timeline, until = t.logged.timeline, t.logged.follow_up.until
    if timeline.about_a_day:  # hours of the day cannot be told from a change
        return []
    period = timeline.period_of(t.logged.survey.display[rows])
    usable = timeline.whole[period]
    limit = seen.limit
    if timeline.ends is not None and until is not None:
        limit = np.minimum(limit, until - timeline.ends[period])
        usable &= seen.delay <= limit
    some = SeenConversions(seen.delay, limit, seen.action).taken(usable)
    names = [timeline.name(d) for d in range(timeline.periods)]
    split = ConversionGroups("period", timeline.period, period[usable], names)
    found = _test(some, split, some.places(cdfs)) if len(some.delay) else None
    return [] if found is None else [found]


class _Tested(NamedTuple):
    statistic: float
    df: int
    shift: float
    worst: str
    split: ConversionGroups
    conversions: int


def _test(seen: SeenConversions, split: ConversionGroups, place: Floats) -> _Tested | None:
    """Return the log-rank test of one law in all groups given the action; None where there are not two to compare."""
    observed, expected, variance = log_rank(seen, split.group, n_groups=len(split.labels))
    told = expected >= FEWEST
    if told.sum() < 2:
        return None
    # The groups that are too small make up one, whose share the others leave.
    gap = (observed - expected)[told]
    spread = variance[np.ix_(told, told)]
    statistic, df = squared_length(gap, spread)
    if df < 1:
        return None
    count = np.bincount(split.group, minlength=len(split.labels))
    shift = np.bincount(split.group, place - place.mean(), len(split.labels)) / np.maximum(count, 1)
    shift[count < _TOLD] = 0.0
    worst = int(np.argmax(np.abs(shift)))
    return _Tested(statistic, df, float(abs(shift[worst])), split.labels[worst], split, len(seen.delay))


def log_rank(seen: SeenConversions, group: Ints, *, n_groups: int) -> tuple[Floats, Floats, Floats]:
    """Return the delays of each group, those expected, and the covariance of the gaps: shapes (G,), (G,) and (G, G).

    In reverse time, from long delays to short ones: at each delay d the conversions at risk are those with D <= d <= L,
    whatever their limits. If one law holds for all of an action, those that are d are a random draw of them (Lagakos,
    Barraj, De Gruttola 1988; Mantel, Haenszel over actions). `group` is the group of each conversion seen, from 0,
    shape (n,), and `n_groups` is G.
    """
    observed, expected, variance = np.zeros(n_groups), np.zeros(n_groups), np.zeros((n_groups, n_groups))
    for sets in seen.risk_sets:
        of, j = group[sets.rows], len(sets.tells)
        events = np.bincount(sets.at * n_groups + of, minlength=j * n_groups).reshape(j, n_groups)
        left = np.bincount(sets.ended * n_groups + of, minlength=(j + 1) * n_groups).reshape(j + 1, n_groups)[:-1]
        at_risk = (np.cumsum(events, axis=0) - np.cumsum(left, axis=0))[sets.tells].astype(np.float64)
        events, n, r = events[sets.tells], sets.events, sets.at_risk.astype(np.float64)
        share = at_risk / r[:, None]
        weight = n * (r - n) / (r - 1.0)
        observed += events.sum(axis=0)
        expected += n @ share
        variance += np.diag(weight @ share) - (share * weight[:, None]).T @ share
    return observed, expected, variance


DELAYS_OF_DAYS = Check(
    name="delays of each day", finds="conversions written late for a day", run=delays_of_days, by_kind=True
)


DELAYS_OF_ACTIONS = Check(
    name="delays of each action", finds="an action followed for less", run=delays_of_actions, by_kind=True
)


DELAY_DRIFT = Check(
    name="drift of delays", finds="delays that become longer or shorter along the log", run=delays_drift, by_kind=True
)


YOUNG_DELAYS = Check(
    name="delays of young displays",
    finds="delays that go with more than the action: the context, a kept column, the day",
    run=young_delays,
    by_kind=True,
)
