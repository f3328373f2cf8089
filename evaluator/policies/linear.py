"""What the linear policies share: a ridge regression with the scores of a round, and all that follows from these.

*Optimists* score an action by <a, theta^> + width · ||a|| in V⁻¹, or width · ||a||² where the norm is squared; a policy
says how wide. Equal scores go by the round's order of the actions (`evaluator.engine.kernels.argmax`), so that the
winner is unique.

*Samplers* score it by <a, theta~>, theta~ from N(theta^, scale² V⁻¹): one posterior draw a round, held until a display
is accepted; a policy says at which scale. Where all actions are eligible, a round draws theta~ of every block before
its first display. Where each display has its own eligible actions and each action its own block, few of the blocks are
ever asked: the round then draws a key, and the score of action a at vector x is <x, theta^> + scale ||x|| z, the norm
in V⁻¹ of its block, z normal number a of the key's stream (`evaluator.engine.kernels.ridge`): a round that asks ten
of a thousand actions spends ten draws, and whoever asks again in the round sees the same ones. At any one display that
is the law of <x, theta~>, of all eligible actions together: blocks are drawn independently of each other. Rejection
accepts a display with the same chance whatever the round has drawn, so the accepted one is such a display.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import LOWEST_FIRST, tie_key
from evaluator.engine.kernels.compiling import inlinable
from evaluator.engine.kernels.ridge import (
    Regression,
    add_display,
    add_reward,
    block,
    estimate_rewards,
    mean_and_norm,
    numbered_normal,
    predict,
    row,
    sample_theta,
    squared_norm,
    start_regression,
    stream_key,
)
from evaluator.policies.base import Policy, Setting, parameter
from evaluator.policies.dispatch import implement

# The key of a round whose theta~ are drawn.
_NO_KEY = -1


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Policy):
    """Description of a linear policy."""

    among = True
    contextual = True
    unit_rewards = True
    diagonal: bool = parameter(False, "keep the diagonal of V alone, for many features: O(d) a display, not O(d²)")


class Optimist(NamedTuple):
    """Regression, and what a round's scores depend on.

    Of shape (1,): the factor `width` of the norm in this round's scores, the key that decides among equal ones, drawn
    anew each round with `random_ties`, and the action that won last (`rival`): it is scored first by the lazy match,
    which changes how fast, never what is answered. `squared` says whether the norm is squared.
    """

    ridge: Regression
    width: npt.NDArray[np.float64]
    squared: bool
    tie_key: npt.NDArray[np.int64]
    random_ties: bool
    n_actions: int
    rival: npt.NDArray[np.int64]


def start_optimist(setting: Setting, *, ridge: float, diagonal: bool, squared: bool, ties: str) -> Optimist:
    """Return the regression before data, with a width of 0."""
    return Optimist(
        start_regression(setting.blocks, setting.dimension, ridge, diagonal=diagonal), np.zeros(1), squared,
        np.full(1, LOWEST_FIRST), ties == "random", setting.n_actions, np.zeros(1, np.int64),
    )  # fmt: skip


@inlinable
def begin_round(optimist: Optimist, width: float, rng: np.random.Generator) -> None:
    """Set the round's width and draw its order among equals."""
    optimist.width[0] = width
    if optimist.random_ties:
        optimist.tie_key[0] = tie_key(rng)


