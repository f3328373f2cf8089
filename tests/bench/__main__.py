"""Replay speed on one core, on a log in memory: ``python -m tests.bench [--displays 1000000]``."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np

from evaluator.evaluation.options import ReplayOptions
from evaluator.evaluation.plan import Plan, plan_replay
from evaluator.policies import resolve
from evaluator.replayer import run
from tests.bench.c_loop import c_linucb
from tests.logs import linear_log

CONTEXTUAL = ("linucb", "lints", "waitlinucb", "otflinucb", "otflinucb:width=theorem", "otflints")
OTHERS = ("random", "ucb1", "klucb", "thompson", "delayed-ucb", "delayed-klucb")
WINDOW = 500
RUNS = 5


def seconds(job: Callable[[], object]) -> float:
    """Median processor time of a job, after a first run that compiles."""
    taken = []
    for _ in range(RUNS + 1):
        start = time.process_time()
        job()
        taken.append(time.process_time() - start)
    return float(np.median(taken[1:]))


def replay(plan: Plan) -> Callable[[], object]:
    rounds = plan.rounds.in_memory()
    return lambda: run(plan.policy, plan.setting, rounds, sampler=plan.sampler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--displays", type=int, default=1_000_000)
    n = parser.parse_args().displays
    log = linear_log(n, n_actions=10, dimension=5, mean_delay=100, seed=0)
    options = ReplayOptions(window=WINDOW)
    print(f"{n:,} logged displays, K=10, d=5, window {WINDOW}, one core, {platform.machine()}, median of {RUNS} runs")
    reference = c_linucb()
    if reference is None:
        print("no C compiler: ratios to the plain C loop are left out")
    else:
        plan = plan_replay(log, resolve("linucb:ties=lowest"), options)
        rounds = plan.rounds.in_memory()
        ours = run(plan.policy, plan.setting, rounds, sampler=plan.sampler).displays
        theirs = reference(rounds, WINDOW)
        print(
            f"C and package accept the same displays: {np.array_equal(ours, theirs)} ({len(ours):,}, {len(theirs):,})"
        )
        plain = seconds(lambda: reference(rounds, WINDOW))
        print(f"{'plain C loop (linucb)':<26}{n / plain / 1e6:>20.1f}")
    print(f"{'policy':<26}{'million displays/s':>20}{'relative to C':>16}")
    for policy in (*CONTEXTUAL, *OTHERS):
        taken = seconds(replay(plan_replay(log, resolve(policy), options)))
        ratio = f"{plain / taken:>16.2f}" if reference is not None else ""
        print(f"{policy:<26}{n / taken / 1e6:>20.1f}{ratio}")


main()
