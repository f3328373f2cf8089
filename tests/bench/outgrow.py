"""What studies cost by displays, variants and workers, and what larger ones would: ``python -m tests.bench.outgrow``.

Makes logs (10 actions, categories as context) and runs commands of contextual policies on them as a user would, a
process each. By sections, all unless some are named (``python -m tests.bench.outgrow audit simulate``):

costs
    Processor seconds and peak memory of ``evaluate compare``, with lines through both: so much to begin, to read a
    display, to replay it in a variant; so much memory for a conversion and for a round. Then what the lines make of ten
    billion displays on a hundred workers. That is calculated, not measured: it assumes that the lines hold that far,
    that a worker reads the log as fast as this machine does, that jobs differ by nothing, and that no worker dies.
bootstrap, audit, simulate, delays, convert
    Seconds of ``compare --bootstrap``, of ``audit``, of ``simulate`` and of ``delays`` by ``--jobs`` and on workers of
    ``--cluster``, and of ``datasets convert`` by ``--jobs``.
"""

from __future__ import annotations

import argparse
import heapq
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from evaluator.comparisons.variant_runs import FEWEST, LANES, WORK
from tests.bench.convert_large import ACTIONS
from tests.bench.convert_parts import Source, made
from tests.bench.full_size_replay import measured

POLICIES = ["otflinucb", "linucb", "lints", "otflints"]
WINDOWS = ["1d", "2d", "3d", "4d", "5d", "6d", "7d", "none"]
# Displays, conversions, and variants that are compared.
SIZES = [
    (1_000_000, 10_000, 1),
    (1_000_000, 10_000, 8),
    (1_000_000, 10_000, 32),
    (4_000_000, 40_000, 1),
    (4_000_000, 40_000, 8),
    (4_000_000, 40_000, 32),
    (16_000_000, 160_000, 1),
    (16_000_000, 160_000, 8),
    (4_000_000, 1_000_000, 8),
]
SMALL = SIZES[0][:2]
THREADS = ["--jobs 1", "--jobs 2"]
WORKERS = [*THREADS, "--cluster local:1", "--cluster local:2"]
RESAMPLES = 40
# An audit of two policies, and a simulation: half a minute of one processor, and more.
AUDITED, TWINS = ["otflinucb", "linucb"], 60
SCENARIO, SIMULATED, RUNS = "vernade2017-low", ["delayed-klucb", "ucb1"], 2_500
# Mixtures take the longest to fit.
STUDIED, FAMILIES, BOOTSTRAPS = (1_000_000, 100_000), "lognormal-mixture-3,lognormal-mixture-4", 999
CONVERTED = (16_000_000, 160_000)
HORIZON = 10_000_000
# A round of a resampled replay, of which the sum of the rewards is asked for (`evaluator.replays.values.resampled`).
BYTES_OF_DRAW = 8


@dataclass(frozen=True)
class Cost:
    """Processor seconds of a command, of a display that is read, of a replay of it; MB, bytes a conversion, a round."""

    begin: float
    read: float
    replay: float
    base: float
    conversion: float
    round: float

    def job(self, displays: float, replays: float) -> float:
        """Return the seconds of one scan."""
        return displays * (self.read + replays * self.replay)

    def memory(self, conversions: float, rounds: float) -> float:
        """Return the GB of it."""
        return (self.base * 2**20 + conversions * self.conversion + rounds * self.round) / 1e9


def log_of(folder: Path, displays: int, conversions: int) -> Path:
    return folder / f"log-{displays}-{conversions}"


def made_log(folder: Path, displays: int, conversions: int) -> Path:
    """Return a converted log, made unless it is there."""
    log = log_of(folder, displays, conversions)
    if not log.exists():
        measured("datasets", "convert", str(made(folder, Source(displays, 16, "ordered"), conversions)), str(log))
    return log


