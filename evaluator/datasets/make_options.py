"""Options of a generated dataset, and the files that making it returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import INTERVALS, JOBS, SEED, WHICH_LOG

# What has a name of its own; a twin of another spec is named by its path.
MADE = ("criteo_twin", "shop")


@documented
@dataclass(frozen=True, kw_only=True)
class MakeOptions(Options):
    """Options of `evaluator.datasets.make`."""

    rows: int = option(
        1_000_000,
        "Number of displays of a twin, 1,000 to 16,468,027",
        example="200000",
        question=WHICH_LOG,
        at_least=1000,
        at_most=16_468_027,
    )
    seed: int = SEED.but(
        help="Of a twin: same seed and rows, same bytes", panel="", question=INTERVALS, bits=63
    ).field()
    jobs: int | None = JOBS.but(
        default=None, help="Threads; the bytes do not depend on it. Default: up to 4", example="", panel=""
    ).field()


@dataclass(frozen=True)
class MadeFiles:
    """Where a generated dataset and its truth are.

    Parameters
    ----------
    path
        Path of the data: a twin's gzipped file, the shop's folder.
    truth, table
        Paths of the truth as JSON, and of its propensities and rates by context and action as a table (Parquet, CSV).
    counts
        Numbers of rows by name: of a twin's rows, users, conversions and rows with conversions; of the shop's displays,
        sales and delays.
    """

    path: Path
    truth: Path
    table: Path
    counts: dict[str, int]
