"""Sizes of accepted sets against those of the log: by hand, quiet where acceptance is even, loud where it is not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.replays.acceptance import ALARM, SetSizes, set_sizes, set_sizes_warning, sizes_by_count


def sizes_of(
    size: npt.NDArray[np.int64], accepted: npt.NDArray[np.bool_], *, probability: float, k: int = 12
) -> SetSizes:
    counts = (sizes_by_count(size[of], k) for of in (np.ones(len(size), bool), accepted))
    return set_sizes(*counts, probability=probability, mean=float(size.mean()))


def test_the_means_and_the_evidence_are_those_of_a_sum_over_displays() -> None:
    rng = np.random.default_rng(1)
    size = rng.integers(1, 13, 400)
    accepted, c = rng.random(400) < 0.2, 0.2
    found = sizes_of(size, accepted, probability=c)
    assert (found.read, found.accepted) == (400, accepted.sum())
    assert found.mean_read == pytest.approx(size.mean())
    assert found.mean_accepted == pytest.approx(size[accepted].mean())
    d = size - size.mean()
    slopes = [s * 2.0**-j / np.abs(d).max() for s in (-1, 1) for j in range(-1, 12)]
    each = [
        sum(s * a * x - math.log(1 - c + c * math.exp(s * x)) for a, x in zip(accepted, d, strict=True)) for s in slopes
    ]
    assert found.log_evidence == pytest.approx(math.log(np.mean(np.exp(each))), abs=1e-9)


def test_sets_that_are_all_of_one_size_say_nothing() -> None:
    found = sizes_of(np.full(50, 4), np.arange(50) < 10, probability=0.01)
    assert found.log_evidence == 0.0
    assert set_sizes_warning(found) == []


def test_nothing_accepted_has_no_mean_and_no_warning() -> None:
    found = sizes_of(np.array([2, 9]), np.zeros(2, bool), probability=0.1)
    assert math.isnan(found.mean_accepted)
    assert set_sizes_warning(found) == []


@pytest.mark.parametrize(("large", "word"), [(False, "small"), (True, "large")])
def test_a_lean_is_said_with_both_means_and_its_likely_causes(large: bool, word: str) -> None:
    rng = np.random.default_rng(2)
    size = rng.integers(2, 13, 5000)
    accepted = rng.random(5000) < 0.5 * (size / 13 if large else 1 / size)
    (warning,) = set_sizes_warning(sizes_of(size, accepted, probability=0.1))
    said = str(warning)
    assert f"lean to {word} sets" in said
    assert f"{size.mean():.4g}" in said
    assert ("1/|E|" in said) != large


def test_the_evidence_has_mean_one_at_most_where_acceptance_is_even() -> None:
    # The promise itself, in exact arithmetic over all outcomes of four displays.
    size, c = np.array([1, 2, 5, 12]), 0.3
    total = 0.0
    for outcome in range(16):
        accepted = np.array([bool(outcome >> i & 1) for i in range(4)])
        chance = float(np.prod(np.where(accepted, c, 1 - c)))
        total += chance * math.exp(sizes_of(size, accepted, probability=c).log_evidence)
    assert total == pytest.approx(1.0, rel=1e-12)
    assert ALARM == 1e-4
