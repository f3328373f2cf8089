"""Time and memory of ``convert`` at full size: ``python -m tests.bench.full_size_convert [--folder twins]``.

Converts twins of the Criteo attribution log, 4 and 16 million rows, each timed beside ``gzip -dc`` of the same file.
With ``--folder`` the twins are looked for, and kept, there.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evaluator.datasets import make

SIZES = (4_000_000, 16_468_027)
RUNS = 3
CHILD = """
import resource, sys
from evaluator.datasets import convert
convert("criteo_twin", sys.argv[2], path=sys.argv[1], overwrite=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def seconds(words: list[object]) -> tuple[float, float, str]:
    """Wall time, processor time and output of a process."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, text=True, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        print("wall time, and in brackets processor time, which a busy machine stretches less")
        print(f"{'rows':>12}{'gzip -dc, s':>16}{'convert, s':>16}{'ratio':>14}{'peak, MB':>10}")
        for rows in SIZES:
            file = folder / f"twin_{rows}.tsv.gz"
            if not file.exists():
                make("criteo_twin", file, rows=rows)
            for _ in range(given.runs):
                wall, cpu, _ = seconds(["sh", "-c", 'gzip -dc "$0" > /dev/null', file])
                our_wall, our_cpu, peak = seconds([sys.executable, "-c", CHILD, file, Path(scratch) / "out"])
                times = f"{wall:>9.1f} ({cpu:4.1f}){our_wall:>9.1f} ({our_cpu:4.1f})"
                print(f"{rows:>12,}{times}{our_wall / wall:>7.2f} ({our_cpu / cpu:.2f}){int(peak):>10,}")


if __name__ == "__main__":
    main()
