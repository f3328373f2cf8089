"""Time and memory of a log in parts beside the log in one file: ``python -m tests.bench.convert_parts``.

Writes displays to many Parquet files, and a table of conversions that names them by id; converts them with one thread,
into one file, and with several, into parts; and replays a policy on each. Each command is run as a user would, in a
process of its own: time, and peak memory of the largest process. All logs must have one hash, and their replays one
result. With ``--folder`` the files are looked for, and kept, there; else they vanish.

``--layout`` says how the files lie in time: one after the other, with their rows in order (``ordered``) or not
(``shuffled``), or each over the whole time (``overlapping``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from evaluator import load
from evaluator.log import StoredLog
from evaluator.log.fingerprint import content_hash
from evaluator.streams import mixed
from tests.bench.convert_large import ACTIONS, CITIES, GROUP, HOUR, SPEC, WEEK, ids_of, run_process, write

Ints = npt.NDArray[np.int64]

DISPLAYS, FILES, CONVERSIONS = 50_000_000, 64, 1_000_000
LAYOUTS = ("ordered", "shuffled", "overlapping")
SPAN = 4 * WEEK


@dataclass(frozen=True)
class Source:
    """Displays in so many files that lie in time as `layout` says."""

    displays: int
    files: int
    layout: str

    def times(self, rows: Ints) -> Ints:
        """Return the time of each row in milliseconds, so that a conversion knows that of its display."""
        anywhere = mixed(rows.astype(np.uint64))
        if self.layout == "overlapping":
            return (anywhere % np.uint64(SPAN)).astype(np.int64)
        if self.layout == "ordered":
            return (rows * (SPAN / self.displays)).astype(np.int64)
        each = SPAN // self.files
        return self.file_of(rows) * each + (anywhere % np.uint64(each)).astype(np.int64)

    def file_of(self, rows: Ints) -> Ints:
        return rows * self.files // self.displays

    def write(self, folder: Path) -> None:
        labels = np.array([f"offer-{i}" for i in range(ACTIONS)])
        cities = np.array([f"city-{i}" for i in range(CITIES)])
        firsts = [-(-i * self.displays // self.files) for i in range(self.files + 1)]  # the first row whose file is i

        def tables(file: int) -> Iterator[pa.Table]:
            rng = np.random.default_rng(file)
            for first in range(firsts[file], firsts[file + 1], GROUP):
                rows = np.arange(first, min(first + GROUP, firsts[file + 1]))
                yield pa.table(
                    {
                        "id": ids_of(rows),
                        "time": self.times(rows),
                        "action": labels[rng.integers(0, ACTIONS, len(rows))],
                        "propensity": np.full(len(rows), 1 / ACTIONS),
                        "city": cities[rng.integers(0, CITIES, len(rows))],
                    }
                )

        folder.mkdir()
        for file in range(self.files):
            write(folder / f"{file:04}.parquet", tables(file))

    def write_conversions(self, path: Path, n: int) -> None:
        rng = np.random.default_rng(1)
        rows = rng.integers(0, self.displays, n)
        delay = np.minimum(rng.exponential(HOUR, n).astype(np.int64), WEEK)
        values = rng.integers(1, 100, n) / 4
        pq.write_table(pa.table({"display": ids_of(rows), "time": self.times(rows) + delay, "value": values}), path)


def made(folder: Path, source: Source, conversions: int) -> Path:
    """Return the spec of such a source, made unless it is there."""
    here = folder / f"parts-{source.displays}-{source.files}-{source.layout}-{conversions}"
    spec = here / "spec.toml"
    if not spec.exists():
        here.mkdir(parents=True)
        source.write(here / "displays")
        source.write_conversions(here / "conversions.parquet", conversions)
        text = SPEC.replace('"displays.parquet"', '"displays"')
        spec.write_text(text.replace("sort = true", "sort = false") if source.layout == "ordered" else text)
    return spec


def measured(*words: str) -> tuple[float, float, float]:
    """Return seconds, processor seconds and peak MB of an ``evaluate`` command in a process of its own."""
    return run_process(sys.executable, "-m", "evaluator", *words)


def row(what: str, how: str, parts: int, found: tuple[float, float, float], one: tuple[float, float, float]) -> str:
    seconds, processor, megabytes = found
    ratio = f"{one[0] / seconds:.2f}"
    return f"| {what} | {how} | {parts} | {seconds:.0f} | {processor:.0f} | {megabytes:,.0f} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--displays", type=int, default=DISPLAYS)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--conversions", type=int, default=CONVERSIONS)
    parser.add_argument("--layout", choices=LAYOUTS, default="shuffled")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the files are kept; a temporary folder otherwise")
    given = parser.parse_args()
    source = Source(given.displays, given.files, given.layout)
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        spec = made(given.folder or Path(temporary), source, given.conversions)
        print(
            f"{given.displays:,} displays in {given.files} files, {given.layout}; {given.conversions:,} conversions\n"
        )
        print("| command | by | parts | seconds | processor seconds | peak, MB | times as fast |")
        print("|---" * 7 + "|")
        convert = ["datasets", "convert", str(spec)]
        replay = ["replay", "-p", "delayed-klucb", "--window", "2000"]
        figures, hashes, parts, said = [], [], [], []
        for number, how in enumerate([["--jobs", "1"], ["--jobs", str(given.jobs)]]):
            out = str(Path(temporary) / f"log-{number}")
            figures.append(measured(*convert, out, *how))
            log = load(out)
            assert isinstance(log, StoredLog)
            parts.append(len(log.paths))
            print(row("convert", f"`{' '.join(how)}`", parts[-1], figures[-1], figures[0]), flush=True)
            hashes.append(content_hash(log))
        figures = []
        for number, files in enumerate(parts):
            log_folder, result = str(Path(temporary) / f"log-{number}"), Path(temporary) / f"result-{number}"
            figures.append(measured(*replay, "-d", log_folder, "--out", str(result)))
            print(row("replay, one policy", "1 thread", files, figures[-1], figures[0]), flush=True)
            said.append((result / "trajectory.parquet").read_bytes())
        assert len({*hashes}) == len({*said}) == 1, "the logs differ"
        print(f"\none hash: {hashes[0][:16]}; one trajectory, to the byte")


if __name__ == "__main__":
    main()
