"""What the linear Thompson policies share: one posterior draw a round, held until a display is accepted.

Where all actions are eligible, a round draws theta~ of every block before its first display. Where each display has its
own eligible actions and each action its own block, few of the blocks are ever asked: the round then draws a key, and
the score of action a at vector x is <x, theta^> + scale ||x|| z, the norm in V⁻¹ of its block, z the standard normal of
number a of the key's stream (`evaluator.kernels.normals`). At any one display that is the law of <x, theta~>, of all
eligible actions together: blocks are drawn independently of each other. Rejection accepts a display with the same
chance whatever the round has drawn, so the accepted one is such a display.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.kernels.compiling import inlinable
from evaluator.kernels.memory import DISPLAYS_AHEAD, prefetch
from evaluator.kernels.normals import numbered_normal, stream_key
from evaluator.kernels.ridge import Ridge, add_display, block, predict, row, sample_theta, squared_norm, start_ridge
from evaluator.kernels.scores import check_score
from evaluator.policies.base import Setting

# The key of a round whose theta~ are drawn.
_NO_KEY = -1


class PosteriorSampler(NamedTuple):
    """Posterior and the round's draw.

    Parameters
    ----------
    ridge
        State of the ridge regression.
    draw
        Coefficients theta~ drawn for this round, shape (blocks, d).
    rival
        Action that won last, shape (1,): scored first by the lazy match; it changes how fast, never what is answered.
    n_actions
        Number of actions K.
    key
        Key of this round's normals, shape (1,), where they are drawn as they are asked for; -1 where theta~ is drawn.
    scale
        Scale of this round's draws, shape (1,), where it has a key.
    """

    ridge: Ridge
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


def start_sampler(setting: Setting, ridge: float) -> PosteriorSampler:
    """Return the posterior before data."""
    blocks, d = setting.blocks, setting.dimension
    return PosteriorSampler(
        start_ridge(blocks, d, ridge),
        np.zeros((blocks, d)),
        np.zeros(1, np.int64),
        setting.n_actions,
        np.full(1, _NO_KEY),
        np.zeros(1),
    )


@inlinable
def draw_theta(sampler: PosteriorSampler, scale: float, rng: np.random.Generator) -> None:
    """Draw the round's theta~ from N(theta^, scale² V⁻¹), block by block."""
    sampler.key[0] = _NO_KEY
    for b in range(sampler.draw.shape[0]):
        sample_theta(sampler.ridge, b, scale, rng, sampler.draw[b])


@inlinable
def begin_among(sampler: PosteriorSampler, scale: float, rng: np.random.Generator) -> None:
    """Begin a round in which each display has its own eligible actions. O(1) where each action has its own block."""
    if sampler.draw.shape[0] == 1:
        draw_theta(sampler, scale, rng)
    else:
        sampler.key[0] = stream_key(rng)
        sampler.scale[0] = scale


@inlinable
def score_among(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return what the round's draw makes of an action, whichever way the round was begun. O(d²)."""
    key = sampler.key[0]
    if key == _NO_KEY:
        return sampled_score(sampler, vectors, action)
    ridge = sampler.ridge
    b, r = block(ridge, action), row(vectors, action)
    width = sampler.scale[0] * math.sqrt(squared_norm(ridge, b, vectors, r))
    return predict(ridge.theta, ridge.size, b, vectors, r) + width * numbered_normal(key, action)


@inlinable
def sampled_score(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> float:
    """Return <a, theta~>. O(d)."""
    return predict(sampler.draw, sampler.ridge.size, block(sampler.ridge, action), vectors, row(vectors, action))


@inlinable
def best_sampled(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating]) -> int:
    """Return the action with the largest <a, theta~>; among equals (equal vectors) the lowest index."""
    winner = 0
    top = sampled_score(sampler, vectors, 0)
    check_score(top, 0)
    for k in range(1, sampler.n_actions):
        s = sampled_score(sampler, vectors, k)
        check_score(s, k)
        if s > top:
            winner = k
            top = s
    return winner


@inlinable
def is_best_sampled(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> bool:
    """Return whether `best_sampled` would choose the action, stopping at the first one that beats it."""
    own = sampled_score(sampler, vectors, action)
    first = sampler.rival[0]
    prefetch(vectors, DISPLAYS_AHEAD, row(vectors, first))
    s = sampled_score(sampler, vectors, first)
    if s > own or (s == own and first < action):
        return False
    for k in range(sampler.n_actions):
        s = sampled_score(sampler, vectors, k)
        if s > own or (s == own and k < action):
            sampler.rival[0] = k
            return False
    check_score(own, action)
    sampler.rival[0] = action
    return True


@inlinable
def add_sampled_display(sampler: PosteriorSampler, vectors: npt.NDArray[np.floating], action: int) -> None:
    """Add a display to V. O(d²)."""
    add_display(sampler.ridge, block(sampler.ridge, action), vectors, row(vectors, action))
