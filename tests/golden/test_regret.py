"""The compiled policies in the compiled loop cost what their slow twins cost in the plain one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from evaluator.policies import resolve
from evaluator.simulations import simulate
from evaluator.simulations.options import SimulateOptions
from tests.golden.make import RUNS, SCENARIOS, SEED, TABLE, lowest, problem_of, rounds_of, row
from tests.policies.variants import PLAYED

GOLDEN = json.loads(TABLE.read_text(encoding="utf-8"))
# Other streams than the table's: on the same ones, most policies repeat it exactly.
OUR_RUNS, OUR_SEED = 2000, 1


@pytest.mark.parametrize("golden", GOLDEN["regret"], ids=lambda golden: golden["spec"])
def test_kernels_agree_with_the_table(golden: dict[str, Any]) -> None:
    scenario = GOLDEN["scenarios"][golden["scenario"]]
    found = simulate(
        problem_of(scenario),
        [resolve(golden["spec"])],
        SimulateOptions(runs=OUR_RUNS, seed=OUR_SEED, jobs=2),
    )
    at = np.searchsorted(found.rounds, scenario["rounds"])
    assert found.rounds[at].tolist() == scenario["rounds"]
    curve = found.curves[0]
    errors = np.hypot(curve.regret_se[at], golden["standard_error"])
    # What every run plays alike has no error; the table has six decimals.
    assert (np.abs(curve.regret[at] - golden["mean"]) <= 3 * errors + 1e-6).all()


def test_the_table_has_every_policy_in_todays_scenarios() -> None:
    have, want = [golden["spec"] for golden in GOLDEN["regret"]], [lowest(spec) for spec in PLAYED]
    for spec in want:
        name = resolve(spec).name
        assert spec in have, f"tests/golden/regret.json has no row of {spec!r}: run python -m tests.golden.make {name}"
    assert have == want, "tests/golden/regret.json has other rows than today's: run python -m tests.golden.make"
    assert GOLDEN["scenarios"] == {name: {**s, "rounds": rounds_of(s)} for name, s in SCENARIOS.items()}
    assert (GOLDEN["runs"], GOLDEN["seed"]) == (RUNS, SEED)


@pytest.mark.parametrize("spec", ["thompson", "improved-ucb"])
def test_the_command_makes_the_table(spec: str) -> None:
    (golden,) = (golden for golden in GOLDEN["regret"] if golden["spec"] == spec)
    made = row(spec)
    np.testing.assert_allclose(made["mean"], golden["mean"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(made["standard_error"], golden["standard_error"], rtol=0, atol=1e-6)
