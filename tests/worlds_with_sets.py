"""Worlds of known truth whose eligible actions vary: an independent reference in plain NumPy, slow and clear."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.log import Log
from tests.logs import build_log

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

SETS = ("constant", "calendar", "context", "random")
LOGGERS = ("uniform", "popularity", "softmax")
DIMENSION = 5


@dataclass(frozen=True)
class World:
    """A world: what may be shown when, who logs, and what it earns.

    Parameters
    ----------
    sets
        How sets come about: one of `SETS`. Constant ones leave the same actions out of every display; on a calendar
        actions arrive and retire at shares of a run.
    logger
        Who shows actions among the eligible ones: one of `LOGGERS`.
    k
        Number of actions.
    seed
        Seed of all that is fixed: rates, scores, arrivals.
    contextual
        How far a reward follows the context: 0 for rates that are those of the action alone.
    mean_delay, window
        Mean of the geometric delays on {0, 1, ...}, and the longest that the log sees, in displays.
    rates
        Reward probabilities of the actions at the mean context, shape (K,); drawn unless given.
    """

    sets: str = "calendar"
    logger: str = "popularity"
    k: int = 12
    seed: int = 7
    contextual: float = 0.0
    mean_delay: float = 50.0
    window: int = 200
    rates: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        drawn = rng.uniform(0.05, 0.35, self.k)
        if not len(self.rates):
            object.__setattr__(self, "rates", drawn)
        parts = {
            "slopes": rng.uniform(-1.0, 1.0, (self.k, DIMENSION)) / DIMENSION,
            "scores": rng.normal(0.0, 1.0, (self.k, DIMENSION)) / np.sqrt(DIMENSION),
            "popularity": rng.exponential(1.0, self.k) + 0.2,
            "normals": rng.normal(0.0, 1.0, (self.k, DIMENSION)),
            # A quarter of the actions is always there; the others have half of the time, at most.
            "arrives": np.where(np.arange(self.k) % 4 == 0, 0.0, rng.uniform(0.0, 0.6, self.k)),
        }
        parts["retires"] = np.where(np.arange(self.k) % 4 == 0, 1.1, parts["arrives"] + rng.uniform(0.2, 0.5, self.k))
        self.__dict__.update(parts)

    arrives: Floats = field(init=False, repr=False)
    retires: Floats = field(init=False, repr=False)
    slopes: Floats = field(init=False, repr=False)
    scores: Floats = field(init=False, repr=False)
    popularity: Floats = field(init=False, repr=False)
    normals: Floats = field(init=False, repr=False)


class Displays(NamedTuple):
    """Displays of a log: contexts, sets, truths, and what the logger did, row by row together."""

    context: Floats
    eligible: Truths
    expected: Floats
    probability: Floats
    action: Ints
    propensity: Floats
    rewarded: Truths
    delay: Ints


def offers(world: World, share_of_run: Floats, rng: np.random.Generator) -> tuple[Floats, Truths, Floats]:
    """Return contexts (n, 5), sets (n, K) and expected rewards (n, K) of displays at these shares of a run."""
    n, k = len(share_of_run), world.k
    x = rng.uniform(-1.0, 1.0, (n, DIMENSION))
    luck = rng.random((n, k))
    at = share_of_run[:, None]
    eligible = {
        "constant": np.tile(np.arange(k) % 6 != 2, (n, 1)),
        "calendar": (world.arrives <= at) & (at < world.retires),
        "context": x @ world.normals.T > 0.0,
        "random": luck < np.linspace(0.15, 0.9, k),
    }[world.sets]
    eligible[~eligible.any(axis=1), 0] = True
    expected = np.clip(world.rates + world.contextual * (x @ world.slopes.T), 0.0, 1.0)
    return x, eligible, expected


def shown_with(world: World, x: Floats, eligible: Truths) -> Floats:
    """Return the logger's probability of each action at each display, shape (n, K)."""
    weight = {
        "uniform": np.ones(eligible.shape),
        "popularity": np.tile(world.popularity, (len(x), 1)),
        "softmax": np.exp(x @ world.scores.T),
    }[world.logger]
    weight = np.where(eligible, weight, 0.0)
    return weight / weight.sum(axis=1, keepdims=True)


def make_displays(world: World, n: int, seed: int, *, at: Floats | None = None, alike: int = 1) -> Displays:
    """Return n logged displays, at these shares of a run or evenly over it, so many in a row of one context and set."""
    # Worlds share no draw, so that errors of several can be pooled as independent ones.
    rng = np.random.default_rng([seed, world.seed, SETS.index(world.sets), LOGGERS.index(world.logger)])
    offered = offers(world, np.arange(n) / n if at is None else at, rng)
    x, eligible, expected = (part[np.arange(n) // alike * alike] for part in offered)
    p = shown_with(world, x, eligible)
    row = np.arange(n)
    # The last eligible action where a cumulated probability falls short of 1 by rounding.
    last = world.k - 1 - eligible[:, ::-1].argmax(axis=1)
    action = np.minimum((rng.random((n, 1)) >= np.cumsum(p, axis=1)).sum(axis=1), last)
    rewarded = rng.random(n) < expected[row, action]
    delay = rng.geometric(1.0 / (1.0 + world.mean_delay), n) - 1
    return Displays(x, eligible, expected, p, action, p[row, action], rewarded, delay)


def make_log(world: World, drawn: Displays) -> Log:
    """Return a log of these displays, one a tick, whose conversions later than the window are never seen."""
    shown = np.flatnonzero(drawn.rewarded & (drawn.delay <= world.window))
    return build_log(
        time=np.arange(len(drawn.action)),
        action=drawn.action,
        conversion_display=shown,
        conversion_time=shown + drawn.delay[shown],
        n_actions=world.k,
        propensity=drawn.propensity,
        context=drawn.context,
        eligible=drawn.eligible,
        expected_reward=drawn.expected,
        attribution_window=world.window,
        reward_max=1.0,
    )


def packed(eligible: Truths) -> npt.NDArray[np.uint8]:
    """Return sets as bits, 64 actions at a time, shape (n, 8 ceil(K / 64))."""
    whole = np.zeros((len(eligible), -(-eligible.shape[1] // 64) * 64), np.bool_)
    whole[:, : eligible.shape[1]] = eligible
    return np.packbits(whole, axis=1, bitorder="little")


def true_order_value(expected: Floats, eligible: Truths, order: Ints) -> float:
    """Return the mean expected reward of showing the first eligible action of an order, display by display."""
    total = 0.0
    for i in range(len(expected)):
        first = next((a for a in order if eligible[i, a]), None)
        total += 0.0 if first is None else expected[i, first]
    return total / len(expected)
