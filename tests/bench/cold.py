"""The first command on a machine: what it costs to compile, each run with an empty cache of its own.

``python -m tests.bench.cold [--runs 3] [--against FOLDER] [--tests]``. `FOLDER` is another copy of the sources, whose
runs take turns with these: on a busy machine, quote the ratio of the processor times. With `--tests`, the tests of
policies are run so, too. What compiling takes is the first run's processor time less the second's.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.bench.tables import print_table

TEN = (
    "otflinucb", "otflints", "linucb", "lints", "waitlinucb", "nonambiguous-linucb", "delayed-klucb", "delayed-ucb",
    "thompson", "random",
)  # fmt: skip
COMMANDS = {
    "replay of one policy": ("evaluator", "replay", "--policy", "otflinucb", "--window", "2000"),
    "compare of ten": (
        "evaluator",
        "compare",
        *(f"-p{policy}" for policy in TEN),
        "--windows",
        "2000",
    ),
}
# What compiles most of the test run: every policy, with sets and without.
TESTS = {"tests of policies": ("pytest", "-n", "0", "-q", "-x", "tests/policies")}
HERE = Path(__file__).parents[2]


class Times(NamedTuple):
    """Seconds of one command: on the clock, and of processors, its children's included."""

    wall: float
    user: float


def timed(arguments: Sequence[str], sources: Path, cache: str) -> Times:
    """Run a command of the sources in a folder, with compiled code kept in another."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(sources)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", *arguments], cwd=sources, env=environment, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wall = time.perf_counter() - start
    return Times(wall, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def first_and_second(arguments: Sequence[str], sources: Path) -> tuple[Times, Times]:
    """Time a command with an empty cache, and again with what the first run has left there."""
    with tempfile.TemporaryDirectory() as cache:
        return timed(arguments, sources, cache), timed(arguments, sources, cache)


def main() -> None:
    """Print minimum and median of each command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cold", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--against", type=Path, help="other sources, run in turns with these")
    parser.add_argument("--tests", action="store_true", help="run the tests of policies, too: minutes")
    given = parser.parse_args()
    places = {"here": HERE, **({"against": given.against.resolve()} if given.against else {})}
    rows = []
    for name, arguments in (COMMANDS | TESTS if given.tests else COMMANDS).items():
        taken = [{place: first_and_second(arguments, at) for place, at in places.items()} for _ in range(given.runs)]
        for place in places:
            first, second = ([run[place][i] for run in taken] for i in (0, 1))
            rows.append((
                f"{name}, {place}", min(t.wall for t in first), statistics.median(t.wall for t in first),
                min(t.user for t in first), statistics.median(t.user for t in first),
                statistics.median(t.wall for t in second), statistics.median(t.user for t in second),
            ))  # fmt: skip
        if given.against:
            ratios = sorted(run["here"][0].user / run["against"][0].user for run in taken)
            print(f"{name}: {statistics.median(ratios):.2f} times the processor time of the other sources'")
    print(f"An empty cache, {given.runs} runs, seconds")
    print_table(("command", "wall min", "median", "user min", "median", "second run, wall", "user"), rows)


if __name__ == "__main__":
    main()
