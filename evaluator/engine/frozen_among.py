"""What a policy that no longer learns does where each display has its own eligible actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.eligible_loop import best_among, listed
from evaluator.engine.kernels.argmax import LOWEST_FIRST, check_score, tie_key
from evaluator.engine.kernels.compiling import compiled, compiled_uncached
from evaluator.engine.kernels.intrinsics import borrowed
from evaluator.policies.dispatch import begin_among, estimate
from evaluator.replays.rounds.batch import EligibleActions

Floats = npt.NDArray[np.float64]


def _ask(
    state: Any,
    rng: np.random.Generator,
    vectors: npt.NDArray[np.floating],
    eligible: EligibleActions,
    random_ties: bool,
    together: bool,
    counts: Floats,
    draws: int,
) -> None:
    """Add to `counts`, shape (n, K), the choices of some draws at each display, anew at each or the same at all.

    `vectors`, shape (rows, d), are those that `eligible` names.
    """
    state, rng, vectors, eligible, counts = borrowed((state, rng, vectors, eligible, counts))
    n = counts.shape[0]
    for first in range(1 if together else n):
        for _ in range(draws):
            begin_among(state, rng)
            key = tie_key(rng) if random_ties else LOWEST_FIRST
            for i in range(first, n if together else first + 1):
                counts[i, best_among(state, vectors, eligible, i, key)] += 1.0


def _follow(state: Any, vectors: npt.NDArray[np.floating], eligible: EligibleActions, shares: Floats) -> None:
    """Write the probabilities of the greedy policy at each display into `shares`, shape (n, K)."""
    state, vectors, eligible, shares = borrowed((state, vectors, eligible, shares))
    for i in range(shares.shape[0]):
        estimate(state, vectors[i] if vectors.shape[0] > 1 else vectors[0], shares[i])
        own = listed(eligible, i)
        largest, equals = -np.inf, 0
        for a in own:
            check_score(shares[i, a], a)
            if shares[i, a] > largest:
                largest, equals = shares[i, a], 0
            equals += shares[i, a] == largest
        begin = 0
        for a in own:
            shares[i, begin:a] = 0.0
            shares[i, a] = 1.0 / equals if shares[i, a] == largest else 0.0
            begin = a + 1
        shares[i, begin:] = 0.0


ask, ask_uncached, ask_interpreted = compiled(_ask), compiled_uncached(_ask), _ask
follow, follow_uncached, follow_interpreted = compiled(_follow), compiled_uncached(_follow), _follow


def shares_among(shares: Floats, eligible: EligibleActions, *, strict: bool) -> tuple[Floats, int]:
    """Return what probabilities become where some actions are not eligible, shape (n, K).

    Parameters
    ----------
    shares
        Probabilities before that, shape (n, K) or (1, K).
    eligible
        Eligible actions of n displays.
    strict
        Whether a display whose eligible actions have no probability is an error; else they have the same.

    Returns
    -------
    tuple
        Probabilities, each row over the eligible actions in proportion, and the number of the first display that is an
        error, -1 without one.
    """
    n, k = len(eligible.of), shares.shape[1]
    bits = (eligible.word[eligible.of] & eligible.playable).view(np.uint8)
    own = np.unpackbits(bits, axis=1, count=k, bitorder="little").view(np.bool_)
    found = np.where(own, np.broadcast_to(shares, (n, k)), 0.0)
    total = found.sum(axis=1, keepdims=True)
    none = total[:, 0] <= 0.0
    if none.any():
        found[none] = own[none]
        total = found.sum(axis=1, keepdims=True)
    return found / total, int(none.argmax()) if strict and none.any() else -1
