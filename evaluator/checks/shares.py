"""The shares of the actions: whether they change along the log or with the clock, why an action is shown too little.

It came late or went early, it has hours in which it is never shown, displays without conversions were thinned, or
propensities are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluator.checks.result import TRIVIAL, Check, CheckResult, not_applicable
from evaluator.checks.significance import (
    FEWEST,
    GroupTest,
    chi_square_tail,
    homogeneity,
    judge,
    p_words,
    trend,
)
from evaluator.checks.tables import Flags, Floats, Tables
from evaluator.checks.timeline import HOURS
from evaluator.log.times import time_words

# None is no chance where so many displays are usual: exp(-20) is 2e-9.
USUAL = 20.0
# Nor is such an absence of one of so many actions: exp(-10) is 5e-5, for each of them.
_RARE = 10.0
# A mean of 1 / p so many standard errors below 1 is looked into.
_SURE = 4.0
# An action that has such a pause within its time, of what it lacks before or after it, comes and goes.
_PAUSE = 0.7
# Displays without conversions are thinned if at most the first share was kept, looked for up to one in the second.
_MOST_KEPT, _MOST_THINNED = 0.8, 1e4
# P-value below which the actions' shares are not those of a thinned log.
_FITS = 0.001
# What chi-square with one degree of freedom exceeds with a chance of 5%.
_IN_INTERVAL = 3.84
_NAMED = 8
# Numbers of a block of the search for a share kept, so that many actions take the memory of some.
_CELLS = 1_000_000
# P-value above which shares do not change from period to period.
_NO_DRIFT = 1e-3


def share_drift(t: Tables, level: float) -> CheckResult:
    """Test that the actions' shares are the same in all periods (chi-square)."""
    if t.logged.constant is None:
        return not_applicable("the propensities may change with time: calibration tests them by period")
    period = t.logged.timeline.period
    counts = t.counts[1 : 1 + t.logged.timeline.periods]
    counts = counts[counts.sum(axis=1) > 0]
    outcome = judge([homogeneity(counts, what=f"by {period}")], level)
    if outcome is None:
        return not_applicable("too few displays a period")
    number = f"shares vary by {outcome.effect:.1%} by {period}, p {p_words(outcome.p_value)}"
    if outcome.verdict == "pass":
        return outcome.result(number, "The logger kept its shares.")
    return outcome.result(
        number,
        "The logger changed its mind along the log, while its propensities are taken as constant: actions shown more "
        "in good times look better than they are.",
        "Give the propensities of each time in a column, or replay a part of the log over which they stood still "
        "(`limit`).",
    )


def hours_and_weekdays(t: Tables, level: float) -> CheckResult:
    """Test that actions have the same shares at all hours and weekdays (chi-square; waves of a day and half a day).

    Where shares also change from one day to another at the same hour, or from one week to another on the same weekday,
    hours and weekdays must differ by more than that: a logger that learned moved on while the clock did.
    """
    if t.logged.constant is None:
        return not_applicable("the propensities may change with time: calibration tests them by hour and weekday")
    n = float(len(t.logged.survey.log))
    tests: list[GroupTest] = []
    for table, (what, rows) in zip(t.rhythms, t.families_by("rhythm"), strict=True):
        counts = t.counts[rows]
        if np.count_nonzero(counts.sum(axis=1)) < 2:
            continue  # the log's times are whole days
        of_clock = [homogeneity(counts, what=what, rows=rows)]
        if what == HOURS:
            angle = 2.0 * np.pi * np.arange(24) / 24.0
            waves = [(shape(k * angle), f"wave {i}") for k in (1, 2) for i, shape in enumerate((np.sin, np.cos), 2 * k)]
            of_clock += [GroupTest(what, name, *trend(counts, wave), n, tuple(rows)) for wave, name in waves]
        drift = _drift(table.shown)
        tests += [_beyond_drift(test, *drift) for test in of_clock]
    outcome = judge(tests, level)
    if outcome is None:
        return not_applicable("the log counts rounds or days, covers less than a day, or has too few displays")
    number = f"shares vary by {outcome.effect:.1%} by {outcome.worst.what}, p {p_words(outcome.p_value)}"
    if outcome.verdict == "pass":
        good = "The logger kept its shares at all hours and on all weekdays, as far as it can tell."
        return outcome.result(number, good)
    said, do = pause_cause(t) or (
        most_off(t, outcome.worst.rows).strip(),
        "Give the propensities of each time in a column or, where the logger looked at the clock only, let them be "
        "estimated from it: put the hour and the weekday among the context columns of the spec, and read with "
        "`propensity='estimate:context'`.",
    )
    means = (
        "The logger followed the clock, while its propensities are taken as constant: an action shown at hours at "
        f"which people buy looks better than it is. {said}"
    )
    return outcome.result(number, means, do)


