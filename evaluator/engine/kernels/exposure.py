"""Effective number of pulls N~: each pull counts with the probability that its conversion would have shown by now.

N~_k at a decision is the sum over the pulls of arm k of tau_min(m, age), tau the delay CDF, m the window
(Vernade et al. 2017, Section 4). Recomputing it costs the window; here a round costs O(K) for geometric delays, else at
most O(steps of the CDF), because a pull's weight changes only when its age crosses a step. Successive pulls of one arm
are a run, and the steps that a run reaches over are added at once: a policy that stays with its arms costs O(runs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.intrinsics import not_negative

if TYPE_CHECKING:
    from evaluator.delays.cdf import DelayCDF


class Exposure(NamedTuple):
    """Effective number of pulls N~ of each arm, shape (K,), and what keeps it up to date.

    `pulls` N of each arm, and `rounds` of all, shape (1,). `history` are the last pulls, a ring of 2^k long enough for
    the oldest age that still changes a weight, shape (2^k, 2): arm, and number of pulls of that arm right before.
    `reach` is that age, min(window, horizon), shape (1,).

    Of a CDF that is a list of steps: the `ages` at which it rises, in rounds, up to the window, shape (J,), the
    `weights` of a pull before each of these and after the last, shape (J + 1,), and the number of steps at each age or
    below (`steps_within`), shape (ages[-1] + 1,). For each step, the first one beyond the run that crossed it
    last (`following`), shape (J,): a guess, and nothing but time depends on it.

    Of geometric delays: the `ratio` P(D > a + 1) / P(D > a), shape (1,), 0 for a list of steps; the mass still to come
    of each arm's pulls within the window (`missing`), and the number of its older ones (`frozen`), shape (K,); the
    missing mass of a pull at age 0, and at the age `window` (`fresh`, `last`), shape (1,).
    """

    effective: npt.NDArray[np.float64]
    pulls: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    history: npt.NDArray[np.int32]
    ages: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    steps_within: npt.NDArray[np.int32]
    following: npt.NDArray[np.int32]
    reach: npt.NDArray[np.int64]
    ratio: npt.NDArray[np.float64]
    missing: npt.NDArray[np.float64]
    frozen: npt.NDArray[np.float64]
    fresh: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]

    @property
    def fixed_fields(self) -> tuple[str, ...]:
        """Names of what the setting fixes and loops go by: a state from a file has to agree."""
        return "ages", "steps_within"

    @property
    def later_fields(self) -> tuple[str, ...]:
        """Arrays that files of earlier versions lack: guesses are as good as those at the start."""
        return ("following",)


def start_exposure(n_actions: int, window: int, horizon: int, cdf: DelayCDF) -> Exposure:
    """Return N~ before the first pull.

    `window` and `horizon` are in rounds: ages beyond the window no longer change a weight, and the horizon bounds the
    ring. The CDF is that on the clock of the rounds.
    """
    reach = min(window, horizon)
    arms = np.zeros(n_actions)
    if cdf.geometric_ratio is None:
        ages, jumps, _ = cdf.steps(reach)
        held, ratio, fresh, last = (int(ages[-1]) + 1 if len(ages) else 1), 0.0, 0.0, 0.0
    else:
        ages, jumps, held, ratio = np.zeros(0, np.int64), np.zeros(0), reach + 2, cdf.geometric_ratio
        fresh, last = 1.0 - cdf(0), 1.0 - cdf(reach)
    # Of each age up to that of the last step, how many steps there are up to it.
    gaps = np.diff(ages, prepend=0, append=ages[-1] + 1) if len(ages) else np.zeros(1, np.int64)
    steps_within = np.repeat(np.arange(len(ages) + 1, dtype=np.int32), gaps)
    return Exposure(
        effective=arms,
        pulls=arms.copy(),
        rounds=np.zeros(1, np.int64),
        history=np.zeros((1 << (held - 1).bit_length(), 2), np.int32),
        ages=ages,
        weights=np.concatenate(([0.0], np.cumsum(jumps))),
        steps_within=steps_within,
        following=np.zeros(len(ages), np.int32),
        reach=np.array([reach]),
        ratio=np.array([ratio]),
        missing=arms.copy(),
        frozen=arms.copy(),
        fresh=np.array([fresh]),
        last=np.array([last]),
    )


@inlinable
def add_pull(exposure: Exposure, action: int) -> None:
    """Count a pull and move every weight to its age at the next decision. O(K) when geometric, else O(runs)."""
    n = exposure.rounds[0]
    history = exposure.history
    mask = history.shape[0] - 1
    run = 0
    if n > 0 and history[(n - 1) & mask, 0] == action:
        run = history[(n - 1) & mask, 1] + 1
    history[n & mask, 0] = action
    history[n & mask, 1] = run
    exposure.pulls[action] += 1.0
    exposure.rounds[0] = n + 1
    if exposure.ratio[0] > 0.0:
        _age_geometric(exposure, n, action)
    else:
        _age_by_steps(exposure, n)


@inlinable
def _age_by_steps(exposure: Exposure, n: int) -> None:
    ages, history = exposure.ages, exposure.history
    step = 0
    while step < ages.shape[0] and ages[step] <= n:
        at = (n - ages[step]) & (history.shape[0] - 1)
        # Every step up to the age of the run's first pull is being crossed by some pull of the run.
        following = _following(exposure, step, ages[step] + history[at, 1])
        exposure.effective[history[at, 0]] += exposure.weights[following] - exposure.weights[step]
        step = following


@inlinable
def _following(exposure: Exposure, step: int, oldest: int) -> Any:
    """Return the first step beyond an age that is that of a step or more.

    It rarely differs from round to round. Guessed and verified, the next step is known before memory has said how long
    the run is.
    """
    ages, guess = exposure.ages, not_negative(exposure.following[step])
    steps = ages.shape[0]
    if step < guess <= steps and ages[guess - 1] <= oldest and (guess == steps or oldest < ages[guess]):
        return guess
    found = not_negative(exposure.steps_within[min(oldest, exposure.steps_within.shape[0] - 1)])
    exposure.following[step] = found
    return found


@inlinable
def _age_geometric(exposure: Exposure, n: int, action: int) -> None:
    ratio, last = exposure.ratio[0], exposure.last[0]
    for k in range(exposure.missing.shape[0]):
        exposure.missing[k] *= ratio
    exposure.missing[action] += exposure.fresh[0]
    # The pull that has just grown one round older than the window.
    old = n - 1 - exposure.reach[0]
    if old >= 0:
        arm = exposure.history[old & (exposure.history.shape[0] - 1), 0]
        exposure.missing[arm] -= last * ratio
        exposure.frozen[arm] += 1.0
    for k in range(exposure.missing.shape[0]):
        missing = exposure.missing[k] + exposure.frozen[k] * last
        exposure.effective[k] = max(exposure.pulls[k] - missing, 0.0)
