"""What policies that keep sums of each arm say they have learned: conversions over trials, without bonus or draw.

The greedy policy of what was learned shows the action with the largest estimate (`evaluator.replays.loop.frozen`),
actions with the same one with equal chance. An arm of which nothing is known has no estimate, and is shown only where
none has one. Models with a prior (Beta, ridge) have an estimate of every action, the prior's where nothing is known.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable

# Below every estimate.
NO_ESTIMATE = -np.inf


@inlinable
def estimate_rates(
    conversions: npt.NDArray[np.float64], trials: npt.NDArray[np.float64], values: npt.NDArray[np.float64]
) -> None:
    """Write conversions / trials of each arm into `values`, all of shape (K,); `NO_ESTIMATE` without trials."""
    for k in range(values.shape[0]):
        values[k] = conversions[k] / trials[k] if trials[k] > 0.0 else NO_ESTIMATE
