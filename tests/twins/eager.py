"""LinUCB without the shortcuts of a replay, to hold them against: the same scores, more of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evaluator.policies import dispatch, naive_linear
from evaluator.policies.base import Setting
from evaluator.policies.linear import Optimist, implement_optimist
from evaluator.policies.naive_linear import LinUCB


class EagerState(NamedTuple):
    optimist: Optimist
    alpha: float


class AskedState(NamedTuple):
    optimist: Optimist
    alpha: float


@dataclass(frozen=True, kw_only=True)
class EagerLinUCB(LinUCB):
    """LinUCB that scores every action at every display."""

    name = "eager-linucb"

    def start(self, setting: Setting) -> EagerState:
        return EagerState(*super().start(setting))


@dataclass(frozen=True, kw_only=True)
class AskedLinUCB(LinUCB):
    """LinUCB with the lazy match, asked at every display even where all displays share their vectors."""

    name = "asked-linucb"

    def start(self, setting: Setting) -> AskedState:
        return AskedState(*super().start(setting))


# Not that it draws: so that no choice is held for displays of the same vectors.
_SHARED = {"prepare": naive_linear._prepare, "choose": dispatch.best, "pure": False}
implement_optimist(EagerState, **_SHARED)
implement_optimist(AskedState, **_SHARED, wins=dispatch.lazy_match)
