"""Whether rewards keep their bounds, vary, and rest on more than one display."""

from __future__ import annotations

import numpy as np

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, Verdict
from evaluator.checks.tables import Tables
from evaluator.log.schema import WEIGHT, to_numpy

# Share of all reward that one display may carry, and conversions below which nothing is learned.
HEAVY, FEWEST_CONVERSIONS = 0.05, 20
NAME = "rewards"


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
    if len(paid) >= FEWEST_CONVERSIONS and top > HEAVY:
        said.append(("warn", f"one display carries {top:.0%} of all reward", f"One display carries {top:.0%} of all "
                     "reward, so whether a replay accepts it decides the value, and intervals are as wide as it is.",
                     "Check that value; cap values or count conversions instead."))  # fmt: skip
    elif 0 < len(value) < FEWEST_CONVERSIONS:
        said.append(("warn", f"{len(value)} conversions", f"{len(value)} conversions are too few to tell actions "
                                                          "apart.",
                     "Take a longer log, or a reward that is less rare."))  # fmt: skip
    verdict: Verdict = "fail" if any(s[0] == "fail" for s in said) else "warn" if said else "pass"
    known = "" if most is not None else " The spec names no reward_max, so the largest seen is taken for it."
    if most is None and len(paid) and np.ptp(reward) > 0:
        known += " Intervals of realised values then are not anytime-valid: replay with `reward_max` or a cap, `cap`."
    return CheckResult(
        name=NAME, verdict=verdict, numbers=numbers, effect=None if np.isnan(top) else top,
        number="; ".join(s[1] for s in said) or f"mean {mean:.4g}, largest {numbers['largest']:.4g}, top "
                                                f"{top:.2%}",
        what=" ".join(s[2] for s in said) or f"{rewarded:.2%} of the displays earn something.{known}",
        remedy=" ".join(s[3] for s in said),
    )  # fmt: skip


REWARDS = Check(name=NAME, finds="rewards out of bounds, or resting on one display", run=rewards, tested=False)
