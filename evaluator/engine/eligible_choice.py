"""Choices where each display has its own eligible actions: as lazy as among all, over the set alone.

A policy ranks the eligible by its scores (`evaluator.policies.dispatch.score_among`) or chooses among them in its own
way (`choose_among`). A round's draws are held until a display is accepted, its choice is not: it is looked at anew in
each display's set. Equal scores go by a random order of the actions that is drawn once a round
(`evaluator.engine.kernels.argmax.goes_first`), or by the lower index where the policy says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import LOWEST_FIRST, check_score, goes_first, tie_key
from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.intrinsics import (
    LAST_BIT,
    bits_below,
    count_bits,
    lowest_bit,
    not_negative,
    one_row,
    prefetch,
)
from evaluator.policies.dispatch import (
    begin,
    begin_among,
    choose_among,
    choose_possible,
    least_score,
    score_among,
    scores,
)
from evaluator.replays.rounds.stream import Batch, EligibleActions

# A key that is not drawn yet.
NO_KEY = -2
# Displays that are looked at together before the policy is asked about each: so many that memory has answered when they
# are read, so few that the nearest cache still holds them.
_AHEAD = 16


class Among(NamedTuple):
    """Displays that show the policy's choice among their eligible actions, and what is held from one to the next.

    Equal scores go by a random order of the round's with `random_ties`, else by the lower index. Of shape (1,): the
    key of that order, -2 before it is drawn; the action that won or beat the logged one last (`rival`), which is asked
    first where it is eligible: that changes how fast, never what is answered; and whether few of many actions are
    eligible in the batch, by its first display (`thin`). Then what was found of some displays ahead, from the first of
    them on, each of shape (16,): the row of the logged action's vector, -1 where no policy can choose it, and which of
    the set's first 64 words are not empty (`full`).
    """

    random_ties: bool
    tie_key: npt.NDArray[np.int64]
    rival: npt.NDArray[np.int64]
    thin: npt.NDArray[np.bool_]
    row: npt.NDArray[np.int64]
    full: npt.NDArray[np.uint64]


def among_eligible(random_ties: bool, key: int = NO_KEY) -> Among:
    """Return what is held before the first round, or in a round whose key was drawn before."""
    row, full = np.zeros(_AHEAD, np.int64), np.zeros(_AHEAD, np.uint64)
    return Among(random_ties, np.array([key]), np.zeros(1, np.int64), np.zeros(1, np.bool_), row, full)


@inlinable
def _look_ahead(batch: Batch, first: int, held: Among) -> None:
    """Find, of this display and those after it, what does not depend on the policy, and ask for what it will read.

    Where an action's vector lies takes all words of the set. Found display by display it was waited for whenever the
    policy's answer was not the one that the processor had guessed, about once a display; here nothing is guessed.
    """
    eligible: Any = batch.eligible
    n = batch.action.shape[0]
    for i in range(not_negative(first), min(not_negative(first) + _AHEAD, n)):
        prefetch(eligible.word, 0, eligible.of[min(i + _AHEAD, n - 1)])
        r, action = _wide(-1), _wide(batch.action[i])
        if action >= 0 and _holds(eligible, i, not_negative(action)):
            before, held.full[i - first] = _before_and_full(_words(eligible, i), not_negative(action))
            r = eligible.row[i] + eligible.by_action * action + eligible.by_place * before
            prefetch(batch.vectors[0], 0, r)
            prefetch(batch.vectors[0], 0, eligible.row[i])
        held.row[i - first] = r


@inlinable
def _before_and_full(word: npt.NDArray[np.uint64], action: int) -> Any:
    """Return how many of a set's actions come before one of them, and `_full_words` from its first word on.

    Both are found in one pass over the words.
    """
    at, before, full = action >> 6, bits_below(word[action >> 6], action & 63), np.uint64(0)
    for j in range(min(64, word.shape[0])):
        full |= np.uint64(word[j] != 0) << np.uint64(j)
        before += count_bits(word[j]) if j < at else 0
    for j in range(64, word.shape[0]):
        before += count_bits(word[j]) if j < at else 0
    return before, full


@inlinable
def is_thin(eligible: Any) -> bool:
    """Return whether few of many actions are eligible at the first display: fewer than one in eight, of more than 64.

    Of larger sets the last winner or the first word decide, and what is found ahead would be found in vain.
    """
    size, words = 0, eligible.word.shape[1]
    if words > 1 and eligible.of.shape[0] > 0:
        for word in _words(eligible, 0):
            size += count_bits(word)
    return words > 1 and size < 8 * words


@inlinable
def _row_of_logged(batch: Batch, i: int) -> Any:
    """Return the row of the logged action's vector at display i; -1 where it was thinned out or cannot be chosen."""
    eligible: Any = batch.eligible
    action = _wide(batch.action[i])
    if action < 0 or not _holds(eligible, i, not_negative(action)):
        return _wide(-1)
    return _wide(_own_row(eligible, i, not_negative(action)))


