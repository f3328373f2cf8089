"""What sets of eligible actions cost a replay: ``python -m tests.bench.eligible``.

Contextual replays of three logs with as many displays, in turns, and the median processor time of each beside that of
the first in its turn: K = 10 actions of which all are eligible, without sets; K = 1,000 of which ten are, drawn anew at
each display or from 4,096 sets. With candidates each eligible action has its own vector at each display; with contexts
all share one.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.api import plan
from evaluator.log import Log
from evaluator.log.eligible import packed
from evaluator.log.schema import fixed_size_lists, uneven_lists
from evaluator.replays.run import replay_all
from tests.bench.timing import turns
from tests.logs import build_log

SIZE, D = 10, 5


def log_of(n: int, n_actions: int, sets: int, *, candidates: bool) -> Log:
    """Return a log logged evenly among ten of K actions: all of them, or one of so many sets, 0 for a set a display."""
    rng = np.random.default_rng(0)
    different = n if sets == 0 else sets
    chosen = np.sort(np.argpartition(rng.random((different, n_actions)), SIZE - 1, axis=1)[:, :SIZE], axis=1)
    of = np.arange(n) if sets == 0 else rng.integers(0, different, n)
    own: npt.NDArray[np.int64] = chosen[of]
    action = own[np.arange(n), rng.integers(0, SIZE, n)]
    shown = np.flatnonzero(rng.random(n) < 0.1)
    vectors = rng.normal(size=(n, SIZE, D)).astype(np.float32)
    log = build_log(
        time=np.arange(n), action=action, propensity=np.full(n, 1.0 / SIZE), n_actions=n_actions,
        conversion_display=shown, conversion_time=shown + rng.geometric(0.02, len(shown)),
    )  # fmt: skip
    displays: pa.Table = log.displays
    if not candidates:
        displays = displays.append_column("context", fixed_size_lists(vectors[:, 0]))
    elif n_actions == SIZE:
        displays = displays.append_column("action_set", fixed_size_lists(vectors))
    else:
        lists = uneven_lists(vectors.reshape(-1, D), np.full(n, SIZE))
        displays = displays.append_column("action_set", lists)
    if n_actions > SIZE:
        bits = np.zeros((different, -(-n_actions // 8)), np.uint8)
        row = np.repeat(np.arange(different), SIZE)
        np.bitwise_or.at(bits, (row, chosen.ravel() // 8), (1 << chosen.ravel() % 8).astype(np.uint8))
        displays = displays.append_column("eligible", packed(bits[of]))
    return replace(log, displays=displays)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.eligible", description=__doc__)
    parser.add_argument("policies", nargs="*", default=["linucb", "otflinucb", "lints", "otflints"])
    parser.add_argument("--displays", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    print("| policy | vectors | K = 10, ns a display | 4,096 sets | a set a display |\n|---|---|---|---|---|")
    for candidates in (True, False):
        kinds = ((SIZE, 1), (1_000, 4_096), (1_000, 0))
        logs = [log_of(asked.displays, k, sets, candidates=candidates) for k, sets in kinds]
        for policy in asked.policies:
            plans = [plan(log, policy, window=200) for log in logs]
            jobs = {str(i): partial(replay_all, [one]) for i, one in enumerate(plans)}
            first, *others = turns(jobs, runs=asked.runs).values()
            ratios = " | ".join(f"{np.median(other / first):.2f}" for other in others)
            vectors = "candidates" if candidates else "context"
            print(f"| {policy} | {vectors} | {np.median(first) / asked.displays * 1e9:.0f} | {ratios} |")


if __name__ == "__main__":
    main()
