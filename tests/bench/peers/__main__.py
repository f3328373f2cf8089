"""Contextual replay by rejection, ours and the peers', on the same log: ``python -m tests.bench.peers --help``."""

from __future__ import annotations

import argparse
import datetime
import gc
import importlib.metadata
import platform
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evaluator.engine.log_replay import run
from evaluator.policies import resolve
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.values.rewards import logged_rewards
from tests.bench.peers import coba, mabwiser, obp, river, vowpalwabbit
from tests.bench.peers.peer import Displays, Outcome, Replay, Way
from tests.logged_rounds import LoggedRounds, in_memory
from tests.logs import linear_log

PEERS = (vowpalwabbit.PEER, coba.PEER, river.PEER, mabwiser.PEER, obp.PEER)
WINDOW = 500
RUNS = 3
TRIAL = 2_000
NOTES = """\
One linear model for all actions, updated after each accepted display (late: at the end of a call).
Peers are told eventual rewards at once; ours delivers each conversion after its delay. Time is the
processor's, median of {runs} runs (ours: one beside every row); preparing the input is left out, but
not parsing where a row says so. vowpal-wabbit-next states its own importance-weighted reward."""


class Measured(NamedTuple):
    displays: int
    per_second: float
    outcome: Outcome


def timed(replay: Replay) -> tuple[float, Outcome]:
    """Processor time of one replay. The collector is not to walk through the prepared input meanwhile."""
    gc.collect()
    gc.freeze()
    start = time.process_time()
    outcome = replay()
    taken = time.process_time() - start
    gc.unfreeze()
    return taken, outcome


def measured(way: Way, displays: Displays, seconds: float) -> Measured:
    """Replay as many displays as take about so many seconds."""
    trial, _ = timed(way.prepare(displays.first(TRIAL)))
    n = int(np.clip(TRIAL / trial * seconds, TRIAL, len(displays.action)))
    replay = way.prepare(displays.first(n))
    runs = [timed(replay) for _ in range(RUNS)]
    return Measured(n, n / float(np.median([taken for taken, _ in runs])), runs[-1][1])


def ours(plan: ReplayPlan, rounds: LoggedRounds, displays: Displays) -> Outcome:
    accepted = run(plan.policy, plan.setting, rounds, sampler=plan.sampler).displays
    return Outcome(len(accepted), float(displays.reward[accepted].mean()))


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def title(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--displays", type=int, default=1_000_000, help="displays of the log, all replayed by ours")
    parser.add_argument("--most", type=int, default=300_000, help="most displays given to a peer")
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long one run of a peer may take")
    asked = parser.parse_args()
    log = linear_log(asked.displays, n_actions=10, dimension=5, mean_delay=100, seed=0)
    plan = plan_replay(log, resolve("linucb"), ReplayOptions(window=WINDOW))
    rounds = in_memory(plan.rounds)
    rewards = logged_rewards(plan, rounds=0).taken(np.arange(len(rounds)))
    displays = Displays(rounds.vectors, rounds.action, rewards)
    versions = ", ".join(title(package) for package in ("numpy", "numba", "lifelines"))
    print(f"{datetime.date.today()}, {processor()}, Python {platform.python_version()}, {versions}")
    print(f"{asked.displays:,} displays, K=10, d=5, mean delay 100, window {WINDOW}, logged uniformly\n")

    ours(plan, rounds, displays)  # compiles
    own = [timed(lambda: ours(plan, rounds, displays))]
    rows: list[tuple[str, str, Measured | str]] = []
    for peer in PEERS:
        for way in peer.ways:
            try:
                result: Measured | str = measured(way, displays.first(asked.most), asked.seconds)
            except ImportError as error:
                result = f"skipped: {error}"
            rows.append((title(peer.package), way.words, result))
            own.append(timed(lambda: ours(plan, rounds, displays)))
    speed = asked.displays / float(np.median([taken for taken, _ in own]))
    rows.insert(0, (title("delayed-replay"), f"linucb, window {WINDOW}", Measured(asked.displays, speed, own[0][1])))

    print(f"{'':<25}{'':<32}{'displays':>10}{'accepted':>9}{'reward':>7}{'per second':>11}{'ratio':>6}")
    for name, words, result in rows:
        if isinstance(result, str):
            print(f"{name:<25}{result}"[:100])
            continue
        n, rate, outcome = result
        figures = f"{n:>10,}{outcome.accepted:>9,}{outcome.reward:>7.3f}{rate:>11,.0f}{speed / rate:>6,.0f}"
        print(f"{name:<25}{words:<32}{figures}")
    print("\n" + NOTES.format(runs=RUNS))


main()
