"""The regret's reference against the truth: ``python -m tests.bench.reference``.

For each kind of log, all of whose actions earn the same: how far the estimate of the best fixed action's value is off,
in per cent of that value, how far the largest mean is, and how often the interval (97.5 %, half the error of the
regret's) holds the truth, each with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

import numpy as np

from evaluator.api import replay
from evaluator.log import Log
from tests.bench.spread import add_options, spread_by
from tests.logs import bernoulli_log
from tests.statistical.test_reference import LAUNCHES, REVENUE, largest_mean, uneven_logger, untidy

RATE = 0.05


def alike(seed: int, *, k: int, displays: int = 50_000) -> tuple[Log, float]:
    """Return a log of k actions shown evenly."""
    return bernoulli_log(displays, [RATE] * k, mean_delay=20.0, seed=seed), RATE


KINDS = {
    **{f"{k} actions": partial(alike, k=k) for k in (10, 100, 500)},
    "uneven logger, thinned": uneven_logger,
    "revenue": untidy(REVENUE),
    "launches": untidy(LAUNCHES),
}


def on_log(name: str, seed: int) -> tuple[float, float, bool, float]:
    """Return on one log how far estimate and largest mean are off, whether the interval holds, and its width."""
    log, truth = KINDS[name](seed)
    best = replay(log, "random", sampler="keep", seed=seed, horizon=100).best_fixed_action.value
    return (
        best.estimate / truth - 1.0, largest_mean(log) / truth - 1.0, bool(best.low <= truth <= best.high),
        (best.high - best.low) / truth,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.reference", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help="all by default")
    parser.add_argument("--logs", type=int, default=100, help="of each kind")
    add_options(parser)
    asked = parser.parse_args()
    print("| logs | n | by halves | largest mean | interval holds | mean width |")
    print("|---|---|---|---|---|---|")
    with spread_by(asked) as by:
        rows = by.rows(on_log, [((name,), range(asked.logs)) for name in asked.kinds])
        for name, of_logs in zip(asked.kinds, rows, strict=True):
            off, largest, held, width = zip(*of_logs, strict=True)
            share = float(np.mean(held))
            error = (share * (1 - share) / len(held)) ** 0.5
            print(
                f"| {name} | {asked.logs} | {_percent(off)} | {_percent(largest)} | {share:.1%} ± {error:.1%} "
                f"| {np.mean(width):.0%} |",
                flush=True,
            )


def _percent(off: Sequence[float]) -> str:
    return f"{np.mean(off):+.1%} ± {np.std(off, ddof=1) / len(off) ** 0.5:.1%}"


if __name__ == "__main__":
    main()