def study(folder: Path, displays: int, conversions: int, variants: int, *more: str) -> tuple[float, float, float]:
    policies = POLICIES[: min(variants, len(POLICIES))]
    windows = ",".join(WINDOWS[: variants // len(policies)])
    words = [word for policy in policies for word in ("-p", policy)]
    return measured("compare", "-d", str(log_of(folder, displays, conversions)), *words, "-w", windows, *more)


def fitted(folder: Path) -> Cost:
    """Measure studies, print them, and return the lines through them."""
    found = []
    print("| displays | conversions | variants | processor seconds | peak, MB |\n" + "|---" * 5 + "|")
    for of in SIZES:
        displays, conversions, variants = of
        _, processor, peak = study(folder, *of)
        print(f"| {displays:,} | {conversions:,} | {variants} | {processor:.1f} | {peak:,.0f} |", flush=True)
        found.append((displays, conversions, variants, processor, peak))
    displays, conversions, variants, processor, peak = np.array(found, float).T
    begin, read, replay = through(np.stack([np.ones(len(found)), displays, displays * variants], 1), processor)
    rounds = displays * variants / ACTIONS
    base, conversion, of_round = through(np.stack([np.ones(len(found)), conversions, rounds], 1), peak)
    cost = Cost(begin, read, replay, base, conversion * 2**20, of_round * 2**20)
    print(
        f"\n{begin:.1f} s to begin, {read * 1e9:.0f} ns to read a display, {replay * 1e9:.0f} ns to replay it in a "
        f"variant; {base:,.0f} MB, {cost.conversion:.0f} bytes a conversion, {cost.round:.0f} bytes a round"
    )
    return cost


def through(design: npt.NDArray[np.float64], found: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Return the line nearest to what was found, by shares, without negative costs; print how far off it is."""
    line, _ = nnls(design / found[:, None], np.ones(len(found)))
    print(f"\n(off by {np.abs(design @ line / found - 1).max():.0%} at most)")
    return tuple(line.tolist())


def costs(folder: Path) -> None:
    """Print what comparisons cost, and what larger ones would."""
    for displays, conversions in dict.fromkeys(size[:2] for size in SIZES):
        made_log(folder, displays, conversions)
    study(folder, *SMALL, 8, "--limit", "5000")  # compiles
    calculated(fitted(folder), 1e10, 0.01, 40, 200, 100)


def bootstrap(folder: Path) -> None:
    """Print the seconds of a bootstrap by who computes it."""
    made_log(folder, *SMALL)
    study(folder, *SMALL, 8, "--limit", "5000")
    by_workers(
        f"{SMALL[0]:,} displays, 8 variants, {RESAMPLES} resampled logs",
        lambda *words: study(folder, *SMALL, 8, "--bootstrap", str(RESAMPLES), *words),
    )


def audit(folder: Path) -> None:
    """Print the seconds of an audit by who computes it."""
    log = made_log(folder, *SMALL)

    def command(twins: int, *words: str) -> tuple[float, float, float]:
        return measured("audit", "-d", str(log), "-p", ",".join(AUDITED), "-w", "1d", "--twins", str(twins), *words)

    command(10, "--displays", "500000", "--horizon", "500")  # compiles
    what = f"audit, {TWINS} twins of {SMALL[0]:,} displays, {len(AUDITED)} policies"
    by_workers(what, lambda *words: command(TWINS, *words))


def simulate(folder: Path) -> None:
    """Print the seconds of a simulation by who computes it."""

    def command(runs: int, *words: str) -> tuple[float, float, float]:
        return measured("simulate", SCENARIO, "-p", ",".join(SIMULATED), "--runs", str(runs), *words)

    command(2)  # compiles
    what = f"simulate {SCENARIO}, {RUNS:,} runs, {len(SIMULATED)} policies"
    by_workers(what, lambda *words: command(RUNS, *words))


def delays(folder: Path) -> None:
    """Print the seconds of a study of delays by who computes it."""
    log = made_log(folder, *STUDIED)

    def command(bootstraps: int, *words: str) -> tuple[float, float, float]:
        return measured("delays", "-d", str(log), "--families", FAMILIES, "--bootstraps", str(bootstraps), *words)

    command(99)  # compiles
    what = f"delays, {STUDIED[1]:,} conversions, {FAMILIES}, {BOOTSTRAPS} bootstraps"
    by_workers(what, lambda *words: command(BOOTSTRAPS, *words))


def convert(folder: Path) -> None:
    """Print the seconds of a conversion by its threads."""
    displays, conversions = CONVERTED
    spec = made(folder, Source(displays, 16, "shuffled"), conversions)
    with tempfile.TemporaryDirectory(dir=folder) as out:

        def command(*words: str) -> tuple[float, float, float]:
            return measured("datasets", "convert", str(spec), str(Path(out) / "-".join(words)), *words)

        by_workers(f"datasets convert, {displays:,} displays in 16 files out of order", command, ways=THREADS)


def by_workers(what: str, command: Callable[..., tuple[float, float, float]], *, ways: Sequence[str] = WORKERS) -> None:
    """Print the seconds of a command by who computes it."""
    print(f"\n| {what} | seconds | processor seconds | times as fast |")
    print("|---" * 4 + "|", flush=True)
    first = None
    for words in ways:
        seconds, processor, _ = command(*words.split())
        first = first or seconds
        own = "" if "--cluster" in words else f"{processor:.1f}"  # its processes are no children of the command
        print(f"| `{words}` | {seconds:.1f} | {own} | {first / seconds:.2f} |", flush=True)


def calculated(cost: Cost, displays: float, share: float, variants: int, resamples: int, workers: int) -> None:
    """Print what a study of many displays would take on many workers, by the lines."""
    print(
        f"\nCalculated: {displays:,.0f} displays of {ACTIONS} actions, {share:.0%} of which convert, "
        f"on {workers} workers of one core\n"
    )
    print("| | displays read | replays in a job | jobs | a job, minutes | in all, hours | memory of a worker, GB |")
    print("|---" * 7 + "|")
    for horizon in (None, HORIZON):
        read = displays if horizon is None else horizon * ACTIONS
        replays = int(min(LANES, max(WORK // read, FEWEST)))
        ends = "" if horizon is None else f", {horizon:,} rounds"
        for what, number in (
            (f"{variants} variants", variants),
            (f"on {resamples} resampled logs", variants * resamples),
        ):
            jobs = math.ceil(number / replays)
            seconds = cost.begin + cost.job(read, replays)
            hours = finished_after(jobs, seconds, workers) / 3600
            rounds = replays * read / ACTIONS
            if number > variants:
                rounds *= BYTES_OF_DRAW / cost.round
            memory = cost.memory(displays * share, rounds)
            cells = (f"{replays}", f"{jobs:,}", f"{seconds / 60:.0f}", f"{hours:.2g}", f"{memory:,.0f}")
            print(f"| {what}{ends} | {read:,.0f} | {' | '.join(cells)} |")


def finished_after(jobs: int, seconds: float, workers: int) -> float:
    """Return when the last of equal jobs is finished that workers take one after the other."""
    free = [0.0] * min(workers, jobs)
    for _ in range(jobs):
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


SECTIONS = {section.__name__: section for section in (costs, bootstrap, audit, simulate, delays, convert)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.outgrow",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--folder", type=Path, help="where the logs are kept; a temporary folder otherwise")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.sections or SECTIONS:
            SECTIONS[name](folder)


if __name__ == "__main__":
    main()
