"""How often an anytime-valid interval holds at *all* rounds of a replay: ``python -m tests.bench.anytime``.

At one round fixed beforehand it holds nearly always (`tests.bench.coverage`); what it promises is all of them at once.
"""

from __future__ import annotations

import argparse

import numpy as np

from evaluator.api import replay
from evaluator.estimates import mean_sequence
from evaluator.log import Log
from evaluator.log.schema import to_numpy
from tests.bench.spread import add_options, spread_by
from tests.logs import bernoulli_log, linear_log

MEANS = (0.2, 0.3, 0.25, 0.4)
LOGGER = (0.4, 0.2, 0.2, 0.2)
ROUNDS, LEVEL = 1500, 0.95


def arms(seed: int, *, uneven: bool) -> Log:
    return bernoulli_log(8000, MEANS, mean_delay=30.0, seed=seed, logger=LOGGER if uneven else None)


def linear(seed: int, *, uneven: bool) -> Log:
    temperature = 1.0 if uneven else None
    return linear_log(10_000, n_actions=4, dimension=3, mean_delay=30.0, seed=seed, temperature=temperature)


CASES = {
    "delayed-klucb": arms,
    "thompson": arms,
    "otflinucb": linear,
    "lints": linear,
}


def held_throughout(policy: str, uneven: bool, seed: int) -> bool:
    """Return whether the mean expected reward of the rounds so far was inside at every checkpoint."""
    log = CASES[policy](seed, uneven=uneven)
    shown = replay(log, policy, window=100, seed=seed, sampler="rejection", horizon=ROUNDS).trajectory
    display, action = (to_numpy(shown[name]) for name in ("display_id", "action"))
    expected = log.column("expected_reward")[display, action]
    at = np.unique(np.geomspace(1, len(display), 200).astype(np.int64))
    low, high = mean_sequence(to_numpy(shown["reward"]), upper=1.0, alpha=1 - LEVEL, at=at)
    truth = np.cumsum(expected)[at - 1] / at
    return bool(((low <= truth) & (truth <= high)).all())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=500)
    add_options(parser)
    asked = parser.parse_args()
    logs = asked.logs
    print(f"{logs} logs each, {ROUNDS:,} rounds, 200 checkpoints, level {LEVEL:.0%}\n")
    print("| policy | logging | holds at every checkpoint |\n|---|---|---|")
    cases = [(policy, uneven) for policy in CASES for uneven in (False, True)]
    with spread_by(asked) as by:
        found = by.rows(held_throughout, [(case, range(logs)) for case in cases])
        for (policy, uneven), of_logs in zip(cases, found, strict=True):
            held = np.mean(of_logs)
            error = (held * (1 - held) / logs) ** 0.5
            print(f"| {policy} | {'uneven' if uneven else 'uniform'} | {held:.1%} ± {error:.1%} |", flush=True)


if __name__ == "__main__":
    main()
