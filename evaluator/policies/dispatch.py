"""One loop for all policies: generic functions that find a policy's own by the type of its state.

Each function exists twice. Called from Python (user policies, debugging) its body looks the implementation up; called
from a compiled loop Numba's `overload` does, at compile time, so that nothing is looked up per display.

A round of a replay is: `prepare` once (whatever does not depend on the display: indices, posterior draws, tie-breaking
priorities), `wins` for each logged display until one is accepted, `displayed`, `converted` for each conversion
that is revealed at the end of the round, and `collected` once with the sum of these. Feedback that is aggregated and
anonymous is the sum alone: such a policy has `collected` in the place of `converted`, and nothing else reaches it.
Randomness happens in `prepare` alone, so a round's choice is held, with its
randomness, until a display matches it.

Whatever passes with a round passes once: `prepare` again in the same round only draws anew. So a policy that has begun
a round can be asked what it would do, as often as one likes (`evaluator.replays.loop.frozen`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.argmax import check_score, goes_first
from evaluator.kernels.compiling import inlinable, overloads
from evaluator.kernels.memory import DISPLAYS_AHEAD, prefetch
from evaluator.kernels.ridge import row

Vectors = npt.NDArray[np.floating]


class StateFunctions(NamedTuple):
    """A state's implementations."""

    prepare: Callable[..., Any]
    choose: Callable[..., Any]
    wins: Callable[..., Any]
    held_choice: Callable[..., Any]
    ranking: Callable[..., Any]
    index: Callable[..., Any]
    displayed: Callable[..., Any]
    converted: Callable[..., Any]
    collected: Callable[..., Any]
    estimates: Callable[..., Any] | None
    begin_among: Callable[..., Any]
    score: Callable[..., Any] | None
    choose_among: Callable[..., Any] | None


_implementations: dict[type, StateFunctions] = {}


def implement(
    state: type,
    *,
    displayed: Callable[..., Any] | None = None,
    converted: Callable[..., Any] | None = None,
    collected: Callable[..., Any] | None = None,
    prepare: Callable[..., Any] | None = None,
    score: Callable[..., Any] | None = None,
    ranking: Callable[..., Any] | None = None,
    estimates: Callable[..., Any] | None = None,
    index: Callable[..., Any] | None = None,
    begin_among: Callable[..., Any] | None = None,
    choose: Callable[..., Any] | None = None,
    wins: Callable[..., Any] | None = None,
    choose_among: Callable[..., Any] | None = None,
    pure: bool = True,
) -> None:
    """Register a state's functions.

    Vectors come as the log stores them, float64 or float32: compiled functions cast each element they multiply,
    ``np.float64(vectors[r, i])``, as `evaluator.kernels.ridge` does; a conversion's vector is always float64.

    Parameters
    ----------
    state
        Class of the state, a NamedTuple.
    displayed
        Function ``displayed(state, vectors, action)``: the display was accepted. None of a state's part with scores.
    converted
        Function ``converted(state, vector, action, delay, value)``: a conversion of the display shown `delay` rounds
        ago; its value in the log's own unit, or a share of the largest reward of a display (``unit_rewards`` of the
        policy). None where `collected` is given.
    collected
        Function ``collected(state, total)``: the round's conversions summed to this; given by policies that learn
        nothing else, else None.
    prepare
        Function ``prepare(state, rng)``: a round begins, or begins anew with other draws. None where nothing is to be
        done.
    score
        Function ``score(state, vectors, action) -> number``: what the policy ranks an action by in this round, from its
        vector or the display's, shape (K, d) or (1, d). Among the eligible it shows one with the largest score, equals
        by the round's tie rule (`evaluator.replays.loop.among`). None where the choice is none by scores.
    ranking
        Function ``ranking(state) -> (n_actions, key, rival)`` of a contextual policy with scores, from which its choice
        at each display follows (`best`), and the shortest way to it (`lazy_match`): the number of actions K, the key of
        the round's order among equal scores (`evaluator.kernels.argmax`), and the action that won last, shape (1,).
    estimates
        Function ``estimates(state, vectors, values)``: write what each action is estimated to earn at a display, into
        an array of shape (K,): means, without bonus or draw, corrected for delays where the policy corrects; asked once
        a round has begun. -inf for what is to be shown only where all are. The greedy policy of what was learned
        follows them; with None there is no such policy.
    index
        Function ``index(state, k, log_t) -> (value, slope)`` of policies that prepare by `evaluator.policies.indices`.
    begin_among
        Function ``begin_among(state, rng)``, in the place of `prepare` where each display has its own set of eligible
        actions: without what is done for a choice among all. None where that is the same.
    choose
        Function ``choose(state, vectors) -> action`` from a display's vectors, shape (K, d) or (1, d), of a policy
        whose choice does not follow from `ranking`. With neither the policy is not contextual, and its choice is
        ``state.choice[0]``, which `prepare` has set.
    wins
        Function ``wins(state, vectors, action, n_actions) -> bool``: the shortest way to ``choose(...) == action``.
    choose_among
        Function ``choose_among(state, vectors, eligible) -> action`` for policies without scores, from the vectors of
        the eligible actions, shape (|E|, d) or (1, d), and their indices, increasing. With neither `score` nor
        `choose_among` the policy has no answer where actions are not always eligible.
    pure
        Whether `choose` depends on state and vectors alone, so that displays of the same vectors need but one answer.
    """
    if ranking and not choose:
        choose, wins = best, wins or lazy_match
    _implementations[state] = StateFunctions(
        prepare=prepare or _nothing_to_prepare,
        choose=choose or _prepared_choice,
        wins=wins or (_chosen_wins if choose else _prepared_wins),
        ranking=ranking or _missing,
        held_choice=_choice_for_all if pure else _no_choice_for_all,
        index=index or _missing,
        displayed=displayed or (lambda state, vectors, action: None),
        converted=converted or _not_told,
        collected=collected or _not_summed,
        estimates=estimates,
        begin_among=begin_among or prepare or _nothing_to_prepare,
        score=score,
        choose_among=choose_among,
    )


