"""Learning policies played live on fresh traffic, in plain NumPy: nothing of the package is used.

One round is one display of the whole traffic. A conversion is told at the end of the round in which it comes: as many
rounds later as displays arrive until its time; never if it takes longer than the window.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.untidy.settings import Untidy
from tests.untidy.traffic import Floats, draw_delays, draw_traffic
from tests.untidy.truth import expected_rewards

Ints = npt.NDArray[np.int64]
Choice = Callable[[Floats, Floats, int, np.random.Generator], int]


def ucb1(pulls: Floats, sums: Floats, t: int, rng: np.random.Generator) -> int:
    """Auer et al. 2002: the largest mean + sqrt(2 log t / N); an arm not yet pulled first, ties at random."""
    with np.errstate(divide="ignore", invalid="ignore"):
        index = np.minimum(sums / pulls, 1.0) + np.sqrt(2.0 * np.log(t) / pulls)
    index[pulls == 0] = np.inf
    return int(rng.choice(np.flatnonzero(index == index.max())))


def thompson(pulls: Floats, sums: Floats, t: int, rng: np.random.Generator) -> int:
    """Beta(1, 1) priors, unseen conversions counted as failures."""
    return int(np.argmax(rng.beta(1.0 + sums, 1.0 + np.maximum(pulls - sums, 0.0))))


POLICIES: dict[str, Choice] = {"ucb1": ucb1, "thompson": thompson}


def play_live(
    untidy: Untidy, policy: str, *, rounds: int, window_s: float | None, seed: int, scale: float = 1.0
) -> tuple[float, npt.NDArray[np.int64]]:
    """Return what the rounds are expected to earn, on average, and the actions shown, shape (rounds,).

    Parameters
    ----------
    untidy
        What the traffic is drawn from; the rounds are its first displays, so that a rhythm begins at a random hour.
    policy
        ucb1 or thompson.
    rounds
        T.
    window_s
        Cut-off in seconds; None for none.
    seed
        Of the traffic and of the policy.
    scale
        Rewards are divided by it before the policy is told.
    """
    traffic = draw_traffic(untidy, seed)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(79,)))
    time, k = traffic.time.astype(np.int64), untidy.n_actions
    luck, wait, worth = rng.random(rounds), rng.random(rounds), rng.permutation(len(time))[:rounds]
    noise = traffic.value[worth] / traffic.values[traffic.action[worth]]
    delays = np.stack([draw_delays(untidy, np.full(rounds, a), wait) for a in range(k)], axis=1).astype(np.int64)
    due = np.searchsorted(time, time[:rounds, None] + delays, side="right") - 1
    longest = np.inf if window_s is None else window_s
    waiting: list[list[tuple[int, float]]] = [[] for _ in range(rounds)]
    pulls, sums, shown = np.zeros(k), np.zeros(k), np.zeros(rounds, np.int64)
    choose = POLICIES[policy]
    for t in range(rounds):
        action = choose(pulls, sums, t + 1, rng)
        shown[t] = action
        pulls[action] += 1
        if luck[t] < traffic.rates[t, action] and delays[t, action] <= longest and due[t, action] < rounds:
            waiting[due[t, action]].append((action, traffic.values[action] * noise[t] / scale))
        for of, value in waiting[t]:
            sums[of] += value
    expected = expected_rewards(traffic, window_s=window_s)
    return float(expected[np.arange(rounds), shown].mean()), shown
