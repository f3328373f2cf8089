"""OTFLinUCB: on-the-fly linear UCB under delayed, censored feedback (Vernade et al. 2020, Algorithm 1).

V grows at the display, B at the conversion, so displays still waiting pull theta^ down; the bonus allows for them.
With x = ||a|| in V_t⁻¹ and M the sum of `evaluator.policies.missing_feedback`:

theorem   <a, theta^> + alpha (2 f_t + M) x
figures   <a, theta^> + alpha (sqrt(b + ridge) + M) x², where b = 2 log(1/delta) + d log(1 + t/(ridge d)), and the norms
          in M are squared too

The theorem's width explores for thousands of rounds (it does not learn within the paper's own 3,000); the published
figures come from the squared one, which is the default. In the disjoint model d is that of e_k ⊗ x, i.e. K times the
context's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.ridge import LEAST_RIDGE, add_display, add_reward, block, estimate_rewards, row
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement
from evaluator.policies.missing_feedback import (
    MissingFeedback,
    confidence,
    missing_total,
    remember_display,
    start_missing_feedback,
    theorem_width,
)
from evaluator.policies.optimism import Optimist, begin_round, best, is_best, start_optimist, upper_bound


class OTFLinUCBState(NamedTuple):
    """Regression and scores, the displays still waiting, and the parameters of the width."""

    optimist: Optimist
    missing: MissingFeedback
    dimension: int
    alpha: float
    delta: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class OTFLinUCB(Policy):
    """Linear UCB that learns on the fly and widens its bonus by the conversions still on their way."""

    name = "otflinucb"
    among = True
    delays = "learns on the fly, widens its bonus by what is still missing"
    contextual = True
    unit_rewards = True
    paper = "Vernade et al. 2020, Algorithm 1; buffered bonus: Section 5"
    note = "width=theorem explores for thousands of rounds; the paper's figures use width=figures"
    alpha: float = parameter(1.0, "factor of the bonus", at_least=0)
    delta: float = parameter(0.1, "confidence level of the width", above=0, below=1)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    width: Literal["figures", "theorem"] = parameter("figures", "the published figures' width, or the theorem's")
    bonus: Literal["buffered", "exact"] = parameter("buffered", "norms stored at display, O(d²), or retaken, O(m d²)")
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal scores")

    def start(self, setting: Setting) -> OTFLinUCBState:
        """Return the state before the first round."""
        squared = self.width == "figures"
        return OTFLinUCBState(
            optimist=start_optimist(setting, ridge=self.ridge, squared=squared, ties=self.ties),
            missing=start_missing_feedback(setting, exact=self.bonus == "exact", squared=squared),
            dimension=setting.coefficients,
            alpha=self.alpha,
            delta=self.delta,
            ridge=self.ridge,
        )


def _prepare(state: OTFLinUCBState, rng: np.random.Generator) -> None:
    rounds = state.missing.rounds[0]
    total = missing_total(state.missing, state.optimist.ridge)
    if state.optimist.squared:
        width = math.sqrt(confidence(rounds, state.dimension, state.ridge, state.delta) + state.ridge) + total
    else:
        width = 2.0 * theorem_width(rounds, state.dimension, state.ridge, state.delta) + total
    begin_round(state.optimist, state.alpha * width, rng)


def _choose(state: OTFLinUCBState, vectors: npt.NDArray[np.floating]) -> int:
    return best(state.optimist, vectors)


def _wins(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], action: int, n_actions: int) -> bool:
    return is_best(state.optimist, vectors, action)


def _score(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> float:
    return upper_bound(state.optimist, vectors, action)


def _displayed(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    ridge = state.optimist.ridge
    remember_display(state.missing, ridge, vectors, action)
    add_display(ridge, block(ridge, action), vectors, row(vectors, action))


def _converted(state: OTFLinUCBState, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
    ridge = state.optimist.ridge
    add_reward(ridge, block(ridge, action), vector, value)


def _estimates(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
    estimate_rewards(state.optimist.ridge, vectors, values)


implement(
    OTFLinUCBState,
    prepare=_prepare,
    choose=_choose,
    wins=_wins,
    displayed=_displayed,
    converted=_converted,
    estimates=_estimates,
    score=_score,
)
