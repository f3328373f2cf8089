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

from evaluator.engine.eligible_choice import begin_with_key, choice_at, listed
from evaluator.engine.kernels.argmax import check_score
from evaluator.engine.kernels.compiling import compiled, compiled_uncached, inlinable
from evaluator.engine.kernels.intrinsics import borrowed
from evaluator.options.shared import FinalPolicyName
from evaluator.policies.dispatch import begin, estimate, has_estimates, holds_choice
from evaluator.policies.running import blamed, has_random_ties, is_plain_python, loop_for
from evaluator.replays.rounds.stream import EligibleActions, read_only, read_only_sets
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


def _ask(
    state: Any,
    rng: np.random.Generator,
    vectors: npt.NDArray[np.floating],
    eligible: EligibleActions | None,
    random_ties: bool,
    together: bool,
    counts: Floats,
    draws: int,
) -> None:
    """Add to `counts`, shape (n, K), the choices of some draws at each display, anew at each or the same at all.

    `vectors` and `eligible` are those of a batch.
    """
    state, rng, vectors, counts = borrowed((state, rng, vectors, counts))
    own = borrowed(eligible)
    n = counts.shape[0]
    for first in range(1 if together else n):
        for _ in range(draws):
            key = begin_with_key(state, rng, own, random_ties)
            for i in range(first, n if together else first + 1):
                counts[i, choice_at(state, vectors, own, i, key, counts.shape[1])] += 1.0


def _show_greedily(
    state: Any, vectors: npt.NDArray[np.floating], eligible: EligibleActions | None, shares: Floats
) -> None:
    """Write the probabilities of the greedy policy at each display into `shares`, shape (n, K)."""
    state, vectors, shares = borrowed((state, vectors, shares))
    own = borrowed(eligible)
    for i in range(shares.shape[0]):
        estimate(state, vectors[i] if vectors.shape[0] > 1 else vectors[0], shares[i])
        asked = _asked(own, i, shares.shape[1])
        largest, equals = -np.inf, 0
        for a in asked:
            check_score(shares[i, a], a)
            if shares[i, a] > largest:
                largest, equals = shares[i, a], 0
            equals += shares[i, a] == largest
        begin = 0
        for a in asked:
            shares[i, begin:a] = 0.0
            shares[i, a] = 1.0 / equals if shares[i, a] == largest else 0.0
            begin = a + 1
        shares[i, begin:] = 0.0


@inlinable
def _asked(eligible: EligibleActions | None, i: int, n_actions: int) -> Any:
    """Return the actions that can be shown at display i, increasing."""
    if eligible is None:
        return np.arange(n_actions, dtype=np.int32)
    return listed(eligible, i)


ask, ask_uncached, ask_interpreted = compiled(_ask), compiled_uncached(_ask), _ask
show_greedily, show_greedily_uncached = compiled(_show_greedily), compiled_uncached(_show_greedily)
show_greedily_interpreted = _show_greedily


class FrozenPolicy:
    """A policy that no longer learns.

    Its state is copied and never changed. The more displays it will be asked about, the fewer draws each. It is
    greedy or exploring as `wanted`; a policy without estimates explores whatever is wanted. `seed` and `repeat` fix its
    random stream, which is no other's; `has_sets` says whether each display has its own eligible actions.

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

        `vectors` are as in `evaluator.replays.rounds.stream.Batch`: shape (n, K, d), (n, 1, d), or (1, ...) for all.

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

        `vectors` are those of the displays for all K actions, shape (n, K, d), (n, 1, d), or (1, ...) for all; `rows`,
        shape (1, rows, d), and `eligible` are as a batch has them. Errors are those of `probabilities`.
        """
        n = len(eligible.of)
        eligible = read_only_sets(eligible)
        found = self._read(vectors if self.kind == "greedy" else rows, n, eligible)
        self._asked += n
        return found

    def _read(self, vectors: npt.NDArray[np.floating], n: int, eligible: EligibleActions | None = None) -> Floats:
        out, vectors = np.zeros((n, self._n_actions)), read_only(vectors)
        with blamed(self._policy, self._n_actions):
            if self.kind == "greedy":
                show = loop_for(self._policy, show_greedily, show_greedily_uncached, show_greedily_interpreted)
                show(self._state, vectors, eligible, out)
                return out
            draws = max(self.draws, 1)
            asking = loop_for(self._policy, ask, ask_uncached, ask_interpreted)
            together = self.kind == "posterior sampling" and self._policy.contextual
            if together and eligible is None:
                for block, part in self._blocks(n):
                    own = vectors if len(vectors) == 1 else vectors[part]
                    asking(self._state, self._stream_of(block), own, None, False, True, out[part], draws)
            else:
                asking(self._state, self._rng, vectors, eligible, self._random_ties, together, out, draws)
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


def shares_among(shares: Floats, eligible: EligibleActions, *, strict: bool) -> tuple[Floats, int]:
    """Return what probabilities become where some actions are not eligible, shape (n, K).

    `shares` are the probabilities before that, shape (n, K) or (1, K), of n displays. A display whose eligible actions
    have no probability is an error if `strict`; else they have the same. Each row is over the eligible actions in
    proportion; beside them comes the number of the first display that is an error, -1 without one.
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
