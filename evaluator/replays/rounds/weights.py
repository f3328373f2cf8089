"""Display weights: one over the probability with which a display got into the log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from evaluator.log.schema import WEIGHT

Floats = npt.NDArray[np.float64]


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
