"""What can be asked of an audit: twins, and everything that can be asked of a replay."""

from __future__ import annotations

from dataclasses import dataclass, fields

from evaluator.errors import ParameterError
from evaluator.replays.options import ReplayOptions
from evaluator.units import refuse_not_whole


@dataclass(frozen=True, kw_only=True)
class AuditOptions(ReplayOptions):
    """Options of an audit: those of `evaluator.replays.options.ReplayOptions`, with which every twin is replayed.

    Parameters
    ----------
    twins
        Logs drawn from the truth, 10 at least.
    displays
        Of a twin; None for as many as the log has.

    Raises
    ------
    ParameterError
        Naming the option, the value and what it takes.
    """

    twins: int = 200
    displays: int | None = None

    def __post_init__(self) -> None:
        """Check every option's range."""
        super().__post_init__()
        if self.cluster_by is not None:
            raise ParameterError(
                "--cluster-by does not go with an audit: the displays of its twins are independent.",
                hint="leave it out; evaluate check LOG --cluster-by says how much wider intervals are to be.",
            )
        if self.reward_cap is not None or self.reward_max is not None:
            raise ParameterError(
                "--reward-max and --reward-cap do not go with an audit: its truth has the log's own rewards.",
                hint="leave them out; name reward_max in the spec.",
            )
        if self.keeps:
            raise ParameterError(
                f"--immature {self.immature}: twins have no such columns.",
                hint="audit with --immature correct, which corrects by action.",
            )
        refuse_not_whole(self, twins=10, displays=200)

    def of_replays(self, *, seed: int) -> ReplayOptions:
        """Return the options of the replays of one twin."""
        own = {field.name: getattr(self, field.name) for field in fields(ReplayOptions)}
        return ReplayOptions(**{**own, "seed": seed, "jobs": 1})
