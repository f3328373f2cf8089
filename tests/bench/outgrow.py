"""What studies cost by displays, variants and workers, and what larger ones would: ``python -m tests.bench.outgrow``.

Makes logs (10 actions, categories as context), runs ``evaluate compare`` of contextual policies on them as a user
would, a process each, and prints processor seconds and peak memory, with lines through both: so much to begin, to read
a display, to replay it in a variant; so much memory for a conversion and for a round. Then a bootstrap by ``--jobs``
and on workers of ``--cluster``, in seconds.

Last, what the lines make of ten billion displays on a hundred workers. That is calculated, not measured: it assumes
that the lines hold that far, that a worker reads the log as fast as this machine does, that units differ by nothing,
and that no worker dies.
"""

from __future__ import annotations

import argparse
import heapq
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from evaluator.comparisons.variant_units import FEWEST, LANES, WORK
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
WORKERS = ["--jobs 1", "--jobs 2", "--cluster local:1", "--cluster local:2"]
RESAMPLES = 40
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

    def unit(self, displays: float, replays: float) -> float:
        """Return the seconds of one scan."""
        return displays * (self.read + replays * self.replay)

    def memory(self, conversions: float, rounds: float) -> float:
        """Return the GB of it."""
        return (self.base * 2**20 + conversions * self.conversion + rounds * self.round) / 1e9


def log_of(folder: Path, displays: int, conversions: int) -> Path:
    return folder / f"log-{displays}-{conversions}"


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


def by_workers(folder: Path) -> None:
    """Print the seconds of a bootstrap by who computes it."""
    displays, conversions, _ = SIZES[0]
    print(
        f"\n| {displays:,} displays, 8 variants, {RESAMPLES} resampled logs "
        "| seconds | processor seconds | times as fast |"
    )
    print("|---" * 4 + "|")
    first = None
    for words in WORKERS:
        seconds, processor, _ = study(folder, displays, conversions, 8, "--bootstrap", str(RESAMPLES), *words.split())
        first = first or seconds
        print(f"| `{words}` | {seconds:.1f} | {processor:.1f} | {first / seconds:.2f} |", flush=True)


def calculated(cost: Cost, displays: float, share: float, variants: int, resamples: int, workers: int) -> None:
    """Print what a study of many displays would take on many workers, by the lines."""
    print(
        f"\nCalculated: {displays:,.0f} displays of {ACTIONS} actions, {share:.0%} of which convert, "
        f"on {workers} workers of one core\n"
    )
    print("| | displays read | replays in a unit | units | a unit, minutes | in all, hours | memory of a worker, GB |")
    print("|---" * 7 + "|")
    for horizon in (None, HORIZON):
        read = displays if horizon is None else horizon * ACTIONS
        replays = int(min(LANES, max(WORK // read, FEWEST)))
        ends = "" if horizon is None else f", {horizon:,} rounds"
        for what, number in (
            (f"{variants} variants", variants),
            (f"on {resamples} resampled logs", variants * resamples),
        ):
            units = math.ceil(number / replays)
            seconds = cost.begin + cost.unit(read, replays)
            hours = finished_after(units, seconds, workers) / 3600
            rounds = replays * read / ACTIONS
            if number > variants:
                rounds *= BYTES_OF_DRAW / cost.round
            memory = cost.memory(displays * share, rounds)
            cells = (f"{replays}", f"{units:,}", f"{seconds / 60:.0f}", f"{hours:.2g}", f"{memory:,.0f}")
            print(f"| {what}{ends} | {read:,.0f} | {' | '.join(cells)} |")


def finished_after(units: int, seconds: float, workers: int) -> float:
    """Return when the last of equal units is finished that workers take one after the other."""
    free = [0.0] * min(workers, units)
    for _ in range(units):
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the logs are kept; a temporary folder otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for displays, conversions in dict.fromkeys(size[:2] for size in SIZES):
            if not log_of(folder, displays, conversions).exists():
                spec = made(folder, Source(displays, 16, "ordered"), conversions)
                measured("datasets", "convert", str(spec), str(log_of(folder, displays, conversions)))
        study(folder, *SIZES[0][:2], 8, "--limit", "5000")  # compiles
        cost = fitted(folder)
        by_workers(folder)
        calculated(cost, 1e10, 0.01, 40, 200, 100)


if __name__ == "__main__":
    main()
