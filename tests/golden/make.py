"""Mean regrets of the policies' slow twins: ``python -m tests.golden.make`` writes them to ``regret.json`` beside it.

The loop is the plain one of tests/simulations/slow.py, the policies those of tests/twins; no compiled code takes part.
It takes about seven minutes of one core; ``python -m tests.golden.make NAME...`` makes the rows of these policies only,
and keeps the others.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.delays.laws import parse_law
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem
from tests.policies.variants import PLAYED
from tests.simulations.slow import slow_run
from tests.twins import twin_of

TABLE = Path(__file__).with_name("regret.json")
RUNS, SEED = 400, 2018
SCENARIOS: dict[str, dict[str, Any]] = {
    "arms": {"means": [0.2, 0.6, 0.4], "delays": "geometric:20", "window": 50, "horizon": 200},
    # As in test_replay_equals_live: whether the first phase of ODAAF eliminates an arm is a toss-up.
    "sums": {"means": [0.2, 0.78], "delays": "geometric:5", "window": 10, "horizon": 2000},
    "linear": {"actions": 4, "dimension": 3, "delays": "geometric:20", "window": 50, "horizon": 160},
}
CHECKPOINTS = (0.25, 0.5, 1.0)  # shares of the horizon


def problem_of(scenario: dict[str, Any]) -> Problem:
    shared = {"name": "golden", "laws": (parse_law(scenario["delays"]),)}
    shared |= {"horizon": scenario["horizon"], "window": scenario["window"]}
    if "means" in scenario:
        return BernoulliProblem(means=tuple(scenario["means"]), **shared)
    return LinearProblem(n_actions=scenario["actions"], dimension=scenario["dimension"], **shared)


def rounds_of(scenario: dict[str, Any]) -> list[int]:
    return [int(share * scenario["horizon"]) for share in CHECKPOINTS]


def scenario_of(spec: str) -> str:
    if resolve(spec).contextual:
        return "linear"
    return "sums" if spec.startswith("odaaf") else "arms"


def lowest(spec: str) -> str:
    """Return the spec with ties to the lowest index, as twins break them."""
    policy = resolve(spec)
    return (dataclasses.replace(policy, ties="lowest") if "ties" in policy.parameters else policy).spec


def row(spec: str) -> dict[str, Any]:
    """Return mean and standard error of a twin's regret at the checkpoints."""
    policy, scenario = resolve(spec), SCENARIOS[scenario_of(spec)]
    problem = problem_of(scenario)
    setting = Setting(
        n_actions=problem.n_actions,
        dimension=scenario["dimension"] if policy.contextual else 0,
        rows=problem.n_actions if policy.contextual else 0,
        window=scenario["window"],
        horizon=scenario["horizon"],
        delay_cdf=parse_law(scenario["delays"]).closed,
    )
    at = [t - 1 for t in rounds_of(scenario)]
    runs = []
    for run in range(RUNS):
        twin = twin_of(policy.name)(setting, **policy.parameters)
        regret = slow_run(twin, problem, setting, seed=SEED, run=run).regret
        runs.append([regret[t] for t in at])
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(RUNS)
    return {
        "spec": spec,
        "scenario": scenario_of(spec),
        "mean": np.mean(runs, axis=0).round(6).tolist(),
        "standard_error": error.round(6).tolist(),
    }


def main(names: list[str]) -> None:
    specs = [lowest(spec) for spec in PLAYED]
    kept = {row["spec"]: row for row in json.loads(TABLE.read_text(encoding="utf-8"))["regret"]} if names else {}
    kept = {spec: row for spec, row in kept.items() if resolve(spec).name not in names}
    made = [spec for spec in specs if spec not in kept]
    with ProcessPoolExecutor(2) as pool:
        kept |= dict(zip(made, pool.map(row, made), strict=True))
    table = {
        "command": "python -m tests.golden.make",
        "runs": RUNS,
        "seed": SEED,
        "scenarios": {name: {**scenario, "rounds": rounds_of(scenario)} for name, scenario in SCENARIOS.items()},
        "regret": [kept[spec] for spec in specs],
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
