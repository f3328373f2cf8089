"""Contextual policies beside LinUCB in C: a plain loop, which scores every action of every display, and the best."""

from __future__ import annotations

from functools import partial

import numpy as np

from evaluator.engine.log_replay import run
from tests.bench.c_loop import c_linucb
from tests.bench.scenarios import CONTEXTUAL, D, K, linear, planned
from tests.bench.tables import Row, print_table
from tests.bench.timing import Job, replay, seconds
from tests.logged_rounds import in_memory

WINDOW = 500
PLAIN, BEST = "plain C loop of linucb", "best C loop of linucb that we know"


def rows(displays: int, n_actions: int) -> list[Row]:
    log = linear(displays, n_actions=n_actions)
    plan = planned(log, "linucb:ties=lowest", window=WINDOW)
    rounds = in_memory(plan.rounds)
    jobs: dict[str, Job] = {}
    ours = run(plan.policy, plan.setting, rounds, sampler=plan.sampler).displays
    for name, reference in ((PLAIN, c_linucb()), (BEST, c_linucb(lazy=D))):
        if reference is not None:
            assert np.array_equal(ours, reference(rounds, WINDOW)), "C and package accept different displays"
            jobs[name] = partial(reference, rounds, WINDOW)
    for policy in CONTEXTUAL:
        p = planned(log, policy, window=WINDOW)
        jobs[policy] = replay(p.policy, p.setting, rounds, sampler=p.sampler)
    taken = seconds(jobs)
    beside = [taken.get(name, float("nan")) for name in (PLAIN, BEST)]
    return [(name, displays / t / 1e6, *(other / t for other in beside)) for name, t in taken.items()]


def print_section(displays: int) -> None:
    for k, n in ((K, displays), (10 * K, displays // 5)):
        print(f"Contextual policies: {n:,} logged displays, K={k}, d={D}, window {WINDOW}")
        print_table(("policy", "million displays/s", "relative to plain C", "to the best C"), rows(n, k))
