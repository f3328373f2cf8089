"""Delay CDFs of groups: their own where they have conversions enough, the common one where they have not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from evaluator.delays.product_limit import group_cdfs, product_limit

Ints = npt.NDArray[np.int64]
LONGEST, SPAN = 3_000, 6_000
AGES = np.array([300, 600, 1_000, 2_000])


class Seen(NamedTuple):
    """Conversions of groups with geometric delays, of displays whose follow-up was too short for some."""

    delays: Ints
    limits: Ints
    groups: Ints

    @classmethod
    def draw(cls, counts: tuple[int, ...], means: tuple[float, ...], seed: int) -> Seen:
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(len(counts)), counts)
        delay = rng.geometric(1 / (1 + np.array(means)[group])) - 1
        limit = np.minimum(LONGEST, SPAN - rng.integers(SPAN, size=len(group)))
        seen = delay <= limit
        return cls(delay[seen], limit[seen], group[seen])


def true(means: tuple[float, ...]) -> npt.NDArray[np.float64]:
    ratio = np.array(means)[:, None] / (1 + np.array(means)[:, None])
    return np.asarray((1 - ratio ** (AGES + 1)) / (1 - ratio ** (LONGEST + 1)))


def errors(counts: tuple[int, ...], means: tuple[float, ...], logs: int = 60) -> dict[str, npt.NDArray[np.float64]]:
    """Return the root mean square error of each group's CDF over logs and ages, shape (G,)."""
    squares: dict[str, list[npt.NDArray[np.float64]]] = {"drawn": [], "own": [], "common": []}
    for seed in range(logs):
        seen = Seen.draw(counts, means, seed)
        found = group_cdfs(*seen, n_groups=len(counts))
        groups = np.arange(len(counts))[:, None]
        own = [product_limit(seen.delays[seen.groups == g], seen.limits[seen.groups == g])(AGES)
               for g in range(len(counts))]  # fmt: skip
        for name, cdf in (("drawn", found(AGES, groups)), ("own", np.array(own)), ("common", found.common(AGES))):
            squares[name].append(((cdf - true(means)) ** 2).mean(axis=1))
    return {name: np.sqrt(np.mean(of, axis=0)) for name, of in squares.items()}


def test_unlike_groups_with_many_conversions_have_laws_of_their_own() -> None:
    found = errors((1000,) * 3, (100.0, 100.0, 1000.0))
    assert (found["drawn"] < 1.1 * found["own"]).all()
    assert (found["common"] > 5 * found["own"]).all()


def test_like_groups_have_nearly_the_common_law() -> None:
    for count in (30, 1000):
        found = errors((count,) * 5, (500.0,) * 5)
        # Limited translation keeps four fifths of what the common law saves (Efron, Morris 1972).
        saved = found["own"] ** 2 - found["common"] ** 2
        assert (found["drawn"] ** 2 < found["common"] ** 2 + 0.2 * saved).all()


def test_one_group_of_many_that_differs_is_not_drawn_to_the_others() -> None:
    found = errors((300,) * 9 + (60,), (100.0,) * 9 + (1000.0,))
    assert found["drawn"][-1] < 2**0.5 * found["own"][-1]  # by one standard error at most
    assert found["common"][-1] > 4 * found["own"][-1]


def test_with_nothing_cut_off_it_is_the_credibility_formula() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2], [20, 30, 50])
    delays = rng.geometric(np.array([0.2, 0.1, 0.05])[groups])
    found = group_cdfs(delays, np.full(100, 500), groups, n_groups=4)
    assert 0 < found.weight[0] < 1
    ages = np.arange(60)
    for g in range(3):
        own = (delays[groups == g][:, None] <= ages).mean(axis=0)
        mixed = found.weight[g] * own + (1 - found.weight[g]) * found.common(ages)
        np.testing.assert_allclose(found(ages, g), mixed, atol=1e-12)
    np.testing.assert_array_equal(found(ages, 3), found.common(ages))  # never seen


def test_the_reverse_hazards_by_hand() -> None:
    # Group 0 has 4 of 6 conversions; its young ones could show at most 1.
    delays, limits = np.array([0, 1, 5, 0, 0, 1]), np.array([1, 1, 9, 9, 9, 9])
    groups = np.array([0, 0, 0, 0, 1, 1])
    found = group_cdfs(delays, limits, groups, n_groups=2)
    f = product_limit(delays, limits).cdf
    for g in (0, 1):
        mine = groups == g
        n = int(mine.sum())
        kappa = n / found.weight[g] - n if found.weight[g] else np.inf
        tau, before = 1.0, dict(zip((1, 5), f, strict=False))
        for d, at in ((5, 2), (1, 1)):
            seen = int((delays[mine] == d).sum())
            risk = int(((delays[mine] <= d) & (limits[mine] >= d)).sum())
            if np.isinf(kappa):
                tau *= before[d] / f[at]
            else:
                tau *= (kappa * before[d] + risk - seen) / (kappa * f[at] + risk)
            np.testing.assert_allclose(found(d - 1, g), tau)


def test_groups_followed_for_different_times_are_not_taken_for_unlike() -> None:
    # The second group is young: it can show short delays only.
    differ = []
    for seed in range(100):
        seen = Seen.draw((400, 400), (500.0, 500.0), seed)
        limit = np.where(seen.groups == 1, np.minimum(seen.limits, 400), seen.limits)
        kept = seen.delays <= limit
        differ.append(group_cdfs(seen.delays[kept], limit[kept], seen.groups[kept], n_groups=2)(300, [0, 1]))
    error = np.std(differ, axis=0, ddof=1) / 10
    assert (np.abs(np.mean(differ, axis=0) - true((500.0,))[0, 0]) < 4 * error).all()


@pytest.mark.parametrize("steps", [64, 4_000])
def test_thinned_steps_bias_nothing(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    seen = Seen.draw((3000, 3000), (200.0, 1000.0), 5)
    whole = group_cdfs(*seen, n_groups=2)
    monkeypatch.setattr("evaluator.delays.product_limit._CELLS", steps)
    monkeypatch.setattr("evaluator.delays.product_limit._FEWEST_STEPS", 16)
    few = group_cdfs(*seen, n_groups=2)
    assert len(few.grid) <= max(steps // 3, 16) < len(whole.grid)
    # Conversions whose limit comes before the next kept delay are not used: another sample, nearly the same.
    error = (0.25 / 3000) ** 0.5
    for g in (0, 1):
        assert np.abs(few(few.grid, g) - whole(few.grid, g)).max() < 4 * error


def test_quantiles_are_those_of_the_slowest_group() -> None:
    found = group_cdfs(*Seen.draw((2000, 2000), (100.0, 1000.0), 6), n_groups=2)
    late = found.reached(0.2)
    assert found(late, 1) >= 0.2 > found(late - 1, 1)
    assert found.smallest(late) == found(late, 1)
    assert found(late, 0) > 0.8
