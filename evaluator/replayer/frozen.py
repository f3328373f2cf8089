"""What a policy would do if it stopped learning: its choices at displays it never hears of again.

The policy is asked with its next round begun, at every display anew: `prepare` draws, `choose` answers, nothing is
told back. Each draw's choice is one draw from pi(.|x), the probabilities of the frozen policy, and displays share no
draws; the share of the draws that fall on an action is an unbiased estimate of its probability, however few there are.
What a policy has decided to stick to is part of its state: the arm that QPM-D's base has asked for stays asked for.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.errors import PolicyError
from evaluator.kernels.compiling import compiled, compiled_uncached
from evaluator.kernels.memory import borrowed
from evaluator.policies.base import Policy
from evaluator.policies.dispatch import choose, is_pure, prepare
from evaluator.policies.running import blamed, loop_for

_STREAM = 7
# More draws a display leave nothing to gain; so many questions take seconds (of Python policies too).
_MOST_DRAWS = 100
_QUESTIONS, _QUESTIONS_IN_PYTHON = 2_000_000, 200_000


def _ask(
    state: Any, rng: np.random.Generator, vectors: npt.NDArray[np.floating], choices: npt.NDArray[np.int32]
) -> None:
    state, rng, vectors, choices = borrowed((state, rng, vectors, choices))
    for i in range(choices.shape[0]):
        for draw in range(choices.shape[1]):
            prepare(state, rng)
            choices[i, draw] = choose(state, vectors[i] if vectors.shape[0] > 1 else vectors[0])


ask = compiled(_ask)
ask_uncached = compiled_uncached(_ask)
ask_interpreted = _ask


class Frozen:
    """A policy that no longer learns.

    Parameters
    ----------
    policy
        Its description.
    state
        What it knows; copied, never changed.
    n_actions
        K.
    displays
        How many displays it will be asked about: the more, the fewer draws each.
    seed, repeat
        Fix its stream, which is no other's.

    Attributes
    ----------
    draws
        Draws a display: 1 where nothing is random.
    """

    def __init__(
        self, policy: Any, state: Any, *, n_actions: int, displays: int, seed: int = 0, repeat: int = 0
    ) -> None:
        self._policy = policy
        self._state = copy.deepcopy(state)
        self._n_actions = n_actions
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, repeat)))
        self._step = loop_for(policy, ask, ask_uncached, ask_interpreted)
        questions = _QUESTIONS if isinstance(policy, Policy) else _QUESTIONS_IN_PYTHON
        random = not is_pure(state) or self._draws_to_prepare()
        self.draws = min(max(questions // max(displays, 1), 1), _MOST_DRAWS) if random else 1

    def choices(self, vectors: npt.NDArray[np.floating], n: int) -> npt.NDArray[np.int32]:
        """Return what the policy would show at the next `n` displays, shape (n, draws).

        The answers do not depend on how the displays are cut into batches.

        Parameters
        ----------
        vectors
            As in `evaluator.rounds.arrays.Batch`: shape (n, K, d), (n, 1, d), or (1, ...) for all.
        n
            Number of displays.

        Raises
        ------
        PolicyError
            The policy raised, or chose an impossible action.
        """
        choices = np.empty((n, self.draws), np.int32)
        with blamed(self._policy, self._n_actions):
            self._step(self._state, self._rng, vectors, choices)
        if n and (choices.min() < 0 or choices.max() >= self._n_actions):
            raise PolicyError(
                f"{self._policy.name} chose an impossible action.", hint=f"actions go from 0 to {self._n_actions - 1}."
            )
        return choices

    def _draws_to_prepare(self) -> bool:
        """Return whether beginning a round consumes randomness: with the same state, it always does or never."""
        state, rng = copy.deepcopy(self._state), np.random.default_rng(0)
        before = rng.bit_generator.state
        with blamed(self._policy, self._n_actions):
            prepare(state, rng)
        return bool(rng.bit_generator.state != before)
