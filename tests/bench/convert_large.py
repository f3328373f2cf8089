"""Time and memory of ``convert`` of two large tables out of order: ``python -m tests.bench.convert_large``.

Writes displays and conversions to Parquet, both in random order, and a spec that sorts the displays and joins the
conversions by id; then runs the command line as a user would, in a process of its own: time, and peak memory of the
whole process. With ``--folder`` the tables are looked for, and kept, there; else they vanish.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.streams import mixed

Ints = npt.NDArray[np.int64]

DISPLAYS, CONVERSIONS = 50_000_000, 5_000_000
ACTIONS, CITIES = 10, 50
# Milliseconds: four weeks of displays; conversions come for a week, after an hour on average.
WEEK, HOUR = 7 * 24 * 3_600_000, 3_600_000
# Rows of a row group, of which this script holds one.
GROUP = 1_000_000
SPEC = """\
name = "large"
title = "Two large tables out of order"
licence = "none"

[source]
files = "displays.parquet"
sort = true

[time]
unit = "ms"

[display]
id = "id"
time = "time"
action = "action"
propensity = "propensity"

[conversion]
time = "time"
value = "value"

[conversion.source]
files = "conversions.parquet"
display = "display"

[log]
attribution_window = "7d"

[context]
columns = { city = "category" }
dimensions = 16
"""
CHILD = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def run_process(*words: str) -> tuple[float, float, float]:
    """Return seconds, processor seconds and peak MB of a command in a process of its own."""
    done = subprocess.run([sys.executable, "-c", CHILD, *words], check=True, capture_output=True, text=True)
    seconds, processor, megabytes = json.loads(done.stdout)
    return seconds, processor, megabytes


def ids_of(rows: Ints) -> Ints:
    """Return the id of each row, in no order, none twice."""
    return (rows * 0x9E3779B97F4A7C1) % 2**62


def times_of(rows: Ints) -> Ints:
    """Return the time of each row, in no order, so that a conversion knows that of its display."""
    return (mixed(rows.astype(np.uint64)) % np.uint64(4 * WEEK)).astype(np.int64)


def displays(n: int) -> Iterator[pa.Table]:
    """Yield `n` displays, some at a time."""
    rng = np.random.default_rng(0)
    labels = np.array([f"offer-{i}" for i in range(ACTIONS)])
    cities = np.array([f"city-{i}" for i in range(CITIES)])
    for first in range(0, n, GROUP):
        rows = np.arange(first, min(first + GROUP, n))
        yield pa.table(
            {
                "id": ids_of(rows),
                "time": times_of(rows),
                "action": labels[rng.integers(0, ACTIONS, len(rows))],
                "propensity": np.full(len(rows), 1 / ACTIONS),
                "city": cities[rng.integers(0, CITIES, len(rows))],
            }
        )


def conversions(n: int, of: int) -> Iterator[pa.Table]:
    """Yield `n` conversions of `of` displays, some at a time; a display may have several."""
    rng = np.random.default_rng(1)
    for first in range(0, n, GROUP):
        rows = rng.integers(0, of, min(GROUP, n - first))
        delay = np.minimum(rng.exponential(HOUR, len(rows)).astype(np.int64), WEEK)
        yield pa.table(
            {
                "display": ids_of(rows),
                "time": times_of(rows) + delay,
                "value": rng.integers(1, 100, len(rows)) / 4,
            }
        )


def write(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def made(folder: Path, n_displays: int, n_conversions: int) -> Path:
    """Return the spec of two tables of so many rows, made unless they are there."""
    here = folder / f"large-{n_displays}-{n_conversions}"
    spec = here / "spec.toml"
    if not spec.exists():
        here.mkdir(parents=True)
        write(here / "displays.parquet", displays(n_displays))
        write(here / "conversions.parquet", conversions(n_conversions, n_displays))
        spec.write_text(SPEC)
    return spec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--displays", type=int, default=DISPLAYS)
    parser.add_argument("--conversions", type=int, default=CONVERSIONS)
    parser.add_argument("--folder", type=Path, help="where the tables are kept; a temporary folder otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        spec = made(given.folder or Path(temporary), given.displays, given.conversions)
        convert = [sys.executable, "-m", "evaluator", "datasets", "convert", str(spec), str(Path(temporary) / "log")]
        seconds, processor, megabytes = run_process(*convert)
    print("| displays | conversions | seconds | processor seconds | peak, MB |")
    print("|---|---|---|---|---|")
    print(f"| {given.displays:,} | {given.conversions:,} | {seconds:.0f} | {processor:.0f} | {megabytes:,.0f} |")


if __name__ == "__main__":
    main()
