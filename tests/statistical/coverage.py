"""How often intervals hold on logs whose truth is known: one cell is a policy, a logger and what becomes of the young.

Each log is just long enough for the horizon, so that the replay reads it to its end, where the immature displays are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator import compare
from evaluator.comparisons.expected import expected_difference
from evaluator.delays.laws import geometric
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from evaluator.policies import resolve
from evaluator.replays.result import ReplayResult
from evaluator.simulations import BernoulliProblem, LinearProblem, simulate
from evaluator.simulations.options import SimulateOptions
from tests.logs import bernoulli_log, linear_log

HORIZON, WINDOW, MEAN_DELAY, ATTRIBUTION = 300, 100, 60.0, 240
MEANS, K, D = (0.5, 0.3, 0.4), 3, 3
UNEVEN = (0.2, 0.45, 0.35)
# Rewards lie in [1/sqrt(3), 1]: a softmax at this temperature shows no action less often than LEAST.
TEMPERATURE = 0.5
LEAST = 1 / (1 + (K - 1) * math.exp((1 - 3**-0.5) / TEMPERATURE))
# The policy whose intervals are looked at, and the one that it is compared with.
POLICIES = {"arms": ("delayed-klucb", "ucb1"), "linear": ("otflinucb", "lints")}
LAWS = {"arms": geometric(MEAN_DELAY), "linear": geometric(MEAN_DELAY, start=1)}
KINDS = ("realised value", "uplift", "regret", "expected value", "paired difference")


@dataclass(frozen=True)
class Cell:
    """What varies.

    Parameters
    ----------
    scenario
        arms or linear.
    logger
        uniform; uneven: arms are shown with fixed, action sets with softmax probabilities; or estimated: actions are
        shown with fixed probabilities, of which the replay only sees the frequencies.
    young
        Immature displays: none, drop or correct.
    """

    scenario: str
    logger: str
    young: str

    @property
    def displays(self) -> int:
        """Displays of the log.

        A round waits for 1/p displays at most, so that T rounds need fewer than (T + 3 sqrt(T)) / p, p the smallest
        probability, in all but one log of a thousand.
        """
        uneven = min(UNEVEN) if self.scenario == "arms" or self.logger == "estimated" else LEAST
        p = 1 / K if self.logger == "uniform" else uneven
        return int((HORIZON + 3 * HORIZON**0.5) / p) + (ATTRIBUTION if self.young == "drop" else 0)

    @property
    def revealed(self) -> float:
        """Share of the conversions that are rewards: those within the attribution window."""
        return 1.0 if self.young == "none" else float(LAWS[self.scenario](ATTRIBUTION))

    def log(self, seed: int) -> Log:
        """Return a log of the cell."""
        fixed = None if self.logger == "uniform" else UNEVEN
        if self.scenario == "arms":
            log = bernoulli_log(self.displays, MEANS, mean_delay=MEAN_DELAY, seed=seed, logger=fixed)
        elif self.logger == "uneven":
            log = linear_log(
                self.displays, n_actions=K, dimension=D, mean_delay=MEAN_DELAY, seed=seed, temperature=TEMPERATURE
            )
        else:
            log = linear_log(self.displays, n_actions=K, dimension=D, mean_delay=MEAN_DELAY, seed=seed, logger=fixed)
        if self.young == "none":
            return log
        when, of = to_numpy(log.conversions["time"]), to_numpy(log.conversions["display_id"])
        until = len(log) - 1
        seen = log.conversions.filter((when <= until) & (when - of <= ATTRIBUTION))
        return replace(log, events=seen).with_meta(observed_until=until, attribution_window=ATTRIBUTION)

    def replayed(self, seed: int, **options: Any) -> list[ReplayResult]:
        """Replay both policies on a log of the cell."""
        asked = {"horizon": HORIZON, "delays": f"geometric:{MEAN_DELAY:g}", "seed": seed, **options}
        if self.young != "none":
            asked["immature"] = self.young
        if self.logger == "estimated":
            asked |= {"propensity": "estimate", "sampler": "rejection"}
        return list(
            compare(
                self.log(seed),
                POLICIES[self.scenario],
                baseline=POLICIES[self.scenario][0],
                windows=[WINDOW],
                **{"bootstrap": 0, **asked},
            ).results
        )


CELLS = [Cell(*which) for which in product(POLICIES, ("uniform", "uneven"), ("none", "drop", "correct"))]
CELLS += [Cell(scenario, "estimated", "none") for scenario in POLICIES]


@cache
def best_values() -> tuple[float, float]:
    """Return the expected reward of the best action and of a fixed one in the linear scenario.

    Their standard error, below 0.1 / sqrt(4,000,000), is a hundredth of an interval's width divided by ten.
    """
    rng = np.random.default_rng(1)
    rewards = []
    for _ in range(10):
        vectors = rng.random((400_000, K, D))
        rewards.append(vectors.sum(axis=2) / np.linalg.norm(vectors, axis=2) / D**0.5)
    found = np.concatenate(rewards)
    return float(found.max(axis=1).mean()), float(found.mean())


def live(scenario: str, runs: int) -> tuple[float, float]:
    """Return both policies' expected mean reward of the first rounds, played live."""
    law = (LAWS[scenario],)
    arms = scenario == "arms"
    problem = (
        BernoulliProblem(name="arms", means=MEANS, laws=law)
        if arms
        else LinearProblem(name="linear", n_actions=K, dimension=D, laws=law)
    )
    options = SimulateOptions(runs=runs, horizon=HORIZON, window=WINDOW, seed=99, jobs=2)
    best = max(MEANS) if arms else best_values()[0]
    first, second = (
        best - float(curve.regret[-1]) / HORIZON
        for curve in simulate(problem, [resolve(spec) for spec in POLICIES[scenario]], options).curves
    )
    return first, second


