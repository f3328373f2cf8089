"""What one pass over a log finds of its actions and propensities."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.replays.rounds.survey import survey
from tests.logs import build_log

N = 150_000  # three batches
RNG = np.random.default_rng(1)
ACTION = RNG.integers(0, 3, N)


@pytest.mark.parametrize(
    "p",
    [
        np.array([0.2, 0.3, 0.5])[ACTION],
        RNG.uniform(0.1, 0.9, N),
        np.where(np.arange(N) < 80_000, 0.3, RNG.uniform(0.2, 0.5, N)),  # one an action, at first
    ],
)
def test_sums_of_inverse_propensities(p: np.ndarray) -> None:
    found = survey(build_log(time=np.arange(N), action=ACTION, n_actions=4, propensity=p)).inverse
    np.testing.assert_allclose(found, [np.bincount(ACTION, p**-k, 4) for k in (1, 2)], rtol=1e-9)


def test_there_are_none_without_propensities() -> None:
    log = build_log(time=np.arange(N), action=ACTION, n_actions=4).with_meta(propensity="absent")
    assert np.isnan(survey(log).inverse).all()


@pytest.mark.parametrize("first", [0, 1, 70_000, N])
def test_actions_among_the_first_displays(first: int) -> None:
    found = survey(build_log(time=np.arange(N), action=ACTION, n_actions=4)).shown_first(first)
    assert found.tolist() == np.bincount(ACTION[:first], minlength=4).tolist()
