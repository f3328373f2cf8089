"""Processor time and peak memory beside those of a commit: ``python -m tests.bench.gauge --against COMMIT``.

Each item is a command as a user types it, in a process of its own. The commit's sources are unpacked into a temporary
folder, and both trees run with the same interpreter and installed packages, each with compiled code of its own. A first
turn, which does not count, compiles and makes what later items read (converted logs, folders of results); then the
trees take turns: old, new, old, new. A ratio is the median of new over old of each turn, so that a busy machine
stretches both, with the lowest and the highest; above 1.05 it is marked. ``--size small`` reads what is bundled and
logs of 200,000 displays, ``full`` logs of 4 million; without it one comes after the other. With ``--folder`` the
sources of the logs are looked for, and kept, there.

An item that the commit cannot run, because an option or a dataset came later, is printed without a ratio. The exit code
is 1 if an item fails in this tree.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

# Nothing heavy is imported here: a child's peak memory is never below that of the process that started it.
from tests.bench.tables import print_table

HERE = Path(__file__).resolve().parents[2]
MARKED = 1.05
FOUR = "-p otflinucb -p linucb -p delayed-klucb -p thompson"
# A failed check is a result, too.
RESULTS = (0, 4)


@dataclass(frozen=True)
class Size:
    """Displays of the logs that are made, and the turns that count."""

    displays: int
    conversions: int
    scenario: int
    rounds: int


SIZES = {"small": Size(200_000, 20_000, 60_000, 5), "full": Size(4_000_000, 400_000, 1_000_000, 3)}


@dataclass(frozen=True)
class Item:
    """A command, small and at full size, and the items whose output it reads.

    In its words ``{data}`` is the folder of the sources, ``{parquet}`` what the item of that name wrote, and ``{out}``
    what this one writes.
    """

    small: str
    full: str
    reads: tuple[str, ...] = ()

    def words(self, size: str, places: dict[str, str]) -> list[str]:
        return [word.format(**places) for word in shlex.split(self.small if size == "small" else self.full)]


ITEMS = {
    "start": Item("--version", "--version"),
    "help": Item("replay --help", "replay --help"),
    "csv": Item(*2 * ("datasets convert {data}/csv.toml {out}",)),
    "gzip": Item(*2 * ("datasets convert {data}/gzip.toml {out}",)),
    "parquet": Item(*2 * ("datasets convert {data}/parquet.toml {out}",)),
    "sort": Item(*2 * ("datasets convert {data}/sort.toml {out}",)),
    "replay": Item("replay -p delayed-klucb", "replay -p delayed-klucb -d {parquet}", ("parquet",)),
    "replay-linear": Item("replay -p linucb", "replay -p linucb -d {parquet}", ("parquet",)),
    "replay-window": Item(
        "replay -p otflinucb -w 2000", "replay -p otflinucb -w 1d -d {parquet}", ("parquet",)
    ),
    "replay-schedule": Item(
        "replay -p thompson --learn-every 1000",
        "replay -p thompson --learn-every 1d@03:00 --learn-lag 6h -d {parquet}",
        ("parquet",),
    ),
    "replay-sets": Item(
        "replay -d promotions -p linucb -w 14d --guardrail 'unsubscribe < +0.02'",
        "replay -d {data}/promotions.toml -p linucb -w 14d --guardrail 'unsubscribe < +0.02'",
    ),
    "compare": Item(
        f"compare {FOUR} -w 500,2000,none --bootstrap 0",
        f"compare {FOUR} -w 1d,none --bootstrap 0 -d {{parquet}}",
        ("parquet",),
    ),
    "bootstrap": Item(
        f"compare {FOUR} -w 2000 --bootstrap 20",
        f"compare {FOUR} -w 1d --bootstrap 20 --limit 500000 -d {{parquet}}",
        ("parquet",),
    ),
    "check": Item(*2 * ("check -d {parquet}",), ("parquet",)),
    "audit": Item(
        "audit -p linucb -p random -w 2000 --twins 20 --displays 20000",
        "audit -p linucb -p random -w 1d --twins 10 --displays 2000000 -d {parquet}",
        ("parquet",),
    ),
    "delays": Item(*2 * ("delays -d {parquet} --windows 1h,1d,7d",), ("parquet",)),
    "simulate": Item(
        "simulate --scenario vernade2017-low -p delayed-klucb -p ucb1 --runs 20",
        "simulate --scenario vernade2017-low -p delayed-klucb -p ucb1 --runs 400",
    ),
    "out": Item(
        f"compare {FOUR} -w 500,2000 --bootstrap 0 -o {{out}}",
        f"compare {FOUR} -w 1d --bootstrap 0 -d {{parquet}} -o {{out}}",
        ("parquet",),
    ),
    "page": Item(*2 * ("report {out_of_out} -o {out}/page.html",), ("out",)),
}  # fmt: skip


class Used(NamedTuple):
    """Processor seconds and peak MB of a process, its children included."""

    seconds: float
    megabytes: float


class FailedError(Exception):
    """A command failed, with its exit code and what it said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


