"""Policies written as plain Python classes: slower than compiled ones, same results.

A class needs three methods; contexts reach it as float64 arrays of shape (K, d), or (1, d) when all actions share the
context::

    class MyPolicy:
        contextual = False                      # True: choose is asked at every display

        def __init__(self, setting, **parameters): ...
        def choose(self, vectors, rng): ...     # -> action
        def displayed(self, vectors, action): ...
        def converted(self, vector, action, delay, value): ...
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError, PolicyError
from evaluator.policies.base import Setting
from evaluator.policies.dispatch import implement

_METHODS = ("choose", "displayed", "converted")


@dataclass(frozen=True, kw_only=True)
class UserPolicy:
    """Description of a plain Python policy: a class and its parameters, or an instance that is copied for each run."""

    cls: type
    parameters: dict[str, Any] = field(default_factory=dict)
    instance: Any = None

    needs = ()
    reads = ""
    takes_zeros = False
    paper = ""
    note = "user policy"

    def __post_init__(self) -> None:
        """Check that the class has the methods."""
        missing = [m for m in _METHODS if not callable(getattr(self.cls, m, None))]
        if missing:
            raise PolicyError(
                f"{self.cls.__name__} has no method {', '.join(missing)}.",
                hint="a policy needs choose, displayed and converted.",
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

    def start(self, setting: Setting) -> UserState:
        """Return the state: a new instance, or a copy of the given one."""
        if self.instance is not None:
            policy = copy.deepcopy(self.instance)
        else:
            try:
                policy = self.cls(setting, **self.parameters)
            except TypeError as error:
                raise ParameterError(
                    f"{self.name}: {error}.", hint="its __init__ takes (setting, **parameters)."
                ) from error
        return UserState(policy, self.contextual, setting.n_actions, [None], [None])


class UserState(NamedTuple):
    """A user's policy, whether it is contextual, K, the round's held choice, and its random stream."""

    policy: Any
    contextual: bool
    n_actions: int
    choice: list[int | None]
    rng: list[np.random.Generator | None]


def _prepare(state: UserState, rng: np.random.Generator) -> None:
    state.rng[0] = rng
    state.choice[0] = None


def _choose(state: UserState, vectors: npt.NDArray[np.floating]) -> int:
    # A choice that does not depend on the context is held until accepted: redrawing it at every display is biased
    # under a logger that is not uniform.
    if state.choice[0] is not None and not state.contextual:
        return state.choice[0]
    action = _call(state, "choose", _as_float64(vectors), state.rng[0])
    if not isinstance(action, int | np.integer) or isinstance(action, bool) or not 0 <= action < state.n_actions:
        raise PolicyError(
            f"{type(state.policy).__name__}.choose returned {action!r}.",
            hint=f"return an action index from 0 to {state.n_actions - 1}.",
        )
    state.choice[0] = int(action)
    return int(action)


def _displayed(state: UserState, vectors: npt.NDArray[np.floating], action: int) -> None:
    _call(state, "displayed", _as_float64(vectors), int(action))


def _converted(state: UserState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    # A copy: the replay reuses the vector's memory, and a policy may keep what it is told.
    _call(state, "converted", vector.copy(), int(action), int(delay), float(value))


def _as_float64(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    # Vectors come as they are stored, and a user's products of float32 would be rounded to float32.
    return np.asarray(vectors, np.float64)


def _call(state: UserState, method: str, *arguments: Any) -> Any:
    try:
        return getattr(state.policy, method)(*arguments)
    except Exception as error:
        raise PolicyError(
            f"{type(state.policy).__name__}.{method} raised {type(error).__name__}: {error}",
            hint="--debug shows where.",
        ) from error


# A user's choice may draw from the stream, even for vectors it has been asked about.
implement(UserState, prepare=_prepare, choose=_choose, displayed=_displayed, converted=_converted, pure=False)
