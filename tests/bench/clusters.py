"""Coverage of intervals for new users, where displays of one hang together: ``python -m tests.bench.clusters``.

Each row is a crowd and what its displays were clustered by (-: taken as independent): share of the logs on which the
interval holds ± its standard error, and in brackets its mean width. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from tests.bench.spread import Spread, add_options, spread_by
from tests.statistical.users import CROWDS, KINDS, Crowd, intervals, together, values


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.clusters", description=__doc__)
    parser.add_argument("crowds", nargs="*", type=int, help=f"numbers of some crowds, 0 to {len(CROWDS) - 1}")
    parser.add_argument("--by", nargs="*", default=["-", "user"], help="-, user, or every:500; both of the first two")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1000, help="replays of new users behind the expected values")
    add_options(parser)
    asked = parser.parse_args()
    print(f"{asked.logs} logs a row, {asked.bootstrap} resampled logs; expected values from {asked.runs:,} replays.\n")
    print("| crowd | clustered by | " + " | ".join(KINDS) + " |")
    print("|---" * (2 + len(KINDS)) + "|")
    crowds = [CROWDS[i] for i in asked.crowds or range(len(CROWDS))]
    with spread_by(asked) as by:
        truths = expected_values(by, crowds, asked.runs)
        shown = [(crowd, column) for crowd in crowds for column in asked.by]
        rows = [
            ((crowd, truths[crowd], asked.bootstrap, None if column == "-" else column), range(asked.logs))
            for crowd, column in shown
        ]
        for (crowd, column), of_logs in zip(shown, by.rows(intervals, rows), strict=True):
            found = together(of_logs)
            share = found.held.mean(axis=0)
            error = np.sqrt(share * (1 - share) / len(found.held))
            cells = zip(share, error, found.width.mean(axis=0), strict=True)
            figures = " | ".join(f"{p:.1%} ± {e:.1%} ({w:.3g})" for p, e, w in cells)
            print(f"| {crowd.name} | {column} | {figures} |", flush=True)


def expected_values(by: Spread, crowds: Sequence[Crowd], runs: int) -> dict[Crowd, tuple[float, ...]]:
    """Return what both policies earn on average, by as many replays of new users, none of them judged."""
    found = by.rows(values, [((crowd,), range(10**6, 10**6 + runs)) for crowd in crowds])
    means = [tuple(np.mean(of_crowd, axis=0).tolist()) for of_crowd in found]
    return dict(zip(crowds, means, strict=True))


if __name__ == "__main__":
    main()
