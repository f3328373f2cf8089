"""How often 95 % intervals hold where nobody knows the largest reward: ``python -m tests.bench.unknown_maximum``.

A log of n displays has rewards of one law; a tenth of them are the rounds of a replay. Held against the mean of the
law: the product's interval with the largest reward of the log taken for the largest possible, and an asymptotic
confidence sequence; held against the mean of capped rewards: the product's interval with that cap. In brackets, mean
half-widths in units of the mean. Prints Markdown.

The asymptotic sequence is that of Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas. Time-uniform central limit theory and
asymptotic confidence sequences. Annals of Statistics 52(6), 2024: Theorem 2.2, tuned for the number of rounds. The
product does not offer it: where rewards are so heavy that the first interval fails, it fails more often.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.estimates.confidence import mean_interval
from tests.bench.spread import add_options, spread_by

Floats = npt.NDArray[np.float64]
LEVEL, ROUNDS = 0.95, 0.1


class Law(NamedTuple):
    """Rewards of displays: how they are drawn, their mean, a cap, and the mean of what it leaves."""

    draw: Callable[[np.random.Generator, int], Floats]
    mean: float
    cap: float
    capped: float


def _normal_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2.0)) / 2.0


def _lognormal(rate: float, sigma: float, cap: float) -> Law:
    """Return the law of a display that earns something with this rate, then exp(sigma Z)."""
    log_cap = math.log(cap)
    capped = math.exp(sigma**2 / 2) * (1 - _normal_tail(log_cap / sigma - sigma)) + cap * _normal_tail(log_cap / sigma)
    return Law(
        lambda rng, n: (rng.random(n) < rate) * np.exp(sigma * rng.standard_normal(n)),
        rate * math.exp(sigma**2 / 2), cap, rate * capped,
    )  # fmt: skip


def _pareto(rate: float, index: float, cap: float) -> Law:
    capped = (index - cap ** (1.0 - index)) / (index - 1.0)
    return Law(
        lambda rng, n: (rng.random(n) < rate) * rng.random(n) ** (-1.0 / index),
        rate * index / (index - 1.0), cap, rate * capped,
    )  # fmt: skip


def _jackpot(rate: float, chance: float, worth: float) -> Law:
    """Return the law of a conversion of value 1 and, rarely, of a large one."""
    edges = np.array([chance, chance + rate])

    def draw(rng: np.random.Generator, n: int) -> Floats:
        return np.array([worth, 1.0, 0.0])[np.searchsorted(edges, rng.random(n), side="right")]

    return Law(draw, chance * worth + rate, 5.0, rate + chance * 5.0)


LAWS = {
    "one in 1,000 earns 1,000, a tenth 1": _jackpot(0.1, 0.001, 1000.0),
    "one in 10,000 earns 1,000, a tenth 1": _jackpot(0.1, 0.0001, 1000.0),
    "lognormal, sigma 1, a tenth": _lognormal(0.1, 1.0, 10.0),
    "lognormal, sigma 2, a tenth": _lognormal(0.1, 2.0, 20.0),
    "Pareto 2.5, a tenth": _pareto(0.1, 2.5, 5.0),
}
NAMES = ("largest seen", "asymptotic", "capped")


def asymptotic(x: Floats) -> tuple[float, float]:
    """Return the asymptotic confidence sequence at the end of some rounds, tuned for their number."""
    n, alpha = len(x), 1.0 - LEVEL
    rho2 = (-2.0 * math.log(alpha) + math.log(-2.0 * math.log(alpha)) + 1.0) / n
    v = float(x.var()) * n * rho2 + 1.0
    half = math.sqrt(2.0 * v / (n**2 * rho2) * math.log(math.sqrt(v) / alpha))
    return float(x.mean()) - half, float(x.mean()) + half


def held(law: Law, displays: int, seed: int) -> list[tuple[bool, float]]:
    """Return whether each interval of `NAMES` holds on one log, and its half-width over the mean."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(63,)))
    log = law.draw(rng, displays)
    x = log[: int(ROUNDS * displays)]  # of independent displays, any tenth will do
    seen = mean_interval(x, upper=float(log.max()) or 1.0, alpha=1.0 - LEVEL)
    capped = mean_interval(np.minimum(x, law.cap), upper=law.cap, alpha=1.0 - LEVEL)
    found = ((seen.low, seen.high, law.mean), (*asymptotic(x), law.mean), (capped.low, capped.high, law.capped))
    return [(low <= true <= high, (high - low) / 2 / true) for low, high, true in found]


def coverage(law: Law, displays: int, logs: int) -> tuple[Floats, Floats]:
    """Return how often each interval holds, and its mean half-width over the mean, shape (3,) each."""
    return together([held(law, displays, seed) for seed in range(logs)])


def together(logs: Sequence[Sequence[tuple[bool, float]]]) -> tuple[Floats, Floats]:
    """Return the same from what was found on each log (`held`)."""
    found = np.array(logs)
    return found[:, :, 0].mean(axis=0), found[:, :, 1].mean(axis=0)


def held_by(name: str, displays: int, seed: int) -> tuple[tuple[bool, float], ...]:
    return tuple(held(LAWS[name], displays, seed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.unknown_maximum", description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--displays", type=int, nargs="*", default=[1000, 10_000, 100_000])
    add_options(parser)
    asked = parser.parse_args()
    print(f"{asked.logs:,} logs a row, of which a tenth of the displays are rounds.\n")
    print("| rewards | displays | " + " | ".join(NAMES) + " |")
    print("|---" * (2 + len(NAMES)) + "|")
    cases = [(name, displays) for name in LAWS for displays in asked.displays]
    with spread_by(asked) as by:
        found = by.rows(held_by, [(case, range(asked.logs)) for case in cases], at_once=100)
        for (name, displays), of_logs in zip(cases, found, strict=True):
            share, width = together(of_logs)
            error = np.sqrt(share * (1 - share) / asked.logs)
            figures = " | ".join(f"{p:.1%} ± {e:.1%} ({w:.2g})" for p, e, w in zip(share, error, width, strict=True))
            print(f"| {name} | {displays:,} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
