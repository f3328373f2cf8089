"""Replay speed on one core, on a log in memory: ``python -m tests.bench [--displays 1000000]``."""

from __future__ import annotations

import argparse
import platform
import time

import numpy as np

from evaluator.evaluation.options import ReplayOptions
from evaluator.evaluation.plan import plan_replay
from evaluator.policies import resolve
from evaluator.replayer import run
from tests.logs import linear_log

CONTEXTUAL = ("linucb", "lints", "waitlinucb", "otflinucb", "otflinucb:width=theorem", "otflints")
OTHERS = ("random", "ucb1", "klucb", "thompson", "delayed-ucb", "delayed-klucb")
RUNS = 5


def seconds(policy: str, plan: object) -> float:
    """Median processor time of a replay, after one that compiles."""
    taken = []
    for _ in range(RUNS + 1):
        start = time.process_time()
        run(resolve(policy), plan.setting, plan.rounds, sampler=plan.sampler)  # type: ignore[attr-defined]
        taken.append(time.process_time() - start)
    return float(np.median(taken[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--displays", type=int, default=1_000_000)
    n = parser.parse_args().displays
    log = linear_log(n, n_actions=10, dimension=5, mean_delay=100, seed=0)
    print(f"{n:,} logged displays, K=10, d=5, window 500, one core, {platform.machine()}, median of {RUNS} runs")
    print(f"{'policy':<26}{'million displays/s':>20}{'relative to linucb':>20}")
    plans = {p: plan_replay(log, resolve(p), ReplayOptions(window=500)) for p in (*CONTEXTUAL, *OTHERS)}
    reference = seconds("linucb", plans["linucb"])
    for policy in (*CONTEXTUAL, *OTHERS):
        taken = reference if policy == "linucb" else seconds(policy, plans[policy])
        print(f"{policy:<26}{n / taken / 1e6:>20.1f}{reference / taken:>20.2f}")


main()
