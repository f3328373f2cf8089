"""Delay-naive linear policies: a conversion not yet seen counts as a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import LEAST_RIDGE
from evaluator.policies.base import Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    Optimist,
    PosteriorSampler,
    begin_round,
    implement_optimist,
    implement_sampler,
    start_optimist,
    start_sampler,
)


class LinUCBState(NamedTuple):
    """Regression and scores, and the constant width."""

    optimist: Optimist
    alpha: float


@dataclass(frozen=True, kw_only=True)
class LinUCB(LinearPolicy):
    """LinUCB on what has been seen: <a, theta^> + alpha ||a|| in V⁻¹, unseen conversions counted as failures."""

    name = "linucb"
    delays = "naive"
    paper = "Li et al. 2010, Algorithm 1 (disjoint); Chu et al. 2011 (shared)"
    alpha: float = parameter(1.0, "width of the confidence bound", at_least=0)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> LinUCBState:
        """Return the state before the first round."""
        optimist = start_optimist(setting, ridge=self.ridge, diagonal=self.diagonal, squared=False, ties=self.ties)
        return LinUCBState(optimist, self.alpha)


def _begin(state: LinUCBState, rng: np.random.Generator) -> None:
    begin_round(state.optimist, state.alpha, rng)


implement_optimist(LinUCBState, begin=_begin)


class LinTSState(NamedTuple):
    """Posterior, and the constant scale of its draws."""

    sampler: PosteriorSampler
    scale: float


@dataclass(frozen=True, kw_only=True)
class LinTS(LinearPolicy):
    """Linear Thompson sampling on what has been seen: theta~ from N(theta^, scale² V⁻¹), one draw a round."""

    name = "lints"
    delays = "naive"
    posterior = True
    paper = "Agrawal, Goyal 2013, Algorithm 1"
    scale: float = parameter(0.5, "standard deviation of the draws in units of V⁻¹", at_least=0)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)

    def start(self, setting: Setting) -> LinTSState:
        """Return the state before the first round."""
        return LinTSState(start_sampler(setting, ridge=self.ridge, diagonal=self.diagonal), self.scale)


@inlinable
def _scale(state: LinTSState) -> float:
    return state.scale


implement_sampler(LinTSState, scale=_scale)
