"""Small problems: every kind of world the loop knows."""

from __future__ import annotations

from typing import Any

from evaluator.delays.laws import DelayLaw, fixed, geometric, packet_loss, pareto
from evaluator.simulations import BernoulliProblem, LinearProblem


def bernoulli(
    *laws: DelayLaw, means: tuple[float, ...] = (0.5, 0.3, 0.7), horizon: int = 150, **more: Any
) -> BernoulliProblem:
    return BernoulliProblem(name="small", means=means, laws=laws or (geometric(12),), horizon=horizon, **more)


def linear(law: DelayLaw | None = None, *, horizon: int = 120, **more: Any) -> LinearProblem:
    return LinearProblem(
        name="small", n_actions=4, dimension=5, laws=(law or geometric(12, start=1),), horizon=horizon, **more
    )


WORLDS = {
    "geometric, window": bernoulli(geometric(12), window=20),
    "geometric, no window": bernoulli(geometric(12)),
    "window beyond the horizon": bernoulli(geometric(60), window=1000),
    "zero delay": bernoulli(fixed(0), window=1),
    "fixed at the window": bernoulli(fixed(20), window=20),
    "an arm a law": bernoulli(pareto(1.0), fixed(30), pareto(0.3), window=40),
    "zeros are told": bernoulli(geometric(12), zeros="told"),
    "zeros are told within a window": bernoulli(geometric(12), pareto(1.0), fixed(5), window=20, zeros="told"),
    "zeros are lost too": bernoulli(packet_loss(0.3), packet_loss(0.1), packet_loss(0.2, retry=25), zeros="told"),
    "some are lost": bernoulli(packet_loss(0.3), packet_loss(0.1), packet_loss(0.2, retry=25)),
}
LINEAR_WORLDS = {"window": linear(window=20), "no window": linear(), "longest delays": linear(fixed(119), window=119)}