@inlinable
def _wide(action: Any) -> Any:
    """Return an action as wide as every other: for another width, all is compiled again."""
    return np.int64(action)


@inlinable
def own_vector(
    vectors: npt.NDArray[np.floating], eligible: EligibleActions, i: int, action: int
) -> npt.NDArray[np.floating]:
    """Return the vector of an action at display i, shape (1, d)."""
    return one_row(vectors, _own_row(eligible, i, action))


@inlinable
def _own_row(eligible: EligibleActions, i: int, action: int) -> Any:
    """Return the row of an action's vector at display i."""
    r = eligible.row[i] + eligible.by_action * action
    if eligible.by_place:
        word, at = _words(eligible, i), action >> 6
        r += bits_below(word[at], action & 63)
        # Of all words: where to stop would be a guess for the processor.
        for before in range(word.shape[0]):
            r += count_bits(word[before]) if before < at else 0
    return r


@inlinable
def _words(eligible: EligibleActions, i: int) -> Any:
    """Return the words of display i's set."""
    return eligible.word[np.uint32(eligible.of[i])]


@inlinable
def _holds(eligible: EligibleActions, i: int, action: int) -> bool:
    """Return whether a policy may choose an action at display i."""
    word = _words(eligible, i)[action >> 6] & eligible.playable[action >> 6]
    return bool((word >> np.uint64(action & 63)) & np.uint64(1))


@inlinable
def _full_words(word: npt.NDArray[np.uint64], begin: int) -> Any:
    """Return which of up to 64 words of a set, from this one on, are not empty: bit j is that of word begin + j.

    Of thousands of actions few are eligible: asked word by word, each would be a guess for the processor.
    """
    full = np.uint64(0)
    for at in range(begin, min(begin + 64, word.shape[0])):
        full |= np.uint64(word[at] != 0) << np.uint64(at - begin)
    return full


@inlinable
def _first_word(word: npt.NDArray[np.uint64], begin: int, full: Any) -> Any:
    """Return the place of a set's first word that is not empty, of those that `full` names, and the word: 0 if none."""
    at = not_negative(min(begin + lowest_bit(full | LAST_BIT), word.shape[0] - 1))
    return at, word[at] if full else np.uint64(0)


@inlinable
def _without_lowest(word: npt.NDArray[np.uint64], begin: int, at: Any, left: Any, full: Any) -> Any:
    """Return where a walk through a set is after its next action: place of the word, what is left of it, full words.

    The word is empty at the walk's end alone, so that an action is found without a guess whether its word has another.
    """
    left &= left - np.uint64(1)
    rest = full & (full - np.uint64(1))
    after, following = _first_word(word, begin, rest)
    return (at, left, full) if left else (after, following, rest)


@inlinable
def _is_playable(eligible: EligibleActions, k: Any) -> bool:
    """Return whether a policy may choose an action where it is eligible."""
    return bool((eligible.playable[k >> 6] >> np.uint64(k & 63)) & np.uint64(1))


@inlinable
def best_among(state: Any, vectors: npt.NDArray[np.floating], eligible: EligibleActions, i: int, key: int) -> Any:
    """Return the action that the policy chooses at display i. O(|E|) scores."""
    if not scores(state):
        own = listed(eligible, i)
        chosen = _wide(choose_among(state, _of_set(vectors, eligible, i, own), own))
        if chosen < 0 or chosen >= 64 * eligible.word.shape[1] or not _holds(eligible, i, chosen):
            raise ValueError("the policy chose an action that is not eligible")
        return chosen
    winner, top = _wide(-1), 0.0
    word, r = _words(eligible, i), eligible.row[i]
    for low in range(0, word.shape[0], 64):
        full = _full_words(word, low)
        at, left = _first_word(word, low, full)
        while left:
            k = not_negative(64 * at + lowest_bit(left))
            at, left, full = _without_lowest(word, low, at, left, full)
            if _is_playable(eligible, k):
                s = score_among(state, one_row(vectors, r + eligible.by_action * k), k)
                check_score(s, k)
                if winner < 0 or s > top or (s == top and goes_first(k, winner, key)):
                    winner, top = k, s
            r += eligible.by_place
    return winner


@inlinable
def begin_with_key(state: Any, rng: np.random.Generator, eligible: EligibleActions | None, random_ties: bool) -> int:
    """Begin a round; return the key of its order among equal scores, where displays have their own eligible actions."""
    if eligible is None:
        begin(state, rng)
        return LOWEST_FIRST
    begin_among(state, rng)
    return tie_key(rng) if random_ties else LOWEST_FIRST


