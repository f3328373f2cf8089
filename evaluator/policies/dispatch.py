"""One loop for all policies: generic functions that find a policy's own by the type of its state.

Each function exists twice. Called from Python (user policies, debugging) its body looks the implementation up; called
from a compiled loop Numba's `overload` does, at compile time, so that nothing is looked up per display.

A policy gives at most five functions on its state: `begin` a round (whatever does not depend on the display: indices,
posterior draws, tie-breaking priorities), `score` an action at a display, `shown` and `told` of what became of it,
`estimate` what each action earns. The rest follows: the choice, what beats it first (`wins`, asked at each logged
display until one is accepted), the choice among the eligible, and the greedy policy of what was learned.

A round of a replay is: `begin` once, `wins` for each logged display until one is accepted, `shown`, `told` for each
conversion that is revealed at the end of the round, and `told_sum` once with the sum of these. Feedback that is
aggregated and anonymous is the sum alone: such a policy has `told_sum` in the place of `told`, and nothing else reaches
it. Randomness happens in `begin` alone, so a round's choice is held, with its randomness, until a display matches it.

Whatever passes with a round passes once: `begin` again in the same round only draws anew. So a policy that has begun
a round can be asked what it would do, as often as one likes (`evaluator.engine.frozen`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import check_score, goes_first
from evaluator.engine.kernels.compiling import inlinable, overloads
from evaluator.engine.kernels.intrinsics import DISPLAYS_AHEAD, prefetch
from evaluator.engine.kernels.ridge import row

Vectors = npt.NDArray[np.floating]
Function = Callable[..., Any]


class StateFunctions(NamedTuple):
    """A state's implementations: those given, and those that follow from them."""

    begin: Function
    begin_among: Function
    score: Function | None
    score_among: Function | None
    least_score: Function
    ranking: Function
    choose: Function
    choose_among: Function
    wins: Function
    held_choice: Function
    shown: Function
    told: Function
    told_sum: Function
    estimate: Function | None
    is_settled: Function
    ages: bool


_implementations: dict[type, StateFunctions] = {}


def implement(
    state: type,
    *,
    begin: Function | None = None,
    score: Function | None = None,
    shown: Function | None = None,
    told: Function | None = None,
    told_sum: Function | None = None,
    estimate: Function | None = None,
    ranking: Function | None = None,
    choose: Function | None = None,
    begin_among: Function | None = None,
    score_among: Function | None = None,
    least_score: Function | None = None,
    is_settled: Function | None = None,
    ages: bool = False,
) -> None:
    """Register a state's functions; what is None does nothing, or is not needed.

    Vectors come as the log stores them, float64 or float32: compiled functions cast each element they multiply,
    ``np.float64(vectors[r, i])``, as `evaluator.engine.kernels.ridge` does; a conversion's vector is always float64.

    A policy's choice is what scores most at a display (`score` with `ranking`), what it answers itself (`choose`), or
    with neither of these, for it is not contextual, ``state.choice[0]``, which `begin` has set.

    Parameters
    ----------
    state
        Class of the state, a NamedTuple.
    begin
        Function ``begin(state, rng)``: a round begins, or begins anew with other draws.
    score
        Function ``score(state, vectors, action) -> number``: what the policy ranks an action by in this round, from its
        vector or the display's, shape (K, d) or (1, d). Among the eligible it shows one with the largest score, equals
        by the round's tie rule (`evaluator.engine.eligible_choice`).
    shown
        Function ``shown(state, vectors, action)``: the display was accepted.
    told
        Function ``told(state, vector, action, delay, value)``: a conversion of the display shown `delay` rounds ago;
        its value in the log's own unit, or a share of the largest reward of a display (``unit_rewards`` of the policy).
    told_sum
        Function ``told_sum(state, total)``, in the place of `told`: the round's conversions summed to this; of policies
        that learn nothing else.
    estimate
        Function ``estimate(state, vectors, values)``: write what each action is estimated to earn at a display, into an
        array of shape (K,): means, without bonus or draw, corrected for delays where the policy corrects; asked once a
        round has begun. -inf for what is to be shown only where all are. The greedy policy of what was learned follows
        them; with None there is no such policy.
    ranking
        Function ``ranking(state) -> (n_actions, key, rival)`` of a contextual policy with scores: the number of actions
        K, the key of the round's order among equal scores (`evaluator.engine.kernels.argmax`), and the action that won
        last, shape (1,). Part of the state, since `begin` draws the key.
    choose
        Function ``choose(state, vectors, eligible) -> action`` of a policy that has no scores, asked at each display:
        from its vectors, shape (K, d) or (1, d), with None for `eligible` where all actions are; else from the vectors
        of the eligible actions, shape (|E|, d) or (1, d), and their indices, increasing.
    begin_among, score_among
        Functions in the place of `begin` and `score` where each display has its own set of eligible actions, of
        policies that then begin without what a choice among all needs, or score in another way. None for the same.
    least_score
        Function ``least_score(state, vectors, action) -> number``, at most what `score` and `score_among` return for
        the same arguments, to the last bit, and faster: where it is more than another action's score, theirs is not
        computed.
    is_settled
        Function ``is_settled(state) -> bool``, asked once a round has begun with `begin`: whether another round that
        begins from the same state chooses the same without a draw, and so need not begin. Rounds between two pushes
        are such (`evaluator.engine.pushes`).
    ages
        Whether `begin` also does what passes with a round, such as closing the window of an earlier display: then every
        round begins, one that is learned at a push (`evaluator.engine.pushes`) once more.
    """
    own = None if choose is None else inlinable(choose)
    _implementations[state] = StateFunctions(
        begin=begin or _nothing,
        begin_among=begin_among or begin or _nothing,
        score=score,
        score_among=score_among or score,
        least_score=least_score or _no_least_score,
        ranking=ranking or _missing,
        choose=_own_choice(own) if own else best if ranking else _begun_choice,
        choose_among=own or _no_choice_among,
        wins=lazy_match if ranking and not own else _chosen_wins,
        held_choice=_no_choice_for_all if own else _choice_for_all,
        shown=shown or _nothing,
        told=told or _nothing,
        told_sum=told_sum or _nothing,
        estimate=estimate,
        is_settled=is_settled or _never,
        ages=ages,
    )


