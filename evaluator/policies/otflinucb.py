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

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.ridge import LEAST_RIDGE
from evaluator.policies.base import Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    Optimist,
    begin_round,
    confidence_width,
    implement_optimist,
    learn_display,
    start_optimist,
)
from evaluator.policies.missing_feedback import (
    MissingFeedback,
    missing_total,
    remember_display,
    start_missing_feedback,
)


class OTFLinUCBState(NamedTuple):
    """Regression and scores, the displays still waiting, and the parameters of the width."""

    optimist: Optimist
    missing: MissingFeedback
    dimension: int
    alpha: float
    delta: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class OTFLinUCB(LinearPolicy):
    """Linear UCB that learns on the fly and widens its bonus by the conversions still on their way."""

    name = "otflinucb"
    delays = "learns on the fly, widens its bonus by what is still missing"
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


def _begin(state: OTFLinUCBState, rng: np.random.Generator) -> None:
    squared = state.optimist.squared
    width = confidence_width(state, state.missing.rounds[0], squared) * (1.0 if squared else 2.0)
    begin_round(state.optimist, state.alpha * (width + missing_total(state.missing, state.optimist.ridge)), rng)


def _shown(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    remember_display(state.missing, state.optimist.ridge, vectors, action)
    learn_display(state.optimist.ridge, vectors, action)


implement_optimist(OTFLinUCBState, begin=_begin, shown=_shown)
