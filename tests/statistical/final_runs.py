"""Final policies of learners on tidy and untidy logs of known truth: their estimated values, and the true ones."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from evaluator.api import plan
from evaluator.engine.frozen import FrozenPolicy
from evaluator.options.shared import FinalPolicyName
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.stream import NO_VECTORS
from evaluator.replays.run import replay_all
from evaluator.replays.values.doubly_robust import RewardModels
from evaluator.replays.values.final import FinalValue, frozen_value
from tests.untidy.defects import rows_of
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards
from tests.untidy.writing import as_log

# Each explores enough to be told from what it has learned.
ARMS = ("delayed-ucb:epsilon=3", "ucb1", "thompson")
CONTEXTUAL = ("otflinucb:width=theorem", "lints")
_TIDY = {"displays": 5000, "days": 2.0, "means": (0.35, 0.4, 0.6)}
# Daily rhythm, rates that follow the hour, an uneven logger, and sales of other values by action.
_UNTIDY = {
    **_TIDY, "rhythm": 0.8, "rate_by_hour": 0.5, "logger": (0.5, 0.3, 0.2), "mean_values": (20.0, 30.0, 35.0),
    "log_sd": 0.5,
}  # fmt: skip
# So few rounds that the bonus of the optimists is large, and what a posterior does not know.
ROUNDS = 120


class Final(NamedTuple):
    """Value of a final policy on one log, estimated and true."""

    found: FinalValue
    truth: float


def world(policy: str, *, tidy: bool) -> Untidy:
    """Return what the logs of a policy are drawn from."""
    return Untidy(**(_TIDY if tidy else _UNTIDY), contexts=2 if policy in CONTEXTUAL else 1)


def one_log(policy: str, tidy: bool, run: int) -> dict[FinalPolicyName, Final]:
    """Return both final policies of one replay of log number `run`; the truth is that of the displays left out."""
    traffic = draw_traffic(world(policy, tidy=tidy), run)
    log, of = as_log(traffic, rows_of(traffic, run))
    expected = expected_rewards(traffic)
    plans = {
        final: plan(log, policy, window="1h", horizon=ROUNDS, final="last:50%", final_policy=final, seed=run)
        for final in ("greedy", "exploring")
    }
    (lane,) = replay_all([plans["greedy"]])
    out: dict[FinalPolicyName, Final] = {}
    for final, planned in plans.items():
        found = frozen_value(planned, [lane.replay], RewardModels())
        earned = expected[of[planned.held_out.start : planned.held_out.stop]]
        out[final] = Final(found, float((earned * _probabilities(planned, lane.replay.state)).sum(axis=1).mean()))
    return out


def _probabilities(planned: ReplayPlan, state: tuple) -> np.ndarray:
    """Return the final policy's probabilities at the displays it is judged on, by other draws, shape (n, K)."""
    judged, wanted = planned.held_out, planned.options.final_policy
    frozen = FrozenPolicy(
        planned.policy, state, n_actions=planned.log.n_actions, displays=len(judged), wanted=wanted, seed=10**6
    )
    vectors = NO_VECTORS
    if planned.rounds.vectors is not None:
        vectors = planned.log.column(planned.rounds.vectors)[judged.start : judged.stop, None, :]
    return frozen.probabilities(vectors, len(judged))


def logs_of(policy: str, *, tidy: bool, runs: int, first: int = 0) -> Iterator[dict[FinalPolicyName, Final]]:
    """Return the final policies on some logs."""
    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(partial(one_log, policy, tidy), range(first, first + runs))


def coverage(found: list[Final], estimator: str, truths: list[float] | None = None) -> float:
    """Return how often the estimator's intervals hold the truth, or other numbers."""
    held = [getattr(one.found, estimator).value for one in found]
    wanted = [one.truth for one in found] if truths is None else truths
    return float(np.mean([v.low <= t <= v.high for v, t in zip(held, wanted, strict=True)]))
