"""The logging policy of a twin: probabilities of all actions, where a log holds that of the shown action only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.engine.kernels.solving import solved, standard_of
from evaluator.log import Log
from evaluator.log.eligible import Bits, pack, to_bits, unpack
from evaluator.log.schema import ELIGIBLE, is_uneven, to_numpy
from evaluator.log.vectors_of_displays import display_vectors
from evaluator.replays.rounds.fitted import choice_weights, context_model
from evaluator.replays.rounds.propensity import Propensities
from evaluator.replays.rounds.stream import EligibleSets

Floats = npt.NDArray[np.float64]

# Displays that a model of the logger is fitted to; evenly spaced in longer logs.
MODEL_DISPLAYS = 100_000
_STEPS = 25
Ints = npt.NDArray[np.int64]

# Scores that a model is fitted to, at most, and how far its steps go.
_CELLS, _STEPS_AMONG = 4_000_000, 200
# Prior precision of the coefficients of standardised vectors: weak.
_WEAK = 1e-3
Truths = npt.NDArray[np.bool_]
# Entries of a block: enough for contexts to be drawn anew, few enough for a calendar to keep its dates.
BLOCK = 20


class TwinLogger(NamedTuple):
    """Probability of each action in each entry of the pool, shape (P, K), or (1, K) the same in all; where from."""

    table: Floats
    said: str


def fit_twin_logger(
    log: Log, propensities: Propensities, shown: npt.NDArray[np.int64], pool: npt.NDArray[np.int64]
) -> TwinLogger:
    """Return the logging policy that twins draw their actions from, where all are always eligible.

    `shown` is the number of displays of each action, shape (K,), and `pool` the displays that make up the pool, shape
    (P,).
    """
    k = log.n_actions
    share = shown / shown.sum()
    if propensities.even or propensities.kind == "uniform":
        return TwinLogger(np.full((1, k), 1.0 / k), "twins are logged uniformly")
    if propensities.rule is None:
        return TwinLogger(share[None], "twins are logged by the shares of the actions, whatever the context")
    low, high = propensities.smallest, propensities.largest
    if np.nanmax(high - low) <= 1e-9:
        p = np.where(np.isnan(low), 0.0, low)
        said = "estimated frequencies" if propensities.kind == "estimated" else "logged propensities"
        return TwinLogger((p / p.sum())[None], f"twins are logged by the {said}, which do not depend on the context")
    vectors = display_vectors(log, first="context")
    if vectors == "context":
        table, said = _by_context(log, pool), "a multinomial logistic model of the context"
    elif vectors == "action_set":
        table, at_rest = _by_vector(log, pool)
        said = "a conditional logistic model of the actions' vectors" + ("" if at_rest else " (not at rest: unsure)")
    else:
        return TwinLogger(
            share[None],
            "twins are logged by the shares of the actions: the log's propensities vary with what it does not hold",
        )
    # No smaller than the log's smallest: what a model extrapolates to would decide how many displays are accepted.
    floor = min(propensities.least, 1.0 / k)
    above = np.maximum(table - floor, 1e-12)
    table = floor + above * ((1.0 - k * floor) / above.sum(axis=1, keepdims=True))
    return TwinLogger(
        table, f"twins are logged by {said} fitted to the log, and have its probabilities as propensities"
    )


def _by_context(log: Log, pool: npt.NDArray[np.int64]) -> Floats:
    return context_model(log, MODEL_DISPLAYS).all(to_numpy(log.take(pool, ["context"])["context"]))


def _by_vector(log: Log, pool: npt.NDArray[np.int64]) -> tuple[Floats, bool]:
    """Return P(a|x) proportional to exp(theta x_a), and whether Newton's method came to rest.

    theta is that of maximum likelihood (McFadden 1974).
    """
    n = min(len(log), MODEL_DISPLAYS)
    some = log.take(np.arange(n) * len(log) // n, ["action_set", "action"])
    x, action = to_numpy(some["action_set"]), to_numpy(some["action"])
    d = x.shape[2]
    standard = standard_of(x.reshape(-1, d))
    x = standard.of(x)
    chosen = x[np.arange(n), action].sum(axis=0)
    theta, at_rest = np.zeros(d), False
    for _ in range(_STEPS):
        p = _softmax(x @ theta)
        mean = np.einsum("ik,ikd->id", p, x)
        second = np.einsum("ik,ikd,ike->de", p, x, x, optimize=True)
        bend = second - mean.T @ mean + 1e-6 * n * np.eye(d)
        step = solved(bend, chosen - mean.sum(axis=0) - 1e-6 * n * theta)
        theta = theta + step
        if at_rest := bool(np.abs(step).max() < 1e-8 * (1.0 + np.abs(theta).max())):
            break
    return _softmax(standard.of(to_numpy(log.take(pool, ["action_set"])["action_set"])) @ theta), at_rest


def _softmax(score: Floats) -> Floats:
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def fit_logger_among(log: Log, propensities: Propensities, pool: Ints, truths: Truths) -> TwinLogger:
    """Return the logging policy that twins draw their actions from, 0 outside an entry's set.

    `pool` are the displays that make up the pool, shape (P,), and `truths` whether each action is eligible there, (P,
    K).
    """
    size = truths.sum(axis=1, keepdims=True)
    even = truths / size
    if propensities.kind == "uniform" or _is_even(log, propensities, pool):
        return TwinLogger(even, "twins are logged uniformly among the eligible actions")
    vectors = display_vectors(log, first="context")
    if propensities.kind == "logged" and vectors is not None:
        table = _by_model(log, vectors, pool, truths)
        said = f"a logistic model of the {'context' if vectors == 'context' else 'vectors of the actions'}"
        said = f"twins are logged by {said} over the eligible actions, with its probabilities as propensities"
    else:
        table = np.where(truths, choice_weights(log), 0.0)
        said = "twins are logged by a weight of each action, shared out over the eligible ones"
    table /= table.sum(axis=1, keepdims=True)
    if propensities.rule is None:
        return TwinLogger(table, said)
    # No smaller than the log's smallest: what a model extrapolates to would decide how many displays are accepted.
    floor = np.minimum(propensities.least, 1.0 / size)
    above = np.maximum(table - floor, 1e-12) * truths
    return TwinLogger(truths * floor + above * ((1.0 - size * floor) / above.sum(axis=1, keepdims=True)), said)


def _is_even(log: Log, propensities: Propensities, pool: Ints) -> bool:
    """Whether the propensities are one over the number of eligible actions."""
    if propensities.rule is None:
        return False
    reads = list(dict.fromkeys((*propensities.reads, ELIGIBLE)))
    taken = log.take(pool, reads)
    p = propensities.of({name: to_numpy(taken[name]) for name in reads})
    return bool(np.allclose(p * unpack(taken[ELIGIBLE], log.n_actions).sum(axis=1), 1.0, rtol=1e-6))


def _by_model(log: Log, vectors: str, pool: Ints, truths: Truths) -> Floats:
    """Return P(a|x, E) proportional to exp(score of a) over E (McFadden 1974), by maximum likelihood.

    Scores are linear, in the context with coefficients of each action or in the actions' own vectors with common ones.
    """
    from scipy.optimize import minimize

    k = log.n_actions
    n = min(len(log), MODEL_DISPLAYS, max(_CELLS // k, 1))
    some = np.arange(n) * len(log) // n
    taken = log.take(some, [vectors, "action", ELIGIBLE])
    sets, action = unpack(taken[ELIGIBLE], k), to_numpy(taken["action"])
    x = _read(taken[vectors], sets)
    scale = x.reshape(-1, x.shape[-1]).std(axis=0)
    scale[scale == 0.0] = 1.0
    x /= scale
    if vectors == "context":
        x = np.column_stack([x, np.ones(n)])
    shape = (k, x.shape[1]) if vectors == "context" else (x.shape[2],)
    shown = np.zeros((n, k))
    shown[np.arange(n), action] = 1.0

    def scores(of: Floats, theta: Floats) -> Floats:
        return of @ theta.T if vectors == "context" else np.asarray(of @ theta)

    def loss(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(shape)
        p = _softmax(np.where(sets, scores(x, theta), -np.inf))
        off = p - shown
        slope = off.T @ x if vectors == "context" else np.einsum("ik,ikd->d", off, x)
        likelihood = float(np.log(np.maximum(p[np.arange(n), action], 1e-300)).sum())
        return 0.5 * _WEAK * float(flat @ flat) - likelihood, slope.reshape(-1) + _WEAK * flat

    theta = minimize(loss, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS_AMONG}).x
    asked = _read(log.take(pool, [vectors])[vectors], unpack(log.take(pool, [ELIGIBLE])[ELIGIBLE], k)) / scale
    if vectors == "context":
        asked = np.column_stack([asked, np.ones(len(asked))])
    return _softmax(np.where(truths, scores(asked, theta.reshape(shape)), -np.inf))


def _read(column: pa.ChunkedArray, sets: Truths) -> Floats:
    return all_vectors(column, sets).astype(np.float64)


@dataclass(frozen=True, eq=False)
class TwinSets:
    """Eligible actions of each entry of a truth's pool."""

    column: pa.DictionaryArray  # sets of the P entries, as a log holds them
    truths: Truths  # (P, K); an action that the log never showed is in none
    blocks: int  # of successive entries that a twin passes through; 1 where sets do not move with time

    @property
    def moving(self) -> bool:
        """Whether sets move with time."""
        return self.blocks > 1

    @property
    def bits(self) -> Bits:
        """Sets of the entries as bits, shape (P, width)."""
        return to_bits(self.column)

    @property
    def said(self) -> str:
        """What is said of twins."""
        if not self.moving:
            return "eligible actions are drawn with the log's displays, whatever the time"
        return f"eligible actions follow the log's calendar, drawn within {self.blocks:,} blocks of successive displays"

    def block(self, share: Floats) -> Ints:
        """Return the block at some shares of a twin, each in [0, 1), shape (n,)."""
        return np.minimum((share * self.blocks).astype(np.int64), self.blocks - 1)

    def entries(self, share: Floats, uniform: Floats) -> Ints:
        """Return the entry of displays at some shares of a twin, given a uniform number of each, shape (n,)."""
        block, size = self.block(share), len(self.truths)
        low = block * size // self.blocks
        high = (block + 1) * size // self.blocks
        found: Ints = low + ((high - low) * uniform).astype(np.int64)
        return found

    def by_block(self, of_entry: Floats) -> Floats:
        """Return the means of some numbers of each entry over the blocks, (P, R) to (B, R)."""
        first = np.arange(self.blocks) * len(of_entry) // self.blocks
        size = np.diff(np.append(first, len(of_entry)))
        means: Floats = np.add.reduceat(of_entry, first, axis=0) / size[:, None]
        return means

    @property
    def entry_shares(self) -> Floats:
        """Share of a twin's displays that each entry has, shape (P,): blocks are of the same length."""
        first = np.arange(self.blocks + 1) * len(self.truths) // self.blocks
        size = np.diff(first)
        return np.repeat(1.0 / (self.blocks * size), size)

    def of_displays(self, entry: Ints) -> pa.DictionaryArray:
        """Return the column of displays with these entries."""
        return pa.DictionaryArray.from_arrays(self.column.indices.take(pa.array(entry)), self.column.dictionary)


