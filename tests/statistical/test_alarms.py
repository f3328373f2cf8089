"""Clean logs raise alarms on acceptance and propensities no more often than their level."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evaluator.api import plan, replay
from evaluator.log import Log
from evaluator.replays import acceptance
from tests.logs import bernoulli_log, linear_log

RUNS, LEVEL = 150, 0.05
ARMS = (0.2, 0.5, 0.4, 0.1)


def arms(seed: int, logger: Any) -> Log:
    return bernoulli_log(2000, ARMS, mean_delay=10.0, seed=seed, logger=logger)


def softmax(seed: int, logger: Any) -> Log:
    return linear_log(2000, n_actions=4, dimension=3, mean_delay=10.0, seed=seed, temperature=0.3)


WORLDS = {
    "uniform, keep": (arms, None, "ucb1", {"sampler": "keep"}),
    "uniform, keep, absent": (arms, None, "random", {"sampler": "keep"}),
    "uneven, keep": (arms, (0.4, 0.3, 0.2, 0.1), "random", {"sampler": "keep"}),
    "uneven, rejection": (arms, (0.4, 0.3, 0.2, 0.1), "ucb1", {}),
    "softmax, rejection": (softmax, None, "linucb", {}),
    "softmax, keep": (softmax, None, "random", {"sampler": "keep"}),
}


def test_clean_logs_are_quiet() -> None:
    # At the level that is used no alarm is to be expected in so few runs; at a larger one, and however small the
    # effect, at most the level's share: three standard errors of that many runs above it. What raises no alarm at the
    # larger level raises none at the smaller.
    judged: list[tuple[Log, str, dict[str, Any], int]] = []
    loud, tests = 0, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acceptance, "ALARM", LEVEL)
        patch.setattr(acceptance, "NEGLIGIBLE", 0.0)
        for name, (make, logger, policy, options) in WORLDS.items():
            for seed in range(RUNS):
                log = make(seed, logger)
                warnings = replay(log, policy, seed=seed, **options).warnings
                loud += any("displays were accepted instead" in w for w in warnings)
                tests += 1
                asked = plan(log, policy, **options)
                # As if the mean of 1/p ought to be a half.
                assert acceptance.propensity_warning(
                    replace(asked, propensities=replace(asked.propensities, kept_share=2.0))
                )
                if name.endswith("absent"):
                    judged.append((log.with_meta(propensity="absent"), policy, options, seed))
                elif alarms(warnings):
                    judged.append((log, policy, options, seed))
    assert loud < LEVEL * tests + 3 * np.sqrt(LEVEL * tests)
    assert len(judged) > RUNS
    for log, policy, options, seed in judged:
        assert not alarms(replay(log, policy, seed=seed, **options).warnings)


def alarms(warnings: Iterable[str]) -> list[str]:
    return [w for w in warnings if "displays were accepted instead" in w or "The mean of 1/" in w]
