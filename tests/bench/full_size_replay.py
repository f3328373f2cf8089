"""Replays of converted logs too large for memory: ``python -m tests.bench.full_size_replay [--folder FOLDER]``.

Makes and converts twins of the Criteo log with 4 and 16.5 million displays (once; they stay in the folder when one is
named), then runs the command line as a user would, a process each: time and peak memory of the whole process. With
``--audits``: of audits alone, by one thread and by two, of ten campaigns and of a hundred. With ``--floor``: of replays
alone, beside the processor time of a loop that reads the same columns with pyarrow and runs the policies, no more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from evaluator import load
from evaluator.arguments import as_description
from evaluator.log import StoredLog
from evaluator.log.schema import BATCH, to_numpy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.planning import plan_replay, read_basis
from evaluator.replays.rounds.stream import LogPiece
from evaluator.replays.run import ReplayRun, _key, _Thinnings, compile_loops

ROWS = (4_000_000, 16_468_027)
ONE = ["-p", "otflinucb"]
OTHERS = ["ucb1", "klucb", "thompson", "delayed-ucb", "delayed-klucb", "linucb", "lints", "otflints", "waitlinucb"]
TEN = [*ONE, *(word for policy in OTHERS for word in ("-p", policy))]
AUDIT = [
    "audit",
    "-p",
    "linucb",
    "-p",
    "ucb1",
    "-p",
    "random",
    "--twins",
    "10",
    "--window",
    "7d",
    "--propensity",
    "estimate",
]
CHILD = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def measured(*words: str) -> tuple[float, float, float]:
    """Return seconds, processor seconds and peak MB of an ``evaluate`` command in a process of its own."""
    command = [sys.executable, "-m", "evaluator", *words]
    done = subprocess.run([sys.executable, "-c", CHILD, *command], check=True, capture_output=True, text=True)
    seconds, processor, megabytes = json.loads(done.stdout)
    return seconds, processor, megabytes


def floor(place: str, actions: str, policies: list[str]) -> float:
    """Return the processor seconds of reading the needed columns and running the loops, without all else."""
    log, options = load(place, actions=actions), ReplayOptions(propensity="estimate", window="7d")
    assert isinstance(log, StoredLog)
    basis = read_basis(log, options)
    plans = [plan_replay(basis, as_description(policy), options) for policy in policies]
    compile_loops(plans)
    runs = [ReplayRun(plan, 0) for plan in plans]
    thinnings, chosen = _Thinnings(runs), log.selection.new_action
    names = list(dict.fromkeys(plan.rounds.vectors for plan in plans if plan.rounds.vectors is not None))
    of, first, low = to_numpy(log.conversions["display_id"]), 0, 0
    assert chosen is not None
    start = time.process_time()
    for path in log.paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH, columns=["action", *names]):
                action = chosen[to_numpy(batch.column("action"))]
                kept = np.flatnonzero(action >= 0)
                vectors = {name: to_numpy(batch.column(name))[kept][:, None] for name in names}
                high = int(np.searchsorted(of, first + len(kept)))
                counts = np.bincount(of[low:high] - first, minlength=len(kept))
                events = np.concatenate([[0], np.cumsum(counts)])
                piece = LogPiece(first, {"action": action[kept]}, vectors, low, events)
                thinned = thinnings.of(piece)
                for run in runs:
                    run.read(piece, thinned[_key(run, run.plan.matched)], None, None)
                low, first = high, first + len(kept)
    return time.process_time() - start


def beside_floor(place: str) -> None:
    """Print the processor seconds of a replay and of a comparison in the same run as their floors."""
    print(f"{'command':<34} {'processor':>10} {'floor':>8} {'times':>6}")
    for (name, words, actions), policies in zip(replays()[:2], ([ONE[1]], [ONE[1], *OTHERS]), strict=True):
        _, processor, _ = measured(*words, "-d", place, "--actions", actions)
        least = floor(place, actions, policies)
        print(f"{name:<34} {processor:>10.1f} {least:>8.1f} {processor / least:>6.2f}", flush=True)


def converted(folder: Path, rows: int) -> Path:
    """Return a converted twin with this many displays, made unless it is there."""
    log, source = folder / f"log-{rows}", folder / f"twin-{rows}.tsv.gz"
    if not log.exists():
        if not source.exists():
            measured("datasets", "make", "criteo_twin", "--rows", str(rows), "--seed", "1", "-o", str(source))
        measured("datasets", "convert", "criteo_twin", str(log), "--path", str(source))
    return log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the logs are kept; a temporary folder otherwise")
    parser.add_argument("--audits", action="store_true")
    parser.add_argument("--floor", action="store_true")
    asked = parser.parse_args()
    named = asked.folder
    with tempfile.TemporaryDirectory() as temporary:
        folder = named or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measured("compare", *TEN, "--windows", "2000", "--limit", "5000")  # compiles
        if asked.floor:
            beside_floor(str(converted(folder, ROWS[1])))
            return
        some = ["-d", str(converted(folder, ROWS[0])), "--limit", "200000", "--actions", "top:10"]
        measured(*AUDIT, *some)
        print(f"{'displays':>12} {'replayed':>10}  {'command':<34} {'seconds':>8} {'processor':>10} {'peak MB':>8}")
        for rows in ROWS:
            log = str(converted(folder, rows))
            for name, words, actions in audits() if asked.audits else replays():
                kept = len(load(log, actions=actions))
                seconds, processor, megabytes = measured(*words, "-d", log, "--actions", actions)
                figures = f"{seconds:>8.1f} {processor:>10.1f} {megabytes:>8.0f}"
                print(f"{rows:>12,} {kept:>10,}  {name:<34} {figures}", flush=True)


def replays() -> list[tuple[str, list[str], str]]:
    """Return name and words of commands that replay a log, and the choice of its actions."""
    estimate = ["--propensity", "estimate"]
    compare = ["compare", *TEN, *estimate, "--windows", "7d"]
    return [
        ("replay, 1 contextual policy", ["replay", *ONE, *estimate, "--window", "7d"], "top:10"),
        ("compare, 10 policies, 1 thread", compare, "top:10"),
        ("compare, 10 policies, 2 threads", [*compare, "--jobs", "2"], "top:10"),
        ("audit, 3 policies, 10 twins", AUDIT, "top:10"),
    ]


def audits() -> list[tuple[str, list[str], str]]:
    """Return name and words of audits of a log, and the choice of its actions."""
    return [
        ("audit, 3 policies, 10 twins", AUDIT, "top:10"),
        ("audit, 3 policies, 2 threads", [*AUDIT, "--jobs", "2"], "top:10"),
        ("audit, 3 policies, 10 twins", AUDIT, "top:100"),
    ]


if __name__ == "__main__":
    main()
