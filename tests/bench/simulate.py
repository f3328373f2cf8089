"""Simulation speed on one core, beside a plain NumPy loop of the same policy: ``python -m tests.bench.simulate``.

Processor time, median of a few goes after a first one that compiles; the ratios are within one go of this script.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from collections.abc import Callable

import numpy as np

from evaluator.delays.laws import geometric
from evaluator.policies import resolve
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem, simulate
from evaluator.simulations.options import SimulateOptions

MEANS, MEAN_DELAY, WINDOW, HORIZON, RUNS = (0.1, 0.05, 0.03), 500.0, 1000, 10_000, 100
BERNOULLI = BernoulliProblem(name="low", means=MEANS, laws=(geometric(MEAN_DELAY),), horizon=HORIZON, window=WINDOW)
LINEAR = LinearProblem(
    name="linear", n_actions=10, dimension=5, laws=(geometric(500, start=1),), horizon=3000, window=500
)
# Figure 2b of Pike-Burke et al. 2018.
SUMS = BernoulliProblem(name="sums", means=(0.5, 0.6), laws=(geometric(50.0),), horizon=250_000)
GOES = 5


def numpy_delayed_klucb(seed: int) -> float:
    """Return the regret of one run of DelayedKLUCB as one writes it in NumPy: arrays over arms, a loop over rounds.

    N~ by the recursion for geometric delays, the index by a fixed number of vectorised bisections.
    """
    rng = np.random.default_rng(seed)
    theta = np.array(MEANS)
    k, lam = len(theta), MEAN_DELAY / (1 + MEAN_DELAY)
    conversions, pulls, missing, frozen = (np.zeros(k) for _ in range(4))
    history = np.zeros(HORIZON, np.int64)
    due: list[list[int]] = [[] for _ in range(HORIZON)]
    left = lam ** (WINDOW + 1)
    regret = 0.0
    for t in range(HORIZON):
        if t < k:
            arm = t
        else:
            effective = pulls - missing - frozen * left
            mean = conversions / effective
            budget = math.log(t + 1) / effective
            low, high = mean.copy(), np.maximum(mean + budget + np.sqrt(2 * mean * budget + budget**2), mean) + 1e-12
            for _ in range(40):
                middle = (low + high) / 2
                with np.errstate(divide="ignore", invalid="ignore"):
                    gap = np.where(mean > 0, mean * np.log(mean / middle), 0.0) + middle - mean
                low, high = np.where(gap <= budget, middle, low), np.where(gap <= budget, high, middle)
            index = np.minimum(low, 1.0)
            arm = int(rng.choice(np.flatnonzero(index == index.max())))
        history[t] = arm
        regret += theta.max() - theta[arm]
        pulls[arm] += 1
        missing *= lam
        missing[arm] += lam
        if t > WINDOW:
            old = history[t - WINDOW - 1]
            missing[old] -= left * lam
            frozen[old] += 1
        if rng.random() < theta[arm]:
            delay = int(rng.geometric(1 / (1 + MEAN_DELAY))) - 1
            if delay <= WINDOW and t + delay < HORIZON:
                due[t + delay].append(arm)
        for seen in due[t]:
            conversions[seen] += 1
    return regret


def seconds(job: Callable[[], object], goes: int) -> float:
    taken = []
    for _ in range(goes):
        start = time.process_time()
        job()
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def simulated(spec: str, problem: Problem, runs: int, window: int | str | None = None) -> float:
    policy = resolve(spec)
    simulate(problem, [policy], SimulateOptions(runs=1, window=window))
    return seconds(lambda: simulate(problem, [policy], SimulateOptions(runs=runs, window=window)), GOES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain-runs", type=int, default=4, help="runs of the plain NumPy loop")
    plain_runs = parser.parse_args().plain_runs
    print(f"one core, {platform.machine()}, processor seconds, median of {GOES}")
    rows = [
        ("delayed-klucb", BERNOULLI, RUNS, 1.0),
        *((spec, SUMS, 20, 1.0) for spec in ("odaaf", "odaaf-b", "odaaf-v")),
        ("otflinucb:bonus=exact", LINEAR, 50, 4.0),
        ("otflinucb", LINEAR, 50, 0.3),
    ]
    for spec, problem, runs, target in rows:
        taken = simulated(spec, problem, runs)
        print(f"{spec:<24}{runs:>4} x {problem.horizon:>7,} rounds {taken:>8.3f} s (target {target:g})")
    ours = simulated("delayed-klucb", BERNOULLI, RUNS) / RUNS
    regrets: list[float] = []
    plain = seconds(lambda: regrets.append(numpy_delayed_klucb(len(regrets))), plain_runs)
    same = simulate(BERNOULLI, [resolve("delayed-klucb")], SimulateOptions(runs=RUNS)).curves[0]
    print(
        f"plain NumPy loop: {plain:.3f} s a run, {plain / ours:.0f} times ours; "
        f"regret {np.mean(regrets):.1f} of {plain_runs} runs, ours {same.regret[-1]:.1f} +- {same.regret_se[-1]:.1f}"
    )
    print("window doubled (500, 1000): seconds and ratio")
    for spec in ("random", "ucb1", "klucb", "thompson", "delayed-ucb", "delayed-klucb"):
        one, two = (simulated(spec, BERNOULLI, RUNS, window) for window in (500, 1000))
        print(f"  {spec:<24}{one:>8.3f}{two:>8.3f}{two / one:>8.2f}")
    for spec in ("linucb", "waitlinucb", "otflints", "otflinucb", "otflinucb:bonus=exact"):
        one, two = (simulated(spec, LINEAR, 50, window) for window in (500, 1000))
        print(f"  {spec:<24}{one:>8.3f}{two:>8.3f}{two / one:>8.2f}")


if __name__ == "__main__":
    main()
