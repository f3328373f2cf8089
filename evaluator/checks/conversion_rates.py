"""Whether conversion rates keep steady: of all actions along the log, and of each action against the others.

Rates of actions are compared with a fit in which period, hour of the day and action only add up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluator.checks.additive import AdditiveFit
from evaluator.checks.result import MOST_SHOWN, POWER, POWER_Z, Check, CheckResult, not_applicable
from evaluator.checks.significance import FEWEST, SmallestP, chi_square_tail, p_words, smallest_p
from evaluator.checks.tables import Flags, Floats, Tables
from evaluator.checks.timeline import TOO_SHORT
from evaluator.engine.kernels.solving import squared_length
from evaluator.streams import Stream, random_stream

# Change of rates (root mean square, relative) that matters.
RATE_CHANGE = 0.05
# Change of an action's rate against the others that matters, relative.
CHANGE = 0.1
FEWEST_CONVERSIONS = 50
_FEWEST_DAYS = 3
# Added to variances, so that cells of few expected conversions do not decide.
_CALM = 0.5
_CELLS_AT_ONCE = 4_000_000


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


RATE_DRIFT = Check(
    name="drift of conversion rates", finds="rates of all actions that change along the log, of judged displays only",
    run=rate_drift, by_kind=True,
)  # fmt: skip
ACTION_RATES = Check(
    name="rates by action", finds="labels exchanged for half of the log or for a day; rates that drift apart",
    run=action_rates, by_kind=True,
)  # fmt: skip
