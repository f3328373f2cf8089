"""Whether all groups (arms, countries, ...) share one delay law under truncation, and which do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.delays.nonparametric import NonparametricFit, Quantile, fit_nonparametric, quantiles_of
from evaluator.delays.product_limit import Floats, Ints, Observed, checked_delays, risk_table
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayWorkers
from evaluator.engine.kernels.compiling import compiled
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
from evaluator.streams import StreamState, seed_stream, state_of, stream_from

# A pair is given up as alike once this many permutations differ more (Besag, Clifford 1991, "Sequential Monte Carlo
# p-values": p = this / number drawn is valid).
_ENOUGH = 30
# Rows that all groups are tested on at most, and permutations.
ROWS, PERMUTATIONS = 50_000, 999
POOLED = "(pooled)"
# Quantiles of the delays of each group.
LEVELS = (0.25, 0.5, 0.75)
_CELLS = 64
# A pair is tested on so many of its rows.
PAIR_ROWS = 2_000
# Permutations of a pair that the process that asks draws itself: most pairs are alike, which these show.
_AT_ONCE = 200
# Rows times permutations of a job, a third of a second.
_WORK = 8_000_000
# Two groups by their codes; None for all groups.
Pair = tuple[int, int] | None


@dataclass(frozen=True)
class GroupDelays:
    """Delays of one group.

    Parameters
    ----------
    label
        Name of the group, ``"(pooled)"`` for the small ones together.
    members
        Labels of the groups that it is made of.
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
    """What speaks against one law in two groups.

    Parameters
    ----------
    first, second
        Labels of the two groups.
    p, adjusted_p
        P-value of their having one law, and the same adjusted for the number of pairs (Holm 1979).
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
    statistic
        Anderson-Darling distance between the groups' transformed delays.
    p
        P-value of the statistic, by permutation.
    permutations
        Number of permutations of the test of all groups.
    level
        Level at which groups are said to differ.
    pairs
        Every pair of the `compared` largest groups, most different first.
    compared
        Number of groups that were compared in pairs.
    differing
        Pairs whose adjusted p-value is at most `level`.
    groups_differing
        Number of groups that are in such a pair.
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
    (`evaluator.delays.study.heterogeneity`). It is exact, also when the limits differ between groups, provided that
    delays do not depend on limits. Pairs of the `compared` largest groups are tested alike, on at most 2,000
    conversions each, with Holm's adjustment: pairs grow with the square of the groups, and so does the number of
    permutations that Holm's adjustment asks of each. At least 19 permutations are drawn, of pairs twice what the
    adjustment needs to reach the `level` at which they are said to differ, if that is more; ParameterError is raised
    where there are fewer.

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
        statistic=statistic, p=p, permutations=permutations, level=level, pairs=pairs, compared=compared,
        differing=len(differing),
        groups_differing=len({label for pair in differing for label in (pair.first, pair.second)}),
        groups=dict(zip(labels, counts.tolist(), strict=True)), pooled=sample.pooled, rows=sample.seen.delay.size,
        conversions=sample.conversions,
        method="delays are put on rows at random such that none exceeds its row's limit; rows keep limit and group",
    )  # fmt: skip


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


# Under one delay law, independent of rows and limits, the likelihood of the delays given the rows' limits is prod
# f(D_i) / prod F(L_i), the same for every admissible assignment of the delays to the rows: the assignments are
# equally likely given the set of delays (Efron, Petrosian 1999, JASA 94; Diaconis, Graham, Holmes 2001). One is
# drawn exactly by letting the delays, longest first, take one of the free rows that were watched as long.


class PermutableDelays(NamedTuple):
    """Truncated delays prepared for permutations.

    `kept` (n,) row indices whose weight the log identifies (`product_limit`); `rows` (n,) positions in `kept`, longest
    limit first; `eligible` (n,) how many of `rows` were watched as long as each delay, longest delay first; `owners`
    (n,) whose delay that is; `mass` (n,) F at the middle of each delay's step, longest first; `ends` (n,) F at each
    kept row's limit.
    """

    kept: Ints
    rows: Ints
    eligible: Ints
    owners: Ints
    mass: Floats
    ends: Floats

    def transforms(self) -> Floats:
        """Return F(D) / F(L) of each kept row, about uniform under one delay law; shape (n,)."""
        out = np.empty(self.kept.size)
        out[self.owners] = self.mass
        return out / self.ends


def permutable(seen: Observed) -> PermutableDelays:
    """Prepare delays; F is their product limit, which no admissible permutation changes. O(n log n)."""
    delays, limit = seen.delay, seen.ends
    table = risk_table(delays, limit)
    kept = np.flatnonzero((delays >= table.support[0]) & (delays <= table.support[-1]))
    delay, limit = delays[kept], limit[kept]
    cdf = np.maximum(table.cdf(), 1e-300)
    padded = np.concatenate(([0.0], cdf))
    at = np.searchsorted(table.support, delay)
    middle = 0.5 * (padded[at] + padded[at + 1])
    ends = padded[np.searchsorted(table.support, limit, side="right")]
    owners = np.argsort(-delay, kind="stable")
    rows = np.argsort(-limit, kind="stable")
    eligible = np.searchsorted(-limit[rows], -delay[owners], side="right")
    return PermutableDelays(kept, rows, eligible, owners, middle[owners], ends)


@compiled
def permuted(rows: Ints, eligible: Ints, uniforms: Floats, pool: Ints, taken: Ints) -> None:
    """Write into `taken` (n,) the row that each delay, longest first, is put on; `pool` (n,) is work space."""
    free = 0
    added = 0
    for i in range(eligible.size):
        while added < eligible[i]:
            pool[free] = rows[added]
            free += 1
            added += 1
        pick = int(uniforms[i] * free)
        taken[i] = pool[pick]
        free -= 1
        pool[pick] = pool[free]


class PermutationTest(NamedTuple):
    """Delays of `k` groups prepared for permutations, and the Anderson-Darling distance between these.

    `group` (n,) is the code of each row of `ready`; `state` is where the stream is that draws the permutations.
    """

    ready: PermutableDelays
    group: Ints
    k: int
    statistic: float
    state: StreamState

    def hits(self, numbers: range, enough: int) -> tuple[int, ...]:
        """Return the first permutations, among some by their numbers from 0, whose distance is at least as large.

        No more than `enough`. Every permutation draws as many numbers from one stream, one after the other.
        """
        ready, n = self.ready, self.group.size
        rng = stream_from(self.state, after=numbers.start * n)
        pool, taken = np.empty(n, np.int64), np.empty(n, np.int64)
        found: list[int] = []
        for number in numbers:
            permuted(ready.rows, ready.eligible, rng.random(n), pool, taken)
            # Equal but for rounding counts as equal.
            if _distance(ready.mass, ready.ends, taken, self.group, self.k) >= self.statistic * (1.0 - 1e-12):
                found.append(number)
                if len(found) == enough:
                    break
        return tuple(found)


@dataclass(eq=False)
class GroupedDelays:
    """Delays, limits and codes of the groups of conversions, shape (n,) each, whose groups are tested; in ticks.

    Limits are None where nothing was cut off. `labels` are those of the groups, by code, and `pooled` those of the
    groups too small to stand alone; of `conversions` in all, these are tested. `state` is where the stream is that
    tests draw from.
    """

    seen: Observed
    codes: Ints
    labels: Sequence[str]
    pooled: tuple[str, ...]
    conversions: int
    state: StreamState
    _last: tuple[Pair, StreamState, PermutationTest] | None = None
    _preparing: Lock = field(default_factory=Lock)

    def test(self, pair: Pair, state: StreamState) -> PermutationTest:
        """Return the test of a pair, or of all groups, from where the stream is; the last one is kept."""
        with self._preparing:
            if self._last is None or self._last[:2] != (pair, state):
                self._last = pair, state, self._prepared(pair, state)
            return self._last[2]

    def _prepared(self, pair: Pair, state: StreamState) -> PermutationTest:
        seen, codes, k = self.seen, self.codes, len(self.labels)
        if pair is not None:
            of = np.flatnonzero((codes == pair[0]) | (codes == pair[1]))
            if of.size > PAIR_ROWS:
                rng = stream_from(state)
                of, state = rng.choice(of, PAIR_ROWS, replace=False), state_of(rng)
            seen = seen.take(of)
            codes, k = (codes[of] == pair[1]).astype(np.int64), 2
        ready = permutable(seen)
        group = codes[ready.kept]
        return PermutationTest(ready, group, k, _distance(ready.mass, ready.ends, ready.owners, group, k), state)


@dataclass(frozen=True)
class PermutationsJob(DelayJob):
    """Permutations of the test of a pair, or of all groups, from one number up to another, counted from 0.

    `state` is where the stream is before the test; after `enough` permutations that differ as much no more are needed.
    """

    of: ClassVar[str] = "permutations"
    steps: ClassVar[int] = 0
    threads: ClassVar[bool] = False  # a permutation takes microseconds, in which threads wait for each other
    items: ClassVar[tuple[int, ...]] = (0,)

    pair: Pair
    state: StreamState
    first: int
    stop: int
    enough: int

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        groups = "all groups" if self.pair is None else f"groups {self.pair[0] + 1:,} and {self.pair[1] + 1:,}"
        return f"Permutations {self.first + 1:,} to {self.stop:,} of {groups}"

    def compute(self, opened: GroupedDelays, item: int) -> tuple[int, ...]:
        """Return the numbers of the permutations that differ as much."""
        return opened.test(self.pair, self.state).hits(range(self.first, self.stop), self.enough)


class Tested(NamedTuple):
    """Statistic of a test, its p-value, and where the stream is after it."""

    statistic: float
    p: float
    state: StreamState


def permutation_test(
    sample: GroupedDelays, pair: Pair, state: StreamState, *, permutations: int, enough: int, workers: DelayWorkers
) -> Tested:
    """Test whether two groups, or all, have one law; stops after `enough` permutations that differ as much.

    The stream of draws goes on from `state`, and `workers` draw the permutations. Never stops early where `enough` is
    more than `permutations`.
    """
    test = sample.test(pair, state)
    rows = test.group.size
    begun = min(_AT_ONCE, permutations) if enough <= permutations else 0
    hits = [*test.hits(range(begun), enough)]
    if len(hits) < enough:
        size = max(_WORK // rows, 1)
        jobs = [
            PermutationsJob(pair, state, at, min(at + size, permutations), enough - len(hits))
            for at in range(begun, permutations, size)
        ]
        for (found,) in workers.found(jobs, sample):
            hits += found
            if len(hits) >= enough:
                break
    stopped = len(hits) >= enough
    drawn = hits[enough - 1] + 1 if stopped else permutations
    p = enough / drawn if stopped else (1 + len(hits)) / (permutations + 1)
    return Tested(test.statistic, p, state_of(stream_from(test.state, after=drawn * rows)))


def _distance(mass: Floats, ends: Floats, taken: Ints, group: Ints, k: int) -> float:
    """Return the Anderson-Darling distance of k groups; the i-th longest delay sits on row taken[i]."""
    cell = np.minimum((mass / ends[taken] * _CELLS).astype(np.int64), _CELLS - 1)
    counts = np.bincount(group[taken] * _CELLS + cell, minlength=k * _CELLS).reshape(k, _CELLS)
    sizes = counts.sum(axis=1, keepdims=True)
    h = counts.sum(axis=0) / taken.size
    every = np.cumsum(h)
    inside = (every > 0) & (every < 1.0 - 1e-12)
    gaps = (np.cumsum(counts, axis=1) / np.maximum(sizes, 1) - every)[:, inside]
    return float((sizes * gaps**2 * (h / (every * (1.0 - every) + ~inside))[inside]).sum())
