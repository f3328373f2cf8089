"""The picture of schedules: regret of four policies by how often they learn, each live against a known truth.

``python -m tests.bench.cadences`` prints the table; ``--svg docs/pictures/cadences.svg`` draws the page's picture too.
Three arms with rates from .1 to .3, conversions 500 rounds late on average, a window of 1,000: the scenario of the
consoles of that page. Two minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluator import simulate
from tests.bench.pictures import Cadence, draw_cadences
from tests.bench.tables import print_table

SCENARIO, HORIZON, RUNS = "vernade2017-low", 10_000, 400
POLICIES = ("ucb1", "delayed-ucb", "klucb", "thompson")
# Rounds from one push to the next; 1 is at each event.
CADENCES = (1, 100, 250, 500, 1_000, 2_000)


def measured(runs: int) -> dict[str, list[Cadence]]:
    """Return the regret of each policy at the horizon and its standard error, by the rounds between two pushes."""
    found: dict[str, list[Cadence]] = {policy: [] for policy in POLICIES}
    for every in CADENCES:
        lived = simulate(SCENARIO, list(POLICIES), runs=runs, horizon=HORIZON, learn_every=every, jobs=2)
        for policy, curve in zip(POLICIES, lived.curves, strict=True):
            found[policy].append(Cadence(every, float(curve.regret[-1]), float(curve.regret_se[-1])))
    return found


def main() -> None:
    """Print the table, and draw it where a file is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cadences", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--svg", type=Path, help="where the picture goes")
    given = parser.parse_args()
    found = measured(given.runs)
    rows = [(policy, *(f"{of.regret:.1f} ± {of.error:.1f}" for of in line)) for policy, line in found.items()]
    print_table(("regret, learning every", *(f"{every:,}" for every in CADENCES)), rows)
    if given.svg is not None:
        draw_cadences(found, f"{SCENARIO}: {HORIZON:,} rounds, conversions 500 rounds late on average", given.svg)


if __name__ == "__main__":
    main()
