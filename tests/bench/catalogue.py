"""One catalogue of action vectors for all displays: a round's choice is one action, found once and held."""

from __future__ import annotations

from evaluator.policies import resolve
from tests.bench.scenarios import large
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, seconds
from tests.twins.eager import EagerLinUCB

K, D = 675, 16


def rows(displays: int) -> list[Row]:
    setting, rounds = large((1, K, D), displays, n_actions=K)
    fewer = rounds.first(displays // 100)
    jobs = {
        "linucb scoring every action": (EagerLinUCB(), fewer),
        **{f"{name}, choice held": (resolve(name), rounds) for name in ("linucb", "otflinucb", "lints", "otflints")},
    }
    taken = seconds(
        {name: replay(policy, setting, log, sampler="rejection") for name, (policy, log) in jobs.items()}, runs=3
    )
    speed = {name: len(log) / taken[name] / 1e6 for name, (_, log) in jobs.items()}
    every = speed["linucb scoring every action"]
    return [(name, s, s / every) for name, s in speed.items()]


def print_section(displays: int) -> None:
    print(f"One catalogue: K={K}, d={D}, window 500, {displays:,} logged displays")
    print_table(("policy", "million displays/s", "relative to scoring every action"), rows(displays))
