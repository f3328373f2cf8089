"""What a comparison could tell, planned from twins: by hand, and where Holm's method leaves more than a share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, norm

from evaluator.audits.power import LargerDifference, left_by_holm, powers
from evaluator.audits.replays import MeasuredDifference
from evaluator.audits.result import DetectableDifference
from evaluator.comparisons.differences import RealisedEvidence, radii
from evaluator.estimates.paired import Contrast
from evaluator.estimates.simultaneous import holm
from evaluator.estimates.standard_errors import widened_by

ALPHA, ROUNDS = 0.05, 1000


def twins_of(found: np.ndarray, variation: float) -> list[MeasuredDifference]:
    out, n = [], 2 * ROUNDS
    for difference in found:
        evidence = RealisedEvidence(
            Contrast(difference * ROUNDS, variation, -ROUNDS, ROUNDS, n), n, n, 1, ROUNDS, 1.0, ""
        )
        out.append(MeasuredDifference(evidence.interval(ALPHA), 0.0, evidence))
    return out


def test_left_by_holm_is_what_holm_rejects_by() -> None:
    p = np.random.default_rng(0).random((6, 400)) ** 4
    divisors = left_by_holm(p, alpha=ALPHA)
    for i in range(400):
        assert ((holm(p[:, i]) <= ALPHA) == (p[:, i] <= ALPHA / divisors[:, i])).all()
    assert divisors.min() < divisors.max()


def test_by_hand_where_rewards_are_alike() -> None:
    # Nothing to win beyond what there is: w - 2r = 0 leaves the spread as it was.
    rng = np.random.default_rng(1)
    found = 0.02 + 0.01 * rng.standard_normal(50)
    pair = twins_of(found, 150.0)
    (power,) = powers([pair], [0.02], [LargerDifference(0.5, 1.0)], level=1 - ALPHA)
    half = float(radii([pair[0].evidence], np.array([ALPHA]), tuned_at=ALPHA)[0])  # type: ignore[list-item]
    margins = found - half
    short = max(norm.ppf(0.8) * margins.std(ddof=1), margins.mean() - np.quantile(margins, 0.2))
    assert power.alone.difference == pytest.approx(half + short)
    assert power.ranked == power.alone  # one pair
    assert power.alone.shown == np.mean(found > half)
    assert power.alone.high - power.alone.difference == pytest.approx(short * ((49 / chi2.ppf(0.05, 49)) ** 0.5 - 1))
    assert power.alone.low < power.alone.difference < power.alone.high
    z = norm.ppf(0.975) * widened_by(found, level=1 - ALPHA)
    assert power.expected.difference == pytest.approx(z * found.std(ddof=1) + short)


def test_more_to_win_scatters_more() -> None:
    found = 0.001 + 0.002 * np.random.default_rng(2).standard_normal(80)
    (rare,) = powers([twins_of(found, 8.0)], [0.001], [LargerDifference(0.004, 1.0)], level=1 - ALPHA)
    (even,) = powers([twins_of(found, 8.0)], [0.001], [LargerDifference(0.5, 1.0)], level=1 - ALPHA)
    (dear,) = powers([twins_of(found, 8.0)], [0.001], [LargerDifference(0.004, 2.0)], level=1 - ALPHA)
    assert even.alone.difference < rare.alone.difference < dear.alone.difference


def test_a_ranking_needs_more_than_a_pair_and_less_than_a_share() -> None:
    rng = np.random.default_rng(3)
    pairs = [twins_of(mean + 0.01 * rng.standard_normal(40), 150.0) for mean in (0.0, 0.3, 0.3)]
    planned = powers(pairs, [0.0, 0.3, 0.3], [LargerDifference(0.5, 1.0)] * 3, level=1 - ALPHA)
    # The other two are always rejected, so that the first is tested at the whole error; they at half or a third.
    assert planned[0].ranked == planned[0].alone
    assert planned[1].ranked.difference > planned[1].alone.difference
    assert planned[1].ranked.shown == 1.0


def test_what_is_not_known_is_neither_told_nor_untold() -> None:
    of = DetectableDifference(difference=0.03, standard_error=0.001, low=0.028, high=0.032, shown=0.5)
    assert of.tells(0.04, 0.001) is True
    assert of.tells(-0.04, 0.001) is True
    assert of.tells(0.02, 0.001) is False
    assert of.tells(0.03, 0.001) is None
    assert of.tells(0.04, 0.005) is None


def test_policies_that_choose_alike_everywhere_have_nothing_to_detect() -> None:
    same = RealisedEvidence(Contrast(0.0, 0.0, 0.0, 0.0, 0), 0, 0, 1, ROUNDS, 1.0, "")
    (power,) = powers(
        [[MeasuredDifference(same.interval(ALPHA), 0.0, same)] * 12],
        [0.0],
        [LargerDifference(0.3, 1.0)],
        level=1 - ALPHA,
    )
    assert np.isnan([power.alone.difference, power.ranked.high, power.expected.difference]).all()
    assert power.alone.tells(0.01, 0.001) is None
