"""How often intervals of expected values hold on untidy logs: ``python -m tests.bench.expected``.

On each log of a kind two policies are replayed to one horizon, with a bootstrap. What they earn on average is the mean
of their realised values over all logs of the kind, which replays give without bias (`tests.bench.bias`). Kinds whose
rates depend on the hour at which a log begins are left out: each of their logs has an expected value of its own.
"""

from __future__ import annotations

import argparse

import numpy as np

from evaluator import compare
from evaluator.estimates.confidence import Interval
from tests.untidy.defects import rows_of
from tests.untidy.kinds import KINDS
from tests.untidy.traffic import draw_traffic
from tests.untidy.writing import as_log

KINDS_SHOWN = (
    "tidy", "daily rhythm", "growth", "drift of the rates", "ties by minute, sorted by action",
    "revenue", "heavy revenue", "few users", "sample of the traffic", "delays by action", "rhythm, growth, drift",
)  # fmt: skip
POLICIES = ("ucb1", "klucb")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.expected", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=KINDS_SHOWN, help="of tests.untidy")
    parser.add_argument("--logs", type=int, default=200, help="of each kind")
    parser.add_argument("--bootstrap", type=int, default=100, help="resampled logs")
    parser.add_argument("--horizon", type=int, default=500, help="rounds")
    asked = parser.parse_args()
    print(f"| kind | logs | {' | '.join(f'expected value, {p}' for p in POLICIES)} | difference of the two |")
    print("|---|---|" + "---|" * (len(POLICIES) + 1))
    for name in asked.kinds:
        kind, found = KINDS[name], []
        for seed in range(asked.logs):
            traffic = draw_traffic(kind.untidy, 5_000 + seed)
            log, _ = as_log(traffic, rows_of(traffic, 5_000 + seed))
            found.append(
                compare(
                    log, list(POLICIES), windows=[kind.window], horizon=asked.horizon, bootstrap=asked.bootstrap,
                    seed=seed, jobs=2,
                )
            )  # fmt: skip
        values = [[of.results[p].expected_value for of in found] for p in range(len(POLICIES))]
        differences = [of.differences[0].expected for of in found]
        cells = [_held(each) for each in (*values, differences)]
        print(f"| {name} | {asked.logs} | {' | '.join(cells)} |", flush=True)


def _held(intervals: list[Interval | None]) -> str:
    """Return the share of the intervals that hold the mean of their estimates, ± its standard error."""
    given = [one for one in intervals if one is not None]
    truth = np.mean([one.estimate for one in given])
    share = np.mean([one.low <= truth <= one.high for one in given])
    return f"{share:.1%} ± {np.sqrt(share * (1 - share) / len(given)):.1%}"


if __name__ == "__main__":
    main()
