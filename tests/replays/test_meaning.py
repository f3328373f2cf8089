"""The first lines say what kind of number the values are, and what a clock that is off does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluator import replay
from tests.logs import bernoulli_log, build_log

LOG = bernoulli_log(4_000, [0.2, 0.3, 0.1, 0.4], mean_delay=20.0, seed=3)
SKEWED = bernoulli_log(20_000, [0.2, 0.3], mean_delay=20.0, seed=4, logger=[0.9, 0.1])


def test_a_single_run_of_a_learner_points_to_its_average() -> None:
    kind, reach = replay(LOG, "ucb1", window=50).meaning
    assert "this run of the policy earned" in kind
    assert "`bootstrap=200`" in kind
    assert "first 939 rounds" in reach
    assert "while it learns" in reach


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("ucb1", {"bootstrap": 20}, "the expected value is the average over logs and seeds"),
        ("ucb1", {"repeats": 3}, "these 3 runs"),
        ("fixed:action=1", {}, "does not learn"),
        ("logging", {}, "does not learn"),
    ],
)
def test_what_kind_of_number_it_is_depends_on_what_was_asked(policy: str, options: Any, words: str) -> None:
    assert words in " ".join(replay(LOG, policy, window=50, **options).meaning)


def test_days_of_live_traffic_are_named_where_the_log_counts_time() -> None:
    log = build_log(time=np.arange(48), action=[0, 1] * 24, n_actions=2, tick="h")
    assert "24 rounds, 1 days of live traffic, as it is" in replay(log, "fixed:action=0", sampler="keep").meaning[1]


def test_a_wall_clock_on_another_acceptance_than_the_replays_says_by_how_much() -> None:
    asked: dict[str, Any] = {"sampler": "rejection", "window": 50, "clock": "wall"}
    # c is .9, but the displays of the second action, which the policy learns to choose, are accepted by .1 of it.
    found = replay(SKEWED, "ucb1", accept_quantile=0.5, **asked)
    [said] = [line for line in found.warnings if "as late as it should" in line]
    assert f"let {found.acceptance_rate:.4g} of them through" in said
    assert found.plan["traffic_share"] / found.acceptance_rate > 1.5
    # The repair that it names is a replay on a share that is the acceptance.
    share = float(said.rsplit("`traffic_share=", 1)[1].rstrip("`."))
    mended = replay(SKEWED, "ucb1", accept_quantile=0.5, sampler="rejection", window=50, traffic_share=share)
    assert mended.acceptance_rate == pytest.approx(share, rel=0.15)
    assert not any("as late as it should" in line for line in replay(SKEWED, "ucb1", **asked).warnings)


def test_rewards_observed_by_a_round_that_the_log_chose_say_so() -> None:
    words = "rewards are those observed by the last round of as many as the log gives"
    assert any(words in line for line in replay(LOG, "ucb1", reward="observed").assumptions)
    assert not any(words in line for line in replay(LOG, "ucb1", reward="observed", horizon=500).assumptions)
