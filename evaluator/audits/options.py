"""What can be asked of an audit: twins, and what can be asked of the replays of a twin."""

from __future__ import annotations

from dataclasses import dataclass, fields

from evaluator.errors import ParameterError
from evaluator.options.declaration import documented, option
from evaluator.options.deployment import deployment_of
from evaluator.options.shared import INTERVALS
from evaluator.replays.options import BareReplayOptions, ReplayOptions


@documented
@dataclass(frozen=True, kw_only=True)
class AuditOptions(BareReplayOptions):
    """Options of an audit: its own, and those of the replays of every twin."""

    twins: int = option(
        200,
        "Logs drawn from the fitted truth, and replayed",
        example="50",
        question=INTERVALS,
        flags=("-n",),
        at_least=10,
    )
    displays: int | None = option(
        None, "Displays of a twin. Default: as many as the log has", example="1000000", question=INTERVALS, at_least=200
    )

    def __post_init__(self) -> None:
        """Check every option, and that young displays are corrected by what twins have."""
        super().__post_init__()
        if self.teacher is not None:
            raise ParameterError(
                f"`learn_from={self.learn_from!r}`: an audit's twins have no events but rewards.",
                remedy="audit what learns from rewards (`learn_from='objective'`), and replay the log for the other.",
            )
        if (kept := deployment_of(vars(self)).kept) is not None:
            raise ParameterError(
                f"`keep_for='{kept.text}'`: the twins of an audit have displays, and no {kept.column} who comes back.",
                remedy="audit the policies without it (`keep_for='none'`), and compare with it.",
            )
        if self.keeps:
            raise ParameterError(
                f"`immature={self.immature!r}`: twins have no such columns.",
                remedy="audit with `immature='correct'`, which corrects by action.",
            )

    def of_replays(self, *, seed: int) -> ReplayOptions:
        """Return the options of the replays of one twin."""
        own = {field.name: getattr(self, field.name) for field in fields(BareReplayOptions)}
        return ReplayOptions(**{**own, "seed": seed, "jobs": 1})
