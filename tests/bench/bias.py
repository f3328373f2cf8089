"""Replay against live truth for every policy, sampler and logger: ``python -m tests.bench.bias``.

Prints how many standard errors the replayed mean regret is off the live one; beyond 3 is marked. Of some hundred rows
a quarter of one is expected there by chance.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import numpy.typing as npt

from evaluator.api import replay
from evaluator.log import Log
from evaluator.policies import resolve
from evaluator.simulations import simulate
from evaluator.simulations.options import SimulateOptions
from tests.bench.spread import add_options, spread_by
from tests.logs import bernoulli_log, linear_log
from tests.policies.variants import PLAYED
from tests.statistical.runs import regrets, standard_error
from tests.statistical.test_replay_equals_live import SCENARIOS, Scenario, scenario_of

# A softmax of rewards in [1/sqrt(3), 1] at this temperature.
TEMPERATURE = 0.5


def probabilities(scenario: Scenario, logger: str) -> npt.NDArray[np.float64]:
    """Return the smallest probability of each action."""
    k = scenario.problem.n_actions
    if logger == "uniform":
        return np.full(k, 1 / k)
    if "linear" in scenario.problem.name:
        return np.full(k, 1 / (1 + (k - 1) * math.exp((1 - 3**-0.5) / TEMPERATURE)))
    p = np.arange(k, 0.0, -1.0)
    return p / p.sum()


def make_log(scenario: Scenario, logger: str, seed: int) -> Log:
    p = probabilities(scenario, logger)
    # A round waits for 1/p displays at most: the slack is 6 standard deviations.
    n = int((scenario.horizon + 6 * scenario.horizon**0.5) / p.min())
    if "linear" in scenario.problem.name:
        temperature = None if logger == "uniform" else TEMPERATURE
        return linear_log(
            n, n_actions=scenario.problem.n_actions, dimension=3, mean_delay=scenario.mean_delay, seed=seed,
            temperature=temperature,
        )  # fmt: skip
    fixed = None if logger == "uniform" else p
    return bernoulli_log(n, scenario.problem.means, mean_delay=scenario.mean_delay, seed=seed, logger=fixed)


def live_regret(runs: int, spec: str) -> tuple[float, float]:
    """Return the mean regret of a policy played live, and its standard error."""
    scenario = SCENARIOS[scenario_of(spec)]
    options = SimulateOptions(runs=runs, horizon=scenario.horizon, window=scenario.window, seed=1)
    (curve,) = simulate(scenario.problem, [resolve(spec)], options).curves
    return float(curve.regret[-1]), float(curve.regret_se[-1])


def replayed_regret(spec: str, sampler: str, logger: str, seed: int) -> float:
    """Return the regret of a policy that is replayed on one log."""
    scenario = SCENARIOS[scenario_of(spec)]
    result = replay(
        make_log(scenario, logger, seed), spec, window=scenario.window, horizon=scenario.horizon, seed=seed,
        sampler=sampler, delays=f"geometric:{scenario.mean_delay:g}",
    )  # fmt: skip
    return float(regrets([result], scenario.horizon)[0])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bias", description=__doc__)
    parser.add_argument("policies", nargs="*", default=PLAYED, help="all by default")
    parser.add_argument("--runs", type=int, default=200, help="logs a row")
    parser.add_argument("--live", type=int, default=2000)
    add_options(parser)
    asked = parser.parse_args()
    print("| policy | sampler | logging | live regret | replayed | standard errors off |\n|---|---|---|---|---|---|")
    cases = [
        (spec, sampler, logger)
        for spec in asked.policies
        for sampler in (("rejection",) if resolve(spec).contextual else ("rejection", "keep", "queue"))
        for logger in ("uniform", "uneven")
    ]
    with spread_by(asked) as by:
        lived = by.over(live_regret, asked.policies, asked.live, at_once=1)
        truths = dict(zip(asked.policies, lived, strict=True))
        found = by.rows(replayed_regret, [(case, range(asked.runs)) for case in cases])
        for (spec, sampler, logger), of_logs in zip(cases, found, strict=True):
            (live, live_se), regret = truths[spec], np.array(of_logs)
            distance = (float(regret.mean()) - live) / math.hypot(live_se, standard_error(regret))
            mark = " (!)" if abs(distance) > 3 else ""
            print(
                f"| {spec} | {sampler} | {logger} | {live:.2f} | {regret.mean():.2f} | {distance:+.2f}{mark} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
