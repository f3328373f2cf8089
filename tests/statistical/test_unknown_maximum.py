"""Intervals of capped rewards hold whatever the largest; with the largest seen for the largest possible they do not.

``python -m tests.bench.unknown_maximum`` shows more laws and sizes.
"""

from __future__ import annotations

from tests.bench.unknown_maximum import LAWS, LEVEL, coverage

LOGS = 300
ERROR = 4 * (LEVEL * (1 - LEVEL) / LOGS) ** 0.5


def test_capped_rewards_have_intervals_that_hold() -> None:
    for name, law in LAWS.items():
        share, _ = coverage(law, 2000, LOGS)
        assert share[2] > LEVEL - ERROR, (name, share)


def test_without_a_bound_rare_large_rewards_are_missed() -> None:
    # Three logs in eight have no such display, and cannot know of it.
    share, _ = coverage(LAWS["one in 1,000 earns 1,000, a tenth 1"], 1000, LOGS)
    without = (1 - 0.001) ** 1000
    assert abs(share[0] - (1 - without)) < 4 * (without * (1 - without) / LOGS) ** 0.5, share
    # A sequence that is right in the limit sees the rounds alone, and is worse off.
    assert share[1] < share[0] - ERROR, share
