"""OTFLinTS: Thompson sampling with the OTF estimator (Vernade et al. 2020, Section 6).

theta~ is drawn from N(theta^, g V_t⁻¹). With M the sum of `evaluator.policies.missing_feedback`:

theorem   g = 1 + M / f_t, M of the norms
figures   g = sigma0 + M, M of the squared norms, sigma0 = 0.5

The paper prints g without the constants; both readings are restored from its text and its figures (about 90 % sure).
That of the figures is one reading of the authors' released code. With its norms taken under the inflated, updated
matrix instead, (g V)⁻¹ once the display has entered V, the regret in the paper's setting at m = 500 is 134 instead of
155: ``notebooks/vernade2020_linear_delayed.ipynb`` plays both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import LEAST_RIDGE
from evaluator.policies.base import Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    PosteriorSampler,
    confidence_width,
    implement_sampler,
    learn_display,
    start_sampler,
)
from evaluator.policies.missing_feedback import (
    MissingFeedback,
    missing_total,
    remember_display,
    start_missing_feedback,
)


class OTFLinTSState(NamedTuple):
    """Posterior, the displays still waiting, and the parameters of the scale."""

    sampler: PosteriorSampler
    missing: MissingFeedback
    dimension: int
    sigma0: float
    delta: float
    ridge: float


@dataclass(frozen=True, kw_only=True)
class OTFLinTS(LinearPolicy):
    """Linear Thompson sampling that learns on the fly and widens its posterior by the conversions on their way."""

    name = "otflints"
    delays = "the same, by posterior sampling"
    posterior = True
    paper = "Vernade et al. 2020, Section 6"
    sigma0: float = parameter(0.5, "variance factor before anything is missing (figures)", above=0)
    delta: float = parameter(0.1, "confidence level of f_t (theorem)", above=0, below=1)
    ridge: float = parameter(1.0, "ridge regularisation", at_least=LEAST_RIDGE)
    width: Literal["figures", "theorem"] = parameter("figures", "our reading of the released code, or the text's")
    bonus: Literal["buffered", "exact"] = parameter("buffered", "norms stored at display, O(d²), or retaken, O(m d²)")

    def start(self, setting: Setting) -> OTFLinTSState:
        """Return the state before the first round."""
        return OTFLinTSState(
            sampler=start_sampler(setting, self.ridge),
            missing=start_missing_feedback(setting, exact=self.bonus == "exact", squared=self.width == "figures"),
            dimension=setting.coefficients,
            sigma0=self.sigma0,
            delta=self.delta,
            ridge=self.ridge,
        )


@inlinable
def _scale(state: OTFLinTSState) -> float:
    """Return the root of g in this round."""
    total = missing_total(state.missing, state.sampler.ridge)
    if state.missing.squared:
        return math.sqrt(state.sigma0 + total)
    return math.sqrt(1.0 + total / confidence_width(state, state.missing.rounds[0], False))


def _shown(state: OTFLinTSState, vectors: npt.NDArray[np.floating], action: int) -> None:
    remember_display(state.missing, state.sampler.ridge, vectors, action)
    learn_display(state.sampler.ridge, vectors, action)


implement_sampler(OTFLinTSState, scale=_scale, shown=_shown)
