"""What a policy would do if it stopped learning: its action probabilities at displays it never hears of again.

Two policies can go live with what was learned, and they earn differently:

greedy
    the action with the largest estimated reward (`estimate` of the policy: no bonus, no draw); actions of equal
    estimates with equal chance, and what has no estimate only where nothing has. Its probabilities are exact.
exploring
    the action that the policy would choose in its next round, bonus and draws included. An optimistic policy asked
    again and again without an answer shows what it knows least of, for ever. Of one that samples from a posterior these
    are the posterior's choice probabilities.

To explore, the policy is asked with its next round begun: `begin` draws, `choose` answers, nothing is told back. Each
draw's choice is one draw from pi(.|x), the probabilities of the frozen policy; the share of the draws that fall on an
action is an unbiased estimate of its probability, however few there are. Where nothing depends on the display, one
large set of draws serves all. What a policy has decided to stick to is part of its state: the arm that QPM-D's base
has asked for stays asked for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evaluator.engine import frozen_among as among
from evaluator.engine.kernels.argmax import check_score
from evaluator.engine.kernels.compiling import compiled, compiled_uncached
from evaluator.engine.kernels.intrinsics import borrowed
from evaluator.options.shared import FinalPolicyName
from evaluator.policies.dispatch import begin, choose, estimate, has_estimates, holds_choice
from evaluator.policies.running import blamed, has_random_ties, is_plain_python, loop_for
from evaluator.replays.rounds.batch import EligibleActions, read_only, read_only_sets
from evaluator.streams import Stream, random_stream, seed_stream

FrozenKind = Literal["greedy", "exploring", "posterior sampling"]
Floats = npt.NDArray[np.float64]

# Draws that serve all displays, at the least and at the most; as many as there are displays in between, so that what
# they leave open is next to nothing beside what the displays do. Probabilities are off by .0012 at most.
_DRAWS, _MOST_SHARED, _DRAWS_IN_PYTHON = 200_000, 5_000_000, 100_000
# Draws a display, where it matters which display it is: at the most (more leave nothing to gain), for a policy that
# samples from a posterior at the least, and so many questions as take seconds (of Python policies too).
_MOST_DRAWS, _LEAST_OF_POSTERIOR = 100, 20
_QUESTIONS, _QUESTIONS_OF_POSTERIOR, _QUESTIONS_IN_PYTHON = 2_000_000, 50_000_000, 200_000
# A posterior's draws are the same for so many displays that follow one another: drawing costs far more than asking.
_BLOCK = 64


def _ask(state: Any, rng: np.random.Generator, vectors: npt.NDArray[np.floating], counts: Floats, draws: int) -> None:
    """Add to `counts`, shape (n, K), the choices of some draws at each display, anew at each."""
    state, rng, vectors, counts = borrowed((state, rng, vectors, counts))
    for i in range(counts.shape[0]):
        for _ in range(draws):
            begin(state, rng)
            action = choose(state, vectors[i] if vectors.shape[0] > 1 else vectors[0])
            if action < 0 or action >= counts.shape[1]:
                raise ValueError("the policy chose an impossible action")
            counts[i, action] += 1.0


def _ask_together(
    state: Any, rng: np.random.Generator, vectors: npt.NDArray[np.floating], counts: Floats, draws: int
) -> None:
    """Add to `counts`, shape (n, K), the choices of some draws at each display, the same draws at all."""
    state, rng, vectors, counts = borrowed((state, rng, vectors, counts))
    for _ in range(draws):
        begin(state, rng)
        for i in range(counts.shape[0]):
            action = choose(state, vectors[i] if vectors.shape[0] > 1 else vectors[0])
            if action < 0 or action >= counts.shape[1]:
                raise ValueError("the policy chose an impossible action")
            counts[i, action] += 1.0


def _follow(state: Any, vectors: npt.NDArray[np.floating], shares: Floats) -> None:
    """Write the probabilities of the greedy policy at each display into `shares`, shape (n, K)."""
    state, vectors, shares = borrowed((state, vectors, shares))
    k = shares.shape[1]
    for i in range(shares.shape[0]):
        estimate(state, vectors[i] if vectors.shape[0] > 1 else vectors[0], shares[i])
        largest = shares[i, 0]
        for a in range(k):
            check_score(shares[i, a], a)
            largest = max(largest, shares[i, a])
        equals = 0
        for a in range(k):
            equals += shares[i, a] == largest
        for a in range(k):
            shares[i, a] = 1.0 / equals if shares[i, a] == largest else 0.0


ask, ask_uncached, ask_interpreted = compiled(_ask), compiled_uncached(_ask), _ask
ask_together, ask_together_uncached = compiled(_ask_together), compiled_uncached(_ask_together)
follow, follow_uncached, follow_interpreted = compiled(_follow), compiled_uncached(_follow), _follow


class FrozenPolicy:
    """A policy that no longer learns.

    Parameters
    ----------
    policy
        Description of the policy.
    state
        State of the policy, which is copied and never changed.
    n_actions
        Number of actions K.
    displays
        Number of displays that it will be asked about: the more, the fewer draws each.
    wanted
        Kind of choice that is wanted, ``greedy`` or ``exploring``; a policy without estimates explores whatever is
        wanted.
    seed, repeat
        Numbers that fix its random stream, which is no other's.
    has_sets
        Whether each display has its own eligible actions.

    Attributes
    ----------
    kind
        Kind of policy that this is: ``greedy``, ``exploring`` or, of one that explores by draws from a posterior,
        ``posterior sampling``.
    draws
        Number of draws behind the probabilities of a display; 0 where they are exact.
    """

    def __init__(
        self,
        policy: Any,
        state: Any,
        *,
        n_actions: int,
        displays: int,
        wanted: FinalPolicyName = "greedy",
        seed: int = 0,
        repeat: int = 0,
        has_sets: bool = False,
    ) -> None:
        self._policy = policy
        self._state = copy.deepcopy(state)
        self._n_actions = n_actions
        self._seed, self._repeat = seed, repeat
        self._rng = random_stream(Stream.FROZEN_POLICY, seed, repeat)
        greedy = wanted == "greedy" and has_estimates(state)
        self.kind: FrozenKind = "greedy" if greedy else "posterior sampling" if policy.posterior else "exploring"
        self._asked = 0
        self._of_all: Floats | None = None
        self._has_sets = has_sets
        self._random_ties = has_random_ties(policy)
        drawn = not greedy and (has_sets or not holds_choice(state) or self._draws_to_begin())
        self.draws = self._draws(displays) if drawn else 0
        if greedy:
            self._begin(self._state)

    def probabilities(self, vectors: npt.NDArray[np.floating], n: int) -> Floats:
        """Return the probabilities of the actions at the next `n` displays, shape (n, K).

        They do not depend on how the displays are cut into batches.

        Parameters
        ----------
        vectors
            Vectors of the displays, as in `evaluator.replays.rounds.batch.Batch`: shape (n, K, d), (n, 1, d), or (1,
            ...) for all.
        n
            Number of displays.

        Raises
        ------
        PolicyError
            The policy raised, or chose an impossible action.
        """
        if not self._policy.contextual or (len(vectors) == 1 and n > 1 and not self.draws):
            if self._of_all is None:
                self._of_all = self._read(vectors, 1)
            return np.broadcast_to(self._of_all, (n, self._n_actions))
        found = self._read(vectors, n)
        self._asked += n
        return found

    def probabilities_among(
        self, vectors: npt.NDArray[np.floating], rows: npt.NDArray[np.floating], eligible: EligibleActions
    ) -> Floats:
        """Return the probabilities of the actions at the next displays, shape (n, K), 0 where one is not eligible.

        Parameters
        ----------
        vectors
            Vectors of the displays for all K actions: shape (n, K, d), (n, 1, d), or (1, ...) for all.
        rows, eligible
            Vectors, shape (1, rows, d), and eligible actions of the displays as a batch has them
            (`evaluator.replays.rounds.batch.Batch`).

        Raises
        ------
        PolicyError
            As of `probabilities`.
        """
        n = len(eligible.of)
        out = np.zeros((n, self._n_actions))
        eligible, rows = read_only_sets(eligible), read_only(rows[0])
        with blamed(self._policy, self._n_actions):
            if self.kind == "greedy":
                follow = loop_for(self._policy, among.follow, among.follow_uncached, among.follow_interpreted)
                follow(self._state, read_only(vectors), eligible, out)
                return out
            together = self.kind == "posterior sampling" and self._policy.contextual
            ask = loop_for(self._policy, among.ask, among.ask_uncached, among.ask_interpreted)
            draws = max(self.draws, 1)
            ask(self._state, self._rng, rows, eligible, self._random_ties, together, out, draws)
        self._asked += n
        return out / draws

    def _read(self, vectors: npt.NDArray[np.floating], n: int) -> Floats:
        out, vectors = np.zeros((n, self._n_actions)), read_only(vectors)
        with blamed(self._policy, self._n_actions):
            if self.kind == "greedy":
                loop_for(self._policy, follow, follow_uncached, follow_interpreted)(self._state, vectors, out)
                return out
            draws = max(self.draws, 1)
            if self.kind == "posterior sampling" and self._policy.contextual:
                together = loop_for(self._policy, ask_together, ask_together_uncached, _ask_together)
                for block, part in self._blocks(n):
                    own = vectors if len(vectors) == 1 else vectors[part]
                    together(self._state, self._stream_of(block), own, out[part], draws)
            else:
                loop_for(self._policy, ask, ask_uncached, ask_interpreted)(self._state, self._rng, vectors, out, draws)
        out /= draws
        return out

    def _blocks(self, n: int) -> Iterator[tuple[int, slice]]:
        """Yield (number of a block, which of the next `n` displays are its own)."""
        low = 0
        while low < n:
            block = (self._asked + low) // _BLOCK
            high = min((block + 1) * _BLOCK - self._asked, n)
            yield block, slice(low, high)
            low = high

    def _stream_of(self, block: int) -> np.random.Generator:
        return random_stream(Stream.FROZEN_BLOCK, self._seed, self._repeat, block)

    def _draws(self, displays: int) -> int:
        python = is_plain_python(self._policy)
        if not self._policy.contextual and not self._has_sets:
            return _DRAWS_IN_PYTHON if python else min(max(displays, _DRAWS), _MOST_SHARED)
        if self.kind == "posterior sampling":
            return min(max(_QUESTIONS_OF_POSTERIOR // max(displays, 1), _LEAST_OF_POSTERIOR), _MOST_DRAWS)
        return min(max((_QUESTIONS_IN_PYTHON if python else _QUESTIONS) // max(displays, 1), 1), _MOST_DRAWS)

    def _begin(self, state: Any) -> bool:
        """Begin the next round; return whether that consumes randomness: with one state, it always does or never."""
        rng = seed_stream(0)
        before = rng.bit_generator.state
        with blamed(self._policy, self._n_actions):
            begin(state, rng)
        return bool(rng.bit_generator.state != before)

    def _draws_to_begin(self) -> bool:
        return self._begin(copy.deepcopy(self._state))