def prepare(state: Any, rng: np.random.Generator) -> None:
    """Begin a round."""
    _functions(type(state)).prepare(state, rng)


def choose(state: Any, vectors: Vectors) -> int:
    """Return the action for a display with these vectors."""
    return int(_functions(type(state)).choose(state, vectors))


def wins(state: Any, vectors: Vectors, action: int, n_actions: int) -> bool:
    """Return whether the policy would show this action."""
    return bool(_functions(type(state)).wins(state, vectors, action, n_actions))


def held_choice(state: Any, vectors: Vectors, n_actions: int) -> int:
    """Return the round's action for all displays with these vectors; -1 when each display must be asked about."""
    return int(_functions(type(state)).held_choice(state, vectors, n_actions))


def is_pure(state: Any) -> bool:
    """Return whether all displays with the same vectors get the same action within a round."""
    return _functions(type(state)).held_choice is _choice_for_all


def index(state: Any, k: int, log_t: float) -> tuple[float, float]:
    """Return arm k's index at the decision of round t, and its derivative in log t."""
    value, slope = _functions(type(state)).index(state, k, log_t)
    return float(value), float(slope)


def has_estimates(state: Any) -> bool:
    """Return whether the policy says what it estimates; a Python class may (`evaluator.policies.user`)."""
    return _functions(type(state)).estimates is not None and bool(getattr(state, "estimating", True))


def estimates(state: Any, vectors: Vectors, values: npt.NDArray[np.float64]) -> None:
    """Write what each action is estimated to earn at a display with these vectors, shape (K,)."""
    of = _functions(type(state)).estimates
    if of is None:
        raise NotImplementedError("the policy has no estimates")
    of(state, vectors, values)


def chooses_among(state: Any) -> bool:
    """Return whether the policy has an answer where only some actions are eligible."""
    own = _functions(type(state))
    return own.score is not None or own.choose_among is not None


def scores(state: Any) -> bool:
    """Return whether the policy ranks actions by scores."""
    return _functions(type(state)).score is not None


def begin_among(state: Any, rng: np.random.Generator) -> None:
    """Begin a round in which each display has its own eligible actions."""
    _functions(type(state)).begin_among(state, rng)


def score(state: Any, vectors: Vectors, action: int) -> float:
    """Return what the policy ranks an action by, from its vector or the display's, shape (1, d)."""
    of = _functions(type(state)).score
    if of is None:
        raise NotImplementedError("the policy has no scores")
    return float(of(state, vectors, action))


def choose_among(state: Any, vectors: Vectors, eligible: npt.NDArray[np.int32]) -> int:
    """Return the action for a display where these are eligible."""
    of = _functions(type(state)).choose_among
    if of is None:
        raise NotImplementedError("the policy chooses by scores")
    return int(of(state, vectors, eligible))


def ranking(state: Any) -> tuple[int, int, npt.NDArray[np.int64]]:
    """Return the number of actions, the key of the round's order among equals, and the action that won last."""
    n_actions, key, rival = _functions(type(state)).ranking(state)
    return n_actions, key, rival


@inlinable
def best(state: Any, vectors: Vectors) -> int:
    """Return the action with the largest score; O(K) scores. A `choose`."""
    n_actions, key, _ = ranking(state)
    winner, top = 0, score(state, vectors, 0)
    check_score(top, 0)
    for k in range(1, n_actions):
        s = score(state, vectors, k)
        check_score(s, k)
        if s > top or (s == top and goes_first(k, winner, key)):
            winner, top = k, s
    return winner


