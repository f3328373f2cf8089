"""What can be asked of a replay; the command line's options are these fields."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from evaluator.errors import ParameterError, nearest
from evaluator.estimates.spread import FEWEST
from evaluator.log.clusters import source_columns
from evaluator.replays.rounds.clock import ClockName
from evaluator.replays.rounds.correction import correct_by
from evaluator.replays.rounds.held_out import FinalPolicyName
from evaluator.replays.rounds.propensity import MODES, PropensityMode
from evaluator.replays.rounds.shares import final_share, known_share
from evaluator.units import refuse_not_whole

RewardName = Literal["eventual", "observed"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "clock": ("traffic", "wall"),
    "reward": ("eventual", "observed"),
    "propensity": MODES,
    "final_policy": ("greedy", "exploring"),
}


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """Options of a replay.

    Parameters
    ----------
    window
        Cut-off: in rounds (``2000``), by the displays that came meanwhile, or as a duration (``"7d"``), by the
        conversion's own delay (`evaluator.replays.rounds.window`); None for none.
    horizon
        Stop after this many rounds; None for as many as the log gives without bias.
    clock
        traffic: one accepted display is one round of live traffic. wall: the log's own pace.
    traffic_share
        Share of the traffic the policy will serve, above 0; above 1 where it is to serve more than was logged.
    sampler
        rejection, keep or queue; None for keep where a policy reads no contexts and the logger is even or without
        propensities, else rejection: both are right where rates drift.
    propensity
        column, uniform, estimate, estimate:context; None for the log's own.
    accept_quantile
        Quantile of the propensities taken for c; 0 is exact.
    delays
        Delay CDF for policies that need one: ``log`` (fitted to this log), a law of
        `evaluator.delays.laws.parse_law` such as ``geometric:500``, in rounds (on the wall clock, as the window, in
        logged displays), or a ``.json`` file of `evaluate delays`.
    delays_from
        ``first:20%``: the log's own delays as they were known once that share of the displays had been shown. The
        replay, of whatever policy, leaves these displays out. None: the delays of the whole log, which is hindsight.
    final
        ``last:20%``: leave that share of the displays out of the replay, and estimate on them what the final policy
        earns once it has stopped learning, by IPS, SNIPS and DR. What the policy is told (delay CDF, largest reward,
        rounds of a window) is then fitted to what was known when these displays began. None: no such estimate.
    final_policy
        greedy: the final policy shows the action with the largest estimated reward, without bonus or draw. exploring:
        it chooses as it would in its next round, bonus and draws included.
    doubly_robust
        Estimate the value over all displays that the replay reads, not the rounds alone, by a model of the rewards and
        weights for its errors; for rejection replays, and eventual rewards.
    reward
        eventual: every conversion counts. observed: those revealed by the horizon within the window.
    immature
        What becomes of displays too young at the end of the log: ``drop``; ``correct`` them by the delays of their
        action; ``correct:COLUMN`` by the delays of their action and their value in a column that the log keeps (several
        with commas).
    seed
        Of the policy's and the sampler's streams.
    repeats
        Replays with independent streams, each but the first in another order of the log
        (`evaluator.replays.rounds.reorder`).
    jobs
        Threads.
    level
        Of the intervals.
    bootstrap
        Resampled logs to replay for an interval of the expected value; 0 for none, else at least 20.
    cluster_by
        What displays hang together by, so that intervals of expected and weighted values allow for it: a column that
        the log keeps, such as the user, or ``every:1d`` for parts of the clock. None where displays are independent.
    reward_max
        What a display can earn at most, all its conversions together, in the log's unit: intervals and policies rest on
        it. A log in which one earns more is refused. None for what the log says, else the largest seen.
    reward_cap
        Count at most so much of a display's reward: another value, whose intervals hold however large rewards can be.
        None for whole rewards.
    """

    window: str | int | None = None
    horizon: int | None = None
    clock: ClockName = "traffic"
    traffic_share: float = 1.0
    sampler: str | None = None
    propensity: PropensityMode | None = None
    accept_quantile: float = 0.0
    delays: str = "log"
    delays_from: str | None = None
    final: str | None = None
    final_policy: FinalPolicyName = "greedy"
    doubly_robust: bool = False
    reward: RewardName = "eventual"
    immature: str = "drop"
    seed: int = 0
    repeats: int = 1
    jobs: int = 1
    level: float = 0.95
    bootstrap: int = 0
    cluster_by: str | None = None
    reward_max: float | None = None
    reward_cap: float | None = None

    def __post_init__(self) -> None:
        """Check every option's range.

        Raises
        ------
        ParameterError
            Naming the option, the value and what it takes.
        """
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                option = name.replace("_", "-")
                raise ParameterError(f"--{option} {value!r} is not a choice.", hint=nearest(str(value), choices))
        refuse_not_whole(self, horizon=1, repeats=1, jobs=1, seed=0, bootstrap=0)
        if 0 < self.bootstrap < FEWEST:
            raise ParameterError(
                f"--bootstrap {self.bootstrap} is too few to know a spread.",
                hint=f"take {FEWEST} at least, better 200; 0 for none.",
            )
        if correct_by(self.immature) is not None and self.reward == "observed":
            raise ParameterError(
                "--reward observed and --immature correct exclude each other.",
                hint="the correction is for eventual rewards: use --immature drop.",
            )
        if self.reward == "observed" and self.doubly_robust:
            raise ParameterError(
                "--reward observed and --doubly-robust exclude each other.",
                hint="what is observed by the horizon has no model: leave one out.",
            )
        if self.delays_from is not None:
            known_share(self.delays_from)
            if self.delays != "log":
                raise ParameterError(
                    "--delays and --delays-from exclude each other.", hint="give the delays, or fit them to the log."
                )
        if self.final is not None:
            final_share(self.final)
        elif self.final_policy != "greedy":
            raise ParameterError(
                f"--final-policy {self.final_policy} says which policy --final values, and there is no --final.",
                hint="give --final last:20%, or leave it out.",
            )
        if not 0.0 <= self.accept_quantile < 1.0:
            raise ParameterError(f"--accept-quantile {self.accept_quantile:g} is out of range.", hint="take [0, 1).")
        for name in ("reward_max", "reward_cap"):
            most = getattr(self, name)
            if most is not None and not 0.0 < most < float("inf"):
                raise ParameterError(
                    f"--{name.replace('_', '-')} {most:g} is out of range.", hint="take a number above 0, such as 100."
                )
        if self.reward_max is not None and self.reward_cap is not None:
            raise ParameterError(
                "--reward-max and --reward-cap exclude each other.", hint="a cap is the largest reward that counts."
            )
        if not 0.0 < self.level < 1.0:
            raise ParameterError(
                f"--level {self.level:g} is out of range.", hint="take a level in (0, 1), such as 0.95."
            )

    @property
    def keeps(self) -> list[str]:
        """Columns that the log must have kept from its source."""
        return list(dict.fromkeys([*(correct_by(self.immature) or ()), *source_columns(self.cluster_by)]))

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return asdict(self)
