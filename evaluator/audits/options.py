"""What can be asked of an audit: twins, and everything that can be asked of a replay."""

from __future__ import annotations

from dataclasses import dataclass, fields

from evaluator.errors import ParameterError
from evaluator.options.declaration import documented, option
from evaluator.replays.options import ReplayOptions


@documented
@dataclass(frozen=True, kw_only=True)
class AuditOptions(ReplayOptions):
    """Options of an audit: its own, and those of a replay, with which every twin is replayed."""

    twins: int = option(200, "Logs drawn from the fitted truth, and replayed", example="50", flags=("-n",), at_least=10)
    displays: int | None = option(
        None, "Displays of a twin. Default: as many as the log has", example="1000000", at_least=200
    )

    def __post_init__(self) -> None:
        """Check every option, and that it goes with an audit."""
        super().__post_init__()
        if self.cluster_by is not None:
            raise ParameterError(
                "`cluster_by` does not go with an audit: the displays of its twins are independent.",
                hint="leave it out; evaluate check LOG `cluster_by` says how much wider intervals are to be.",
            )
        for name in ("reward_max", "reward_min", "cap"):
            if getattr(self, name) is not None:
                raise ParameterError(
                    f"`{name}` does not go with an audit: its truth has the log's own rewards.",
                    hint="leave it out; name reward_max and reward_min in the spec.",
                )
        if self.objective == "profit":
            raise ParameterError(
                "`objective='profit'` does not go with an audit: its twins cost nothing.",
                hint="leave it out; the audit is of revenue.",
            )
        object.__setattr__(self, "objective", "revenue")
        if self.warm_start is not None:
            raise ParameterError(
                "`warm_start` does not go with an audit: its policies live on twins, from nothing.",
                hint="leave it out; replay and compare go on with what was learned.",
            )
        if self.guardrails is not None:
            raise ParameterError(
                "`guardrails` do not go with an audit: its twins have no events but conversions.",
                hint="leave them out; replay and compare answer them.",
            )
        if self.by is not None:
            raise ParameterError(
                "`by` does not go with an audit: its twins have no columns to group by.",
                hint="leave it out; replay and compare tell groups apart.",
            )
        if self.keeps:
            raise ParameterError(
                f"`immature={self.immature!r}`: twins have no such columns.",
                hint="audit with `immature='correct'`, which corrects by action.",
            )

    def of_replays(self, *, seed: int) -> ReplayOptions:
        """Return the options of the replays of one twin."""
        own = {field.name: getattr(self, field.name) for field in fields(ReplayOptions)}
        return ReplayOptions(**{**own, "seed": seed, "jobs": 1})