def begin(state: Any, rng: np.random.Generator) -> None:
    """Begin a round."""
    _functions(type(state)).begin(state, rng)


def begin_among(state: Any, rng: np.random.Generator) -> None:
    """Begin a round in which each display has its own eligible actions."""
    _functions(type(state)).begin_among(state, rng)


def score(state: Any, vectors: Vectors, action: int) -> float:
    """Return what the policy ranks an action by, from its vector or the display's."""
    return float(_given(_functions(type(state)).score)(state, vectors, action))


def score_among(state: Any, vectors: Vectors, action: int) -> float:
    """Return what it ranks an action by in a round that `begin_among` began, from its vector, shape (1, d)."""
    return float(_given(_functions(type(state)).score_among)(state, vectors, action))


def least_score(state: Any, vectors: Vectors, action: int) -> float:
    """Return a number that is at most what the policy ranks an action by."""
    return float(_functions(type(state)).least_score(state, vectors, action))


def scores(state: Any) -> bool:
    """Return whether the policy ranks actions by scores."""
    return _functions(type(state)).score is not None


def is_settled(state: Any) -> bool:
    """Return whether another round that begins from the same state chooses the same without a draw."""
    return bool(_functions(type(state)).is_settled(state))


def ages(state: Any) -> bool:
    """Return whether something passes with the beginning of a round."""
    return _functions(type(state)).ages


def ranking(state: Any) -> tuple[int, int, npt.NDArray[np.int64]]:
    """Return the number of actions, the key of the round's order among equals, and the action that won last."""
    n_actions, key, rival = _functions(type(state)).ranking(state)
    return n_actions, key, rival


def choose(state: Any, vectors: Vectors) -> int:
    """Return the action for a display with these vectors."""
    return int(_functions(type(state)).choose(state, vectors))


def choose_among(state: Any, vectors: Vectors, eligible: npt.NDArray[np.int32]) -> int:
    """Return the action for a display where these are eligible, of a policy without scores."""
    return int(_functions(type(state)).choose_among(state, vectors, eligible))


def wins(state: Any, vectors: Vectors, action: int, n_actions: int) -> bool:
    """Return whether the policy would show this action: the shortest way to ``choose(...) == action``."""
    return bool(_functions(type(state)).wins(state, vectors, action, n_actions))


def held_choice(state: Any, vectors: Vectors, n_actions: int) -> int:
    """Return the round's action for all displays with these vectors; -1 when each display must be asked about."""
    return int(_functions(type(state)).held_choice(state, vectors, n_actions))


def holds_choice(state: Any) -> bool:
    """Return whether all displays with the same vectors get the same action within a round."""
    return _functions(type(state)).held_choice is _choice_for_all


