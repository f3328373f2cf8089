"""The lazy match beside scoring every action, with as many actions as the Criteo log has campaigns."""

from __future__ import annotations

from evaluator.policies import resolve
from tests.bench.scenarios import large
from tests.bench.tables import Row, print_table
from tests.bench.timing import replay, seconds
from tests.twins.eager import EagerLinUCB

K, D = 675, 16
POLICIES = ("linucb", "otflinucb", "lints")


def rows(displays: int) -> list[Row]:
    out: list[Row] = []
    # A display's own action set is 86 kB; contexts are the disjoint model, with a regression an action.
    for layout, n, rows_each in (("action sets", displays // 200, K), ("contexts", displays // 5, 1)):
        setting, rounds = large((n, rows_each, D), n, n_actions=K)
        # Scoring everything is slow: on the first displays only.
        few = rounds.first(n // 20)
        jobs = {p: replay(resolve(p), setting, rounds, sampler="rejection") for p in POLICIES}
        every = seconds({"every": replay(EagerLinUCB(), setting, few, sampler="rejection")}, runs=3)["every"] / len(few)
        for policy, t in seconds(jobs).items():
            out.append((f"{policy}, {layout}", n / t / 1e6, every / (t / n)))
        out.append((f"linucb scoring every action, {layout}", 1 / every / 1e6, 1.0))
    return out


def print_section(displays: int) -> None:
    print(f"Many actions: K={K}, d={D}, window 500, {displays // 200:,} action sets, {displays // 5:,} contexts")
    print_table(("policy", "million displays/s", "relative to scoring every action"), rows(displays))
