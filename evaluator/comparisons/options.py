"""What can be asked of a comparison beside the options of its replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import WINDOWS


@documented
@dataclass(frozen=True, kw_only=True)
class CompareOptions(Options):
    """Options of a comparison that no replay has."""

    windows: Sequence[str | int | None] | None = WINDOWS.field()
    baseline: str | None = option(
        None, "One of the policies, to compare the others with. Default: the first", flags=("-b",)
    )
    study: str | Path | None = option(
        None,
        "TOML file that says what to compare; options beside it win",
        more="`evaluator.comparisons.study_file` shows one.",
        example="study.toml",
    )

    @property
    def asked_windows(self) -> tuple[str | int | None, ...] | None:
        """The cut-offs, None where nothing is cut off."""
        if self.windows is None:
            return None
        return tuple(None if window == "none" else window for window in self.windows)
