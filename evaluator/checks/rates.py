"""Whether conversion rates keep steady: of all actions along the log, and of each action against the others.

Rates of actions are compared with a fit in which period, hour of the day and action only add up (`AdditiveFit`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluator.checks.result import MOST_SHOWN, POWER, POWER_Z, Check, CheckResult, not_applicable
from evaluator.checks.significance import FEWEST, Flags, Floats, Ints, SmallestP, chi_square_tail, p_words, smallest_p
from evaluator.checks.timeline import TOO_SHORT
from evaluator.engine.kernels.solving import inverted, solved, squared_length
from evaluator.streams import Stream, random_stream

if TYPE_CHECKING:
    from evaluator.checks.tables import Tables

# Change of rates (root mean square, relative) that matters.
RATE_CHANGE = 0.05
# Change of an action's rate against the others that matters, relative.
CHANGE = 0.1
FEWEST_CONVERSIONS = 50
_FEWEST_DAYS = 3
# Actions beyond this many are not looked at: those shown most are.
MOST_ACTIONS = 64
_STEPS, _CLOSE = 30, 1e-9
# Added to variances, so that cells of few expected conversions do not decide.
_CALM = 0.5
_CELLS_AT_ONCE = 4_000_000


@dataclass(eq=False)
class ActionHours:
    """Judged displays of each period, hour of the day and action."""

    # Place of each action among those looked at, shape (K,); `looked_at` for all others.
    rank: Ints
    # Number of judged displays of each period, hour and action looked at, shape (P, H, A + 1), all other actions
    # together in the last place. H is 1 where the log has no hours of the day.
    shown: Floats

    @property
    def looked_at(self) -> int:
        """Number of actions that are looked at, A."""
        return int(self.shown.shape[2]) - 1

    @property
    def actions(self) -> Ints:
        """Number of each action that is looked at, shape (A,)."""
        return np.flatnonzero(self.rank < self.looked_at)

    def count(self, period: Ints, hour: Ints, action: Ints) -> Floats:
        """Return how many of some displays are in each cell, of the shape of `shown`."""
        _, hours, actions = self.shown.shape
        cell = (period * hours + hour) * actions + self.rank[action]
        return np.bincount(cell, minlength=self.shown.size).reshape(self.shown.shape).astype(np.float64)


def action_hours(shown: Ints, periods: int, hours: int) -> ActionHours:
    """Return an empty table for the actions shown most; `shown` are the displays of each, shape (K,)."""
    kept = np.sort(np.argsort(-shown, kind="stable")[:MOST_ACTIONS])
    rank = np.full(len(shown), len(kept), np.int64)
    rank[kept] = np.arange(len(kept))
    return ActionHours(rank, np.zeros((periods, hours, len(kept) + 1)))


def rate_drift(t: Tables, level: float) -> CheckResult:
    """Test that the actions' conversion rates are the same in all periods, whatever their shares.

    Displays followed long enough only, and only conversions within that follow-up: otherwise the log's end looks like
    drift. The statistic adds up observed minus expected converted displays over the actions (Cochran, Mantel,
    Haenszel), so that drifting shares of good and bad actions are no drift of rates.
    """
    period, timeline = t.logged.timeline.period, t.logged.timeline
    if t.logged.propensities.weights is not None:
        return not_applicable("displays have weights: the rates in the log are not those of the traffic")
    if timeline.about_a_day:
        return not_applicable(TOO_SHORT)
    display = t.logged.survey.display
    counted = t.logged.follow_up.counted(display)
    converted, at = np.unique(display[counted], return_index=True)
    cells = timeline.period_of(converted) * t.mature.shape[1] + t.action[counted][at]
    seen = np.bincount(cells, minlength=t.mature.size).reshape(t.mature.shape).astype(np.float64)
    compared = compared_periods(t)
    seen, judged = seen[compared], t.mature[compared]
    shape = judged.shape
    if seen.sum() < FEWEST_CONVERSIONS:
        return not_applicable(f"{seen.sum():.0f} conversions; {FEWEST_CONVERSIONS} are the fewest")
    shown = judged.sum(axis=0)
    rate = seen.sum(axis=0) / np.maximum(shown, 1.0)
    expected = judged @ rate
    merged = np.floor((np.cumsum(expected) - expected) / FEWEST).astype(np.int64)
    merged = np.unique(np.minimum(merged, max(int(expected.sum() / FEWEST) - 1, 0)), return_inverse=True)[1]
    together = np.zeros((merged.max() + 1, shape[0]))
    together[merged, np.arange(shape[0])] = 1.0
    seen, mature, expected = together @ seen, together @ judged, together @ expected
    left = seen.sum(axis=1) - expected
    # A sample without replacement: of the converted displays of an action, so many fall into each period.
    by_action = rate * (1.0 - rate) * shown / np.maximum(shown - 1.0, 1.0)
    spread = np.diag(mature @ by_action) - (mature * (by_action / np.maximum(shown, 1.0))) @ mature.T
    df = len(left) - 1
    if df < 1:
        return not_applicable("all conversions are in one period")
    # Visitors who come more than once within an hour: their outcomes go together, so totals of days spread more.
    dispersion = 1.0 if t.additive is None else t.additive.dispersion_in_all
    spread *= dispersion
    statistic, _ = squared_length(left, spread)
    p = chi_square_tail(statistic, df)
    unconverted = 1.0 - float(expected.sum() / mature.sum())
    change = math.sqrt(max(statistic - df, 0.0) * unconverted / float(expected.sum()))
    wrong = p <= level and change >= RATE_CHANGE
    noise = math.sqrt(dispersion * unconverted / float(expected.sum()))
    ratio = seen.sum(axis=1) / np.maximum(expected, 1e-300)
    numbers = {
        "chi_square": statistic, "degrees_of_freedom": df, "relative_change": change, "lowest": float(ratio.min()),
        "highest": float(ratio.max()), "displays": int(mature.sum()), "conversions": int(seen.sum()),
    }  # fmt: skip
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"rates vary by {change:.1%} by {period}, p {p_words(p)}",
        statistic=statistic, p_value=p, effect=change, numbers=numbers, shows=_shown_rates(df, noise, level),
        what=(f"From {ratio.min():.2f} to {ratio.max():.2f} times the expected. A replay takes displays as "
               "identically distributed: it plays a mixture of these times, the early ones with a policy that has "
               "learned little."
               if wrong else "The actions convert alike over the log, as far as it can tell."),
        remedy="Replay with `sampler='keep'` or rejection, which keep the order of the log, not with queue; compare "
        "policies with each other rather than with a target; replay parts of the log apart. Where conversions go to "
        "the last click, the last days of a log win them for want of later clicks (the first days with first_click): "
        "`deduplicate='share'` shows whether that is all." if wrong else "",
    )  # fmt: skip


def _shown_rates(df: int, noise: float, level: float) -> str:
    """Return the factor between the halves of the log, common to all actions, that the test of rates finds.

    Where rates are 1 - d times theirs in one half and 1 + d times in the other, the statistic is about a noncentral
    chi-square with (d / noise)^2.
    """
    from scipy.special import chdtri, chndtrinc

    d = noise * math.sqrt(float(chndtrinc(chdtri(df, level), df, 1.0 - POWER)))
    d = max(d, RATE_CHANGE + POWER_Z * noise)
    if d > MOST_SHOWN:
        return ""
    return f"rates of all actions that become {(1.0 + d) / (1.0 - d):.2f} times theirs at half time"


def compared_periods(t: Tables) -> Flags:
    """Return the periods whose rates are compared, shape (P,): whole and judged ones, or all if these are too few.

    Rates go with the time of day, so a day of which only the morning can be judged differs from the others.
    """
    timeline = t.logged.timeline
    if timeline.ends is None:
        return timeline.whole
    compared = timeline.whole & (timeline.edges[1:] <= t.logged.follow_up.mature)
    return compared if compared.sum() >= _FEWEST_DAYS else np.ones(len(compared), bool)


def action_rates(t: Tables, level: float, seed: int) -> CheckResult:
    """Test that each action keeps its odds of a conversion against the others in all periods (parametric bootstrap).

    Under the hypothesis the log odds are a number of the period plus one of the hour of the day plus one of the action,
    so that seasons, busy hours and launches are no finding. What is left of each period and action is looked at
    everywhere, up to each change point, and in each single period (`smallest_p`).
    """
    if t.logged.propensities.weights is not None:
        return not_applicable("displays have weights: the rates in the log are not those of the traffic")
    fit = t.additive
    if fit is None:
        return not_applicable("fewer than two actions, or two periods, have conversions")
    if fit.seen.sum() < FEWEST_CONVERSIONS:
        return not_applicable(f"{fit.seen.sum():.0f} conversions; {FEWEST_CONVERSIONS} are the fewest")
    rng = random_stream(Stream.ACTION_RATES, seed)
    found = _statistics(fit, fit.left[None] / math.sqrt(fit.dispersion))
    at = _Statistics._fields.index("change_of_one")
    test = smallest_p(np.array(found)[:, 0], lambda draws: _draws(fit, draws, rng), level, of=at)
    return _finding(t, fit, test, level)


class _Statistics(NamedTuple):
    """What is looked at, each of shape (draws,)."""

    everywhere: Floats
    change: Floats
    change_of_one: Floats
    period: Floats
    period_of_one: Floats


def _statistics(fit: AdditiveFit, left: Floats) -> _Statistics:
    """Return the statistics of what is left, shape (draws, P', A')."""
    square = left**2 / (fit.spread + _CALM)
    upto = np.cumsum(left, axis=1)[:, :-1] ** 2 / _change_spread(fit)
    return _Statistics(
        square.sum(axis=(1, 2)), upto.sum(axis=2).max(axis=1), upto.max(axis=(1, 2)),
        square.sum(axis=2).max(axis=1), square.max(axis=(1, 2)),
    )  # fmt: skip


def _draws(fit: AdditiveFit, draws: int, rng: np.random.Generator) -> Floats:
    """Return the statistics of draws from the fit, shape (5, draws)."""
    at_once = max(_CELLS_AT_ONCE // fit.seen.size, 1)
    parts = [_statistics(fit, fit.drawn(min(at_once, draws - at), rng)) for at in range(0, draws, at_once)]
    return np.concatenate([np.array(part) for part in parts], axis=1)


def _shown_change(fit: AdditiveFit, test: SmallestP) -> str:
    """Return by which factor one action's odds must change halfway to be found, the action in the middle."""
    at = int(np.argsort(fit.expected.sum(axis=0), kind="stable")[len(fit.actions) // 2])
    mean, spread = float(fit.expected[:, at].sum()), float(fit.spread[:, at].sum())
    share = spread / float(fit.spread.sum())
    # Odds that are 1 - d times theirs before and 1 + d after move the other actions' share of each half.
    error = math.sqrt(fit.dispersion * (spread / 4.0 + _CALM))
    needed = math.sqrt(test.critical) + POWER_Z * math.sqrt(1.0 - share)
    d = needed * error / ((1.0 - share) * spread / 2.0)
    d = max(d, (CHANGE + POWER_Z * 2.0 * error / mean) / (1.0 - share) * mean / spread)
    if d > MOST_SHOWN:
        return ""
    return f"an action whose odds of a conversion become {(1.0 + d) / (1.0 - d):.2f} times theirs at half time"


def _change_spread(fit: AdditiveFit) -> Floats:
    """Return the variance of what is left up to each period but the last, shape (P' - 1, A')."""
    before = np.cumsum(fit.spread, axis=0)[:-1]
    return np.asarray(before * (1.0 - before / fit.spread.sum(axis=0)) + _CALM)


def _finding(t: Tables, fit: AdditiveFit, test: SmallestP, level: float) -> CheckResult:
    p, which = test.p, test.which
    timeline, labels = t.logged.timeline, np.array(t.logged.survey.log.labels)[t.action_hours.actions[fit.actions]]
    period = timeline.period
    if which in (1, 2):
        upto = np.cumsum(fit.left, axis=0)[:-1] ** 2 / _change_spread(fit)
        at = int((upto.sum(axis=1) if which == 1 else upto.max(axis=1)).argmax())
        part = np.arange(len(fit.periods)) > at
        where = f"from {timeline.name(int(fit.periods[at + 1]))} on"
    else:
        square = fit.left**2 / (fit.spread + _CALM)
        at = int((square.max(axis=1) if which == 4 else square.sum(axis=1)).argmax())
        part = np.arange(len(fit.periods)) == at
        where = f"in {timeline.name(int(fit.periods[at]))}"
    seen, expected = fit.seen[part].sum(axis=0), fit.expected[part].sum(axis=0)
    spread = fit.dispersion * fit.spread[part].sum(axis=0)
    score = (seen - expected) / np.sqrt(spread + _CALM)
    low, high, most = int(score.argmin()), int(score.argmax()), int(np.abs(score).argmax())
    effect = abs(float(seen[most] / max(expected[most], 1e-300)) - 1.0)
    wrong = p <= level and effect >= CHANGE
    numbers = {
        "relative_change": effect, "where": where, "lower_action": labels[low], "higher_action": labels[high],
        "lower_ratio": float(seen[low] / max(expected[low], 1e-300)),
        "higher_ratio": float(seen[high] / max(expected[high], 1e-300)), "dispersion": fit.dispersion,
        "actions": len(fit.actions), "periods": len(fit.periods), "conversions": int(fit.seen.sum()),
    }  # fmt: skip
    return CheckResult(
        verdict="warn" if wrong else "pass",
        number=f"{labels[most]} off by {effect:.1%} {where}, p {p_words(p)}",
        shows=_shown_change(fit, test), p_value=p, effect=effect, numbers=numbers,
        what=(f"Against the other actions, {labels[high]} has {seen[high]:.0f} conversions {where} where "
               f"{expected[high]:.0f} were to be expected, {labels[low]} has {seen[low]:.0f} where {expected[low]:.0f} "
               "were: two labels were exchanged for that time, or the actions' rates drift apart. A replay mixes "
               "these times, and the best action of the mixture may be the best of neither." if wrong else
               f"No action gains or loses on the others by {period}, as far as it can tell."),
        remedy="Look for a renaming of actions, a wrong join or a new version of one of them at that time. Repair the "
        "labels or leave these displays out; if the rates did change, replay the time before and after apart."
        if wrong else "",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AdditiveFit:
    """Expected conversions under logit P(conversion) = period + hour of the day + action."""

    # Numbers of the periods and of the actions that say anything, shapes (P',) and (A',): those with conversions, and
    # with displays without.
    periods: Ints
    actions: Ints
    # Displays of these periods and actions, their conversions, and the conversions that the fit makes expected, shape
    # (P', A').
    shown: Floats
    seen: Floats
    expected: Floats
    # Variance of the conversions of each period and action under the fit, summed over its hours, shape (P', A').
    spread: Floats
    # Mean square of what is left in the hours of each day over its expectation, by action and of all actions, at least
    # 1: above 1 where outcomes go together, as those of one visitor; taken as 1 where there are no hours.
    dispersion: float
    dispersion_in_all: float
    _inverse: Floats = field(repr=False)

    @property
    def left(self) -> Floats:
        """What is seen beyond what is expected, shape (P', A')."""
        return self.seen - self.expected

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Return what is left of conversions drawn from the fit once period and action are fitted to them.

        Shape (draws, P', A'). To first order: efficient scores.
        """
        n = self.shown.astype(np.int64)
        chance = np.divide(self.expected, self.shown, out=np.zeros_like(self.expected), where=self.shown > 0)
        left = rng.binomial(n, chance, (draws, *n.shape)) - self.expected
        score = np.concatenate((left.sum(axis=2), left.sum(axis=1)), axis=1)
        moved = score @ self._inverse
        rows = left.shape[1]
        left -= self.spread * (moved[:, :rows, None] + moved[:, None, rows:])
        return np.asarray(left)


def fit_additive(shown: Floats, seen: Floats) -> AdditiveFit | None:
    """Return the maximum likelihood fit, or None where fewer than two periods or two actions have data.

    `shown` and `seen` count the displays, and those that converted, of each period, hour and action, shape (P, H, A).
    Newton's method works on the sums by period, by hour and by action, and halves steps that go too far. Cost: some
    thirty passes over the cells at most.
    """
    periods, hours, actions = np.arange(shown.shape[0]), np.arange(shown.shape[1]), np.arange(shown.shape[2])
    while True:
        n, y = shown[np.ix_(periods, hours, actions)], seen[np.ix_(periods, hours, actions)]
        kept = []
        for axis in range(3):
            others = tuple(a for a in range(3) if a != axis)
            of, with_one = n.sum(axis=others), y.sum(axis=others)
            kept.append((with_one > 0) & (with_one < of))
        if all(k.all() for k in kept):
            break
        periods, hours, actions = periods[kept[0]], hours[kept[1]], actions[kept[2]]
    if len(periods) < 2 or len(actions) < 2:
        return None
    mean = _fitted(n, y)
    weight = mean * (1.0 - np.divide(mean, n, out=np.zeros_like(mean), where=n > 0))
    of_hours = sum(n.shape[:2]) - 1
    dispersion = _dispersion(y - mean, weight, int(np.count_nonzero(n)), of_hours + n.shape[2] - 1)
    in_all = _dispersion((y - mean).sum(axis=2), weight, int(np.count_nonzero(n.sum(axis=2))), of_hours)
    spread = weight.sum(axis=1)
    rows = np.diag(spread.sum(axis=1))
    columns = np.diag(spread.sum(axis=0))
    information = np.block([[rows, spread], [spread.T, columns]])
    # One constant is free; any ridge that picks it gives the same sums of a row's and a column's number.
    information[np.diag_indices_from(information)] += 1e-9 * np.trace(information)
    inverse = inverted(information)
    return AdditiveFit(
        periods, actions, n.sum(axis=1), y.sum(axis=1), mean.sum(axis=1), spread, dispersion, in_all, inverse
    )  # fmt: skip


def _dispersion(left: Floats, weight: Floats, cells: int, fitted: int) -> float:
    """Return the mean square of what is left over its expectation, at least 1; 1 where there is but one hour."""
    if left.shape[1] == 1 or cells <= fitted:
        return 1.0
    return max(float((left**2).sum() / weight.sum()) * cells / (cells - fitted), 1.0)


def _fitted(n: Floats, y: Floats) -> Floats:
    """Return the expected conversions of each cell, shape (P, H, A)."""
    shape = n.shape
    ends = np.cumsum((0, *shape))
    sums = np.concatenate([_margins(y, axis) for axis in range(3)])
    overall = y.sum() / n.sum()
    theta = np.zeros(ends[-1])
    theta[: shape[0]] = np.log(overall / (1.0 - overall))

    def means(at: Floats) -> Floats:
        parts = [at[low:high] for low, high in pairwise(ends)]
        logit = parts[0][:, None, None] + parts[1][None, :, None] + parts[2][None, None, :]
        return np.asarray(n / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0))))

    mean = means(theta)
    off = sums - np.concatenate([_margins(mean, axis) for axis in range(3)])
    for _ in range(_STEPS):
        weight = mean * (1.0 - np.divide(mean, n, out=np.zeros_like(mean), where=n > 0))
        information = np.zeros((ends[-1], ends[-1]))
        for axis in range(3):
            block = slice(ends[axis], ends[axis + 1])
            information[block, block] = np.diag(_margins(weight, axis))
            for other in range(axis + 1, 3):
                across = slice(ends[other], ends[other + 1])
                rest = ({0, 1, 2} - {axis, other}).pop()
                information[block, across] = weight.sum(axis=rest)
                information[across, block] = information[block, across].T
        # Two constants are free: a ridge far below what the data say picks one of them.
        information[np.diag_indices_from(information)] += 1e-9 * np.trace(information)
        step = solved(information, off)
        size = 1.0
        while True:
            new = means(theta + size * step)
            new_off = sums - np.concatenate([_margins(new, axis) for axis in range(3)])
            if np.abs(new_off).max() < np.abs(off).max() or size < 1e-3:
                break
            size /= 2.0
        theta, mean, off = theta + size * step, new, new_off
        if np.abs(off).max() <= _CLOSE * max(float(y.sum()), 1.0) or size < 1e-3:
            break
    return mean


def _margins(cells: Floats, axis: int) -> Floats:
    return np.asarray(cells.sum(axis=tuple(a for a in range(3) if a != axis)))


RATE_DRIFT = Check(
    name="drift of conversion rates", finds="rates of all actions that change along the log, of judged displays only",
    run=rate_drift, by_kind=True,
)  # fmt: skip
ACTION_RATES = Check(
    name="rates by action", finds="labels exchanged for half of the log or for a day; rates that drift apart",
    run=action_rates, by_kind=True,
)  # fmt: skip
