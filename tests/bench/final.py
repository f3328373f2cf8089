"""How often the intervals of final policies hold, greedy and exploring: ``python -m tests.bench.final``.

Prints a Markdown table: the mean true value of both, and the share of the logs whose interval holds the truth, by
estimator, with standard errors; and how often the exploring policy's interval holds the value of the greedy one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from tests.bench.spread import add_options, spread_by
from tests.statistical.final_runs import ARMS, CONTEXTUAL, one_log

ESTIMATORS, FINALS = ("dr", "snips", "ips"), ("greedy", "exploring")
# The name of a final policy, its true value, and the ends of the interval of each of `ESTIMATORS`.
Found = tuple[str, float, tuple[tuple[float, float], ...]]


def on_log(policy: str, tidy: bool, run: int) -> tuple[Found, ...]:
    """Return what is found of each of `FINALS` on one log."""
    log = one_log(policy, tidy, run)
    return tuple(
        (
            log[final].found.policy,
            log[final].truth,
            tuple((v.value.low, v.value.high) for v in (getattr(log[final].found, name) for name in ESTIMATORS)),
        )
        for final in FINALS
    )


def _covers(found: Sequence[Found], estimator: str, truths: Sequence[float]) -> str:
    ends = [intervals[ESTIMATORS.index(estimator)] for _, _, intervals in found]
    return _share(float(np.mean([low <= t <= high for (low, high), t in zip(ends, truths, strict=True)])), len(found))


def _share(p: float, n: int) -> str:
    return f"{p:.1%} ± {math.sqrt(max(p * (1 - p), 0.25 / n) / n):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.final", description=__doc__)
    parser.add_argument("policies", nargs="*", default=[*ARMS, *CONTEXTUAL], help="all by default")
    parser.add_argument("--logs", type=int, default=400, help="of each kind")
    parser.add_argument("--first", type=int, default=1000, help="seed of the first; the tests' begin at 0")
    add_options(parser)
    asked = parser.parse_args()
    print(
        "| policy | logs | final policy | true value | DR covers | SNIPS covers | IPS covers | holds greedy's value |"
    )
    print("|---|---|---|---|---|---|---|---|")
    cases = [(policy, tidy) for policy in asked.policies for tidy in (True, False)]
    with spread_by(asked) as by:
        rows = by.rows(on_log, [(case, range(asked.first, asked.first + asked.logs)) for case in cases])
        for (policy, tidy), logs in zip(cases, rows, strict=True):
            learned = [truth for (_, truth, _), _ in logs]
            for final, found in zip(FINALS, zip(*logs, strict=True), strict=True):
                truth = np.array([true for _, true, _ in found])
                error = truth.std(ddof=1) / math.sqrt(len(truth))
                covers = [_covers(found, name, truth.tolist()) for name in ESTIMATORS]
                other = "" if final == "greedy" else _covers(found, "dr", learned)
                kind = f"{len(found)} {'tidy' if tidy else 'untidy'}"
                value = f"{truth.mean():.4g} ± {error:.2g}"
                print(f"| {' | '.join([policy, kind, found[0][0], value, *covers, other])} |", flush=True)


if __name__ == "__main__":
    main()
