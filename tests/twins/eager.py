"""LinUCB without the shortcuts of a replay, to hold them against: the same scores, more of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evaluator.policies import dispatch, naive_linear
from evaluator.policies.base import Setting
from evaluator.policies.linear import Optimist, implement_optimist
from evaluator.policies.naive_linear import LinUCB


class EagerState(NamedTuple):
    optimist: Optimist
    alpha: float


@dataclass(frozen=True, kw_only=True)
class EagerLinUCB(LinUCB):
    """LinUCB that scores every action at every display."""

    name = "eager-linucb"

    def start(self, setting: Setting) -> EagerState:
        return EagerState(*super().start(setting))


def _choose(state: EagerState, vectors: np.ndarray, eligible: None) -> int:
    return dispatch.best(state, vectors)


implement_optimist(EagerState, begin=naive_linear._begin, choose=_choose)