def intervals_of(cell: Cell, truth: tuple[float, float], bootstrap: int, seed: int) -> list[tuple[float, float, float]]:
    """Return low and high end of each interval of `KINDS` and what it should hold, on one log.

    `truth` are both policies' expected values. Nothing where a replay fell short of the horizon.
    """
    first, second = cell.replayed(seed, bootstrap=bootstrap)
    if {first.rounds, second.rounds} != {HORIZON}:
        return []
    log = cell.log(seed)
    expected, action = log.column("expected_reward"), log.column("action")
    shown = to_numpy(first.trajectory["display_id"])
    realised = float(expected[shown, action[shown]].mean())
    used = np.arange(first.plan["displays_used"])
    logging = float(expected[used, action[used]].mean())
    fixed = max(MEANS) if cell.scenario == "arms" else best_values()[1]
    value, other = truth
    assert first.expected_value is not None
    difference = expected_difference(second, first).interval
    assert difference is not None
    truths = (realised, realised - logging, HORIZON * (fixed - realised), value, other - value)
    found = (first.value, first.uplift, first.regret, first.expected_value, difference)
    return [(i.low, i.high, true * cell.revealed) for i, true in zip(found, truths, strict=True)]


class Coverage(NamedTuple):
    """Of each interval of `KINDS` on each log that reached the horizon, shape (logs, 5): held or not, width, middle."""

    held: npt.NDArray[np.bool_]
    width: npt.NDArray[np.float64]
    middle: npt.NDArray[np.float64]


def coverage(cell: Cell, pool: Executor, *, truth: tuple[float, float], logs: int, bootstrap: int) -> Coverage:
    """Return how often the intervals of a cell hold."""
    return together(list(pool.map(partial(intervals_of, cell, truth, bootstrap), range(logs))))


def together(runs: Sequence[Sequence[tuple[float, float, float]]]) -> Coverage:
    """Return how often the intervals of some logs (`intervals_of`) hold."""
    low, high, true = np.moveaxis(np.array([run for run in runs if run]), 2, 0)
    return Coverage((low <= true) & (true <= high), high - low, (low + high) / 2)
