"""The cost of a display by the length of its vectors: d² with the whole V, d with its diagonal."""

from __future__ import annotations

from evaluator.policies import resolve
from tests.bench.scenarios import large
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, seconds

K = 10
DIMENSIONS = (20, 100, 500)
POLICIES = ("linucb", "lints", "otflinucb")


def rows(displays: int) -> list[Row]:
    out: list[Row] = []
    for d in DIMENSIONS:
        n = displays // (5 * d)
        setting, rounds = large((n, 1, d), n, n_actions=K)
        specs = [f"{policy}{end}" for policy in POLICIES for end in ("", ":diagonal=true")]
        taken = seconds({s: replay(resolve(s), setting, rounds, sampler="rejection") for s in specs}, runs=3)
        for policy in POLICIES:
            whole, diagonal = (taken[f"{policy}{end}"] / len(rounds) * 1e6 for end in ("", ":diagonal=true"))
            out.append((policy, d, whole, diagonal, whole / diagonal))
    return out


def print_section(displays: int) -> None:
    print(f"Long vectors: K={K}, contexts of d features, window 500, microseconds a display")
    print_table(("policy", "d", "whole V", "diagonal=true", "times as fast"), rows(displays))
