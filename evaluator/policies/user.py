"""Policies written as plain Python classes: slower than compiled ones, same results.

A class needs three methods; contexts reach it as float64 arrays of shape (K, d), or (1, d) when all actions share the
context::

    class MyPolicy:
        contextual = False                      # True, or not said: choose is asked at every display
        unit_rewards = False                    # True: values are told as shares of setting.reward_max

        def __init__(self, setting, **parameters): ...
        def choose(self, vectors, rng): ...     # -> action; may also take round, the number of the round: 1, 2, ...
        def displayed(self, vectors, action): ...
        def converted(self, vector, action, delay, value): ...
        def estimates(self, vectors): ...       # optional -> what each action is estimated to earn, K numbers

*Eligible actions.* On a log whose displays say which actions could have been shown, `choose` must take `eligible`,
their indices in increasing order, and return one of them; `vectors` then holds theirs, in that order, shape (|E|, d),
or the context, shape (1, d). `displayed` is told the shown action's vector or the context, shape (1, d).

*Asking is not telling.* A contextual policy is asked at every logged display, K of them a round or more, until one that
shows its choice is accepted; the others never happened. Whatever `choose` changes in the policy (a count of calls that
lowers its exploration, running means of the contexts) they would leave there, and the value would be that of no policy
that can go live. Change it in `displayed`, called once a round, and let `choose` take `round`. A policy that is
asked more than once in a round is therefore asked twice about the same display now and then, on copies and with the
same random stream, and what the second answer changed is refused by name. A cache that the first one filled is none,
nor is a random stream of its own; what can be neither copied nor compared is not looked at.

*What was learned.* ``--final`` values the greedy policy of what was learned: the action with the largest of the
`estimates`, by which the class says what it takes each action to earn at such a display, without bonus or draw, in
whatever unit. -inf stands for what is to be shown only where all are; among equals all have the same chance. A class
without that method is valued as it would choose next, exploration included, and the report says so.

*Rewards* come in the log's own unit, and `setting.reward_max` is the largest that a display can earn. What expects
them in [0, 1], as widths and divergences do, says `unit_rewards = True`.
"""

from __future__ import annotations

import copy
import inspect
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import SEE_TRACEBACK, ParameterError, PolicyError
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import implement

_METHODS = ("choose", "displayed", "converted")
_STREAMS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_PLAIN = (int, float, complex, str, bytes, bytearray, np.generic, type(None))


@dataclass(frozen=True, kw_only=True)
class UserPolicy:
    """Description of a plain Python policy: a class and its parameters, or an instance that is copied for each run."""

    cls: type
    parameters: dict[str, Any] = field(default_factory=dict)
    instance: Any = None

    needs = ()
    reads = ""
    takes_zeros = False
    clips_at_zero = False
    posterior = False
    learns = True
    paper = ""
    outside = ""
    note = "user policy"

    def __post_init__(self) -> None:
        """Check that the class has the methods."""
        missing = [m for m in _METHODS if not callable(getattr(self.cls, m, None))]
        if missing:
            raise PolicyError(
                f"{self.cls.__name__} has no method {', '.join(missing)}.",
                remedy="a policy needs choose, displayed and converted.",
            )

    @property
    def name(self) -> str:
        """Class name."""
        return self.cls.__name__

    @property
    def spec(self) -> str:
        """Class name and parameters."""
        words = ",".join(f"{k}={v}" for k, v in self.parameters.items())
        return f"{self.name}:{words}" if words else self.name

    @property
    def contextual(self) -> bool:
        """Whether `choose` is asked at every display."""
        return bool(getattr(self.cls, "contextual", True))

    @property
    def among(self) -> bool:
        """Whether `choose` takes the eligible actions of a display."""
        return _takes(self.cls.choose, "eligible")  # type: ignore[attr-defined]

    @property
    def unit_rewards(self) -> bool:
        """Whether it is told rewards as shares of the setting's `reward_max`."""
        return bool(getattr(self.cls, "unit_rewards", False))

    def start(self, setting: Setting) -> UserState:
        """Return the state: a new instance, or a copy of the given one."""
        if self.instance is not None:
            policy = copy.deepcopy(self.instance)
        else:
            try:
                policy = self.cls(setting, **self.parameters)
            except TypeError as error:
                raise ParameterError(
                    f"{self.name}: {error}.", remedy="its __init__ takes (setting, **parameters)."
                ) from error
        return UserState(
            self.spec, policy, self.contextual, _takes(policy.choose, "round"),
            callable(getattr(policy, "estimates", None)), setting.n_actions, [None], [None], [1], [0], [0],
        )  # fmt: skip