def _drift(shown: Floats) -> tuple[float, float]:
    """Return the statistic that groups by the clock change from period to period, and its degrees of freedom.

    `shown` counts the displays of each period, group and action, shape (P, G, A).
    """
    together = shown.sum(axis=0)
    cells = shown.reshape(-1, shown.shape[2])
    each, all_periods = (homogeneity(counts[counts.sum(axis=1) > 0], what="") for counts in (cells, together))
    return each.statistic - all_periods.statistic, each.df - all_periods.df


def _beyond_drift(test: GroupTest, left: float, df: float) -> GroupTest:
    """Return a test of one grouping by the clock, with its statistic lowered to allow for drift (`_drift`).

    The statistic becomes the one whose p-value holds where groups also change from period to period.
    """
    from scipy.special import chdtri, fdtrc

    if df <= 0.0 or test.df <= 0.0 or chi_square_tail(left, df) > _NO_DRIFT:
        return test
    tail = float(fdtrc(test.df, df, test.statistic / test.df / (left / df)))
    return test._replace(statistic=min(float(chdtri(test.df, max(tail, 1e-300))), test.statistic))


def most_off(t: Tables, rows: Sequence[int]) -> str:
    """Return a sentence, or nothing, naming the action furthest from its propensity in the group that shows it most."""
    constant = t.logged.constant
    if not rows or constant is None:
        return ""
    # By contexts the shares of the log are the reference, whatever is claimed: they hold both claims.
    p = t.logged.shares if len(rows) > 1 else np.nan_to_num(constant)
    expected = np.maximum(t.counts[list(rows)].sum(axis=1, keepdims=True) * p, 1e-12)
    excess = (t.counts[list(rows)] - expected) / np.sqrt(expected)
    excess[expected < FEWEST] = 0.0
    i, a = np.unravel_index(int(np.abs(excess).argmax()), excess.shape)
    row, label = rows[int(i)], t.logged.survey.log.labels[int(a)]
    n = t.counts[row].sum()
    place, share = t.groups[row].name, t.counts[row, a] / n
    return f" Furthest off: action {label} in {place}, shown {share:.2%} instead of {p[a]:.2%}."


class Absence(NamedTuple):
    """A part of the log without any display of an action that has many in the rest."""

    action: int  # Index of the action
    share: float  # Share of the log's displays at which it was not shown
    # Time of its first display where it came later than the log, and of its last one where it went earlier; each is
    # None where it did neither.
    since: int | None
    until: int | None


def absences(t: Tables) -> list[Absence]:
    """Return the actions that came after the log began or went before it ended, by displays that chance does not miss.

    Between its first and last display an action has a share of the displays; where that share of the ones before (or
    after) makes `USUAL` displays or more, and these are `TRIVIAL` of the log or more, it was not there. Few
    displays say no such thing where chance leaves such ends empty, as of a single one. An action that pauses as long
    within its time comes and goes (every evening, say), and neither came nor went.
    """
    n = len(t.logged.survey.log)
    chance = _RARE + math.log(t.counts.shape[1])
    found = []
    for a in np.flatnonzero(t.counts[0]).tolist():
        before, after = t.outside[:, a].tolist()
        rate = t.counts[0, a] / (n - before - after)
        least = max(USUAL / rate, TRIVIAL * n, int(t.pause[a]) / _PAUSE)
        came, went = before >= least, after >= least
        share = (before * came + after * went) / n
        # Where the time of the first (or last) of m displays is that of its launch, m - 1 say that others are missing.
        if (came or went) and -(t.counts[0, a] - (came and went)) * math.log1p(-min(share, 1.0 - 1e-12)) >= chance:
            found.append(Absence(a, share, int(t.first[1, a]) if came else None, int(t.last[1, a]) if went else None))
    return found


