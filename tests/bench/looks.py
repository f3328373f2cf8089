"""How often intervals miss at any of several looks at a log that grows: ``python -m tests.bench.looks``.

Two fixed actions that earn the same, of three that are shown alike, reward .2; a log of n displays is looked at when a
twentieth of it has come, two twentieths, and so on. Counted are logs on which an interval of the difference leaves 0
out at any look: the weighted one, without and with a plan of as many looks, and the realised one, which is along the
order of the log and holds at every display of it. Prints Markdown.
"""

from __future__ import annotations

import argparse

import numpy as np

from evaluator import compare
from evaluator.estimates.confidence import Interval
from tests.bench.spread import add_options, spread_by
from tests.comparisons.test_verdict import shown

POLICIES = ["fixed:action=0", "fixed:action=1"]
INTERVALS = ("weighted, good for one look", "weighted, by a plan of these looks", "realised")


def looked_at(n: int, looks: int, seed: int) -> list[list[bool]]:
    """Return of one log, for each of `INTERVALS`, whether it is below 0, and above 0, at any of the looks."""
    log = shown((0.2, 0.2, 0.2), n=n, seed=seed, attribution_window=1)
    found = np.zeros((3, 2), np.bool_)
    for k in range(1, looks + 1):
        part = log.until(n * k // looks)
        for plan, rows in (("", (0, 2)), (f"{k} of {looks}", (1,))):
            asked = {"look": plan} if plan else {}
            result = compare(part, POLICIES, baseline=POLICIES[0], ship_if="uplift > 0", seed=seed, **asked)
            one = next(of for of in result.differences if (of.variant, of.reference) in ((0, 1), (1, 0)))
            weighted = None if one.weighted is None else one.weighted.value
            assert result.verdict is not None
            decided = result.verdict.candidates[0].difference
            of_rows: dict[int, Interval | None] = {0: weighted, 1: decided, 2: one.realised}
            turned = one.variant == 0
            for row in rows:
                interval = of_rows[row]
                if interval is not None:
                    sides = [interval.high < 0, interval.low > 0]
                    found[row] |= sides[::-1] if turned and row != 1 else sides
    return found.tolist()  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.looks", description=__doc__)
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--displays", type=int, default=5_000)
    parser.add_argument("--looks", type=int, default=20)
    add_options(parser)
    asked = parser.parse_args()
    with spread_by(asked) as by:
        logs = next(iter(by.rows(looked_at, [((asked.displays, asked.looks), range(asked.logs))])))
    print(f"| interval of 95 % | leaves 0 out at any of {asked.looks} looks | above 0 |\n|---|---|---|")
    of = np.array(logs, np.float64)
    for row, name in enumerate(INTERVALS):
        shares = of[:, row].max(axis=1).mean(), of[:, row, 1].mean()
        cells = [f"{p:.1%} ± {np.sqrt(p * (1 - p) / len(of)):.1%}" for p in shares]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
