"""How often intervals of expected values hold on untidy logs: ``python -m tests.bench.expected``.

On each log of a kind two policies are replayed to one horizon, with a bootstrap. What they earn on average is the mean
of their realised values over all logs of the kind, which replays give without bias (`tests.bench.bias`). Kinds whose
rates depend on the hour at which a log begins are left out: each of their logs has an expected value of its own.
"""

from __future__ import annotations

import argparse

import numpy as np

from evaluator import compare
from tests.bench.spread import add_options, spread_by
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
    add_options(parser)
    asked = parser.parse_args()
    print(f"| kind | logs | {' | '.join(f'expected value, {p}' for p in POLICIES)} | difference of the two |")
    print("|---|---|" + "---|" * (len(POLICIES) + 1))
    with spread_by(asked) as by:
        rows = [((name, asked.horizon, asked.bootstrap), range(asked.logs)) for name in asked.kinds]
        for name, found in zip(asked.kinds, by.rows(intervals, rows), strict=True):
            cells = [_held(each) for each in zip(*found, strict=True)]
            print(f"| {name} | {asked.logs} | {' | '.join(cells)} |", flush=True)


# Low end, estimate and high end of an interval; None where there is none.
Ends = tuple[float, float, float] | None


def intervals(name: str, horizon: int, bootstrap: int, seed: int) -> tuple[Ends, ...]:
    """Return the expected value of each policy on one log of a kind, and their difference."""
    kind = KINDS[name]
    traffic = draw_traffic(kind.untidy, 5_000 + seed)
    log, _ = as_log(traffic, rows_of(traffic, 5_000 + seed))
    of = compare(
        log,
        list(POLICIES),
        baseline=next(iter(POLICIES)),
        windows=[kind.window],
        horizon=horizon,
        bootstrap=bootstrap,
        seed=seed,
    )
    found = (*(result.expected_value for result in of.results), of.differences[0].expected)
    return tuple(None if one is None else (one.low, one.estimate, one.high) for one in found)


def _held(found: tuple[Ends, ...]) -> str:
    """Return the share of the intervals that hold the mean of their estimates, ± its standard error."""
    given = [one for one in found if one is not None]
    truth = np.mean([estimate for _, estimate, _ in given])
    share = np.mean([low <= truth <= high for low, _, high in given])
    return f"{share:.1%} ± {np.sqrt(share * (1 - share) / len(given)):.1%}"


if __name__ == "__main__":
    main()
