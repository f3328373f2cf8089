"""Policies that read no contexts: a choice is held until it is logged, so most displays are only passed over.

Thompson sampling draws K Beta variates a round, two gamma variates each: they, not the replay, are its limit.
"""

from __future__ import annotations

from tests.bench.scenarios import ARMS, RATES, K, arms, planned
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, seconds
from tests.logged_rounds import in_memory

WINDOW = 500


def rows(displays: int) -> list[Row]:
    jobs = {}
    for rates in RATES:
        log = arms(displays, rates)
        for policy in ARMS:
            p = planned(log, policy, window=WINDOW)
            jobs[f"{policy} {rates}"] = replay(p.policy, p.setting, in_memory(p.rounds), sampler="keep")
    taken = seconds(jobs)
    return [(policy, *(displays / taken[f"{policy} {rates}"] / 1e6 for rates in RATES)) for policy in ARMS]


def print_section(displays: int) -> None:
    print(f"Policies without contexts: {displays:,} logged displays, K={K}, window {WINDOW}, million displays/s")
    print_table(("policy", *RATES), rows(displays))
