"""Whether a replay of the logging policy itself recovers the log's own mean reward."""

from __future__ import annotations

import math

import numpy as np

from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.significance import LOPSIDED, normal_tail
from evaluator.checks.tables import Tables
from evaluator.engine.kernels.solving import solved
from evaluator.errors import DataError
from evaluator.estimates.confidence import SparseRewards, mean_interval
from evaluator.log.reward_kinds import counted_outcomes
from evaluator.streams import Stream, random_stream

NAME = "replay of the logger"
DO = "Look at uniformity, calibration, overlap and drift: they say which propensities are wrong, and where or when."


def replay_of_logger(t: Tables, level: float, seed: int) -> CheckResult:
    """Replay the logging policy on its own log.

    With one propensity an action, the policy draws each action independently with its share of the displays of that
    period, and the rejection sampler accepts what it draws with probability c / p: right propensities give back the
    log's mean. Were the propensities to depend on the display, the log would not hold what a new draw needs, the
    probabilities of the actions not shown. Then rewards as far as contexts explain them (least squares), which no
    action can move, are weighted as for a policy that shows the log's shares: their mean must stay the log's.
    """
    total = float(t.logged.earned[1].sum())
    if total == 0.0:
        return not_applicable(NAME, "the log has no rewards")
    if t.logged.propensities.tilted:
        return not_applicable(
            NAME, "the displays are no even sample of the traffic, so their mean is not what a replay gives back"
        )
    return _weighted(t, level) if t.logged.constant is None else _sampled(t, level, seed)


def _sampled(t: Tables, level: float, seed: int) -> CheckResult:
    logged = t.logged
    log, constant = logged.survey.log, logged.constant
    assert constant is not None
    n = len(log)
    shares = t.counts[1 : 1 + logged.timeline.periods]
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore"):
        # A draw equals the logged action with its share's probability: one number settles draw and acceptance.
        accept = np.nan_to_num(shares * np.nanmin(constant) / constant)
    rng = random_stream(Stream.LOGGER_REPLAY, seed)
    display, value = t.logged.earned
    rounds, at, rewards, largest, least = 0, [], [], 0.0, 0.0
    for first, batch in log.batches(["action"]):
        action = batch["action"]
        size = len(action)
        low, high = np.searchsorted(display, [first, first + size])
        reward = np.bincount(display[low:high] - first, value[low:high], minlength=size)
        largest, least = max(largest, float(reward.max())), min(least, float(reward.min()))
        period = logged.timeline.period_of(np.arange(first, first + size))
        reward = reward[rng.random(size) < accept[period, action]]
        paid = np.flatnonzero(reward)
        at.append(rounds + paid)
        rewards.append(reward[paid])
        rounds += len(reward)
    kinds = [log.meta.conversions, *counted_outcomes(log.meta)]
    lower = min(least, sum(kind.value_min or 0.0 for kind in kinds))
    upper = max(largest, sum(kind.value_max or 0.0 for kind in kinds))
    mean = float(value.sum()) / n
    if not rounds:
        return not_applicable(NAME, "no display would be accepted: see overlap")
    try:
        found = mean_interval(
            SparseRewards(rounds, np.concatenate(at), np.concatenate(rewards)), lower=lower, upper=upper, alpha=level
        )
    except DataError as error:  # rewards that are not finite
        return not_applicable(NAME, error.what)
    numbers = {"log_mean": mean, "replayed": found.estimate, "low": found.low, "high": found.high, "rounds": rounds}
    said = f"replayed {found.estimate:.4g} in [{found.low:.4g}, {found.high:.4g}], log {mean:.4g}"
    right = found.low <= mean <= found.high
    return CheckResult(
        name=NAME, verdict="pass" if right else "fail", number=said, statistic=found.estimate - mean,
        effect=abs(found.estimate / mean - 1.0) if mean else None, numbers=numbers,
        what=f"{rounds:,} rounds of the logging policy, drawn anew by its shares in each period, "
        + ("give back the log's own mean." if right else
           "do not give back the log's own mean: with these propensities no other policy's value can be believed."),
        remedy="" if right else DO,
    )  # fmt: skip


def _weighted(t: Tables, level: float) -> CheckResult:
    log = t.logged.survey.log
    n = len(log)
    beta = solved(t.gram, t.moment)
    mean = float(t.logged.earned[1].sum()) / n
    difference = float(beta @ t.drawn.total) / n
    spread = float(beta @ t.drawn.square @ beta) / n - difference**2
    share = t.logged.shares
    second, third = (share**2 * t.inverse[1, 0]).sum(), (share**3 * t.inverse[2, 0]).sum()
    if third / second**1.5 >= LOPSIDED or spread <= 0.0:
        return not_applicable(NAME, "a few displays carry most of the weight, so nothing can be tested: see overlap")
    error = math.sqrt(spread / n)
    z = difference / error
    p = normal_tail(z)
    wrong = p <= level and abs(difference) > 0.02 * abs(mean)
    ess = float((share * t.inverse[0, 0]).sum() ** 2 / second)
    return CheckResult(
        name=NAME, verdict="fail" if wrong else "pass",
        number=f"weighted {mean + difference:.4g}, log {mean:.4g}, p {p_words(p)}",
        statistic=z, p_value=p, effect=abs(difference / mean) if mean else None,
        numbers={"log_mean": mean, "weighted": mean + difference, "standard_error": error,
                 "effective_sample_size": ess},
        what="The log holds the probability of the action shown only, so its policy cannot be drawn anew. Rewards as "
        "far as the context explains them, which no action moves, weighted by the log's shares / p, "
        + ("keep the log's mean." if not wrong else
           "lose the log's mean: the weights tilt the traffic, and bias every value."),
        remedy=DO if wrong else "",
    )  # fmt: skip


LOGGER_REPLAY = Check(
    name=NAME,
    finds="propensities that do not give back the log's own mean reward",
    run=replay_of_logger,
    of_all=True,
)