def there(t: Tables, gone: list[Absence]) -> Floats:
    """Return the displays of each group at which each action was there, shape (G, K).

    Exact for all displays and for periods; groups of other kinds have the share of the whole log.
    """
    size = t.counts.sum(axis=1)
    n, edges = float(len(t.logged.survey.log)), t.logged.timeline.edges
    found = np.repeat(size[:, None], t.counts.shape[1], axis=1)
    for absence in gone:
        a = absence.action
        low = int(t.outside[0, a]) if absence.since is not None else 0
        high = n - (int(t.outside[1, a]) if absence.until is not None else 0)
        found[:, a] *= (high - low) / n
        found[1 : len(edges), a] = np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0.0, None)
    return found


def absence_words(t: Tables, absence: Absence) -> str:
    """Return from when to when an action has displays, in words: ``a3 has displays only from ... on, none in ...``."""
    label, seconds = t.logged.survey.log.labels[absence.action], t.logged.survey.log.meta.tick_seconds
    start = t.logged.timeline.start
    words = f"action {label} has displays only"
    if absence.since is not None:
        words += f" from {time_words(absence.since, seconds, start=start)}" + (" on" if absence.until is None else "")
    if absence.until is not None:
        words += f" until {time_words(absence.until, seconds, start=start)}"
    return f"{words}, none in the other {absence.share:.0%} of the traffic"


def absence_advice(t: Tables, gone: list[Absence]) -> tuple[str, str]:
    """Return what launches and retirements, of which there is one at least, mean for a replay, and what to do."""
    most, everyone = max(gone, key=lambda absence: absence.share), np.arange(t.counts.shape[1])
    came, went = (any(getattr(absence, end) is not None for absence in gone) for end in ("since", "until"))
    # The first displays of a log are those of `limit`; the last ones are a file of their own.
    how = " and ".join(way for way, of in (("a file that starts later", came), ("`limit`", went)) if of)
    return (
        f"{_said(t, most, len(gone) - 1)}. A policy that chooses it at other times finds no display, and a replay of "
        "the whole log tilts towards the time in which it was there",
        f"Replay the time in which all actions were there ({how}), or leave out what was not: "
        f"{without(t, np.isin(everyone, [absence.action for absence in gone]))}.",
    )


def _said(t: Tables, absence: Absence, others: int) -> str:
    words = absence_words(t, absence)
    return words[0].upper() + words[1:] + (f" ({others} more come late or go early)" if others else "")


class MissingSupport(NamedTuple):
    """Displays at which an action is hardly ever shown, while its propensities hold at others."""

    action: int  # Index of the action
    # Estimated share of the log's displays at which it is hardly ever shown: 1 minus the mean of 1 / p.
    share: float
    where: str  # Group of displays in which it is shown least
    # Number of its displays in that group, and how many it would have there at its share of all displays.
    shown: int
    expected: float


def deficits(t: Tables) -> list[int]:
    """Return the actions whose mean of 1 / p is below 1, most first: by `TRIVIAL` and four standard errors or more.

    Where propensities are constant that is their share of the displays over p.
    """
    n, constant = float(len(t.logged.survey.log)), t.logged.constant
    with np.errstate(invalid="ignore", divide="ignore"):
        if constant is None:
            mean, error = t.inverse[0, 0] / n, np.sqrt(t.inverse[1, 0]) / n
        else:
            mean, error = t.counts[0] / (n * constant), np.sqrt(1.0 / (n * constant))
    low = (t.counts[0] > 0) & (mean < 1.0 - TRIVIAL) & (mean < 1.0 - _SURE * error)
    return [int(a) for a in np.argsort(mean, kind="stable") if low[a]]


