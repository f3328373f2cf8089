"""Effective number of pulls N~: each pull counts with the probability that its conversion would have shown by now.

N~_k at a decision is the sum over the pulls of arm k of tau_min(m, age), tau the delay CDF, m the window
(Vernade et al. 2017, Section 4). Recomputing it costs the window; here a round costs O(steps of the CDF), or O(K) for
geometric delays, because a pull's weight changes only when its age crosses a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlined

if TYPE_CHECKING:
    from evaluator.delays.cdf import DelayCDF


class Exposure(NamedTuple):
    """State of N~.

    Parameters
    ----------
    effective
        N~ of each arm, shape (K,).
    pulls
        N of each arm, shape (K,).
    rounds
        Number of pulls so far, shape (1,).
    history
        Arm of the last pulls, a ring long enough for the oldest age that still changes a weight.
    ages, jumps
        Steps of the CDF up to the window: ages, shape (J,), and what the weight gains there. Empty when geometric.
    ratio
        Survival ratio of geometric delays, shape (1,); 0 when the CDF is a list of steps.
    missing, frozen
        Geometric: the mass still to come of the pulls within the window, and the number of the older, shape (K,).
    fresh, last
        Geometric: missing mass of a pull at age 0, and at the age `window`, shape (1,).
    """

    effective: npt.NDArray[np.float64]
    pulls: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    history: npt.NDArray[np.int64]
    ages: npt.NDArray[np.int64]
    jumps: npt.NDArray[np.float64]
    ratio: npt.NDArray[np.float64]
    missing: npt.NDArray[np.float64]
    frozen: npt.NDArray[np.float64]
    fresh: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]


def start_exposure(n_actions: int, window: int, horizon: int, cdf: DelayCDF) -> Exposure:
    """Return N~ before the first pull.

    Parameters
    ----------
    n_actions
        K.
    window
        m in rounds; ages beyond it no longer change a weight.
    horizon
        No more rounds than this will come (bounds the ring).
    cdf
        The delay CDF on the clock of the rounds.
    """
    reach = min(window, horizon)
    arms = np.zeros(n_actions)
    if cdf.geometric_ratio is None:
        ages, jumps, _ = cdf.steps(reach)
        ring, ratio, fresh, last = (int(ages[-1]) + 1 if len(ages) else 1), 0.0, 0.0, 0.0
    else:
        ages, jumps, ring, ratio = np.zeros(0, np.int64), np.zeros(0), reach + 2, cdf.geometric_ratio
        fresh, last = 1.0 - cdf(0), 1.0 - cdf(reach)
    return Exposure(
        effective=arms,
        pulls=arms.copy(),
        rounds=np.zeros(1, np.int64),
        history=np.zeros(ring, np.int64),
        ages=ages,
        jumps=jumps,
        ratio=np.array([ratio]),
        missing=arms.copy(),
        frozen=arms.copy(),
        fresh=np.array([fresh]),
        last=np.array([last]),
    )


@inlined
def add_pull(exposure: Exposure, action: int) -> None:
    """Count a pull and move every weight to its age at the next decision. O(steps), or O(K) when geometric."""
    n = exposure.rounds[0]
    size = exposure.history.shape[0]
    exposure.history[n % size] = action
    exposure.pulls[action] += 1.0
    exposure.rounds[0] = n + 1
    ratio = exposure.ratio[0]
    if ratio > 0.0:
        for k in range(exposure.missing.shape[0]):
            exposure.missing[k] *= ratio
        exposure.missing[action] += exposure.fresh[0]
        # A ring of window + 2 rounds: the oldest pull in it has just grown one round older than the window.
        if n + 1 >= size:
            old = exposure.history[(n + 1) % size]
            exposure.missing[old] -= exposure.last[0] * ratio
            exposure.frozen[old] += 1.0
        for k in range(exposure.missing.shape[0]):
            missing = exposure.missing[k] + exposure.frozen[k] * exposure.last[0]
            exposure.effective[k] = max(exposure.pulls[k] - missing, 0.0)
        return
    for j in range(exposure.ages.shape[0]):
        pull = n - exposure.ages[j]
        if pull < 0:
            break
        exposure.effective[exposure.history[pull % size]] += exposure.jumps[j]
