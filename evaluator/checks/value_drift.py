"""Checks of what conversions are worth: along the log, and what rewards rest on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evaluator.checks.conversion_rates import compared_periods
from evaluator.checks.result import MOST_SHOWN, POWER_Z, Check, CheckResult, Verdict, not_applicable
from evaluator.checks.significance import p_words, smallest_p
from evaluator.checks.tables import Flags, Floats, Ints, Tables
from evaluator.checks.timeline import WEEKDAYS
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.streams import Stream, random_stream

# Relative change of values that matters.
CHANGE, FEWEST_CONVERSIONS, ROWS = 0.1, 50, 10_000


# How far the logarithm (of base ten) of a ratio may be from a whole number, by chance or not, to be a change of unit.
_NEAR, _NEAR_BY_CHANCE = 0.05, 0.2


# Standard errors by which it is so by chance, and the most that they may make of that logarithm for a unit to be named.
_ERRORS, _SURE = 3.0, 0.45


# Added to variances: that of a single value at the end of the ranks, so that few values do not decide.
_CALM = 0.25


_ROWS_AT_ONCE = 4_000_000


_STATISTICS = ("change", "change of one", "period", "period of one")


# Share of all reward that one display may carry, and conversions below which nothing is learned.
HEAVY, FEWEST_FOR_BOUNDS = 0.05, 20


@dataclass(frozen=True, eq=False)
class _Values:
    """What converted displays are worth, one row each, in order of their strata."""

    # Number of the action and day of the week of each, shape (n,); displays are compared within these only.
    stratum: Ints
    # Row and column of `left`, shape (n,).
    period: Ints
    action: Ints
    # Logarithm of the absolute value, and its rank in the stratum from -1/2 to 1/2, shape (n,).
    size: Floats
    score: Floats
    # Number of rows of each period and action, shape (P, A), and the mean square of each action's scores, shape (A,).
    count: Floats
    mean_square: Floats
    # Numbers of the periods, shape (P,), and of the actions that are looked at one by one.
    periods: Ints
    actions: Ints
    # Number of actions that are looked at one by one, the first columns; any others are together in the last one.
    ranked: int
    # Mean square of the sums of scores of the hours of each day over its expectation, at least 1.
    dispersion: float

    def left(self, scores: Floats) -> Floats:
        """Return the sums of scores of each period and action, shape (draws, P, A), of scores of shape (draws, n)."""
        cell = self.period * self.count.shape[1] + self.action
        sums = np.empty((len(scores), self.count.size))
        for row, of in zip(sums, scores, strict=True):
            row[:] = np.bincount(cell, of, minlength=len(row))
        return sums.reshape(-1, *self.count.shape)

    def statistics(self, scores: Floats) -> Floats:
        """Return the statistics of some draws of scores, shape (4, draws)."""
        left, ranked = self.left(scores), slice(self.ranked)
        total = self.count.sum(axis=0)

        def squares(sums: Floats, count: Floats) -> tuple[Floats, Floats]:
            spread = self.mean_square * count * (1.0 - count / total)
            together = sums.sum(axis=2) ** 2 / (spread.sum(axis=1) + _CALM)
            of_one = (sums**2 / (spread + _CALM))[:, :, ranked]
            return together.max(axis=1), of_one.max(axis=(1, 2), initial=0.0)

        upto = squares(np.cumsum(left, axis=1)[:, :-1], np.cumsum(self.count, axis=0)[:-1])
        return np.array([*upto, *squares(left, self.count)])

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Return the statistics of scores exchanged at random within strata, shape (4, draws)."""
        at_once = max(_ROWS_AT_ONCE // len(self.score), 1)
        ends = [0, *np.flatnonzero(np.diff(self.stratum)) + 1, len(self.stratum)]
        parts = []
        for first in range(0, draws, at_once):
            scores = np.tile(self.score, (min(at_once, draws - first), 1))
            for low, high in pairwise(ends):
                scores[:, low:high] = rng.permuted(scores[:, low:high], axis=1)
            parts.append(self.statistics(scores))
        return np.concatenate(parts, axis=1)

    def ratio(self, part: Flags, rest: Flags) -> tuple[float, float]:
        """Return the ratio of the geometric means of two parts of the rows within strata, and its log's error."""
        first, second = (np.bincount(self.stratum, of, minlength=1) for of in (part, rest))
        weight = np.divide(first * second, first + second, out=np.zeros_like(first), where=first + second > 0)
        if not weight.sum():
            return 1.0, math.inf
        means = [
            np.bincount(self.stratum, self.size * of, minlength=1) / np.maximum(n, 1.0)
            for of, n in ((part, first), (rest, second))
        ]
        left = self.size - np.where(part, means[0][self.stratum], means[1][self.stratum])
        spread = float((left**2 * (part | rest)).sum() / max(np.count_nonzero(part | rest) - 2, 1))
        ratio = math.exp(float((weight * (means[0] - means[1])).sum() / weight.sum()))
        return ratio, math.sqrt(self.dispersion * spread / weight.sum())


def value_drift(t: Tables, level: float, seed: int) -> CheckResult:
    """Test that converted displays are worth as much in all periods, and so for each action (permutations of ranks).

    Displays followed long enough only, and conversions within that follow-up. Values are ranked within each action and,
    where the log has two weeks, day of the week: a few large ones do not decide, cheap and dear actions may come and
    go, and weekends are no drift. Sums of ranks are looked at up to each change point and in each single period, of all
    actions and of each (`smallest_p`). Of more than `ROWS` converted displays a sample is taken.
    """
    values = _values(t, random_stream(Stream.VALUE_DRIFT, seed, 0))
    if isinstance(values, str):
        return not_applicable(values)
    found = values.statistics(values.score[None] / math.sqrt(values.dispersion))[:, 0]
    rng = random_stream(Stream.VALUE_DRIFT, seed, 1)
    test = smallest_p(found, lambda draws: values.drawn(draws, rng), level, of=0)
    return _finding(t, values, test.p, test.which, level, _shown_by(values, test.critical))


def _values(t: Tables, rng: np.random.Generator) -> _Values | str:
    """Return what converted displays are worth, or why that says nothing."""
    timeline, survey = t.logged.timeline, t.logged.survey
    counted = t.logged.follow_up.counted(survey.display)
    display, at = np.unique(survey.display[counted], return_index=True)
    if not len(display):
        return "no conversion is judged"
    worth = np.add.reduceat(to_numpy(survey.log.conversions["value"]).astype(np.float64)[counted], at)
    action, time, period = t.action[counted][at], survey.shown_at[counted][at], timeline.period_of(display)
    rows = np.flatnonzero(np.isfinite(worth) & (worth != 0.0) & compared_periods(t)[period])
    if not len(rows):
        return "no conversion of the days that are compared is worth anything"
    if len(rows) > ROWS:
        rows = np.sort(rng.choice(rows, ROWS, replace=False))
    of = action[rows]
    weekdays = [g for g, (what, _) in zip(timeline.rhythms_of(time[rows]), timeline.rhythms, strict=True)
                if what == WEEKDAYS]  # fmt: skip
    stratum = np.unique(of * 7 + weekdays[0] if weekdays else of, return_inverse=True)[1]
    size = np.log(np.abs(worth[rows]))
    score, varied = _ranks(stratum, size)
    order = np.flatnonzero(varied)
    order = order[np.argsort(stratum[order], kind="stable")]
    if len(order) < FEWEST_CONVERSIONS:
        few = f"{len(order)} displays have values that vary within their action; {FEWEST_CONVERSIONS} are the fewest"
        return "all conversions of an action are worth the same" if not len(order) else few
    rows, stratum, size, score = rows[order], stratum[order], size[order], score[order]
    rank = t.action_hours.rank[action[rows]]
    columns, of = np.unique(rank, return_inverse=True)
    periods, when = np.unique(period[rows], return_inverse=True)
    if len(periods) < 2:
        return "all conversions are in one period"
    count = np.bincount(when * len(columns) + of, minlength=len(periods) * len(columns)).astype(np.float64)
    square = np.bincount(of, score**2) / np.bincount(of)
    hour = timeline.hour_of(time[rows]) if timeline.hours_of_day == 24 else None
    actions = t.action_hours.actions[columns[columns < t.action_hours.looked_at]]
    return _Values(
        np.unique(stratum, return_inverse=True)[1], when, of, size, score, count.reshape(len(periods), -1), square,
        periods, actions, len(actions), 1.0 if hour is None else _dispersion(when, hour, score),
    )  # fmt: skip


def _ranks(stratum: Ints, size: Floats) -> tuple[Floats, Flags]:
    """Return the rank of each value in its stratum, from -1/2 to 1/2, equal ones alike; and whether any differ there.

    >>> score, varied = _ranks(np.array([0, 0, 0, 0, 1]), np.array([3.0, 1.0, 3.0, 9.0, 5.0]))
    >>> score.tolist(), varied.tolist()
    ([0.0, -0.375, 0.0, 0.375, 0.0], [True, True, True, True, False])
    """
    n = np.bincount(stratum)
    order = np.lexsort((size, stratum))
    of, value = stratum[order], size[order]
    new = np.diff(of, prepend=-1) != 0
    starts = np.flatnonzero(new | (np.diff(value, prepend=value[0] - 1.0) != 0.0))
    tie = np.cumsum(np.isin(np.arange(len(of)), starts)) - 1
    length = np.diff(starts, append=len(of))
    within = starts - (np.cumsum(n) - n)[of[starts]] + 0.5 * length
    score = np.empty(len(of))
    score[order] = (within / n[of[starts]] - 0.5)[tie]
    varied = np.bincount(of[starts], minlength=len(n)) > 1
    return score, varied[stratum]


def _dispersion(period: Ints, hour: Ints, score: Floats) -> float:
    """Return the mean square of the sums of hours over its expectation, at least 1: above where values go together."""
    n = np.bincount(period).astype(np.float64)
    left = score - (np.bincount(period, score) / np.maximum(n, 1.0))[period]
    spread = np.bincount(period, left**2) / np.maximum(n - 1.0, 1.0)
    cell = period * 24 + hour
    size, of = np.bincount(cell, minlength=24 * len(n)), np.repeat(np.arange(len(n)), 24)
    expected = float((spread[of] * size * (1.0 - size / np.maximum(n[of], 1.0))).sum())
    return max(float((np.bincount(cell, left) ** 2).sum()) / expected, 1.0) if expected > 0.0 else 1.0


def _finding(t: Tables, values: _Values, p: float, which: int, level: float, shows: str) -> CheckResult:
    timeline = t.logged.timeline
    names = [timeline.name(d) for d in values.periods.tolist()]
    before, one = which < 2, which % 2 == 1
    left, count = values.left(values.score[None])[0], values.count
    if before:
        left, count = np.cumsum(left, axis=0)[:-1], np.cumsum(count, axis=0)[:-1]
    spread = values.mean_square * count * (1.0 - count / values.count.sum(axis=0))
    if one:
        place = (left**2 / (spread + _CALM))[:, : values.ranked]
        at, of = (int(i) for i in np.unravel_index(int(place.argmax()), place.shape))
    else:
        at, of = int((left.sum(axis=1) ** 2 / (spread.sum(axis=1) + _CALM)).argmax()), -1
    if before:
        # The change may lie within the period on either side: without it, a ratio is that of values of one kind.
        last, parts = len(values.count), (values.period <= max(at - 1, 0), values.period >= min(at + 2, len(names) - 1))
        rest, part = parts if 0 < at < last - 2 else (values.period <= at, values.period > at)
        where = f"from {names[at + 1]} on"
    else:
        part, rest = values.period == at, values.period != at
        where = f"from {names[at]} on" if at == len(names) - 1 else f"in {names[at]}"
    chosen = values.action == of if one else np.ones(len(values.action), bool)
    ratio, error = values.ratio(part & chosen, rest & chosen)
    others = values.ratio(part & ~chosen, rest & ~chosen)[0] if one else math.nan
    effect = max(ratio, 1.0 / ratio) - 1.0
    unit = _unit(ratio, error)
    # In less than three days, hours cannot be told from a drift; they do not write cents for euros.
    wrong = p <= level and (unit != 0 if timeline.about_a_day else effect >= CHANGE)
    label = "" if not one else t.logged.survey.log.labels[values.actions[of]]
    number = f"values{f' of {label}' if one else ''} {ratio:.3g} times the others {where}, p {p_words(p)}"
    numbers = {
        "ratio": ratio, "where": where, "action": label or None, "ratio_of_the_others": others, "unit": unit or None,
        "dispersion": values.dispersion, "displays": len(values.score), "strata": int(values.stratum.max()) + 1,
    }  # fmt: skip
    means, do = (
        _words(label, where, ratio, others, unit)
        if wrong
        else ("Conversions are worth as much over the log, of all actions and of each, as far as it can tell.", "")
    )
    return CheckResult(
        verdict=("fail" if unit else "warn") if wrong else "pass", number=number, p_value=p, effect=effect,
        numbers=numbers, what=means, remedy=do, shows=shows,
    )  # fmt: skip


def _words(label: str, where: str, ratio: float, others: float, unit: int) -> tuple[str, str]:
    """Return what a change means, and what to do."""
    whose = f"Conversions of action {label}" if label else "Conversions"
    said = f"{whose} are worth {ratio:.3g} times as much {where} as in the rest of the log (geometric means" + (
        f"), those of the other actions {others:.3g} times." if label else ", action by action)."
    )
    if unit:
        return (
            f"{said} That is a change of unit, as cents for euros. A replay adds up both units, so no value holds.",
            f"{'Divide' if unit > 0 else 'Multiply'} these values by {10 ** abs(unit):,} at the source; check again.",
        )
    return (
        f"{said} A replay adds up both times, and learns from the one what does not hold in the other.",
        "Look for what changed then: a price, a currency, taxes, how an order is counted"
        + (", a new version of this action" if label else "")
        + ". If the values are wrong, repair them; if conversions did become worth more or less, replay the time "
        "before and after apart, and compare policies with each other rather than with a target.",
    )


def _unit(ratio: float, error: float) -> int:
    """Return the power of ten that a ratio is, as far as can be told; 0 where it is none, or too little is known.

    >>> _unit(97.0, 0.1), _unit(125.0, 0.1), _unit(1.5, 0.1), _unit(0.001, 0.01), _unit(60.0, 0.1), _unit(97.0, 0.5)
    (2, 2, 0, -3, 0, 0)
    """
    power, sure = math.log10(ratio), _ERRORS * error / math.log(10.0)
    near = abs(power - round(power)) <= max(_NEAR, min(sure, _NEAR_BY_CHANCE))
    return round(power) if near and sure <= _SURE else 0


def _shown_by(values: _Values, critical: float) -> str:
    """Return by which factor all values must change at half time to be found, where their logs are about normal."""
    n, square = float(values.count.sum()), float((values.mean_square * values.count.sum(axis=0)).sum())
    means = np.bincount(values.stratum, values.size) / np.bincount(values.stratum)
    spread = math.sqrt(float(((values.size - means[values.stratum]) ** 2).mean()))
    # Ranks rise with the log by 1 / (2 sqrt(pi)) standard deviations; each half is off by half the change.
    error = math.sqrt(values.dispersion * square / 4.0 + _CALM)
    change = (math.sqrt(critical) + POWER_Z) * error / (n / 4.0) * 2.0 * math.sqrt(math.pi) * spread
    change = max(change, math.log1p(CHANGE) + POWER_Z * 2.0 * spread * math.sqrt(values.dispersion / n))
    factor = math.exp(change)
    return (
        ""
        if factor > (1.0 + MOST_SHOWN) / (1.0 - MOST_SHOWN)
        else f"values that become {factor:.2f} times theirs at half time"
    )


VALUE_DRIFT = Check(
    name="drift of values",
    finds="values in another unit for a part of the log; values of all actions, or of one, that change along it",
    run=value_drift,
    by_kind=True,
)


def rewards(t: Tables) -> CheckResult:
    """Say whether rewards exceed `reward_max`, are all alike, or rest on one display."""
    log = t.logged.survey.log
    value = to_numpy(log.conversions["value"]).astype(np.float64)
    display = t.logged.survey.display
    paid, of = np.unique(display, return_inverse=True)
    reward = np.bincount(of, value, minlength=len(paid)) if len(paid) else np.zeros(0)
    total, n = float(reward.sum()), len(log)
    mean, rewarded = total / n, len(paid) / n
    weights = t.logged.propensities.weights
    if weights is not None and len(paid):
        weight = to_numpy(log.take(paid, [WEIGHT])[WEIGHT])
        mean, rewarded = (float(sums / weights.of_action.sum()) for sums in (reward @ weight, weight.sum()))
    top = float(reward.max() / total) if total > 0 else float("nan")
    most = log.meta.reward_max
    beyond = 0 if most is None else int((reward > most * (1.0 + 1e-9)).sum())
    numbers = {"mean": mean, "largest": float(reward.max()) if len(reward) else 0.0, "reward_max": most,
               "beyond_reward_max": beyond, "rewarded_share": rewarded, "top_share": top,
               "negative": int((reward < 0).sum()), "conversions": len(value)}  # fmt: skip
    said: list[tuple[Verdict, str, str, str]] = []
    if not len(value):
        said.append(("fail", "no conversions", "There is no reward in the log: every policy earns nothing.",
                     "Check the conversion columns of the spec and how they are joined."))  # fmt: skip
    elif len(paid) == n and np.ptp(reward) == 0:
        said.append(("fail", f"every display earns {reward[0]:g}", "All actions are worth the same, for certain: there "
                     "is nothing to learn.", "Check the column that marks conversions."))  # fmt: skip
    if beyond:
        said.append(("fail", f"{beyond:,} displays above reward_max = {most:g}",
                     f"{beyond:,} displays earn more than the spec says is possible, up to {reward.max():g}: intervals "
                     "rest on that bound.", "Correct reward_max in the spec, or the values."))  # fmt: skip
    least = log.meta.reward_min
    if (value < 0).any() and least is None:
        said.append(("warn", f"{(value < 0).sum():,} displays below 0, no reward_min", "Nobody says how much less than "
                     f"0 a display can earn; here it is {reward.min():.4g} at the least, and intervals rest on that.",
                     "Name the least that a display can earn: reward_min in the spec."))  # fmt: skip
    below = 0 if least is None else int((reward < least - 1e-9 * abs(least)).sum())
    if below:
        said.append(("fail", f"{below:,} displays below reward_min = {least:g}",
                     f"{below:,} displays earn less than the spec says is possible, down to {reward.min():g}: "
                     "intervals rest on that bound.", "Correct reward_min in the spec, or the values."))  # fmt: skip
    if len(paid) >= FEWEST_FOR_BOUNDS and top > HEAVY:
        said.append(("warn", f"one display carries {top:.0%} of all reward", f"One display carries {top:.0%} of all "
                     "reward, so whether a replay accepts it decides the value, and intervals are as wide as it is.",
                     "Check that value; cap values or count conversions instead."))  # fmt: skip
    elif 0 < len(value) < FEWEST_FOR_BOUNDS:
        said.append(("warn", f"{len(value)} conversions", f"{len(value)} conversions are too few to tell actions "
                                                          "apart.",
                     "Take a longer log, or a reward that is less rare."))  # fmt: skip
    verdict: Verdict = "fail" if any(s[0] == "fail" for s in said) else "warn" if said else "pass"
    known = "" if most is not None else " The spec names no reward_max, so the largest seen is taken for it."
    if most is None and len(paid) and np.ptp(reward) > 0:
        known += " Intervals of realised values then are not anytime-valid: replay with `reward_max` or a cap, `cap`."
    return CheckResult(
        verdict=verdict, numbers=numbers, effect=None if np.isnan(top) else top,
        number="; ".join(s[1] for s in said) or f"mean {mean:.4g}, largest {numbers['largest']:.4g}, top "
                                                f"{top:.2%}",
        what=" ".join(s[2] for s in said) or f"{rewarded:.2%} of the displays earn something.{known}",
        remedy=" ".join(s[3] for s in said),
    )  # fmt: skip


REWARDS = Check(name="rewards", finds="rewards out of bounds, or resting on one display", run=rewards, tested=False)
