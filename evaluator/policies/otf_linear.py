"""OTFLinUCB and OTFLinTS: linear policies on the fly, under delayed, censored feedback (Vernade et al. 2020).

V grows at the display, B at the conversion, so displays still waiting pull theta^ down; the policies allow for them.
With x = ||a|| in V_t⁻¹, and M the sum of the norms of the last m displays:

OTFLinUCB (Algorithm 1) scores an action by

    theorem   <a, theta^> + alpha (2 f_t + M) x
    figures   <a, theta^> + alpha (sqrt(b + ridge) + M) x², where b = 2 log(1/delta) + d log(1 + t/(ridge d)), and the
              norms in M are squared too

The theorem's width explores for thousands of rounds (it does not learn within the paper's own 3,000); the published
figures come from the squared one, which is the default. In the disjoint model d is that of e_k ⊗ x, i.e. K times the
context's.

OTFLinTS (Section 6) draws theta~ from N(theta^, g V_t⁻¹), where

    theorem   g = 1 + M / f_t, M of the norms
    figures   g = sigma0 + M, M of the squared norms, sigma0 = 0.5

The paper prints g without the constants; both readings are restored from its text and its figures (about 90 % sure).
That of the figures is one reading of the authors' released code. With its norms taken under the inflated, updated
matrix instead, (g V)⁻¹ once the display has entered V, the regret in the paper's setting at m = 500 is 134 instead of
155: ``notebooks/vernade2020_linear_delayed.ipynb`` plays both.

M is *buffered*: each display's norm is taken in its own round's V_s⁻¹ and stored, O(d²) a round; or *exact*: every norm
is taken anew in the current V_t⁻¹, O(m d²) a round (Section 5). The buffered sum is larger, since V only grows. By how
much OTFLinUCB's own is in the paper's setting (T = 3,000, delays of mean 100 to 500), on average after the first m
rounds, and at most before:

m                                          100         500         1000        before
norms (theorem's width)                    4 %         13 %        23 %        1.9 times
squared norms (figures' width, default)    7-8 %       25 %        43-48 %     5.4 times
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import LEAST_RIDGE, Regression, block, row, squared_norm
from evaluator.policies.base import Setting, parameter
from evaluator.policies.linear import (
    LinearPolicy,
    Optimist,
    PosteriorSampler,
    begin_round,
    confidence_width,
    implement_optimist,
    implement_sampler,
    learn_display,
    start_optimist,
    start_sampler,
)


class MissingFeedback(NamedTuple):
    """Ring of the last min(m, horizon) displays.

    Buffered, `norms` are those of the displays when they were shown, shape (m,), and `total` their sum, shape (1,).
    Exact, `vectors` and `blocks` are those of the displays, shape (m, d) and (m,). What is not used is empty. `rounds`
    is the number of displays so far, shape (1,); `squared` says whether norms are squared before they are summed.
    """

    norms: npt.NDArray[np.float64]
    vectors: npt.NDArray[np.float64]
    blocks: npt.NDArray[np.int64]
    total: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int64]
    squared: bool


class OTFLinUCBState(NamedTuple):
    """Regression and scores, the displays still waiting, and the parameters of the width."""

    optimist: Optimist
    missing: MissingFeedback
    dimension: int
    alpha: float
    delta: float
    ridge: float


class OTFLinTSState(NamedTuple):
    """Posterior, the displays still waiting, and the parameters of the scale."""

    sampler: PosteriorSampler
    missing: MissingFeedback
    dimension: int
    sigma0: float
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
        optimist = start_optimist(setting, ridge=self.ridge, diagonal=self.diagonal, squared=squared, ties=self.ties)
        missing = _start_missing(setting, exact=self.bonus == "exact", squared=squared)
        return OTFLinUCBState(optimist, missing, setting.coefficients, self.alpha, self.delta, self.ridge)


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
        missing = _start_missing(setting, exact=self.bonus == "exact", squared=self.width == "figures")
        sampler = start_sampler(setting, ridge=self.ridge, diagonal=self.diagonal)
        return OTFLinTSState(sampler, missing, setting.coefficients, self.sigma0, self.delta, self.ridge)


def _start_missing(setting: Setting, *, exact: bool, squared: bool) -> MissingFeedback:
    """Return the empty ring; a window beyond the horizon costs no more than the horizon."""
    size = min(setting.window, setting.horizon)
    held, buffered = (size, 0) if exact else (0, size)
    return MissingFeedback(
        np.zeros(buffered), np.zeros((held, setting.dimension)), np.zeros(held, np.int64), np.zeros(1),
        np.zeros(1, np.int64), squared,
    )  # fmt: skip


@inlinable
def _norm(ridge: Regression, b: int, vectors: npt.NDArray[np.floating], r: int, squared: bool) -> float:
    norm = squared_norm(ridge, b, vectors, r)
    return norm if squared else math.sqrt(norm)


@inlinable
def _missing_total(missing: MissingFeedback, ridge: Regression) -> float:
    """Return the sum over the last m displays for this round's decision."""
    if missing.norms.shape[0] > 0:
        return max(missing.total[0], 0.0)
    total = 0.0
    for i in range(min(missing.rounds[0], missing.blocks.shape[0])):
        total += _norm(ridge, missing.blocks[i], missing.vectors, i, missing.squared)
    return total


@inlinable
def _learn_display(missing: MissingFeedback, ridge: Regression, vectors: npt.NDArray[np.floating], action: int) -> None:
    """Put a display into the ring, and then into V."""
    r = row(vectors, action)
    b = block(ridge, action)
    n = missing.rounds[0]
    missing.rounds[0] = n + 1
    if missing.norms.shape[0] > 0:
        slot = n % missing.norms.shape[0]
        norm = _norm(ridge, b, vectors, r, missing.squared)
        missing.total[0] += norm - missing.norms[slot]
        missing.norms[slot] = norm
    elif missing.blocks.shape[0] > 0:  # a window of 0 holds nothing
        slot = n % missing.blocks.shape[0]
        missing.blocks[slot] = b
        for i in range(vectors.shape[1]):
            missing.vectors[slot, i] = vectors[r, i]
    learn_display(ridge, vectors, action)


def _begin(state: OTFLinUCBState, rng: np.random.Generator) -> None:
    squared = state.optimist.squared
    width = confidence_width(state, state.missing.rounds[0], squared) * (1.0 if squared else 2.0)
    begin_round(state.optimist, state.alpha * (width + _missing_total(state.missing, state.optimist.ridge)), rng)


def _shown_optimist(state: OTFLinUCBState, vectors: npt.NDArray[np.floating], action: int) -> None:
    _learn_display(state.missing, state.optimist.ridge, vectors, action)


@inlinable
def _scale(state: OTFLinTSState) -> float:
    """Return the root of g in this round."""
    total = _missing_total(state.missing, state.sampler.ridge)
    if state.missing.squared:
        return math.sqrt(state.sigma0 + total)
    return math.sqrt(1.0 + total / confidence_width(state, state.missing.rounds[0], False))


def _shown_sampler(state: OTFLinTSState, vectors: npt.NDArray[np.floating], action: int) -> None:
    _learn_display(state.missing, state.sampler.ridge, vectors, action)


implement_optimist(OTFLinUCBState, begin=_begin, shown=_shown_optimist)
implement_sampler(OTFLinTSState, scale=_scale, shown=_shown_sampler)
