"""Whether all groups (arms, countries, ...) share one delay law under truncation, and which do not."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.delays.nonparametric import NonparametricFit, Quantile, fit_nonparametric, quantiles_of
from evaluator.delays.product_limit import Ints, checked_delays
from evaluator.delays.study.delay_jobs import HERE, DelayWorkers
from evaluator.delays.study.permuted_groups import GroupedDelays, permutation_test
from evaluator.errors import DataError, ParameterError
from evaluator.estimates.simultaneous import holm
from evaluator.log.column import renumbered
from evaluator.results.json_documents import (
    Count,
    Level,
    NotNegativeOrNull,
    Positive,
    Share,
    in_document,
    omitted,
    several,
)
from evaluator.streams import seed_stream, state_of

# A pair is given up as alike once this many permutations differ more (Besag, Clifford 1991, "Sequential Monte Carlo
# p-values": p = this / number drawn is valid).
_ENOUGH = 30
# Rows that all groups are tested on at most, and permutations.
ROWS, PERMUTATIONS = 50_000, 999
POOLED = "(pooled)"
# Quantiles of the delays of each group.
LEVELS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class GroupDelays:
    """Delays of one group.

    Parameters
    ----------
    label, members
        Name of the group, ``"(pooled)"`` for the small ones together, and the labels of the groups that it is made of.
    conversions
        Number of delays of the group.
    fit
        Product limit of the group's delays, with bands.
    """

    label: str
    members: Annotated[tuple[str, ...], several]
    conversions: Positive
    fit: Annotated[NonparametricFit, *omitted]

    @in_document
    @property
    def quantiles(self) -> tuple[Quantile, ...]:
        """Quantiles of the group's delays at `LEVELS`."""
        return quantiles_of(self.fit, LEVELS)

    @in_document
    @property
    def longest(self) -> NotNegativeOrNull:
        """Longest delay, in ticks, that the log can see of the group; inf where nothing is cut off."""
        return float(self.fit.longest)


@dataclass(frozen=True)
class PairDifference:
    """What speaks against one law in two groups, by their labels.

    `p` is the p-value of their having one law, `adjusted_p` the same adjusted for the number of pairs (Holm 1979).
    """

    first: str
    second: str
    p: Share
    adjusted_p: Share


@dataclass(frozen=True)
class Heterogeneity:
    """Test of one delay law in all groups (`heterogeneity`).

    Parameters
    ----------
    statistic, p, permutations
        Anderson-Darling distance between the groups' transformed delays, its p-value, and the permutations it is from.
    level
        Level at which groups are said to differ.
    compared, pairs
        Number of groups, the largest, that were compared in pairs, and every pair, most different first.
    differing, groups_differing
        Number of pairs whose adjusted p-value is at most `level`, and of groups that are in such a pair.
    groups
        Number of conversions of each group, by label.
    pooled
        Labels of the groups too small to stand alone, treated as one group.
    rows, conversions
        Number of conversions that were tested, and of those there are.
    method
        Sentence for reports that says how the permutation respects truncation.
    """

    statistic: float
    p: Share
    permutations: Positive
    level: Level
    pairs: tuple[PairDifference, ...]
    compared: Count
    differing: Count
    groups_differing: Count
    groups: dict[str, Count]
    pooled: tuple[str, ...]
    rows: Count
    conversions: Count
    method: str


def fit_groups(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    groups: ArrayLike,
    smallest: int = 50,
    confidence: float = 0.95,
) -> tuple[GroupDelays, ...]:
    """Return the delay laws of groups, largest group first, those below `smallest` conversions pooled at the end.

    Delays, limits, `confidence` and errors are as of `evaluator.delays.nonparametric.fit_nonparametric`; `groups` holds
    the label of each conversion's group, shape (n,).
    """
    seen = checked_delays(delays, limits, whole=False)
    labels, codes, members = _pooled(groups, seen.delay.size, smallest)
    out = []
    for code, label in enumerate(labels):
        own = seen.take(codes == code)
        fit = fit_nonparametric(*own, confidence=confidence)
        out.append(GroupDelays(label, members if label == POOLED else (label,), own.delay.size, fit))
    return tuple(out)


def grouped_delays(
    delays: ArrayLike,
    limits: ArrayLike | None,
    *,
    groups: ArrayLike,
    smallest: int = 50,
    rows: int = ROWS,
    seed: int = 0,
) -> GroupedDelays:
    """Return the delays that `heterogeneity` tests, of more than `rows` conversions a random subsample of this size.

    Delays, limits and groups are as of `fit_groups`. Raises DataError where a delay is impossible, there are not as
    many labels as delays, or fewer than two groups once those below `smallest` are pooled.
    """
    seen = checked_delays(delays, limits, whole=False)
    conversions = seen.delay.size
    labels, codes, members = _pooled(groups, conversions, smallest)
    if len(labels) < 2:
        raise DataError(
            f"Of {len(labels) - bool(members) + len(members)} groups, {len(labels)} is left once those with fewer than "
            f"{smallest} conversions are pooled.",
            remedy="lower `smallest`, or group by another column.",
        )
    rng = seed_stream(seed)
    if conversions > rows:
        chosen = np.sort(rng.choice(conversions, rows, replace=False))
        seen, codes = seen.take(chosen), codes[chosen]
    return GroupedDelays(seen, codes, labels, members, conversions, state_of(rng))


