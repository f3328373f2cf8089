"""What can be made, and what can be asked of a generated twin of a dataset."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import JOBS, SEED

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
        at_least=1000,
        at_most=16_468_027,
    )
    seed: int = SEED.but(help="Of a twin: same seed and rows, same bytes", panel="", bits=63).field()
    jobs: int | None = JOBS.but(
        default=None, help="Threads; the bytes do not depend on it. Default: up to 4", example="", panel=""
    ).field()