class UserState(NamedTuple):
    """A user's policy on its way: `spec`, by which messages name it, and the instance of the user's class.

    It is asked at every display if `contextual`, its `choose` takes the number of the round if `takes_round`, and it
    has the method `estimates` if `estimating`. Lists of one hold the choice of this round and the random stream, None
    before the first round; the number of the round, from 1 on; and how often the policy was asked in this round, and
    altogether after the first time in a round (`again`).
    """

    spec: str
    policy: Any
    contextual: bool
    takes_round: bool
    estimating: bool
    n_actions: int
    choice: list[int | None]
    rng: list[np.random.Generator | None]
    round: list[int]
    asked: list[int]
    again: list[int]


def _takes(choose: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(choose).parameters
    except (TypeError, ValueError):  # compiled elsewhere, and silent on what it takes
        return False


def _begin(state: UserState, rng: np.random.Generator) -> None:
    state.rng[0] = rng
    state.choice[0] = None


def _choose(state: UserState, vectors: npt.NDArray[np.floating], eligible: npt.NDArray[np.int32] | None) -> int:
    if eligible is not None:
        return _choose_among(state, vectors, eligible)
    # A choice that does not depend on the context is held until accepted: redrawing it at every display is biased
    # under a logger that is not uniform.
    if state.choice[0] is not None and not state.contextual:
        return state.choice[0]
    action = _answer(state, vectors, {})
    state.choice[0] = action
    return action


def _choose_among(state: UserState, vectors: npt.NDArray[np.floating], eligible: npt.NDArray[np.int32]) -> int:
    action = _answer(state, vectors, {"eligible": np.array(eligible, np.int64)})
    if action not in eligible:
        raise PolicyError(
            f"{state.spec} returned {action!r} from choose, round {state.round[0]:,}, where the eligible actions are "
            f"{', '.join(map(str, eligible[:8]))}{', ...' if len(eligible) > 8 else ''}.",
            remedy="return one of `eligible`.",
        )
    return action


def _answer(state: UserState, vectors: npt.NDArray[np.floating], told: Mapping[str, Any]) -> int:
    """Ask the policy, now and then twice."""
    vectors = _as_float64(vectors)
    state.asked[0] += 1
    if state.asked[0] > 1:
        state.again[0] += 1
        # The 1st, 2nd, 4th, 8th time and so on: early and late in its life, and at next to no cost.
        if state.again[0] & (state.again[0] - 1) == 0:
            _refuse_traces(state, vectors, told)
    action = _ask(state, vectors, state.rng[0], told)
    if not isinstance(action, int | np.integer) or isinstance(action, bool) or not 0 <= action < state.n_actions:
        raise PolicyError(
            f"{state.spec} returned {action!r} from choose, round {state.round[0]:,}.",
            remedy=f"return an action index from 0 to {state.n_actions - 1}.",
        )
    return int(action)


def _ask(
    state: UserState, vectors: npt.NDArray[np.float64], rng: np.random.Generator | None, told: Mapping[str, Any]
) -> Any:
    if state.takes_round:
        return _call(state, "choose", vectors, rng, round=state.round[0], **told)
    return _call(state, "choose", vectors, rng, **told)


def _refuse_traces(state: UserState, vectors: npt.NDArray[np.float64], told: Mapping[str, Any]) -> None:
    """Raise where asking a second time about a display changes the policy: displays that are not accepted would too."""
    try:
        once, stream = copy.deepcopy((state.policy, state.rng[0]))
        again = copy.deepcopy(stream)
        _ask(state._replace(policy=once), vectors, stream, told)
        twice = copy.deepcopy(once)
        # What it draws from a stream of its own must not tell the answers apart either.
        for name, own in streams_of(state.policy).items():
            setattr(twice, name, copy.deepcopy(own))
    except PolicyError:
        raise
    except Exception:  # it holds what cannot be copied
        return
    _ask(state._replace(policy=twice), vectors, again, told)
    if changed := changed_attributes(once, twice):
        raise PolicyError(
            f"{state.spec}: choose changes {', '.join(changed)} when asked, and it is asked at "
            "every display: those that are rejected would teach the policy.",
            remedy="change it in displayed, once a round; choose(self, vectors, rng, round) is told which it is.",
        )


def _shown(state: UserState, vectors: npt.NDArray[np.floating], action: int) -> None:
    _call(state, "displayed", _as_float64(vectors), int(action))
    state.round[0] += 1
    state.asked[0] = 0


def _told(state: UserState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    # A copy: the replay reuses the vector's memory, and a policy may keep what it is told.
    _call(state, "converted", vector.copy(), int(action), int(delay), float(value))


def _estimate(state: UserState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    told = _call(state, "estimates", _as_float64(vectors))
    try:
        values[:] = told
    except (TypeError, ValueError):
        values[:] = np.nan
    if np.isnan(values).any() or np.shape(told) != values.shape:
        raise PolicyError(
            f"{state.spec} returned {told!r} from estimates.",
            remedy=f"return {state.n_actions} numbers, one an action; -inf for what is not to be shown.",
        )


def _as_float64(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    # Vectors come as they are stored, and a user's products of float32 would be rounded to float32.
    return np.asarray(vectors, np.float64)


def _call(state: UserState, method: str, *arguments: Any, **named: Any) -> Any:
    try:
        return getattr(state.policy, method)(*arguments, **named)
    except Exception as error:
        raise PolicyError(
            f"{state.spec} raised {type(error).__name__} in {method}, round {state.round[0]:,}: {error}",
            remedy=f"{SEE_TRACEBACK}.",
        ) from error


implement(UserState, begin=_begin, choose=_choose, shown=_shown, told=_told, estimate=_estimate)


def changed_attributes(before: Any, after: Any) -> list[str]:
    """Return the names of the attributes in which an object differs from a copy of it, sorted.

    Arrays are compared by their bytes, containers and other objects by what they hold. Random streams do not count, and
    what shows nothing of what it holds is taken as unchanged.
    """
    seen: set[tuple[int, int]] = set()
    own, others = _attributes(before), _attributes(after)
    return sorted(
        name
        for name in own.keys() | others.keys()
        if name not in own or name not in others or not _same(own[name], others[name], seen)
    )


def streams_of(held: Any) -> dict[str, Any]:
    """Return an object's own random streams by the names of their attributes."""
    return {name: value for name, value in _attributes(held).items() if isinstance(value, _STREAMS)}


def _attributes(held: Any) -> dict[str, Any]:
    found = dict(getattr(held, "__dict__", {}))
    for cls in type(held).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(held, name):
                found[name] = getattr(held, name)
    return found


def _same(a: Any, b: Any, seen: set[tuple[int, int]]) -> bool:
    if a is b or isinstance(a, _STREAMS):
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b) or bool(a != a and b != b)  # nan is the same nan
    if (id(a), id(b)) in seen:
        return True
    seen.add((id(a), id(b)))
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return _all_same(a.flat, b.flat, seen) if a.dtype.hasobject else a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return len(a) == len(b) and _all_same(a.keys(), b.keys(), seen) and _all_same(a.values(), b.values(), seen)
    if isinstance(a, _SEQUENCES):
        return len(a) == len(b) and _all_same(a, b, seen)
    if isinstance(a, _SETS):
        # Copies of what has no equality of its own are never equal.
        return a == b or (len(a) == len(b) and not all(isinstance(x, _PLAIN) for x in a))
    own, others = _attributes(a), _attributes(b)
    return own.keys() == others.keys() and all(_same(value, others[name], seen) for name, value in own.items())


def _all_same(a: Iterable[Any], b: Iterable[Any], seen: set[tuple[int, int]]) -> bool:
    return all(_same(x, y, seen) for x, y in zip(a, b, strict=True))
