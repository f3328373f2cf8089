"""The alarm on sizes of accepted sets: silent under rejection with one c, loud under every tempting wrong way."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.replays.acceptance import set_sizes
from tests.replays.test_set_sizes import sizes_of
from tests.worlds_with_sets import LOGGERS, World, make_displays

VARYING = ("calendar", "context", "random")
DISPLAYS = 6000


@pytest.mark.parametrize("logger", LOGGERS)
@pytest.mark.parametrize("sets", VARYING)
def test_rejection_with_one_c_raises_no_alarm_and_keep_and_others_do(sets: str, logger: str) -> None:
    drawn = make_displays(World(sets, logger), DISPLAYS, 1)
    size = drawn.eligible.sum(axis=1)
    rng = np.random.default_rng(2)
    # A policy with favourites: the first eligible of an order.
    order = rng.permutation(12)
    chosen = order[drawn.eligible[:, order].argmax(axis=1)]
    match, p = drawn.action == chosen, drawn.propensity
    c = p.min()
    right = sizes_of(size, match & (rng.random(DISPLAYS) < c / p), probability=c)
    assert not right.alarming
    # What each wrong way believes to be its acceptance probability is the share that it accepted.
    smallest = np.where(drawn.eligible, drawn.probability, np.inf).min(axis=1)
    wrong = {"a c for each set": match & (rng.random(DISPLAYS) < smallest / p)}
    if logger == "uniform":
        wrong |= {"keep": match, "propensities of 1/K": match}
    for name, accepted in wrong.items():
        found = sizes_of(size, accepted, probability=float(accepted.mean()))
        assert found.alarming, name
        assert found.mean_accepted < found.mean_read, name


def test_the_evidence_is_as_rarely_large_as_it_promises_wherever_a_replay_stops() -> None:
    runs, alpha, c = 2000, 0.05, 0.08
    rng = np.random.default_rng(3)
    size = make_displays(World("calendar", "uniform"), 2000, 1).eligible.sum(axis=1)
    ends = np.linspace(50, 2000, 20).astype(int)
    ever = 0
    for _ in range(runs):
        accepted = rng.random(2000) < c
        most = max(
            set_sizes(
                np.bincount(size[:end], minlength=13),
                np.bincount(size[:end][accepted[:end]], minlength=13),
                probability=c,
                mean=float(size.mean()),
            ).log_evidence
            for end in ends
        )
        ever += most >= -np.log(alpha)
    assert ever / runs <= alpha + 4 * (alpha * (1 - alpha) / runs) ** 0.5
    assert ever  # an alarm that never sounds would hold its promise as well