def hole(t: Tables, action: int) -> MissingSupport | None:
    """Return where an action is not shown, if its mean of 1 / p is 1 in some groups and far from it in others.

    A wrong propensity is wrong everywhere, by about the same factor; None then, and where propensities are constant.
    """
    if t.logged.constant is not None:
        return None
    size = t.counts.sum(axis=1)
    share = t.inverse[0, 0, action] / size[0]
    best, found = 0.0, None
    for family, all_rows in t.families.items():
        if family.kind == "all":
            continue
        rows = [i for i in all_rows if size[i] > 0]
        mean = t.inverse[0, rows, action] / size[rows]
        # Variance of the mean of 1{A = a} / p: its second moment, or what the whole log lets expect.
        spread = np.maximum(t.inverse[1, rows, action] / size[rows], t.inverse[1, 0, action] / size[0])
        error = np.sqrt(spread / size[rows])
        apart = float((((mean - share) / error) ** 2).sum()) - len(rows)
        least = int(mean.argmin())
        holds = mean[mean.argmax()] + 3.0 * error[mean.argmax()] >= 1.0
        sure = (share - mean[least]) / error[least] >= _SURE
        if len(rows) > 1 and holds and sure and apart > best:
            best = apart
            where = _never(t, action, rows, least) if family.name == HOURS else [rows[least]]
            expected, shown = float(size[where].sum() * t.counts[0, action] / size[0]), t.counts[where, action].sum()
            found = MissingSupport(action, 1.0 - float(share), _hours(t, where), int(shown), expected)
    return found


def hole_cause(t: Tables) -> tuple[str, str] | None:
    """Return what a hole in the overlap means and what to do; None where the propensities are wrong."""
    found = next((there for action in deficits(t) if (there := hole(t, action)) is not None), None)
    if found is None:
        return None
    label, everyone = t.logged.survey.log.labels[found.action], np.arange(t.counts.shape[1])
    shown = "never" if found.shown == 0 else f"only {found.shown:,} times"
    return (
        f"A hole in the overlap rather than a wrong propensity: action {label} has the displays its propensities say "
        f"in some groups, but is shown {shown} in {found.where}, where {found.expected:,.0f} were to be expected. By "
        f"its mean of 1/p, {found.share:.0%} of the traffic never shows it: what it would earn there the log cannot "
        "tell, and its value is that of the rest.",
        f"Leave out the action ({without(t, everyone == found.action)}) or, at the source, the displays that "
        "could not show it; or log with some exploration there. The propensities need no repair.",
    )


def pause_cause(t: Tables) -> tuple[str, str] | None:
    """Return what hours mean in which an action was never shown, and what to do; None where all had theirs.

    Where propensities are constant, which `hole` leaves to the check of the hours: none there can be right.
    """
    size = t.counts.sum(axis=1)
    usual = size[:, None] * t.counts[0] / size[0]
    missing = (t.counts == 0) & (usual >= USUAL)
    found = []
    for family, all_rows in t.families.items():
        if family.name != HOURS:
            continue
        rows = [row for row in all_rows if size[row] > 0]
        for a in np.flatnonzero(missing[rows].any(axis=0)).tolist():
            at = int(np.where(t.counts[rows, a] == 0, usual[rows, a], 0.0).argmax())
            where = _never(t, a, rows, at)
            found.append((float(usual[where, a].sum()), a, _hours(t, where)))
    paused = np.isin(np.arange(t.counts.shape[1]), [a for _, a, _ in found])
    if not found or paused.all():
        return None
    expected, action, hours = max(found)
    return (
        f"Action {t.logged.survey.log.labels[action]} is shown never in {hours}, where {expected:,.0f} were to be "
        "expected: what it would earn there the log cannot tell, whatever the propensities.",
        f"Leave out what pauses ({without(t, paused)}); or name the actions that could be shown at each display "
        "(`eligible`, in `[display]` of the spec), and values are those of choices among them.",
    )


def _never(t: Tables, action: int, rows: list[int], at: int) -> list[int]:
    """Return the hours around one, and it, at which an action was never shown; only that one where it was shown."""
    never = [t.counts[row, action] == 0 for row in rows]
    low = high = at
    while never[at] and high - low < len(rows) - 1 and never[low - 1]:
        low -= 1
    while never[at] and high - low < len(rows) - 1 and never[(high + 1) % len(rows)]:
        high += 1
    return [rows[hour % len(rows)] for hour in range(low, high + 1)]


def _hours(t: Tables, rows: list[int]) -> str:
    names = [t.groups[row].name for row in rows]
    return names[0] if len(rows) == 1 else f"{names[0].split(' to ')[0]} to {names[-1].split(' to ')[1]}"


class Thinning(NamedTuple):
    """Displays without a conversion of which only a part was logged."""

    # Ends of a 95% interval of the share of them that was kept, as far as the actions' shares tell.
    least: float
    most: float
    rate: float  # Share of the displays that converts, in the log

    def whole_rate(self, kept: float) -> float:
        """Return the share that converts of the displays before they were thinned."""
        return self.rate / (self.rate + (1.0 - self.rate) / kept)