@inlinable
def lazy_match(state: Any, vectors: Vectors, action: int, n_actions: int) -> bool:
    """Return whether `best` would choose the action, stopping at the first one that beats it. A `wins`."""
    _, key, rival = ranking(state)
    own = score(state, vectors, action)
    first = rival[0]
    prefetch(vectors, DISPLAYS_AHEAD, row(vectors, first))
    if first != action:
        s = score(state, vectors, first)
        if s > own or (s == own and goes_first(first, action, key)):
            return False
    for k in range(n_actions):
        if k != action and k != first:
            s = score(state, vectors, k)
            if s > own or (s == own and goes_first(k, action, key)):
                rival[0] = k
                return False
    # Nothing beats NaN: it comes to here whenever the action is logged, and costs nothing before.
    check_score(own, action)
    rival[0] = action
    return True


def displayed(state: Any, vectors: Vectors, action: int) -> None:
    """Tell the policy that its choice was shown."""
    _functions(type(state)).displayed(state, vectors, action)


def converted(state: Any, vector: Vectors, action: int, delay: int, value: float) -> None:
    """Tell the policy of a conversion of the display shown `delay` rounds ago."""
    _functions(type(state)).converted(state, vector, action, delay, value)


def collected(state: Any, total: float) -> None:
    """Tell the policy what all conversions revealed in this round sum to."""
    _functions(type(state)).collected(state, total)


def _functions(state: type) -> StateFunctions:
    return _implementations[state]


def _nothing_to_prepare(state: Any, rng: np.random.Generator) -> None:
    pass


def _not_told(state: Any, vector: Vectors, action: int, delay: int, value: float) -> None:
    pass


def _not_summed(state: Any, total: float) -> None:
    pass


def _prepared_choice(state: Any, vectors: Vectors) -> Any:
    return state.choice[0]


def _choice_for_all(state: Any, vectors: Vectors, n_actions: int) -> Any:
    return _possible(choose(state, vectors), n_actions)


def _no_choice_for_all(state: Any, vectors: Vectors, n_actions: int) -> Any:
    return -1


def _missing(state: Any, *asked: Any) -> Any:
    raise NotImplementedError("the policy does not say")


def _no_score(state: Any, vectors: Vectors, action: int) -> float:
    return 0.0


def _no_choice_among(state: Any, vectors: Vectors, eligible: npt.NDArray[np.int32]) -> int:
    return -1


def _prepared_wins(state: Any, vectors: Vectors, action: int, n_actions: int) -> Any:
    return _possible(state.choice[0], n_actions) == action


def _chosen_wins(state: Any, vectors: Vectors, action: int, n_actions: int) -> Any:
    return _possible(choose(state, vectors), n_actions) == action


@inlinable
def _possible(chosen: int, n_actions: int) -> int:
    # No display would ever match it: the replay would end without a round and without a word.
    if chosen < 0 or chosen >= n_actions:
        raise ValueError("the policy chose an impossible action")
    return chosen


# A NamedTuple whose fields share one type is another kind of type to Numba; both carry their class.
@overloads(prepare)
def _compile_prepare(state: Any, rng: Any) -> Any:
    return _functions(state.instance_class).prepare


@overloads(choose)
def _compile_choose(state: Any, vectors: Any) -> Any:
    return _functions(state.instance_class).choose


@overloads(wins)
def _compile_wins(state: Any, vectors: Any, action: Any, n_actions: Any) -> Any:
    return _functions(state.instance_class).wins


@overloads(held_choice)
def _compile_held_choice(state: Any, vectors: Any, n_actions: Any) -> Any:
    return _functions(state.instance_class).held_choice


@overloads(ranking)
def _compile_ranking(state: Any) -> Any:
    return _functions(state.instance_class).ranking


@overloads(index)
def _compile_index(state: Any, k: Any, log_t: Any) -> Any:
    return _functions(state.instance_class).index


@overloads(estimates)
def _compile_estimates(state: Any, vectors: Any, values: Any) -> Any:
    return _functions(state.instance_class).estimates


@overloads(scores)
def _compile_scores(state: Any) -> Any:
    return (lambda state: False) if _functions(state.instance_class).score is None else lambda state: True


@overloads(begin_among)
def _compile_begin_among(state: Any, rng: Any) -> Any:
    return _functions(state.instance_class).begin_among


@overloads(score)
def _compile_score(state: Any, vectors: Any, action: Any) -> Any:
    return _functions(state.instance_class).score or _no_score


@overloads(choose_among)
def _compile_choose_among(state: Any, vectors: Any, eligible: Any) -> Any:
    return _functions(state.instance_class).choose_among or _no_choice_among


@overloads(displayed)
def _compile_displayed(state: Any, vectors: Any, action: Any) -> Any:
    return _functions(state.instance_class).displayed


@overloads(converted)
def _compile_converted(state: Any, vector: Any, action: Any, delay: Any, value: Any) -> Any:
    return _functions(state.instance_class).converted


@overloads(collected)
def _compile_collected(state: Any, total: Any) -> Any:
    return _functions(state.instance_class).collected
