"""Time and memory of ``convert`` at full size: ``python -m tests.bench.full_size_convert [--folder twins]``.

Converts twins of the Criteo attribution log, 4 and 16 million rows, as a user would, in a process of its own; each is
timed beside ``gzip -dc`` of the same file. With ``--folder`` the twins are looked for, and kept, there.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from evaluator.datasets import make
from tests.bench.convert_large import run_process
from tests.bench.convert_parts import measured

SIZES = (4_000_000, 16_468_027)
RUNS = 3


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
                wall, cpu, _ = run_process("gzip", "-dc", str(file))
                words = ["criteo_twin", str(Path(scratch) / "out"), "--overwrite", "--path", str(file)]
                our_wall, our_cpu, peak = measured("datasets", "convert", *words)
                times = f"{wall:>9.1f} ({cpu:4.1f}){our_wall:>9.1f} ({our_cpu:4.1f})"
                print(f"{rows:>12,}{times}{our_wall / wall:>7.2f} ({our_cpu / cpu:.2f}){peak:>10,.0f}")


if __name__ == "__main__":
    main()
