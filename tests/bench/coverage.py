"""Coverage of every 95 % interval on logs with known truth: ``python -m tests.bench.coverage``.

Anytime-valid intervals hold at every number of rounds at once, and so more often than 95 % at a single one.
"""

from __future__ import annotations

import argparse

from tests.bench.spread import add_options, spread_by
from tests.statistical.coverage import CELLS, HORIZON, KINDS, POLICIES, Cell, intervals_of, live, together

TITLE = "| policy | logging | young displays | logs | " + " | ".join(KINDS) + " |"


def live_values(runs: int, scenario: str) -> tuple[float, float]:
    return live(scenario, runs)


def intervals_on(
    cell: Cell, truth: tuple[float, float], bootstrap: int, seed: int
) -> tuple[tuple[float, float, float], ...]:
    return tuple(intervals_of(cell, truth, bootstrap, seed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coverage", description=__doc__)
    parser.add_argument("rows", nargs="*", help="some rows only, such as linear:uneven:drop")
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--live", type=int, default=20_000, help="live runs behind the truth of expected values")
    add_options(parser)
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
    shown = [cells[row] for row in asked.rows or cells]
    with spread_by(asked) as by:
        truths = dict(zip(POLICIES, by.over(live_values, tuple(POLICIES), asked.live, at_once=1), strict=True))
        rows = [((cell, truths[cell.scenario], asked.bootstrap), range(asked.logs)) for cell in shown]
        for cell, runs in zip(shown, by.rows(intervals_on, rows), strict=True):
            found = together(runs)
            share, n = found.held.mean(axis=0), len(found.held)
            se = (share * (1 - share) / n) ** 0.5
            of = zip(share, se, found.width.mean(axis=0), strict=True)
            figures = " | ".join(f"{p:.1%} ± {e:.1%} ({w:.3g})" for p, e, w in of)
            policies = " − ".join(reversed(POLICIES[cell.scenario]))
            first = POLICIES[cell.scenario][0]
            print(f"| {first} ({policies}) | {cell.logger} | {cell.young} | {n} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