@inlinable
def choice_at(
    state: Any, vectors: npt.NDArray[np.floating], eligible: EligibleActions | None, i: int, key: int, n_actions: int
) -> Any:
    """Return the choice at display i in a round that `begin_with_key` began, from a batch's `vectors`."""
    if eligible is None:
        return choose_possible(state, vectors[i] if vectors.shape[0] > 1 else vectors[0], n_actions)
    return best_among(state, vectors[0], eligible, i, key)


@inlinable
def any_action(rng: np.random.Generator, actions: Any, eligible: EligibleActions | None, i: int) -> int:
    """Return one of the actions, shape (m,), drawn uniformly; or one of those that are eligible at display i."""
    if eligible is None:
        return int(actions[int(rng.random() * actions.shape[0])])
    there = listed(eligible, i)
    return int(there[int(rng.random() * there.shape[0])])


@inlinable
def listed(eligible: EligibleActions, i: int) -> Any:
    """Return the actions that a policy may choose at display i, increasing, shape (|E|,)."""
    word, size = _words(eligible, i), 0
    for at in range(word.shape[0]):
        size += count_bits(word[at] & eligible.playable[at])
    found, place = np.empty(size, np.int32), 0
    for at in range(word.shape[0]):
        left = word[at] & eligible.playable[at]
        while left:
            found[place] = 64 * at + lowest_bit(left)
            left &= left - np.uint64(1)
            place += 1
    return found


@inlinable
def _of_set(
    vectors: npt.NDArray[np.floating], eligible: EligibleActions, i: int, actions: npt.NDArray[np.int32]
) -> Any:
    """Return the vectors of a display's eligible actions, shape (|E|, d), or the one that they share, shape (1, d)."""
    shared = eligible.by_action == 0 and eligible.by_place == 0
    found = np.empty((1 if shared else actions.shape[0], vectors.shape[1]), vectors.dtype)
    for place in range(found.shape[0]):
        found[place] = own_vector(vectors, eligible, i, _wide(actions[place]))[0]
    return found


@inlinable
def wins_among(state: Any, batch: Batch, i: int, held: Among, thin: bool) -> Any:
    """Return whether `best_among` would choose the action logged at display i; of a thin set by what is found ahead.

    Displays are asked about one after the other, from the batch's first on.
    """
    action = _wide(batch.action[i])
    if not thin:
        r, place = _row_of_logged(batch, i), -1
    else:
        place = not_negative(i) % _AHEAD
        if place == 0:
            _look_ahead(batch, i, held)
        r = held.row[place]
    eligible: Any = batch.eligible
    return r >= 0 and _wins(state, batch.vectors[0], eligible, i, not_negative(action), r, held, place)


@inlinable
def _wins(
    state: Any,
    vectors: npt.NDArray[np.floating],
    eligible: EligibleActions,
    i: int,
    action: int,
    own_row: int,
    held: Among,
    place: int,
) -> bool:
    """Return whether `best_among` would choose the logged action, stopping at the first one that beats it.

    `own_row` is the row of its vector, `place` the display's among those that were looked at ahead, or -1.
    """
    key, rival = held.tie_key[0], not_negative(held.rival[0])
    own = score_among(state, one_row(vectors, own_row), action)
    if rival != action and _holds(eligible, i, rival):
        vector = own_vector(vectors, eligible, i, rival)
        if _beats(state, vector, rival, own, action, key):
            return False
    word, r = _words(eligible, i), eligible.row[i]
    for low in range(0, word.shape[0], 64):
        full = held.full[place] if low == 0 and place >= 0 else _full_words(word, low)
        at, left = _first_word(word, low, full)
        while left:
            k = not_negative(64 * at + lowest_bit(left))
            at, left, full = _without_lowest(word, low, at, left, full)
            if k != action and k != rival and _is_playable(eligible, k):
                vector = one_row(vectors, r + eligible.by_action * k)
                if _beats(state, vector, k, own, action, key):
                    held.rival[0] = k
                    return False
            r += eligible.by_place
    # Nothing beats NaN: it comes to here whenever the action is logged, and costs nothing before.
    check_score(own, action)
    held.rival[0] = action
    return True


@inlinable
def _beats(state: Any, vector: npt.NDArray[np.floating], k: Any, own: float, action: int, key: int) -> bool:
    """Return whether action k is chosen rather than one whose score is `own`."""
    if least_score(state, vector, k) > own:
        return True
    s = score_among(state, vector, k)
    return bool(s > own or (s == own and goes_first(k, action, key)))
