"""Replays of converted logs too large for memory: ``python -m tests.bench.full_size_replay [--folder FOLDER]``.

Makes and converts twins of the Criteo log with 4 and 16.5 million displays (once; they stay in the folder when one is
named), then runs the command line as a user would, a process each: time and peak memory of the whole process. With
``--audits``: of audits alone, by one thread and by two, of ten campaigns and of a hundred.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from evaluator import load

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
    asked = parser.parse_args()
    named = asked.folder
    with tempfile.TemporaryDirectory() as temporary:
        folder = named or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        measured("compare", *TEN, "--windows", "2000", "--limit", "5000")  # compiles
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
