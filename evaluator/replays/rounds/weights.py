"""Weights of displays, one over their probability of being in the log, and of choices among eligible actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.eligible import Bits, SetCodes, members
from evaluator.log.schema import ELIGIBLE, WEIGHT, Columns

Floats = npt.NDArray[np.float64]
# The logger showed action a of the set E with probability w_a / (sum of w_b over b in E). The weights that make the
# log most likely solve w_a = n_a / (sum over the displays with a eligible of 1 / (sum of w_b over b in E)), n_a the
# displays of a; going round in that equation climbs to them (Hunter 2004, MM algorithms for generalized Bradley-
# Terry models, Annals of Statistics 32). Shares of the log alone would take an action that is seldom eligible for
# one that is seldom chosen.
_ROUNDS, _CLOSE = 10_000, 1e-10


@dataclass(frozen=True, eq=False)
class DisplayWeights:
    """The weights of a log's displays, read in one pass.

    Parameters
    ----------
    displays
        Number of displays of the log.
    of_action
        Sum of the weights of each action's displays, shape (K,).
    smallest, largest
        Smallest and largest weight of each action's displays, shape (K,); nan for actions never shown.
    """

    displays: int
    of_action: Floats
    smallest: Floats
    largest: Floats

    @property
    def mean(self) -> float:
        """Displays of the traffic for each of the log."""
        return float(self.of_action.sum() / self.displays)

    @property
    def kept(self) -> float:
        """Share of the log's displays that is left when they are thinned to an even sample of the traffic."""
        return self.mean / float(np.nanmax(self.largest))


def read_weights(log: Log) -> DisplayWeights | None:
    """Return the weights of a log's displays; None where it has none."""
    if WEIGHT not in log.schema.names:
        return None
    total = np.zeros(log.n_actions)
    smallest, largest = np.full(log.n_actions, np.inf), np.full(log.n_actions, -np.inf)
    for _, batch in log.batches(["action", WEIGHT]):
        action, weight = batch["action"], batch[WEIGHT]
        total += np.bincount(action, weight, minlength=log.n_actions)
        np.minimum.at(smallest, action, weight)
        np.maximum.at(largest, action, weight)
    never = np.isinf(smallest)
    smallest[never] = largest[never] = np.nan
    return DisplayWeights(len(log), total, smallest, largest)


def choice_weights(log: Log) -> Floats:
    """Return the weights of the actions, shape (K,), with sum 1; 0 for actions never shown.

    Where no chain of shared sets connects two groups of actions, nothing tells how their weights compare, and nothing
    needs it. Cost: one pass over the sets and K numbers a distinct one, then little more a round.
    """
    shown = np.zeros(log.n_actions, np.int64)
    counts: dict[bytes, int] = {}
    for _, batch in log.batches(["action", ELIGIBLE], coded=True):
        shown += np.bincount(batch["action"], minlength=log.n_actions)
        sets = batch[ELIGIBLE]
        assert isinstance(sets, SetCodes)
        of_set = np.bincount(sets, minlength=len(sets.distinct))
        for at in np.flatnonzero(of_set):
            key = sets.distinct[at].tobytes()
            counts[key] = counts.get(key, 0) + int(of_set[at])
    bits = np.frombuffer(b"".join(counts), np.uint8).reshape(len(counts), -1)
    first, action = members(bits)
    n = np.fromiter(counts.values(), np.float64, len(counts))
    size = np.diff(first)
    w: Floats = shown / shown.sum()
    for _ in range(_ROUNDS):
        total = np.add.reduceat(w[action], first[:-1])
        expected = np.bincount(action, np.repeat(n / total, size), minlength=log.n_actions)
        new = np.divide(shown, expected, out=np.zeros_like(w), where=expected > 0.0)
        new /= new.sum()
        moved = float(np.abs(new - w).max())
        w = new
        if moved < _CLOSE:
            break
    return w


def chosen_with(weights: Floats, displays: Columns) -> Floats:
    """Return the propensities of some displays under such weights, shape (n,)."""
    sets = displays[ELIGIBLE]
    distinct, of = (sets.distinct, np.asarray(sets)) if isinstance(sets, SetCodes) else _plain(sets)
    first, action = members(distinct)
    total = np.add.reduceat(weights[action], first[:-1])
    found: Floats = weights[displays["action"]] / total[of]
    return found


def _plain(bits: Bits) -> tuple[Bits, npt.NDArray[np.int64]]:
    return bits, np.arange(len(bits))