def heterogeneity(
    sample: GroupedDelays,
    *,
    permutations: int = PERMUTATIONS,
    level: float = 0.05,
    compared: int = 10,
    workers: DelayWorkers = HERE,
) -> Heterogeneity:
    """Test whether all groups share one delay law (`grouped_delays`), and name the pairs that do not.

    U = F(D) / F(L), F the product limit of all groups together, is about uniform in every group if they share one law,
    whatever their limits. The statistic compares the groups' distributions of U on 64 cells: with H_g, H the
    distribution functions of group g and of all, and h the mass of a cell, sum_g n_g sum_b (H_g(b) - H(b))^2 h(b) /
    (H(b) (1 - H(b))) (k-sample Anderson-Darling, Scholz, Stephens 1987, on a grid). The permutation p-value puts the
    delays on rows at random such that none exceeds its row's limit; rows keep limit and group
    (`evaluator.delays.study.permuted_groups`). It is exact, also when the limits differ between groups, provided that
    delays do not depend on limits. Pairs are tested alike, on at most 2,000 conversions each, with Holm's adjustment.

    Parameters
    ----------
    sample
        Delays, limits and groups that are tested.
    permutations
        Number of permutations, at least 19. Pairs take twice what Holm's adjustment needs to reach the level, if that
        is more.
    level
        Level at which pairs are said to differ, in (0, 1).
    compared
        Number of groups, the largest, to compare in pairs: pairs grow with the square of the groups, and so does the
        number of permutations that Holm's adjustment asks of each.
    workers
        Who draws the permutations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arms = np.repeat(["a", "b", "c"], 200)
    >>> delays = rng.geometric(np.repeat([0.1, 0.1, 0.02], 200))
    >>> test = heterogeneity(grouped_delays(delays, 1000, groups=arms))
    >>> test.p, [(pair.first, pair.second) for pair in test.pairs if pair.adjusted_p <= test.level]
    (0.001, [('a', 'c'), ('b', 'c')])
    """
    if permutations < 19:
        raise ParameterError(f"permutations is {permutations}.", remedy="19 at least; 999 for a p-value of .001.")
    labels = sample.labels
    statistic, p, state = permutation_test(
        sample, None, sample.state, permutations=permutations, enough=permutations + 1, workers=workers
    )
    counts = np.bincount(sample.codes, minlength=len(labels))
    tests = []
    compared = min(compared, len(labels))
    n_pairs = compared * (compared - 1) // 2
    draws = max(permutations, math.ceil(2 * n_pairs / level))
    for pair in itertools.combinations(range(compared), 2):
        _, alike, state = permutation_test(
            sample, pair, state, permutations=draws, enough=_ENOUGH, workers=workers
        )  # fmt: skip
        tests.append((alike, labels[pair[0]], labels[pair[1]]))
        workers.advance(1)
    tests.sort(key=lambda test: test[0])
    adjusted = holm([alike for alike, _, _ in tests]).tolist()
    pairs = tuple(
        PairDifference(first, second, alike, by_number)
        for (alike, first, second), by_number in zip(tests, adjusted, strict=True)
    )
    differing = [pair for pair in pairs if pair.adjusted_p <= level]
    return Heterogeneity(
        statistic=statistic,
        p=p,
        permutations=permutations,
        level=level,
        pairs=pairs,
        compared=compared,
        differing=len(differing),
        groups_differing=len({label for pair in differing for label in (pair.first, pair.second)}),
        groups=dict(zip(labels, counts.tolist(), strict=True)),
        pooled=sample.pooled,
        rows=sample.seen.delay.size,
        conversions=sample.conversions,
        method="delays are put on rows at random such that none exceeds its row's limit; rows keep limit and group",
    )


def _pooled(groups: ArrayLike, conversions: int, smallest: int) -> tuple[list[str], Ints, tuple[str, ...]]:
    """Return labels (largest first, pooled last), the code of each row, and the labels that were pooled."""
    given: NDArray[Any] = np.asarray(groups)
    if given.shape != (conversions,):
        raise DataError(
            f"There are {conversions} delays but groups of shape {given.shape}.", remedy="one label a delay."
        )
    names, codes, counts = np.unique(given, return_inverse=True, return_counts=True)
    order = np.lexsort((np.arange(names.size), -counts))
    large = [int(i) for i in order if counts[i] >= smallest]
    small = [int(i) for i in order if counts[i] < smallest]
    # A single small group is itself, whatever its size.
    labels = [str(names[i]) for i in large] + ([POOLED] if len(small) > 1 else [str(names[i]) for i in small])
    members = tuple(str(names[i]) for i in small) if len(small) > 1 else ()
    return labels, renumbered(codes, large, names.size).astype(np.int64), members
