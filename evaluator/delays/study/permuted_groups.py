"""Tests of one delay law in several groups by admissible permutations, counted in jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import ClassVar, NamedTuple

import numpy as np

from evaluator.delays.product_limit import Floats, Ints, Observed, risk_table
from evaluator.delays.study.delay_jobs import DelayJob, DelayWorkers
from evaluator.engine.kernels.compiling import compiled
from evaluator.streams import StreamState, state_of, stream_from

_CELLS = 64
# A pair is tested on so many of its rows.
PAIR_ROWS = 2_000
# Permutations of a pair that the process that asks draws itself: most pairs are alike, which these show.
_AT_ONCE = 200
# Rows times permutations of a job, a third of a second.
_WORK = 8_000_000

# Two groups by their codes; None for all groups.
Pair = tuple[int, int] | None


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


class GroupedDelays:
    """Delays, limits and codes of the groups of conversions, shape (n,) each, whose groups are tested; in ticks.

    Limits are None where nothing was cut off. `labels` are those of the groups, by code, and `pooled` those of the
    groups too small to stand alone; of `conversions` in all, these are tested. `state` is where the stream is that
    tests draw from.
    """

    def __init__(
        self,
        seen: Observed,
        codes: Ints,
        labels: Sequence[str],
        pooled: tuple[str, ...],
        conversions: int,
        state: StreamState,
    ) -> None:
        self.seen, self.codes, self.labels, self.pooled = seen, codes, labels, pooled
        self.conversions, self.state = conversions, state
        self._last: tuple[Pair, StreamState, PermutationTest] | None = None
        self._preparing = Lock()

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
