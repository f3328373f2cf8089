"""Why resampled displays are drawn in blocks: spread of resampled values against known truth, by order of the draws.

``python -m tests.bench.resampling``. Prints the root mean square of the bootstrap standard error over the standard
deviation of the value over logs, which should be 1, and what the resampled values are off the truth by on average.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from evaluator import compare
from evaluator.log import Log
from evaluator.replays.values import resampled as bootstrap
from tests.logs import bernoulli_log, linear_log

LOGS, TRUTHS, RESAMPLED = 60, 600, 40
ARMS, HORIZONS = (0.2, 0.5, 0.4, 0.1), {"arms": (2400, 500), "linear": (1800, 300)}
POLICIES = {"arms": ("ucb1", "thompson", "delayed-klucb"), "linear": ("otflinucb", "linucb", "lints")}


def make_log(scenario: str, seed: int) -> Log:
    n, _ = HORIZONS[scenario]
    if scenario == "arms":
        return bernoulli_log(n, ARMS, mean_delay=50.0, seed=seed)
    return linear_log(n, n_actions=4, dimension=3, mean_delay=50.0, seed=seed)


def replayed(scenario: str, count: int, seed: int) -> Any:
    """Return value and resampled values of each policy on one log."""
    told = {"delays": "geometric:50", "sampler": "keep"} if scenario == "arms" else {}
    found = compare(
        make_log(scenario, seed), POLICIES[scenario], windows=[100], horizon=HORIZONS[scenario][1], seed=seed,
        bootstrap=count, **told,
    )  # fmt: skip
    return [r.resampled if count else r.value.estimate for r in found.results]


def main() -> None:
    plain = bootstrap._drawn
    orders: dict[str, tuple[int, Any]] = {
        "copies side by side": (bootstrap.BLOCK, lambda rng, n: np.sort(plain(rng, n))),
        "blocks of 256": (256, plain),
        "blocks of 2,048": (2048, plain),
        f"blocks of {bootstrap.BLOCK:,}": (bootstrap.BLOCK, plain),
    }
    print("| policy | order | spread / truth | mean - truth |\n|---|---|---|---|")
    with ThreadPoolExecutor(2) as pool:
        for scenario, policies in POLICIES.items():
            truth = np.array(list(pool.map(partial(replayed, scenario, 0), range(1000, 1000 + TRUTHS))))
            for name, (bootstrap.BLOCK, bootstrap._drawn) in orders.items():  # type: ignore[assignment]
                values = np.array(list(pool.map(partial(replayed, scenario, RESAMPLED), range(LOGS))))
                mean, spread = values.mean(axis=2), (values.var(axis=2, ddof=1).mean(axis=0)) ** 0.5
                off = mean.mean(axis=0) - truth.mean(axis=0)
                se = np.hypot(mean.std(axis=0) / LOGS**0.5, truth.std(axis=0) / TRUTHS**0.5)
                for i, policy in enumerate(policies):
                    ratio = spread[i] / truth[:, i].std(ddof=1)
                    print(f"| {policy} | {name} | {ratio:.2f} | {off[i]:+.4f} ± {se[i]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
