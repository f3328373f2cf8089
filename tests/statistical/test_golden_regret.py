"""The compiled policies in the compiled loop cost what their slow twins cost in the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.policies import resolve
from evaluator.simulations import simulate
from evaluator.simulations.options import SimulateOptions
from tests.golden.make import problem_of, row
from tests.golden.test_regret import GOLDEN

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


@pytest.mark.parametrize("spec", ["thompson", "improved-ucb"])
def test_the_command_makes_the_table(spec: str) -> None:
    (golden,) = (golden for golden in GOLDEN["regret"] if golden["spec"] == spec)
    made = row(spec)
    np.testing.assert_allclose(made["mean"], golden["mean"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(made["standard_error"], golden["standard_error"], rtol=0, atol=1e-6)
