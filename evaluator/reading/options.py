"""What can be asked of the reading of a log, of the reading of a bare file of delays, and of a generated dataset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from evaluator.errors import ParameterError, UsageError
from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import BY, INTERVALS, JOBS, LOG, ON_ERROR, QUARANTINE_AT_MOST, SEED, TRIED, WHICH_LOG
from evaluator.units import LEAST_SAMPLE, Tick

OnError = Literal["stop", "quarantine"]
Deduplicate = Literal["last_click", "first_click", "all", "share"]


@documented
@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Options):
    """Options of the reading of a log: of `evaluator.load`."""

    path: str | Path | None = option(
        None,
        "Data file, glob or folder in place of the spec's",
        more="Relative to the working folder, or an address of objects: s3://, gs://, az://.",
        example="log.tsv.gz",
        panel=LOG,
    )
    actions: str | Sequence[str] | None = option(
        None,
        "Keep these actions and drop the displays of the rest: top:10, used (with usable displays), or labels: a,b,c",
        more="Displays of other actions are counted. Delays in displays still count those of all actions. Propensities "
        "become those of the fewer actions where they do not depend on the display; else they stay, and what cannot be "
        "right with them is refused.",
        panel=LOG,
    )
    features: str | None = option(
        None,
        "Context columns and their encoding: cat1,cat2:hash=32, hash=32 (width only), or none",
        more="Also ``col1:one-hot`` and ``col1:number``.",
        panel=LOG,
    )
    deduplicate: Deduplicate | None = option(
        None,
        "Which display gets a conversion logged on several: last_click, first_click, all, share",
        more="Replaces the spec's rule.",
        panel=LOG,
    )
    attributed_only: bool | None = option(
        None,
        "Count only conversions the log attributes to a display. Default: as the spec says",
        panel=LOG,
        flags=("--attributed-only/--all-conversions",),
    )
    limit: int | None = option(
        None,
        "Read only the first displays",
        more="Counted before `actions`; of a synthetic dataset, so many are generated.",
        example="100000",
        panel=LOG,
        at_least=1,
    )
    seed: int | None = SEED.but(
        default=None, help="Replaces the seed of a synthetic dataset", example="7", panel=LOG
    ).field()
    sort: bool | None = option(None, "Sort a log that is not in time order", panel=LOG)
    attribution_window: str | int | None = option(
        None,
        "Cut conversions later than this after their display, whatever the spec says",
        more="A duration, or ticks of the log. They are counted in "
        "``meta.counts['conversions_beyond_attribution_window']``. A converted folder takes shorter ones only.",
        example="8h",
        panel=LOG,
    )
    on_error: OnError = ON_ERROR.field()
    quarantine_at_most: str | float = QUARANTINE_AT_MOST.field()
    keep: Sequence[str] = option(
        (),
        "Columns of the source to keep, to group by",
        more="Every display keeps them as they are: as numbers where the source has numbers (Parquet, IPC, a frame), "
        "else as text; a converted folder must have them. Outcomes are refused as among the features.",
        example="country,device",
        panel=LOG,
        question=WHICH_LOG,
    )
    sampling_rate: float | None = option(
        None,
        "Share of the traffic that the log holds, where it is a sample",
        more="In (0, 1], in place of what its spec says: delays in rounds are counted in displays of the traffic.",
        example="0.1",
        panel=LOG,
        at_least=LEAST_SAMPLE,
        at_most=1.0,
    )

    def __post_init__(self) -> None:
        """Check every option, and that the share goes with a quarantine."""
        super().__post_init__()
        check_share(self.on_error, self.quarantine_at_most)

    def given(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, so that what they do not apply to need not know them."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in values if value != field.default}


def check_share(on_error: OnError, given: str | float) -> None:
    """Raise UsageError if a share is named that no quarantine asks for; ParameterError if it is none."""
    share = share_of(given)
    if on_error != "quarantine" and share != share_of(QUARANTINE_AT_MOST.default):
        raise UsageError(
            f"`quarantine_at_most={given}`, but bad rows stop the run.", remedy="it goes with `on_error='quarantine'`."
        )


def share_of(given: str | float) -> float:
    """Return a share that is written as a number or in percent.

    >>> share_of("5%"), share_of("0.05"), share_of(0.05)
    (0.05, 0.05, 0.05)

    Raises
    ------
    ParameterError
        It is neither, or not between 0 and 1.
    """
    text = str(given).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ParameterError(
            f"`quarantine_at_most={given}` is no share of the rows.", remedy="write 5% or 0.05, from 0 to 1."
        )
    return share


FILE = "A bare file of delays"
UNITS: tuple[Tick, ...] = get_args(Tick)


@documented
@dataclass(frozen=True, kw_only=True)
class DelayFileOptions(Options):
    """Options of the reading of a bare file of delays."""

    delay_column: str | None = option(
        None,
        "Column of the delays",
        more="Whole numbers of `unit`, 0 or more. None if the file has no other column than `by`.",
        example="delay_s",
        panel=FILE,
        question=WHICH_LOG,
    )
    unit: str | None = option(None, f"Of the delays: {', '.join(UNITS)}. Default: s", panel=FILE, question=WHICH_LOG)
    followed: str | None = option(
        None,
        "How long displays were followed: a duration, or a column of the file. Default: to their end",
        more="In ticks, as a column is. To their end: all conversions were seen, however late.",
        panel=FILE,
        question=WHICH_LOG,
    )
    by: str | None = BY.but(default=None, question=TRIED).field()
    on_error: OnError = ON_ERROR.field()
    quarantine_at_most: str | float = QUARANTINE_AT_MOST.but(more="Of all rows, each of them a conversion.").field()

    def __post_init__(self) -> None:
        """Check every option, and that the share goes with a quarantine."""
        super().__post_init__()
        check_share(self.on_error, self.quarantine_at_most)


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
