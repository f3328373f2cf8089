"""Intervals of delays hold where the conversions run out: few of them, late entry, ties, both ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.delays.ends import LEVELS, LOGS, held

DRAWN = 400
LEAST = 0.95 - 4 * math.sqrt(0.95 * 0.05 / DRAWN)


@pytest.mark.parametrize("n", [50, 100, 400])
@pytest.mark.parametrize("kind", LOGS)
def test_shares_and_quantiles_hold_at_both_ends(kind: str, n: int) -> None:
    found = held(kind, n, DRAWN)
    assert (found.share >= LEAST).all(), found.share
    assert (found.quantile >= LEAST).all(), found.quantile
    given = DRAWN * found.recommended
    assert given < 40 or found.recommended_keeps >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / given)
    # An interval without an upper end is no trick to hold always: medians have one.
    assert found.bounded[LEVELS == 0.5] >= 0.7


def test_the_last_delay_seen_is_no_upper_end() -> None:
    """The tempting wrong ways: n of n within a window are all; the last delay seen bounds every quantile."""
    for n in (50, 100):
        found = held("nothing cut off", n, DRAWN)
        assert found.last_bounds[LEVELS == 0.99] < LEAST
        assert found.beyond_keeps_all < 0.5
        assert np.all(found.bounded[LEVELS == 0.99] == 0)