@dataclass(frozen=True)
class Tree:
    """Sources, and a folder of their own for compiled code and for what their commands write."""

    sources: Path
    folder: Path

    def run(self, words: Sequence[str]) -> Used:
        """Run a command; FailedError says why it gave no result."""
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"NUMBA_CACHE_DIR": str(self.folder / "compiled"), "PYTHONPATH": str(self.sources)}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "evaluator", *words], cwd=self.folder, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            )  # fmt: skip
            try:
                _, status, used = os.wait4(process.pid, 0)
            except BaseException:
                process.kill()
                raise
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode not in RESULTS:
                said.seek(0)
                told = [line.strip(" │") for line in said.read().decode(errors="replace").splitlines()]
                lines = [line for line in told if any(map(str.isalnum, line))] or ["it said nothing"]
                raise FailedError(process.returncode, next((line for line in lines if "rror: " in line), lines[-1]))
        return Used(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)

    def places(self, data: Path, out: Path) -> dict[str, str]:
        written = {"parquet": self.folder / "parquet", "out_of_out": self.folder / "out"}
        return {name: str(path) for name, path in {**written, "data": data, "out": out}.items()}

    def first(self, name: str, size: str, data: Path) -> None:
        """Run an item for the first time, so that its code is compiled, and keep what it writes for later items."""
        out = self.folder / name
        if not out.exists():
            _prepare(name, out)
            self.run(ITEMS[name].words(size, self.places(data, out)))

    def again(self, name: str, size: str, data: Path) -> Used:
        """Measure an item; what it writes is deleted."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            out = Path(scratch) / "out"
            _prepare(name, out)
            return self.run(ITEMS[name].words(size, self.places(data, out)))


def _prepare(name: str, out: Path) -> None:
    if name == "page":  # a file in that folder
        out.mkdir(parents=True)


@dataclass(frozen=True)
class Measured:
    """What both trees used, turn by turn."""

    old: list[Used]
    new: list[Used]

    def cells(self, of: int) -> tuple[str, str, str, float]:
        """Return old, new and their ratio as text, with the lowest and highest of a turn, and the ratio."""
        old, new = ([used[of] for used in turns] for turns in (self.old, self.new))
        ratios = [b / a for a, b in zip(old, new, strict=True)]
        ratio = statistics.median(ratios)
        text = f"{ratio:.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
        digits = 2 if of == 0 else 0
        return f"{statistics.median(old):,.{digits}f}", f"{statistics.median(new):,.{digits}f}", text, ratio


def measure(name: str, size: str, rounds: int, data: Path, old: Tree, new: Tree) -> Measured | str:
    """Measure an item in both trees in turns; where the commit cannot run it, say why.

    Raises
    ------
    FailedError
        The item fails in the new tree.
    """
    chain = [*ITEMS[name].reads, name]
    for other in ITEMS[name].reads:
        chain = [*ITEMS[other].reads, *chain]
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(lambda tree=tree: [tree.first(of, size, data) for of in chain]) for tree in (old, new)]
    both[1].result()
    try:
        both[0].result()
    except FailedError as error:
        return f"{'not in' if error.code == 2 else 'fails in'} the commit: {error}"
    turns = [(old.again(name, size, data), new.again(name, size, data)) for _ in range(rounds)]
    return Measured([a for a, _ in turns], [b for _, b in turns])


def gauge(size: str, names: Sequence[str], rounds: int, data: Path, old: Tree, new: Tree) -> bool:
    """Print the table of a size; whether each item gives a result in the new tree."""
    rows, other = [], []
    failed = False
    for name in names:
        _say(f"{size}: {name}")
        try:
            found = measure(name, size, rounds, data, old, new)
        except FailedError as error:
            failed, found = True, f"fails here: {error}"
        if isinstance(found, str):
            other.append(f"{name}: {found}")
            continue
        *seconds, slower = found.cells(0)
        *megabytes, larger = found.cells(1)
        marks = [what for what, ratio in (("time", slower), ("memory", larger)) if ratio > MARKED]
        rows.append((name, *seconds, *megabytes, " and ".join(marks) and f"<- {' and '.join(marks)}"))
    print(f"\n{size}, median of {rounds} turns; marked where a ratio is above {MARKED}")
    print_table(("item", "old, s", "new, s", "processor time", "old, MB", "new, MB", "peak memory", ""), rows)
    for line in other:
        print(line)
    return not failed


def make_sources(folder: Path, size: Size) -> None:
    """Write the tables of a log as Parquet, CSV and gzip, in order and not, and a scenario, with their specs."""
    from pyarrow import csv, parquet

    from tests.bench.convert_parts import Source, made

    for name, layout in (("parquet", "ordered"), ("sort", "shuffled")):
        spec = made(folder, Source(size.displays, 4, layout), size.conversions)
        text = spec.read_text().replace('"displays"', f'"{spec.parent.name}/displays"')
        (folder / f"{name}.toml").write_text(
            text.replace('"conversions.parquet"', f'"{spec.parent.name}/conversions.parquet"')
        )
        if name == "sort":
            continue
        csv.write_csv(parquet.read_table(spec.parent / "displays"), folder / "displays.csv")
        csv.write_csv(parquet.read_table(spec.parent / "conversions.parquet"), folder / "conversions.csv")
        for suffix, of in (("", "csv"), (".gz", "gzip")):
            if suffix:
                subprocess.run(["gzip", "-k6", "displays.csv", "conversions.csv"], cwd=folder, check=True)
            now = spec.read_text().replace('"displays"', f'"displays.csv{suffix}"')
            (folder / f"{of}.toml").write_text(now.replace('"conversions.parquet"', f'"conversions.csv{suffix}"'))
    scenario = (HERE / "datasets" / "promotions" / "spec.toml").read_text()
    for key, value in (("displays", size.scenario), ("displays_per_day", size.scenario // 60)):
        before = f"{key} = {60_000 if key == 'displays' else 1_000:_}\n"
        assert before in scenario
        scenario = scenario.replace(before, f"{key} = {value}\n")
    (folder / "promotions.toml").write_text(scenario)
    (folder / "made").touch()


def sources_in(folder: Path, size: Size) -> Path:
    """Return the folder of the sources of a size, made unless they are there, by a process of its own."""
    at = folder / f"sources-{size.displays}"
    if not (at / "made").exists():
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir(parents=True)
        process = get_context("spawn").Process(target=make_sources, args=(at, size))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"the sources in {at} cannot be made")
    return at


def unpack(commit: str, folder: Path) -> str:
    """Unpack the sources of a commit; return its hash and first line."""
    told = subprocess.run(
        ["git", "log", "-1", "--format=%h %s", f"{commit}^{{commit}}"], cwd=HERE, capture_output=True, text=True
    )
    if told.returncode:
        sys.exit(f"no commit {commit}: {told.stderr.strip()}")
    archive = subprocess.Popen(["git", "archive", "--format=tar", commit], cwd=HERE, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
        tar.extractall(folder, filter="data")
    if archive.wait():
        sys.exit(f"git archive {commit} failed")
    return told.stdout.strip()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Print the table of each size."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.gauge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", required=True, metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--size", choices=list(SIZES), help="both by default, small first")
    parser.add_argument("--rounds", type=int, help="turns that count; 5 where small, 3 at full size")
    parser.add_argument("--items", metavar="NAME,...", help=f"of {', '.join(ITEMS)}; all by default")
    parser.add_argument("--folder", type=Path, help="where the sources are kept; a temporary folder otherwise")
    given = parser.parse_args()
    names = given.items.split(",") if given.items else list(ITEMS)
    if unknown := set(names) - set(ITEMS):
        parser.error(f"no item {', '.join(sorted(unknown))}; there are {', '.join(ITEMS)}")
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds is 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    fine = True
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        commit = unpack(given.against, scratch / "sources")
        print(
            f"old: {commit}\nnew: this tree\nprocessor time: user and system, median; ratios: new over old", flush=True
        )
        for size in [given.size] if given.size else SIZES:
            data = sources_in((given.folder or scratch).resolve(), SIZES[size])
            old, new = Tree(scratch / "sources", scratch / size / "old"), Tree(HERE, scratch / size / "new")
            fine &= gauge(size, names, given.rounds or SIZES[size].rounds, data, old, new)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
