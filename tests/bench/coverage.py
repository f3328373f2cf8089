"""Coverage of every 95 % interval on logs with known truth: ``python -m tests.bench.coverage``.

Anytime-valid intervals hold at every number of rounds at once, and so more often than 95 % at a single one.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.statistical.coverage import CELLS, HORIZON, KINDS, POLICIES, coverage, live

TITLE = "| policy | logging | young displays | logs | " + " | ".join(KINDS) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coverage", description=__doc__)
    parser.add_argument("rows", nargs="*", help="some rows only, such as linear:uneven:drop")
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--live", type=int, default=20_000, help="live runs behind the truth of expected values")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    print(
        f"{asked.logs} logs a row, {HORIZON} rounds, {asked.bootstrap} resampled replays; "
        f"truth from {asked.live:,} live runs.\n"
    )
    print(TITLE)
    print("|---" * (4 + len(KINDS)) + "|")
    cells = {f"{cell.scenario}:{cell.logger}:{cell.young}": cell for cell in CELLS}
    unknown = set(asked.rows) - set(cells)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(cells)}")
    truths = {scenario: live(scenario, asked.live) for scenario in POLICIES}
    for cell in (cells[row] for row in asked.rows or cells):
        with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
            found = coverage(cell, pool, truth=truths[cell.scenario], logs=asked.logs, bootstrap=asked.bootstrap)
        share, n = found.held.mean(axis=0), len(found.held)
        se = (share * (1 - share) / n) ** 0.5
        figures = [f"{p:.1%} ± {e:.1%} ({w:.3g})" for p, e, w in zip(share, se, found.width.mean(axis=0), strict=True)]
        policies = " − ".join(reversed(POLICIES[cell.scenario]))
        first = POLICIES[cell.scenario][0]
        print(f"| {first} ({policies}) | {cell.logger} | {cell.young} | {n} | " + " | ".join(figures) + " |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
