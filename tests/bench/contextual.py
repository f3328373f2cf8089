"""Contextual policies beside a plain C loop of LinUCB, which scores every action of every display."""

from __future__ import annotations

import numpy as np

from evaluator.engine.log_replay import run
from tests.bench.c_loop import c_linucb
from tests.bench.scenarios import CONTEXTUAL, D, K, linear, planned
from tests.bench.tables import Row, print_table
from tests.bench.timing import Job, replay, seconds
from tests.logged_rounds import in_memory

WINDOW = 500
PLAIN = "plain C loop of linucb"


def rows(displays: int) -> list[Row]:
    log = linear(displays)
    plan = planned(log, "linucb:ties=lowest", window=WINDOW)
    rounds = in_memory(plan.rounds)
    jobs: dict[str, Job] = {}
    reference = c_linucb()
    if reference is not None:
        ours = run(plan.policy, plan.setting, rounds, sampler=plan.sampler).displays
        assert np.array_equal(ours, reference(rounds, WINDOW)), "C and package accept different displays"
        jobs[PLAIN] = lambda: reference(rounds, WINDOW)
    for policy in CONTEXTUAL:
        p = planned(log, policy, window=WINDOW)
        jobs[policy] = replay(p.policy, p.setting, rounds, sampler=p.sampler)
    taken = seconds(jobs)
    return [
        (name, displays / t / 1e6, taken[PLAIN] / t if reference is not None else "no compiler")
        for name, t in taken.items()
    ]


def print_section(displays: int) -> None:
    print(f"Contextual policies: {displays:,} logged displays, K={K}, d={D}, window {WINDOW}")
    print_table(("policy", "million displays/s", "relative to C"), rows(displays))