def thinning(t: Tables) -> Thinning | None:
    """Return how displays without conversions were thinned, if that makes the propensities right; None if not.

    With c displays of an action that converted and u that did not, each times 1 / p, the sum c + u / kept is the same
    for all actions: the more of them convert, the fewer are left of the others. It is weighted least squares in 1 /
    kept; the rest is chi-square. Of two actions nothing is left to test, for some share kept fits any two sums.
    """
    display, at = np.unique(t.logged.survey.display, return_index=True)
    n, weight, k = len(t.logged.survey.log), t.weight[at], t.counts.shape[1]
    seen = t.counts[0] > 0
    sums = [np.bincount(t.action[at], weight**power, minlength=k)[seen] for power in (1.0, 2.0)]
    rest = [np.maximum(t.inverse[i, 0, seen] - sums[i], 0.0) for i in range(2)]
    if not 0 < len(display) < n or seen.sum() < 3 or t.logged.propensities.tilted:
        return None
    inverse = np.geomspace(1.0, _MOST_THINNED, 2001)[:, None]
    parts = min(-(-len(inverse) * int(seen.sum()) // _CELLS), len(inverse))
    blocks = np.array_split(inverse, parts)
    left = np.concatenate([_unexplained(block, sums, rest) for block in blocks])
    best = int(left.argmin())
    near = 1.0 / inverse[left <= left[best] + _IN_INTERVAL, 0]
    fits = chi_square_tail(float(left[best]), float(seen.sum()) - 2.0) > _FITS
    clear = left[0] - left[best] >= _SURE**2 and near.max() <= _MOST_KEPT and best < len(left) - 1
    return Thinning(float(near.min()), float(near.max()), len(display) / n) if fits and clear else None


def _unexplained(inverse: Floats, sums: list[Floats], rest: list[Floats]) -> Floats:
    """Return the weighted squares that some values (m, 1) of 1 / kept leave, shape (m,); sums as of `thinning`."""
    total, variance = sums[0] + inverse * rest[0], np.maximum(sums[1] + inverse**2 * rest[1], 1e-300)
    mean = (total / variance).sum(axis=1, keepdims=True) / (1.0 / variance).sum(axis=1, keepdims=True)
    return np.asarray(((total - mean) ** 2 / variance).sum(axis=1))


def thinning_cause(t: Tables) -> tuple[str, str] | None:
    """Return what thinned displays mean and what to do; None where they are not what is wrong."""
    found = thinning(t)
    if found is None:
        return None
    return (
        f"Displays without a conversion look thinned: {found.rate:.3g} of the displays convert, and the actions have "
        f"the shares that right propensities leave if {found.least:.2g} to {found.most:.2g} of the displays without a "
        f"conversion were kept; {found.whole_rate(found.least):.2g} to {found.whole_rate(found.most):.2g} of all would "
        "convert then. Actions that convert well keep more displays, and every rate and value is that of the thinned "
        "log. The propensities may be right.",
        "Find out by which rule displays were kept, and name a column of weights (`weight`, in `[display]` of the "
        "spec): 1 for displays with a conversion, 1 over the share kept for those without, "
        f"{1.0 / found.most:.2g} to {1.0 / found.least:.2g} by this log; then check again. Were none left out, give "
        "the true propensities.",
    )


def without(t: Tables, actions: Flags) -> str:
    """Return the options that leave out some actions, shape (K,), by naming the others where these are few enough.

    Logged propensities that change between displays are those of the full set: what is left needs its own.
    """
    logged = t.logged
    kept = [label for label, gone in zip(logged.survey.log.labels, actions, strict=True) if not gone]
    words = f"`actions='{','.join(kept)}'`" if len(kept) <= _NAMED else "`actions` with the labels of the others"
    if logged.constant is None:
        words += f" `propensity='estimate{':context' if logged.has_context else ''}'`"
    return words


SHARE_DRIFT = Check(
    name="drift of action shares",
    finds="shares of the actions that change along the log",
    run=share_drift,
    of_all=True,
    of_choices=True,
)
RHYTHM = Check(
    name="hours and weekdays", finds="a logger that followed the clock although its propensities are constant",
    run=hours_and_weekdays, of_all=True, of_choices=True,
)  # fmt: skip
