"""Time and memory of ``convert`` at full size: ``python -m tests.bench.full_size_convert [--folder twins]``.

Converts twins of the Criteo attribution log, 4 and 16 million rows, each timed beside ``gzip -dc`` of the same file.
With ``--folder`` the twins are looked for, and kept, there.
"""

from __future__ import annotations

import argparse
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


def unzip_seconds(file: Path) -> float:
    start = time.perf_counter()
    subprocess.run(["gzip", "-dc", file], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def convert_seconds(file: Path, out: Path) -> tuple[float, int]:
    """Seconds of a whole process that converts, and its peak memory in MB."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", CHILD, file, out], stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        print(f"{'rows':>12}{'gzip -dc, s':>14}{'convert, s':>14}{'ratio':>8}{'peak, MB':>10}")
        for rows in SIZES:
            file = folder / f"twin_{rows}.tsv.gz"
            if not file.exists():
                make("criteo_twin", file, rows=rows)
            for _ in range(given.runs):
                unzip = unzip_seconds(file)
                convert, peak = convert_seconds(file, Path(scratch) / "out")
                print(f"{rows:>12,}{unzip:>14.1f}{convert:>14.1f}{convert / unzip:>8.2f}{peak:>10,}")


main()
