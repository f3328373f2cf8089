"""What breaches cost a conversion, and that looking at a table holds none: ``python -m tests.bench.breaches``.

Writes a table of displays as CSV, and the same with `BROKEN` rows of every kind of breach. Prints the processor time of
``datasets convert`` of both, in turns, each in a process of its own; then the peak memory of ``init``, ``validate`` and
``show`` on the table and on one of four times its rows, which should be the same.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from tests.bench.convert_parts import measured

ROWS, BROKEN, RUNS = 2_000_000, 1_000, 3
# A cell that is no time, an action that is missing, a value that is no number, and rows too short and too long.
BREACHES = ("x,a1,,1.5,d", "7,,,1.5,d", "7,a1,9,much,d", "7,a1", "7,a1,,1.5,d,e")
SPEC = """\
name = "rows"
title = "Rows, some of them broken"
licence = "none"

[source]
files = "rows.csv"

[time]
unit = "s"

[display]
time = "time"
action = "action"

[conversion]
time = "conversion_time"
value = "value"

[context]
columns = ["device"]
"""


def write(folder: Path, rows: int, broken: int) -> Path:
    """Write a table and its spec; of `rows` rows, so many in equal distances break a rule."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.integers(0, 30 * 86_400, rows))
    sold = pl.Series(time + rng.integers(0, 86_400, rows)).set(pl.Series(rng.random(rows) < 0.9), None)
    action, device = (
        pl.Series(letter + pl.Series(rng.integers(0, 20, rows)).cast(pl.String)) for letter in ("a", "device-")
    )
    value = rng.integers(1, 40, rows) / 4
    frame = pl.DataFrame({"time": time, "action": action, "conversion_time": sold, "value": value, "device": device})
    folder.mkdir()
    path = folder / "rows.csv"
    frame.write_csv(path)
    if broken:
        lines = path.read_bytes().splitlines()
        for number, place in enumerate(np.linspace(1, rows, broken, dtype=int)):
            lines[place] = BREACHES[number % len(BREACHES)].encode()
        path.write_bytes(b"\n".join(lines) + b"\n")
    (folder / "spec.toml").write_text(SPEC)
    return folder / "spec.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        specs = {n: write(folder / f"broken-{n}", given.rows, n) for n in (0, BROKEN)}
        spent: dict[int, list[float]] = {0: [], BROKEN: []}
        for run in range(given.runs):
            for broken, spec in specs.items():
                out = str(folder / f"log-{broken}-{run}")
                spent[broken].append(measured("datasets", "convert", str(spec), out, "--on-error", "quarantine")[1])
        none, some = (min(times) for times in spent.values())
        print(f"convert {given.rows:,} rows: {none:.2f} s, with {BROKEN:,} breaches {some:.2f} s: {some / none:.2f}")
        large = write(folder / "large", 4 * given.rows, 0)
        print(f"{'peak, MB':12}{given.rows:>14,} rows{4 * given.rows:>14,} rows")
        for command in ("init", "validate", "show"):
            peaks = []
            for number, spec in enumerate((specs[0], large)):
                what = [str(spec.with_name("rows.csv")), "-o", str(folder / f"{number}.toml")]
                peaks.append(measured("datasets", command, *(what if command == "init" else [str(spec)]))[2])
            print(f"{command:12}{peaks[0]:>19,.0f}{peaks[1]:>19,.0f}")


if __name__ == "__main__":
    main()