def has_estimates(state: Any) -> bool:
    """Return whether the policy says what it estimates; a Python class may (`evaluator.policies.user`)."""
    return _functions(type(state)).estimate is not None and bool(getattr(state, "estimating", True))


def estimate(state: Any, vectors: Vectors, values: npt.NDArray[np.float64]) -> None:
    """Write what each action is estimated to earn at a display with these vectors, shape (K,)."""
    _given(_functions(type(state)).estimate)(state, vectors, values)


def shown(state: Any, vectors: Vectors, action: int) -> None:
    """Tell the policy that its choice was shown."""
    _functions(type(state)).shown(state, vectors, action)


def told(state: Any, vector: Vectors, action: int, delay: int, value: float) -> None:
    """Tell the policy of a conversion of the display shown `delay` rounds ago."""
    _functions(type(state)).told(state, vector, action, delay, value)


def told_sum(state: Any, total: float) -> None:
    """Tell the policy what all conversions revealed in this round sum to."""
    _functions(type(state)).told_sum(state, total)


@inlinable
def choose_possible(state: Any, vectors: Vectors, n_actions: int) -> Any:
    """Return the action for a display with these vectors, if it is one of the actions.

    No display would ever match another: the replay would end without a round and without a word.
    """
    chosen = choose(state, vectors)
    if chosen < 0 or chosen >= n_actions:
        raise ValueError("the policy chose an impossible action")
    return chosen


@inlinable
def best(state: Any, vectors: Vectors) -> int:
    """Return the action with the largest score; O(K) scores."""
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
    """Return whether `best` would choose the action, stopping at the first one that beats it."""
    _, key, rival = ranking(state)
    own = score(state, vectors, action)
    first = rival[0]
    prefetch(vectors, DISPLAYS_AHEAD, row(vectors, first))
    if first != action and _beats(state, vectors, first, own, action, key):
        return False
    for k in range(n_actions):
        if k != action and k != first and _beats(state, vectors, k, own, action, key):
            rival[0] = k
            return False
    # Nothing beats NaN: it comes to here whenever the action is logged, and costs nothing before.
    check_score(own, action)
    rival[0] = action
    return True


@inlinable
def _beats(state: Any, vectors: Vectors, k: int, own: float, action: int, key: int) -> bool:
    """Return whether action k is chosen rather than one whose score is `own`."""
    if least_score(state, vectors, k) > own:
        return True
    s = score(state, vectors, k)
    return bool(s > own or (s == own and goes_first(k, action, key)))


def _functions(state: type) -> StateFunctions:
    return _implementations[state]


def _given(function: Function | None) -> Function:
    return function or _missing


def _missing(*asked: Any) -> Any:
    raise NotImplementedError("the policy does not say")


def _nothing(state: Any, *asked: Any) -> None:
    pass


def _never(state: Any) -> bool:
    return False


def _own_choice(own: Function) -> Function:
    def choose(state: Any, vectors: Vectors) -> Any:
        return own(state, vectors, None)

    return choose


def _begun_choice(state: Any, vectors: Vectors) -> Any:
    return state.choice[0]


def _choice_for_all(state: Any, vectors: Vectors, n_actions: int) -> Any:
    return choose_possible(state, vectors, n_actions)


def _no_choice_for_all(state: Any, vectors: Vectors, n_actions: int) -> Any:
    return -1


def _chosen_wins(state: Any, vectors: Vectors, action: int, n_actions: int) -> Any:
    return choose_possible(state, vectors, n_actions) == action


# What compiled loops name of every policy, and ask of those alone that have it.
def _no_score(state: Any, *asked: Any) -> float:
    return 0.0


def _no_least_score(state: Any, vectors: Vectors, action: int) -> float:
    return -np.inf


def _no_choice_among(state: Any, *asked: Any) -> int:
    return -1


def _compile(name: str) -> Function:
    """Return what finds, at compile time, a state's function of this name."""

    def find(state: Any, *asked: Any) -> Any:
        # A NamedTuple whose fields share one type is another kind of type to Numba; both carry their class.
        return getattr(_functions(state.instance_class), name) or _no_score

    return find


for _name in StateFunctions._fields[:-1]:
    overloads(globals()[_name])(_compile(_name))


@overloads(scores)
def _compile_scores(state: Any) -> Any:
    return (lambda state: False) if _functions(state.instance_class).score is None else lambda state: True


@overloads(ages)
def _compile_ages(state: Any) -> Any:
    return (lambda state: True) if _functions(state.instance_class).ages else lambda state: False
