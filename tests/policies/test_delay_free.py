"""Where delays are nothing, or windows never close, policies become ones that are known without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.log_replay import SamplerName, run
from evaluator.policies.base import NO_WINDOW
from evaluator.policies.registry import resolve
from tests.logged_rounds import LoggedRounds
from tests.policies.rounds import random_rounds, setting_for
from tests.policies.variants import CDFS, WINDOWED

HORIZON = 120


@pytest.mark.parametrize("ties", ["lowest", "random"])
@pytest.mark.parametrize("sampler", ["keep", "queue"])
@pytest.mark.parametrize("seed", range(5))
def test_delayed_ucb_without_delays_is_ucb1_of_half_the_exploration(seed: int, sampler: SamplerName, ties: str) -> None:
    # tau = 1 leaves theta^ + sqrt(log t / (2 N)), and halving is exact in floating point: the same to the bit.
    rounds = random_rounds("none", 2000, mean_delay=0.0, units=True, seed=seed)
    setting = setting_for(rounds, delay_cdf=DelayCDF.fixed(0))
    delayed = run(resolve(f"delayed-ucb:ties={ties}"), setting, rounds, sampler=sampler, seed=seed)
    ucb1 = run(resolve(f"ucb1:exploration=0.5,ties={ties}"), setting, rounds, sampler=sampler, seed=seed)
    np.testing.assert_array_equal(delayed.displays, ucb1.displays)
    assert delayed.delivered == delayed.generated > 50


@pytest.mark.parametrize("cdf", CDFS)
@pytest.mark.parametrize("name", ["delayed-ucb", "delayed-klucb"])
def test_a_window_beyond_the_horizon_is_none_for_delayed_policies(name: str, cdf: str) -> None:
    rounds = random_rounds("none", 900, seed=1)
    same_at_every_late_window(name, "keep", rounds, delay_cdf=CDFS[cdf])


@pytest.mark.parametrize("spec", WINDOWED)
def test_a_window_beyond_the_horizon_is_none_for_linear_policies(spec: str) -> None:
    same_at_every_late_window(spec, "rejection", random_rounds("sets", 900, seed=2))


def same_at_every_late_window(spec: str, sampler: SamplerName, rounds: LoggedRounds, **told: Any) -> None:
    runs = [
        run(
            resolve(spec),
            setting_for(rounds, window=window, horizon=HORIZON, **told),
            rounds,
            sampler=sampler,
            seed=9,
        )
        for window in (HORIZON, HORIZON + 57, NO_WINDOW)
    ]
    assert len(runs[0].displays) == HORIZON
    assert runs[-1].expired == 0
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].displays, other.displays)
        assert runs[0].delivered == other.delivered
