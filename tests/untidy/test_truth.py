"""The truth of untidy traffic, by brute force: what comes of many displays is what was said of them beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evaluator.log.contract import SEED, shuffle_ties, tie_order
from tests.untidy.defects import rows_of
from tests.untidy.kinds import KINDS
from tests.untidy.live import play_live
from tests.untidy.settings import Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards, value_of_fixed, value_of_random
from tests.untidy.writing import as_log


def test_the_logger_shows_what_it_says() -> None:
    for name in ("tidy, uneven logger", "launch and retirement", "hole in the overlap", "logger follows the hour"):
        traffic = draw_traffic(KINDS[name].untidy, 6)
        p = traffic.logger
        for k in range(p.shape[1]):
            for late in (False, True):
                some = (traffic.share >= 0.5) == late
                off = ((traffic.action == k) - p[:, k])[some].sum()
                assert abs(off) <= 4.5 * np.sqrt((p[some, k] * (1 - p[some, k])).sum()) + 1e-9
        assert (p[np.arange(len(p)), traffic.action] > 0).all()


def test_values_of_policies_are_plain_averages() -> None:
    kind = KINDS["launch and retirement"]
    traffic = draw_traffic(kind.untidy, 7)
    expected, every = expected_rewards(traffic), np.arange(len(traffic.time))
    by_hand = [np.mean([expected[i, k] for k in range(3) if traffic.available[i, k]]) for i in every]
    assert value_of_random(traffic, expected, every) == pytest.approx(np.mean(by_hand))
    assert value_of_fixed(expected, every, 1) == pytest.approx(expected[:, 1].mean())
    assert (~traffic.available).any()


def test_rows_written_and_read_again_are_the_rows_in_memory() -> None:
    untidy = Untidy(displays=2_000, contexts=1)
    traffic = draw_traffic(untidy, 8)
    rows = rows_of(traffic, 8)
    (memory, of), (read, also) = (
        as_log(traffic, rows),
        as_log(replace(traffic, untidy=replace(untidy, in_files=True)), rows),
    )
    # Two displays may share a second: the reader shuffles them.
    order = tie_order(memory.column("time"), seed=SEED)
    memory, of = shuffle_ties(memory), of if order is None else of[order]
    for name in ("time", "action", "propensity"):
        np.testing.assert_array_equal(memory.column(name), read.column(name))
    np.testing.assert_array_equal(of, also)
    assert memory.conversions.equals(read.conversions)
    assert memory.meta.attribution_window == read.meta.attribution_window


def test_live_play_without_delays_is_a_bandit() -> None:
    # Immediate feedback: UCB1's regret after 2,000 rounds is below its bound, 8 log T sum 1/gap + (1 + pi²/3) sum gap.
    untidy = Untidy(longest_s=1.0, displays=4_000)
    values = [play_live(untidy, "ucb1", rounds=2000, window_s=None, seed=seed)[0] for seed in range(10)]
    bound = 8 * np.log(2000) * (1 / 0.4 + 1 / 0.2) + (1 + np.pi**2 / 3) * 0.6
    assert 0.4 < np.mean(values) < 0.6
    assert 2000 * (0.6 - np.mean(values)) < bound
    # A window that closes before anything comes leaves uniform play.
    blind = [play_live(untidy, "ucb1", rounds=300, window_s=-1.0, seed=seed)[1] for seed in range(10)]
    assert np.bincount(np.concatenate(blind)).tolist() == [1000] * 3
