"""Random logged rounds in every layout, and settings for them: whatever a test varies is an argument."""

from __future__ import annotations

from typing import Literal

import numpy as np

from evaluator.delays.cdf import DelayCDF
from evaluator.policies.base import NO_WINDOW, Setting
from tests.logged_rounds import LoggedRounds

Layout = Literal["none", "sets", "contexts", "catalogue", "target", "taken"]


def random_rounds(
    layout: Layout,
    n: int = 500,
    *,
    n_actions: int = 4,
    dimension: int = 5,
    mean_delay: float = 12.0,
    kept: float = 0.9,
    units: bool = False,
    seed: int = 0,
) -> LoggedRounds:
    """Return uniform displays with 0 to 2 conversions each.

    Values are continuous, so that no two arms with a conversion tie, unless `units` asks for at most one conversion
    of value 1. A share of the displays is thinned out.
    """
    rng = np.random.default_rng(seed)
    shape = {
        "none": (1, 1, 0),
        "sets": (n, n_actions, dimension),
        "contexts": (n, 1, dimension),
        "catalogue": (1, n_actions, dimension),
        "target": (n, 1, n_actions),
        "taken": (n, 1, 1),
    }[layout]
    action = rng.integers(0, n_actions, n).astype(np.int32)
    rates = np.linspace(0.2, 0.6, n_actions)
    count = (rng.random(n) < rates[action]).astype(np.int64)
    if not units:
        count += rng.random(n) < 0.1
    total = int(count.sum())
    vectors = rng.random(shape)
    if layout == "target":
        vectors /= vectors.sum(axis=2, keepdims=True)
    if layout == "taken":  # -1: no action of the log
        vectors = rng.integers(-1, n_actions, shape).astype(np.float64)
    return LoggedRounds(
        action=action,
        vectors=vectors,
        first_conversion=np.concatenate(([0], np.cumsum(count))),
        delay=rng.geometric(1 / (1 + mean_delay), total) - 1,
        value=np.ones(total) if units else rng.uniform(0.1, 1.0, total),
        n_actions=n_actions,
    ).thinned(rng.random(n) < kept)


def setting_for(
    rounds: LoggedRounds,
    *,
    window: int = NO_WINDOW,
    horizon: int | None = None,
    delay_cdf: DelayCDF | None = None,
    reward_max: float = 1.0,
) -> Setting:
    """Return what a policy is told of these rounds."""
    dimension = rounds.vectors.shape[2]
    return Setting(
        n_actions=rounds.n_actions,
        dimension=dimension,
        rows=rounds.vectors.shape[1] if dimension else 0,
        window=window,
        horizon=len(rounds) if horizon is None else horizon,
        delay_cdf=delay_cdf,
        reward_max=reward_max,
    )
