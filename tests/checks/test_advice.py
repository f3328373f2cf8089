"""What a check says to do is something else than what was done."""

from __future__ import annotations

import numpy as np

from evaluator import check
from tests.logs import build_log


def test_no_check_advises_the_model_that_failed() -> None:
    # A logistic model of the context does not know that the logger followed the product of two coordinates.
    rng = np.random.default_rng(5)
    context = rng.choice([-1.0, 1.0], (20_000, 2))
    action = (rng.random(20_000) < 0.5 + 0.3 * context.prod(axis=1)).astype(np.int32)
    context[:, 1] += context[:, 0]  # so that each of four groups of the second coordinate tells both
    log = build_log(time=np.arange(20_000), action=action, n_actions=2, context=context)
    found = check(log, propensity="estimate:context")["calibration"]
    assert found.verdict == "fail"
    assert "estimate:context" not in found.do
    assert "`features`" in found.do
