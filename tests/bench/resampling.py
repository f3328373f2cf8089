"""Why resampled displays are drawn in blocks: spread of resampled values against known truth, by order of the draws.

``python -m tests.bench.resampling``. Prints the root mean square of the bootstrap standard error over the standard
deviation of the value over logs, which should be 1, and what the resampled values are off the truth by on average.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from evaluator import compare
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from evaluator.replays.values import resampled as bootstrap
from tests.bench.spread import add_options, spread_by
from tests.logs import bernoulli_log, linear_log

LOGS, TRUTHS, RESAMPLED = 60, 600, 40
ARMS, HORIZONS = (0.2, 0.5, 0.4, 0.1), {"arms": (2400, 500), "linear": (1800, 300)}
POLICIES = {"arms": ("ucb1", "thompson", "delayed-klucb"), "linear": ("otflinucb", "linucb", "lints")}


def make_log(scenario: str, seed: int) -> Log:
    n, _ = HORIZONS[scenario]
    if scenario == "arms":
        return bernoulli_log(n, ARMS, mean_delay=50.0, seed=seed)
    return linear_log(n, n_actions=4, dimension=3, mean_delay=50.0, seed=seed)


_plain = bootstrap._drawn


def _side_by_side(rng: np.random.Generator, n: int) -> npt.NDArray[np.int64]:
    return np.sort(_plain(rng, n))


Draw = Callable[[np.random.Generator, int], npt.NDArray[np.int64]]
ORDERS: dict[str, tuple[int, Draw]] = {
    "copies side by side": (bootstrap.BLOCK, _side_by_side),
    "blocks of 256": (256, _plain),
    "blocks of 2,048": (2048, _plain),
    f"blocks of {bootstrap.BLOCK:,}": (bootstrap.BLOCK, _plain),
}


def value(scenario: str, seed: int) -> tuple[float, ...]:
    """Return the value of each policy on one log."""
    return tuple(r.value.estimate for r in replayed(scenario, 0, seed))


def resampled(scenario: str, order: str, seed: int) -> npt.NDArray[np.float64]:
    """Return the resampled values of each policy on one log, by one of `ORDERS`, shape (policies, resampled)."""
    block, draw = ORDERS[order]
    with patch.object(bootstrap, "BLOCK", block), patch.object(bootstrap, "_drawn", draw):
        return np.array([r.resampled for r in replayed(scenario, RESAMPLED, seed)])


def replayed(scenario: str, count: int, seed: int) -> tuple[ReplayResult, ...]:
    """Replay every policy on one log, and on some resampled ones."""
    told = {"delays": "geometric:50", "sampler": "keep"} if scenario == "arms" else {}
    found = compare(
        make_log(scenario, seed), POLICIES[scenario], baseline=POLICIES[scenario][0],
        windows=[100], horizon=HORIZONS[scenario][1],
        seed=seed, bootstrap=count, **told,
    )  # fmt: skip
    return tuple(found.results)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.resampling", description=__doc__)
    add_options(parser)
    print("| policy | order | spread / truth | mean - truth |\n|---|---|---|---|")
    with spread_by(parser.parse_args()) as by:
        for scenario, policies in POLICIES.items():
            truth = np.array(by.over(value, range(1000, 1000 + TRUTHS), scenario))
            of_orders = by.rows(resampled, [((scenario, name), range(LOGS)) for name in ORDERS], at_once=2)
            for name, values in zip(ORDERS, map(np.array, of_orders), strict=True):
                mean, spread = values.mean(axis=2), (values.var(axis=2, ddof=1).mean(axis=0)) ** 0.5
                off = mean.mean(axis=0) - truth.mean(axis=0)
                se = np.hypot(mean.std(axis=0) / LOGS**0.5, truth.std(axis=0) / TRUTHS**0.5)
                for i, policy in enumerate(policies):
                    ratio = spread[i] / truth[:, i].std(ddof=1)
                    print(f"| {policy} | {name} | {ratio:.2f} | {off[i]:+.4f} ± {se[i]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
