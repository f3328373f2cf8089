"""Live runs on rounds drawn from a pool of contexts, with values, told whatever each run is told: what an audit needs.

`evaluator.simulator.loop` notes the regret of the papers' problems, run after run the same; here a run returns weighted
sums of what its rounds are expected to earn, which is what a replay's value is compared with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import compiled, compiled_uncached
from evaluator.kernels.ridge import row
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import choose, collected, converted, displayed, prepare
from evaluator.policies.running import blamed, loop_for, reward_unit

Floats = npt.NDArray[np.float64]


class Pool(NamedTuple):
    """What rounds are drawn from.

    Parameters
    ----------
    vectors
        What the policy reads of each entry, shape (P, K, d) or (P, 1, d); of one entry, (1, K, d), where all rounds
        read the same; (1, 1, 0) for a policy that reads none.
    rates
        Probability with which each action converts in each entry, shape (P, K).
    values
        Values that a conversion may have, equally likely, shape (V,).
    tau
        tau_a for a = 0, ..., reach, shape (reach + 1,); reach is the longest delay that is ever revealed.
    """

    vectors: Floats
    rates: Floats
    values: Floats
    tau: Floats


def _play(
    state: Any, own: np.random.Generator, luck: np.random.Generator, pool: Pool, weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Play one run of weights.shape[1] rounds; return sum over s of weights[c, s] rate_s for each c."""
    n, k_all = pool.rates.shape
    horizon = weights.shape[1]
    # A ring of the last rounds, as in `evaluator.simulator.loop`: each holds at most one conversion.
    size = pool.tau.shape[0]
    first = np.full(size, -1, np.int64)
    last = np.full(size, -1, np.int64)
    following = np.full(size, -1, np.int64)
    actions = np.zeros(size, np.int64)
    value = np.zeros(size)
    shown = np.zeros((size, pool.vectors.shape[2]))
    sums = np.zeros(weights.shape[0])
    for t in range(1, horizon + 1):
        entry = int(luck.random() * n)
        converts = luck.random()
        wait = luck.random()
        worth = luck.random()
        vectors = pool.vectors[entry] if pool.vectors.shape[0] > 1 else pool.vectors[0]

        prepare(state, own)
        action = int(choose(state, vectors))
        if action < 0 or action >= k_all:
            raise ValueError("the policy chose an impossible action")
        displayed(state, vectors, action)
        rate = pool.rates[entry, action]
        for c in range(weights.shape[0]):
            sums[c] += weights[c, t - 1] * rate

        at = t % size
        actions[at] = action
        r = row(vectors, action)
        for i in range(vectors.shape[1]):
            shown[at, i] = vectors[r, i]
        if converts < rate:
            value[at] = pool.values[int(worth * pool.values.shape[0])]
            delay = int(np.searchsorted(pool.tau, wait, side="right"))
            if delay < size and t + delay <= horizon:
                due = (t + delay) % size
                following[at] = -1
                if first[due] < 0:
                    first[due] = at
                else:
                    following[last[due]] = at
                last[due] = at
        total = 0.0
        while first[at] >= 0:
            come = first[at]
            first[at] = following[come]
            total += value[come]
            converted(state, shown[come], actions[come], (t - come) % size, value[come])
        collected(state, total)
    return sums


_compiled = compiled(_play)
_compiled_uncached = compiled_uncached(_play)


def play_in_pool(
    policy: Any, setting: Setting, pool: Pool, weights: Floats, *, own: np.random.Generator, luck: np.random.Generator
) -> Floats:
    """Let a policy play live.

    Parameters
    ----------
    policy, setting
        The policy and what it is told.
    pool
        What its rounds are drawn from. `luck` gives four numbers a round whatever the policy: its entry, whether and
        when it converts, and the conversion's value.
    weights
        Shape (C, T): C weightings of the T rounds.
    own, luck
        The policy's stream and the world's.

    Returns
    -------
    numpy.ndarray
        Shape (C,): sum over the rounds s of weights[c, s] times the conversion rate of what was shown.

    Raises
    ------
    PolicyError
        A user's policy raised.
    """
    step = loop_for(policy, _compiled, _compiled_uncached, _play)
    pool = pool._replace(values=pool.values / reward_unit(policy, setting))
    with blamed(policy, setting.n_actions):
        found: Floats = step(policy.start(setting), own, luck, pool, weights)
    return found
