"""Coverage of intervals for new users, where displays of one hang together: ``python -m tests.bench.clusters``.

Each row is a crowd and what its displays were clustered by (-: taken as independent): share of the logs on which the
interval holds ± its standard error, and in brackets its mean width. Prints Markdown.
"""

from __future__ import annotations

import argparse

import numpy as np

from tests.statistical.users import CROWDS, KINDS, coverage


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.clusters", description=__doc__)
    parser.add_argument("crowds", nargs="*", type=int, help=f"numbers of some crowds, 0 to {len(CROWDS) - 1}")
    parser.add_argument("--by", nargs="*", default=["-", "user"], help="-, user, or every:500; both of the first two")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--bootstrap", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1000, help="replays of new users behind the expected values")
    asked = parser.parse_args()
    print(f"{asked.logs} logs a row, {asked.bootstrap} resampled logs; expected values from {asked.runs:,} replays.\n")
    print("| crowd | clustered by | " + " | ".join(KINDS) + " |")
    print("|---" * (2 + len(KINDS)) + "|")
    for crowd in [CROWDS[i] for i in asked.crowds or range(len(CROWDS))]:
        for by in asked.by:
            name = None if by == "-" else by
            found = coverage(crowd, by=name, logs=asked.logs, bootstrap=asked.bootstrap, runs=asked.runs)
            share = found.held.mean(axis=0)
            error = np.sqrt(share * (1 - share) / len(found.held))
            cells = zip(share, error, found.width.mean(axis=0), strict=True)
            figures = " | ".join(f"{p:.1%} ± {e:.1%} ({w:.3g})" for p, e, w in cells)
            print(f"| {crowd.name} | {by} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
