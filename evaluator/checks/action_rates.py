"""Whether actions keep their conversion rates against each other, vectors convert at all, columns dwarf others."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.additive import AdditiveFit
from evaluator.checks.coordinates import SHARE
from evaluator.checks.result import MOST_SHOWN, POWER_Z, Check, CheckResult, not_applicable
from evaluator.checks.significance import SmallestP, p_words, smallest_p
from evaluator.checks.tables import Tables
from evaluator.estimates.simultaneous import holm
from evaluator.log.vectors_of_displays import DWARFING, display_vectors, dwarfing_column
from evaluator.streams import Stream, random_stream

Floats = npt.NDArray[np.float64]
# Change of an action's rate against the others that matters, relative.
CHANGE, FEWEST_CONVERSIONS = 0.1, 50
# Added to variances, so that cells of few expected conversions do not decide.
_CALM = 0.5
_CELLS_AT_ONCE = 4_000_000
Ints = npt.NDArray[np.int64]
# A rate below this share of that of all other displays is no rate of a visitor: contexts differ, but not by so much.
DEAD = 0.1


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
        verdict="warn" if wrong else "pass",
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
    name="rates by action",
    finds="labels exchanged for half of the log or for a day; rates that drift apart",
    run=action_rates,
    by_kind=True,
)


def vectors_without_conversions(t: Tables, level: float) -> CheckResult:
    """Test that every frequent vector converts at a tenth of the rate of the others at least (Poisson, Holm).

    Where vectors are visitors, some of whom buy often and others never, a dead one is no exception: it is none either
    where a gamma law with the spread of the other frequent vectors' rates makes such a rate a usual one.
    """
    from scipy.special import gammaincc

    vectors = t.vectors
    if t.logged.coordinates.column is None:
        return not_applicable("the log has no context by which a visitor could be told")
    judged, converted = vectors.judged, vectors.converted
    # Without any conversion, the tail is exp(-a tenth of the usual ones).
    needed = math.log((len(vectors.codes) + 1) / level) / (DEAD * max(float(converted.sum()), 1.0))
    if not len(vectors.codes):
        return CheckResult(
            verdict="pass", number=f"no vector has {SHARE:.0%} of the displays",
            what="No vector has a good share of the displays.", shows=_least_shown(max(needed, SHARE)),
        )  # fmt: skip
    others = (converted.sum() - converted[:-1]) / np.maximum(judged.sum() - judged[:-1], 1.0)
    usual = judged[:-1] * others
    # P(Poisson of a tenth of the usual <= what is seen).
    adjusted = holm(gammaincc(converted[:-1] + 1.0, DEAD * usual))
    adjusted = np.maximum(adjusted, _usual_among(converted[:-1], usual))
    dead = adjusted <= level
    share = float(vectors.shown[:-1][dead].sum() / len(t.logged.survey.log))
    worst = int(np.lexsort((-usual, adjusted))[0])
    p, many = float(adjusted[worst]), int(dead.sum())
    wrong = many > 0
    least = float((converted[:-1] / np.maximum(usual, 1e-300)).min())
    numbers = {
        "vectors": len(vectors.codes), "without_conversions": many, "share": share, "lowest_ratio": least,
        "conversions": float(converted[worst]), "usual_conversions": float(usual[worst]),
    }  # fmt: skip
    return CheckResult(
        verdict="warn" if wrong else "pass", statistic=least, p_value=p, effect=share, numbers=numbers,
        shows=_least_shown(max(needed, SHARE)),
        number=f"{many} of {len(vectors.codes)} frequent vectors ({share:.1%} of displays), smallest p {p_words(p)}",
        what=(f"{_share_words(many, share)}: the largest has {converted[worst]:.0f} conversions where "
               f"{usual[worst]:.0f} are usual. That is a robot, a test account, or a group that cannot buy: every "
               "value is too low by it, and a contextual policy learns it as if it were a context." if wrong else
               "No vector that many displays share goes without conversions."),
        remedy="Look up these displays at the source, and leave them out if no one is to be shown anything there."
        if wrong else "",
    )  # fmt: skip


def _usual_among(converted: Floats, usual: Floats) -> Floats:
    """Return the chance that one of the vectors converts at a tenth of the usual rate, by the spread of the others.

    Shape (V,), at most 1; 0 where fewer than two others tell a spread.
    """
    from scipy.special import gammainc

    ratio, noise = converted / np.maximum(usual, 1e-300), 1.0 / np.maximum(usual, 1e-300)
    out = np.zeros(len(ratio))
    for v in range(len(ratio)):
        others = (np.arange(len(ratio)) != v) & (usual >= 1.0)
        if others.sum() >= 2:
            mean = float(ratio[others].mean())
            spread = (float(ratio[others].var(ddof=1)) - float(noise[others].mean())) / max(mean**2, 1e-300)
            if spread > 0.0:
                out[v] = min(len(ratio) * float(gammainc(1.0 / spread, DEAD / spread)), 1.0)
    return out


def _least_shown(share: float) -> str:
    # With a margin of a standard error or two: a share of the displays is not quite one of the conversions.
    return f"a vector with {1.1 * share:.1%} of the displays and no conversion" if share < 0.5 else ""


def _share_words(many: int, share: float) -> str:
    if many == 1:
        return f"One vector has {share:.1%} of the displays and hardly a conversion"
    return f"{many} vectors have {share:.1%} of the displays and hardly a conversion"


DEAD_VECTORS = Check(
    name="vectors without conversions",
    finds="a robot: 1 % of the displays or more, at less than a tenth of the usual rate",
    run=vectors_without_conversions,
)


def column_scales(t: Tables) -> CheckResult:
    """Say whether a column's numbers are `DWARFING` times as large as another's or more."""
    log = t.logged.survey.log
    if display_vectors(log) is None:
        return not_applicable("the log has no vectors")
    found = dwarfing_column(log)
    if found is None:
        return CheckResult(
            verdict="pass", number=f"below {DWARFING:g} times", numbers={"times": None},
            what="No column's numbers dwarf those of another.",
        )  # fmt: skip
    return CheckResult(
        verdict="warn", number=f"{found.largest} {found.times:,.3g} times {found.smallest}",
        effect=found.times, numbers={"times": found.times},
        what=f"Numbers of {found.largest} are {found.times:,.3g} times as large as those of {found.smallest}. Linear "
        "policies regularise and explore in one unit for all, so they learn little from the smaller ones, or from what "
        "changes within the larger.",
        remedy=found.remedy,
    )  # fmt: skip


COLUMN_SCALES = Check(
    name="scales of columns",
    finds="dates, incomes, ids in units that hide the other columns from a linear policy",
    run=column_scales,
    tested=False,
)