@inlinable
def upper_bound(optimist: Optimist, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return <theta^, a> + width ||a|| in V⁻¹ (or ||a||²). O(d²), with a diagonal V O(d)."""
    ridge = optimist.ridge
    mean, norm = mean_and_norm(ridge, block(ridge, action), vectors, row(vectors, action))
    return mean + optimist.width[0] * (norm if optimist.squared else math.sqrt(norm))


@inlinable
def predicted_reward(optimist: Optimist, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return <theta^, a>. O(d).

    To the last bit at most `upper_bound`: no width is negative, and a sum of this and no less is not rounded below it.
    """
    ridge = optimist.ridge
    return predict(ridge.theta, ridge.size, block(ridge, action), vectors, row(vectors, action))


@inlinable
def confidence_width(state: Any, rounds: int, squared: bool) -> float:
    """Return the width that the 2020 paper has for norms, or the one behind its figures, for squared norms.

    theorem   f_t = sqrt(ridge) + sqrt(b), where b = 2 log(1/delta) + d log(1 + t / (d ridge)), t = rounds + 1
    figures   sqrt(b + ridge)

    The state has d of all blocks together as `dimension`, and the parameters `ridge` and `delta`.
    """
    t = rounds + 1.0
    b = 2.0 * math.log(1.0 / state.delta) + state.dimension * math.log(1.0 + t / (state.ridge * state.dimension))
    return math.sqrt(b + state.ridge) if squared else math.sqrt(state.ridge) + math.sqrt(b)


class PosteriorSampler(NamedTuple):
    """Regression, and the draw of a round.

    `draw` are the coefficients theta~ of this round, shape (blocks, d). Of shape (1,): the action that won last
    (`rival`, as of an `Optimist`), the key of this round's normals where they are drawn as they are asked for, -1 where
    theta~ is drawn, and the scale of the draws of a round that has a key.
    """

    ridge: Regression
    draw: npt.NDArray[np.float64]
    rival: npt.NDArray[np.int64]
    n_actions: int
    key: npt.NDArray[np.int64]
    scale: npt.NDArray[np.float64]

    @property
    def later_fields(self) -> tuple[str, ...]:
        """Arrays that files of earlier versions lack: their rounds are as they were started, without a key."""
        return ("key", "scale")

    def read_earlier(self, name: str, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Leave out the factor of V, which files of earlier versions hold beside V⁻¹."""
        saved.pop(f"{name}.factor", None)


def start_sampler(setting: Setting, *, ridge: float, diagonal: bool) -> PosteriorSampler:
    """Return the posterior before data."""
    blocks, d = setting.blocks, setting.dimension
    return PosteriorSampler(
        start_regression(blocks, d, ridge, diagonal=diagonal), np.zeros((blocks, d)), np.zeros(1, np.int64),
        setting.n_actions, np.full(1, _NO_KEY), np.zeros(1),
    )  # fmt: skip


@inlinable
def draw_theta(sampler: PosteriorSampler, scale: float, rng: np.random.Generator) -> None:
    """Draw the round's theta~ from N(theta^, scale² V⁻¹), block by block."""
    sampler.key[0] = _NO_KEY
    for b in range(sampler.draw.shape[0]):
        sample_theta(sampler.ridge, b, scale, rng, sampler.draw[b])


@inlinable
def draw_key(sampler: PosteriorSampler, scale: float, rng: np.random.Generator) -> None:
    """Begin a round in which each display has its own eligible actions. O(1) where each action has its own block."""
    if sampler.draw.shape[0] == 1:
        draw_theta(sampler, scale, rng)
    else:
        sampler.key[0] = stream_key(rng)
        sampler.scale[0] = scale


@inlinable
def drawn_score(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return <a, theta~>. O(d)."""
    return predict(sampler.draw, sampler.ridge.size, block(sampler.ridge, action), vectors, row(vectors, action))


@inlinable
def sampled_score(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return what the round's draw makes of an action, whichever way the round was begun. O(d), with a key O(d²)."""
    key = sampler.key[0]
    if key == _NO_KEY:
        return drawn_score(sampler, vectors, action)
    ridge = sampler.ridge
    b, r = block(ridge, action), row(vectors, action)
    width = sampler.scale[0] * math.sqrt(squared_norm(ridge, b, vectors, r))
    return predict(ridge.theta, ridge.size, b, vectors, r) + width * numbered_normal(key, action)


@inlinable
def learn_display(ridge: Regression, vectors: npt.NDArray[np.floating], action: int) -> None:
    """Add a display to V. O(d²), with a diagonal V O(d)."""
    add_display(ridge, block(ridge, action), vectors, row(vectors, action))


def implement_optimist(state: type, **own: Any) -> None:
    """Register a state that has an `optimist`: `begin`, and what it does in a way of its own."""
    ranked: dict[str, Any] = {
        "ranking": _rank_optimist, "score": _score_optimist, "least_score": _least_score_optimist,
    }  # fmt: skip
    _implement(state, _optimist, **{**ranked, **own})


def implement_sampler(state: type, *, scale: Callable[..., float], **own: Any) -> None:
    """Register a state that has a `sampler`: the scale of a round's draws, and what it does in a way of its own."""

    def begin(state: Any, rng: np.random.Generator) -> None:
        draw_theta(state.sampler, scale(state), rng)

    def begin_among(state: Any, rng: np.random.Generator) -> None:
        draw_key(state.sampler, scale(state), rng)

    drawn: dict[str, Any] = {"begin": begin, "ranking": _rank_sampler, "score": _score_drawn}
    _implement(state, _sampler, **{**drawn, "begin_among": begin_among, "score_among": _score_sampled, **own})


def _implement(state: type, model: Callable[..., Any], **own: Any) -> None:
    """Register a state whose regression takes in each display and each conversion when it is told of it."""

    def shown(state: Any, vectors: npt.NDArray[np.floating], action: int) -> None:
        learn_display(model(state).ridge, vectors, action)

    def told(state: Any, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
        ridge = model(state).ridge
        add_reward(ridge, block(ridge, action), vector, value)

    def estimate(state: Any, vectors: npt.NDArray[np.floating], values: npt.NDArray[np.float64]) -> None:
        estimate_rewards(model(state).ridge, vectors, values)

    implement(state, **{"shown": shown, "told": told, "estimate": estimate, **own})


@inlinable
def _optimist(state: Any) -> Any:
    return state.optimist


@inlinable
def _sampler(state: Any) -> Any:
    return state.sampler


def _rank_optimist(state: Any) -> Any:
    return state.optimist.n_actions, state.optimist.tie_key[0], state.optimist.rival


def _rank_sampler(state: Any) -> Any:
    return state.sampler.n_actions, LOWEST_FIRST, state.sampler.rival


def _score_optimist(state: Any, vectors: npt.NDArray[np.floating], action: int) -> float:
    return upper_bound(state.optimist, vectors, action)


def _least_score_optimist(state: Any, vectors: npt.NDArray[np.floating], action: int) -> float:
    return predicted_reward(state.optimist, vectors, action)


# Where all actions are eligible a round has no key: what is compiled there knows none.
def _score_drawn(state: Any, vectors: npt.NDArray[np.floating], action: int) -> float:
    return drawn_score(state.sampler, vectors, action)


def _score_sampled(state: Any, vectors: npt.NDArray[np.floating], action: int) -> float:
    return sampled_score(state.sampler, vectors, action)
