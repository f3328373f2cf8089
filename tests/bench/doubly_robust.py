"""From how many rewards on weighted intervals hold: ``python -m tests.bench.doubly_robust``.

A row is a kind of log of known truth (`tests.statistical.few_rewards`). Of all its intervals, those too that a result
would withhold: how many hold, the value of the accepted rounds too (which is another target); how many are given, and
how many are given and miss. Rows are in the order of the number that decides, `evaluator.estimates.standard_errors`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from evaluator.estimates.standard_errors import NEEDED
from tests.bench.spread import add_options, spread_by
from tests.bench.tables import Row, print_table
from tests.statistical.few_rewards import Logger, World, frozen_of, learning_of

LOGGERS: tuple[Logger, ...] = ("uniform", "uneven")
SIZES = ((3, 0.002, 5000), (3, 0.005, 10_000), (3, 0.02, 3000), (3, 0.2, 300), (3, 0.2, 2500), (10, 0.1, 2000),
         (10, 0.2, 16_000), (80, 0.004, 10_000), (80, 0.2, 10_000))  # fmt: skip
WORLDS = [World(k, rate, logger, n) for logger in LOGGERS for k, rate, n in SIZES] + [
    World(3, 0.1, "steep", 20_000),
    World(3, 0.1, "uneven", 12_000, revenue=True, rhythm=True),
    World(10, 0.05, "uniform", 10_000, revenue=True),
    World(10, 0.05, "uniform", 10_000, rhythm=True),
]
ESTIMATORS, POLICIES = ("ips", "snips", "dr"), ("klucb", "thompson", "linucb:alpha=0.3")
HEADERS = ("log", "rewards", "holds", "holds the rounds'", "given", "given and misses")


# Of an interval, its rewards, and whether it holds the truth, and the value of the accepted rounds.
Held = tuple[float, bool, bool]


def frozen(world: World, seed: int) -> tuple[Held, ...]:
    """Return what was found of each of `ESTIMATORS` on one log."""
    found = frozen_of(world, seed)
    return tuple((found[name].value.rewards, found[name].holds, found[name].holds_rounds) for name in ESTIMATORS)


def learning(world: World, policy: str, seed: int) -> Held:
    found = learning_of(world, policy, seed)
    return found.value.rewards, found.holds, found.holds_rounds


def row(name: str, found: Sequence[Held]) -> tuple[float, Row]:
    rewards, holds, rounds = (np.array(of) for of in zip(*found, strict=True))
    given = rewards >= NEEDED
    middle = float(np.median(rewards))
    shares = (holds, rounds, given, given & ~holds)
    return middle, (name, f"{middle:.1f}", *(_share(of) for of in shares))


def _share(of: np.ndarray) -> str:
    p, n = float(of.mean()), len(of)
    return f"{p:.1%} ± {math.sqrt(p * (1 - p) / n):.1%}"


def _name(world: World) -> str:
    untidy = "".join(word for word, on in ((", revenue", world.revenue), (", rhythm", world.rhythm)) if on)
    return f"K = {world.actions}, rate {world.rate:g}, {world.logger}, {world.displays:,}{untidy}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.doubly_robust", description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--only", choices=["frozen", "learning"])
    add_options(parser)
    asked = parser.parse_args()
    print(f"{asked.logs} logs a row, 95 % intervals; given from {NEEDED} rewards of equal weight on\n")
    seeds = range(asked.logs)
    with spread_by(asked) as by:
        if asked.only != "learning":
            of_worlds = by.rows(frozen, [((world,), seeds) for world in WORLDS], at_once=50)
            rows = [
                row(f"{name}: {_name(world)}", of)
                for world, found in zip(WORLDS, of_worlds, strict=True)
                for name, of in zip(ESTIMATORS, zip(*found, strict=True), strict=True)
            ]
            print_table(
                ("frozen policy, " + HEADERS[0], *HEADERS[1:]), [of for _, of in sorted(rows, key=lambda r: r[0])]
            )
            print()
        if asked.only != "frozen":
            cases = [(world, policy) for world in WORLDS for policy in POLICIES]
            of_cases = by.rows(learning, [(case, seeds) for case in cases])
            rows = [
                row(f"{policy}: {_name(world)}", found) for (world, policy), found in zip(cases, of_cases, strict=True)
            ]
            print_table(("learning, " + HEADERS[0], *HEADERS[1:]), [of for _, of in sorted(rows, key=lambda r: r[0])])


if __name__ == "__main__":
    main()
