"""The table of the slow twins is of today's policies and scenarios; tests/statistical compares kernels with it."""

from __future__ import annotations

import json

from evaluator.policies import resolve
from tests.golden.make import RUNS, SCENARIOS, SEED, TABLE, lowest, rounds_of
from tests.policies.variants import PLAYED

GOLDEN = json.loads(TABLE.read_text(encoding="utf-8"))


def test_the_table_has_every_policy_in_todays_scenarios() -> None:
    have, want = [golden["spec"] for golden in GOLDEN["regret"]], [lowest(spec) for spec in PLAYED]
    for spec in want:
        name = resolve(spec).name
        assert spec in have, f"tests/golden/regret.json has no row of {spec!r}: run python -m tests.golden.make {name}"
    assert have == want, "tests/golden/regret.json has other rows than today's: run python -m tests.golden.make"
    assert GOLDEN["scenarios"] == {name: {**s, "rounds": rounds_of(s)} for name, s in SCENARIOS.items()}
    assert (GOLDEN["runs"], GOLDEN["seed"]) == (RUNS, SEED)
