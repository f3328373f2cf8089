"""Whether actions keep their conversion rates against each other: labels exchanged for a time, or a drift of some."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.additive import AdditiveFit
from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import MOST_SHOWN, POWER_Z, CheckResult, not_applicable
from evaluator.checks.significance import SmallestP, smallest_p
from evaluator.checks.tables import Tables
from evaluator.streams import Stream, random_stream

Floats = npt.NDArray[np.float64]

NAME = "rates by action"
# Change of an action's rate against the others that matters, relative.
CHANGE, FEWEST_CONVERSIONS = 0.1, 50
# Added to variances, so that cells of few expected conversions do not decide.
_CALM = 0.5
_CELLS_AT_ONCE = 4_000_000


class _Statistics(NamedTuple):
    """What is looked at, each of shape (draws,)."""

    everywhere: Floats
    change: Floats
    change_of_one: Floats
    period: Floats
    period_of_one: Floats


def action_rates(t: Tables, level: float, seed: int) -> CheckResult:
    """Test that each action keeps its odds of a conversion against the others in all periods (parametric bootstrap).

    Under the hypothesis the log odds are a number of the period plus one of the hour of the day plus one of the action,
    so that seasons, busy hours and launches are no finding. What is left of each period and action is looked at
    everywhere, up to each change point, and in each single period (`smallest_p`).
    """
    if t.logged.propensities.weights is not None:
        return not_applicable(NAME, "displays have weights: the rates in the log are not those of the traffic")
    fit = t.additive
    if fit is None:
        return not_applicable(NAME, "fewer than two actions, or two periods, have conversions")
    if fit.seen.sum() < FEWEST_CONVERSIONS:
        return not_applicable(NAME, f"{fit.seen.sum():.0f} conversions; {FEWEST_CONVERSIONS} are the fewest")
    rng = random_stream(Stream.ACTION_RATES, seed)
    found = _statistics(fit, fit.left[None] / math.sqrt(fit.dispersion))
    at = _Statistics._fields.index("change_of_one")
    test = smallest_p(np.array(found)[:, 0], lambda draws: _draws(fit, draws, rng), level, of=at)
    return _finding(t, fit, test, level)


def _draws(fit: AdditiveFit, draws: int, rng: np.random.Generator) -> Floats:
    """Return the statistics of draws from the fit, shape (5, draws)."""
    at_once = max(_CELLS_AT_ONCE // fit.seen.size, 1)
    parts = [_statistics(fit, fit.drawn(min(at_once, draws - at), rng)) for at in range(0, draws, at_once)]
    return np.concatenate([np.array(part) for part in parts], axis=1)


def _shown_by(fit: AdditiveFit, test: SmallestP) -> str:
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


def _statistics(fit: AdditiveFit, left: Floats) -> _Statistics:
    """Return the statistics of what is left, shape (draws, P', A')."""
    square = left**2 / (fit.spread + _CALM)
    upto = np.cumsum(left, axis=1)[:, :-1] ** 2 / _change_spread(fit)
    return _Statistics(
        square.sum(axis=(1, 2)), upto.sum(axis=2).max(axis=1), upto.max(axis=(1, 2)),
        square.sum(axis=2).max(axis=1), square.max(axis=(1, 2)),
    )  # fmt: skip


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
        name=NAME, verdict="warn" if wrong else "pass",
        number=f"{labels[most]} off by {effect:.1%} {where}, p {p_words(p)}",
        shows=_shown_by(fit, test), p_value=p, effect=effect, numbers=numbers,
        what=(f"Against the other actions, {labels[high]} has {seen[high]:.0f} conversions {where} where "
               f"{expected[high]:.0f} were to be expected, {labels[low]} has {seen[low]:.0f} where {expected[low]:.0f} "
               "were: two labels were exchanged for that time, or the actions' rates drift apart. A replay mixes "
               "these times, and the best action of the mixture may be the best of neither." if wrong else
               f"No action gains or loses on the others by {period}, as far as it can tell."),
        remedy="Look for a renaming of actions, a wrong join or a new version of one of them at that time. Repair the "
        "labels or leave these displays out; if the rates did change, replay the time before and after apart."
        if wrong else "",
    )  # fmt: skip


ACTION_RATES = Check(
    name=NAME,
    finds="labels exchanged for half of the log or for a day; rates that drift apart",
    run=action_rates,
    by_kind=True,
)
