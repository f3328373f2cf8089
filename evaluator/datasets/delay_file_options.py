"""What can be asked of the reading of a bare file of delays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from evaluator.datasets.options import OnError, check_share
from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import BY, ON_ERROR, QUARANTINE_AT_MOST, TRIED, WHICH_LOG
from evaluator.units import Tick

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