def read_twin_sets(log: Log, sets: EligibleSets, entries: Ints, shown: Ints) -> TwinSets:
    """Return the sets of some displays of a log, increasing, without actions that it never showed.

    `shown` is the number of displays of each action, shape (K,).
    """
    column = log.take(entries, [ELIGIBLE])[ELIGIBLE]
    truths = unpack(column, log.n_actions) & (shown > 0)
    blocks = max(len(entries) // BLOCK, 1) if sets.moving >= 0 else 1
    return TwinSets(pack(truths), truths, blocks)


def all_vectors(column: pa.ChunkedArray, truths: Truths) -> npt.NDArray[np.floating]:
    """Return the vectors of all actions at some displays, shape (n, K, d): 0 where a list has none, of its sets."""
    vectors = to_numpy(column)
    if not is_uneven(column.type):
        return vectors
    found = np.zeros((*truths.shape, vectors.shape[1]), vectors.dtype)
    found[truths] = vectors
    return found


def best_order_value(rates: Floats, truths: Truths, worth: Floats, cost: Floats, factor: Floats) -> float:
    """Return the mean over entries of the best order of actions: at each, its first eligible action is shown.

    As in a replay (`evaluator.estimates.best_fixed`), actions are ordered by their means where they are eligible. A
    conversion of each action counts `worth` and its display costs `cost`, shape (K,); all rates of an entry have its
    `factor`, shape (P,).
    """
    earned = np.minimum(rates * factor[:, None], 1.0) * worth - cost
    eligible = truths.sum(axis=0)
    means = np.where(eligible > 0, (earned * truths).sum(axis=0) / np.maximum(eligible, 1), -np.inf)
    order = np.argsort(-means, kind="stable")
    first = order[truths[:, order].argmax(axis=1)]
    return float(earned[np.arange(len(first)), first].mean())
