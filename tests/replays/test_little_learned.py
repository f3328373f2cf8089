"""A replay in which nothing was learned says so first, and what it advises helps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evaluator.api import compare, replay
from evaluator.log import Log
from tests.logs import bernoulli_log, build_log

N = 9000


def late(delay: int) -> Log:
    """Return a log of three actions whose conversions all come after `delay` displays."""
    rng = np.random.default_rng(1)
    converted = np.flatnonzero(rng.random(N) < 0.2)
    return build_log(
        time=np.arange(N), action=rng.integers(0, 3, N), n_actions=3, conversion_display=converted,
        conversion_time=converted + delay,
    )  # fmt: skip


def test_delays_beyond_the_rounds() -> None:
    log = late(4000)
    result = replay(log, "ucb1")
    assert result.delivered == 0
    first = result.warnings[0]
    assert first.startswith(
        f"Nothing was learned: of the {result.generated:,} conversions of its {result.rounds:,} rounds"
    )
    assert f"told 0, {result.pending:,} come after the last round" in first
    # What it advises is tried; the number it promises is that of conversions like the log's, about.
    share, told = re.search(r"`traffic_share=(\S+)` \(about ([\d,]+) told", first).groups()
    helped = replay(log, "ucb1", traffic_share=float(share))
    assert not any("was learned" in said for said in helped.warnings)
    promised = float(told.replace(",", ""))
    assert abs(helped.delivered - promised) < 4 * promised**0.5


def test_delays_beyond_the_window() -> None:
    first = replay(late(4000), "ucb1", window=100).warnings[0]
    assert "come after the window" in first
    assert first.endswith("What helps: a wider `window`.")
    assert not any("was learned" in said for said in replay(late(4000), "ucb1", traffic_share=0.1).warnings)


def test_the_wall_clock_comes_first_and_has_no_other_share() -> None:
    result = replay(late(9000), "ucb1", clock="wall")
    wall, nothing = result.warnings[:2]
    assert f"Wall clock: these {result.rounds:,} rounds take {3 * result.rounds:,} displays of live traffic" in wall
    assert nothing.startswith("Nothing was learned")
    # Fewer actions would make the delays longer, in rounds, as they would the replay.
    assert nothing.endswith("What helps: a longer log.")
    assert not any("Wall clock" in said for said in replay(late(9000), "ucb1").warnings)


def test_fewer_actions_are_advised_where_they_help() -> None:
    assert "fewer actions" in replay(late(4000), "ucb1").warnings[0]  # with two there are 4,500 rounds
    assert "fewer actions" not in replay(late(8000), "ucb1").warnings[0]


def test_hardly_anything() -> None:
    log = bernoulli_log(N, [0.01, 0.002, 0.003], mean_delay=5.0, seed=2)
    result = replay(log, "ucb1")
    assert 0 < result.delivered < 30
    assert result.warnings[0].startswith("Hardly anything was learned")


@pytest.mark.parametrize("policy", ["random", "fixed:action=1", "logging"])
def test_policies_that_learn_nothing_need_no_conversions(policy: str) -> None:
    assert not any("was learned" in said for said in replay(late(9000), policy).warnings)


def test_enough_is_enough() -> None:
    assert not any("was learned" in said for said in replay(late(5), "ucb1").warnings)


def test_a_comparison_says_that_equal_values_say_nothing() -> None:
    policies = ["ucb1", "klucb", "random"]
    same = compare(late(9000), policies)
    assert same.results[0].value == same.results[1].value
    assert any(said.startswith("ucb1, klucb showed the same displays in all") for said in same.warnings)
    assert not any("showed the same displays" in said for said in compare(late(5), policies).warnings)
