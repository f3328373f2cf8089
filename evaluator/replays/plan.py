"""Everything a replay decides before its first round, and the document of it that `--dry-run` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.log_replay import Explores, Keeps, SamplerName
from evaluator.engine.pushes import PushTimes
from evaluator.findings.finding import Finding, WithFindings
from evaluator.log import Log
from evaluator.log.column import Column
from evaluator.log.log_tables import Objective, PropensityKind
from evaluator.log.reward_kinds import CapLoss, counts_costs, number_of_conversions
from evaluator.log.schema import FEATURES, is_target
from evaluator.options.deployment import OBJECTIVE, Deployment
from evaluator.options.shared import ClockName
from evaluator.policies.base import Need, Setting
from evaluator.replays.kept_units import KeptRounds
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.clock import KnownDelays, ReplayClock, ReplayWindow, followed_for
from evaluator.replays.rounds.maturity import Maturity
from evaluator.replays.rounds.propensity import Propensities, Thinning
from evaluator.replays.rounds.reward_range import RewardEnd, RewardRange
from evaluator.replays.rounds.stream import EligibleSets, LogRounds
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.warm_start import WarmStart
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import (
    AtMostZero,
    Count,
    Finite,
    JsonDocument,
    NotNegative,
    Positive,
    PositiveShare,
    Share,
    Tick,
    plain_values,
)
from evaluator.units import NO_WINDOW

# A label that a spec of a policy takes as it stands.
_BARE = re.compile(r"(?!(?:true|false|none|null|inf|nan)$)[a-z_][\w-]*", re.IGNORECASE)


@dataclass(frozen=True)
class ReplayPlan(ShownInNotebooks, WithFindings):
    """A replay with every choice made; it can be copied and pickled, and `evaluator.replays.run.execute` replays it.

    Parameters
    ----------
    survey
        Survey of the log.
    policy, options
        Policy to replay, and the options as they were asked for, with what the log says of the deployment.
    clock, window, propensities, maturity, sampler
        Choices of the replay that follow from these two and from the log.
    matched
        Thinning of the log before the policy's choices are matched to it.
    by_action
        Thinning of the log to estimate each action's value.
    rounds
        Displays that the replay uses, not thinned.
    setting
        Setting that the policy is told before its first round.
    rewards
        Range of the replayed displays' rewards: the log's `reward_min` and `reward_max`, or the extremes of them.
    cdf
        Delay CDF of the log on the replay's clock; None without conversions.
    tau_window
        Share of the conversions that come within the window, of those that come as long as the log looked; nan without
        conversions.
    delay_steps
        Some delays, in the unit of the window (ticks where it is a duration, else rounds), each with the share of the
        conversions that come by it, of those that come as long as the log looked; empty without conversions.
    known
        Delays known before the replayed displays began, if the policy is to be told no more; None if it is told those
        of the log.
    teacher
        Survey of the events that the policy is told: those of the log, or other ones that it learns from.
    told
        Survey of what else the policy is told from: `teacher`, or what was known of it when the displays began that are
        left out for the final policy.
    findings
        What the result must say besides its numbers, as far as it is known before the first round.
    clusters
        Clusters of displays that hang together; None where displays are independent.
    splits
        Groups of the displays by each column of `by`.
    capped
        Loss to a cap of the rewards; None without one.
    start
        Warm start of the policy; None where it begins with nothing.
    sets
        How the displays' eligible actions vary; None where all are always eligible.
    outcomes
        Plan of each outcome, by its name, whose rewards are the outcome's events (`evaluator.replays.planning`):
        it values the rounds of this one, and is never replayed.
    deployment
        How the policy is deployed: as is asked, else as the log says. What does not learn has no schedule.
    pushes
        Pushes that the schedule makes; None where the policy learns at each event, or never.
    explores
        First rounds in which the policy does not choose; None where it chooses from the first round on.
    as_logger
        Thinning of the log in these rounds, where the logging policy chooses in them; None where actions are drawn
        uniformly.
    kept
        Units that keep their action, and the rounds of their displays; None where no unit does.
    """

    survey: Survey
    policy: Any
    options: ReplayOptions
    clock: ReplayClock
    window: ReplayWindow
    propensities: Propensities
    maturity: Maturity
    sampler: SamplerName
    matched: Thinning
    by_action: Thinning
    rounds: LogRounds
    setting: Setting
    rewards: RewardRange
    cdf: DelayCDF | None
    tau_window: float
    delay_steps: tuple[tuple[int, float], ...]
    known: KnownDelays | None
    teacher: Survey
    told: Survey
    findings: tuple[Finding, ...]
    clusters: Column | None = None
    splits: tuple[Column, ...] = ()
    capped: CapLoss | None = None
    start: WarmStart | None = None
    sets: EligibleSets | None = None
    outcomes: Mapping[str, ReplayPlan] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=Deployment)
    pushes: PushTimes | None = None
    explores: Explores | None = None
    as_logger: Thinning | None = None
    kept: KeptRounds | None = None

    def __repr__(self) -> str:
        told = self.to_dict()
        return (
            f"ReplayPlan({told['policy']} on {told['dataset']}: sampler {told['sampler']}, window {told['window']}, "
            f"{told['displays_used']:,} of {told['displays']:,} displays)"
        )

    @property
    def log(self) -> Log:
        """The log."""
        return self.survey.log

    @property
    def bounded(self) -> bool:
        """Whether no display can earn more or less than the bounds of `rewards`; else these are the extremes seen."""
        return self.rewards.bounded

    @property
    def of_profit(self) -> bool:
        """Whether displays are paid for: rewards are profits."""
        return counts_costs(self.log.conversions)

    @property
    def taught_by_kind(self) -> bool:
        """Whether the policy is told events of a kind that it learns from, and not the rewards."""
        return self.teacher is not self.survey

    @property
    def usable(self) -> npt.NDArray[np.int64]:
        """Used displays of each action, shape (K,)."""
        return self.survey.shown_first(len(self.rounds))

    @property
    def per_display(self) -> bool:
        """Whether the round's choice depends on the display: on its contexts, or on what is eligible."""
        return self.policy.contextual or self.setting.among

    @property
    def before(self) -> int:
        """Displays of the log before the replayed ones."""
        return 0 if self.known is None else self.known.displays

    @property
    def has_split(self) -> bool:
        """Whether a part of the log was put aside before or after the replayed displays."""
        return self.before > 0 or self.options.final is not None

    @property
    def held_out(self) -> range:
        """Displays on which the frozen policy is evaluated; none where that is not asked for."""
        asked = self.options.final is not None or is_target(self.policy.reads)
        if self.sampler == "logged" or not (asked or (self.options.doubly_robust and not self.policy.learns)):
            return range(0)
        if self.propensities.tilted or self.kept is not None:
            return range(0)
        return range(0 if self.options.final is None else len(self.rounds), self.maturity.used)

    @property
    def keeps(self) -> Keeps | None:
        """What a replay must know of the units that keep their action; None where no unit does."""
        return None if self.kept is None else self.kept.keeps(shared=self.rounds.vectors in (None, FEATURES))

    @property
    def off_support(self) -> bool:
        """Whether the rounds are of other displays than those of the logging policy's value.

        So it is on a choice of actions by context: the rounds are of the traffic, the logging policy is known where it
        showed a kept action. Of a policy that does as the logging policy, the difference is not 0.
        """
        return self.propensities.kept_share < 1.0 and self.sampler != "logged"

    @property
    def thinnings(self) -> list[Thinning]:
        """How the log is thinned to the displays that its rounds are read from."""
        return [self.matched, *([] if self.as_logger is None else [self.as_logger])]

    @property
    def recorded(self) -> bool:
        """Whether the choice of a policy that learns is kept at every display read, for the doubly robust value."""
        return self.options.doubly_robust and self.sampler == "rejection" and self.policy.learns

    @property
    def rewards_end_with_window(self) -> bool:
        """Whether only conversions within the policy's window are rewards: no other cut-off of the log is known."""
        return self.window.ends_rewards(self.log.meta)

    def told_at_ends(self) -> tuple[ReplayPlan, ...]:
        """Return this plan with conversions told at the beginning, and at the end, of their time stamps.

        None where stamps are fine beside the delays, or the value does not depend on when conversions are told.
        """
        depends = self.policy.learns or self.options.reward == "observed"
        of_time = self.pushes is not None and self.pushes.clock is not None
        if self.teacher.ends is None or self.sampler == "logged" or not depends or of_time:
            return ()
        surveys = (replace(self.teacher, delay=delay, _made={}) for delay in self.teacher.ends)
        delays = (self.window.revealed(survey, self.clock) for survey in surveys)
        told, taught = self.rounds.told, self.taught_by_kind
        return tuple(
            replace(
                self,
                rounds=replace(
                    self.rounds,
                    delay=self.rounds.delay if taught else delay,
                    told=None if told is None else told.delayed(delay),
                ),
            )
            for delay in delays
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        told = self.setting.delay_cdf if Need.DELAY_CDF in self.policy.needs else None
        own_largest = self.start is None and self.options.taught_by == OBJECTIVE and self.rewards.of_told is None
        facts = PlanFacts(
            dataset=self.log.meta.name,
            displays=len(self.log),
            displays_before=self.before,
            displays_used=len(self.rounds),
            displays_judged=len(self.held_out),
            displays_immature=self.maturity.immature,
            objective="profit" if self.of_profit else "revenue",
            conversions=number_of_conversions(self.log.conversions),
            actions=self.log.n_actions,
            tick=self.log.meta.tick,
            schema_displays={field.name: _type_name(field.type) for field in self.log.schema},
            fingerprint=self.log.meta.fingerprint,
            policy=self.policy.spec,
            learns=bool(self.policy.learns) and self.sampler != "logged",
            sampler=self.sampler,
            clock=self.clock.kind,
            traffic_share=self.clock.traffic_share,
            sampling_rate=self.clock.sampling_rate,
            window_rounds=None if self.window.rounds == NO_WINDOW else self.window.rounds,
            window_ticks=self.window.ticks,
            window=self.window.describe(self.clock),
            tau_window=None if np.isnan(self.tau_window) else self.tau_window,
            delay_steps=self.delay_steps,
            followed=followed_for(self.survey, self.clock),
            propensity=self.propensities.kind,
            policy_delays=None if told is None else told.source,
            reward_bound=RewardBound(
                smallest=self.rewards.least,
                largest=self.setting.reward_max if own_largest else self.rewards.most,
                known=self.bounded,
                seen=self.rewards.ends_seen,
            ),
            warm_start=self.start,
            cap=self.capped,
            clusters=self.clusters,
            outcomes={name: plan._as_outcome() for name, plan in self.outcomes.items()},
            options=self.options,
            counts=self.log.meta.counts,
            findings=self.findings,
        )
        return dict(plain_values(facts))

    def _as_outcome(self) -> OutcomePlan:
        """Return how a plan whose rewards are the events of an outcome values them."""
        return OutcomePlan(
            events=self.log.conversions.num_rows,
            attribution_window=self.log.meta.attribution_window,
            observed_until=self.log.meta.observed_until,
            displays_used=len(self.rounds),
            displays_immature=self.maturity.immature,
            value_bound=ValueBound(largest=self.rewards.largest, known=self.bounded),
        )


def _type_name(kind: object) -> str:
    # Parquet calls the entries of a list otherwise than Arrow does.
    return str(kind).replace("element: ", "").replace("item: ", "")


@dataclass(frozen=True, kw_only=True)
class RewardBound:
    """Bounds of what a display may earn.

    Parameters
    ----------
    smallest
        Smallest reward of a display.
    largest
        Largest reward of a display.
    known
        Whether no display can earn more or less.
    seen
        Which bounds are only the extremes seen, so that a display may earn more or less.
    """

    smallest: AtMostZero
    largest: NotNegative
    known: bool
    seen: tuple[RewardEnd, ...]


@dataclass(frozen=True, kw_only=True)
class ValueBound:
    """Largest value of an outcome of one display, and whether the log says that no more is possible."""

    largest: NotNegative
    known: bool


@dataclass(frozen=True, kw_only=True)
class OutcomePlan:
    """How an outcome is valued.

    Parameters
    ----------
    events
        Number of its events.
    attribution_window
        Longest delay that the log records; null where there is no cut-off.
    observed_until
        Time up to which events were followed; null where every display was followed to its end.
    displays_used, displays_immature
        Numbers of displays that are used, and that were not followed for long enough.
    value_bound
        Bound of its value.
    """

    events: Count
    attribution_window: Count | None
    observed_until: int | None
    displays_used: Count
    displays_immature: Count
    value_bound: ValueBound


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """Plan of a replay, as its result says it.

    Parameters
    ----------
    dataset
        Name of the log.
    fingerprint
        Hash of what the log holds; empty where nobody looked.
    tick
        Unit of the log's times.
    displays, conversions, actions
        Numbers of displays, conversions and actions of the log.
    displays_before
        Number of displays of the log before the replayed ones.
    displays_used, displays_judged, displays_immature
        Numbers of displays that the replay uses, on which the final policy is valued, and that were not followed for
        long enough.
    objective
        What rewards are: profit, where displays are paid for, or revenue.
    schema_displays
        Arrow type of each column of the displays.
    policy
        Spec of the policy.
    learns
        Whether the policy learns from its rounds.
    sampler
        How displays become rounds; ``logged`` for the logging policy itself.
    clock
        Clock of the rounds.
    propensity
        Kind of the propensities.
    traffic_share
        Number of rounds for one display of the log.
    sampling_rate
        Share of the traffic's displays that the log holds.
    window_rounds, window_ticks
        Window in rounds, and in ticks of the log; null where there is none.
    window
        Window in words.
    tau_window
        Share of the conversions that come within the window; null without conversions.
    delay_steps
        Some delays, in the window's unit (ticks, or rounds), each with the share of the conversions that come by it.
    followed
        Longest time for which the log followed a display, in words; null where each was to its end.
    policy_delays
        Source of the delay CDF that the policy is told; null where it needs none.
    reward_bound
        Bounds of what a display may earn.
    warm_start
        Learned policy that the replay begins with; null where it begins with nothing.
    cap
        Rewards that a cap leaves out, in the log's own unit; null without a cap.
    clusters
        Clusters of displays that hang together; null where displays are independent.
    outcomes
        How each outcome that no policy sees is valued, by its name.
    options
        Options as they were asked for, with what the log says of the deployment.
    counts
        Numbers of what the reader of the log did.
    findings
        What to read before the numbers, and what they rest on.
    """

    dataset: str
    displays: Positive
    displays_before: Count
    displays_used: Count
    displays_judged: Count
    displays_immature: Count
    objective: Objective
    conversions: Count
    actions: Positive
    tick: Tick
    schema_displays: Mapping[str, str]
    fingerprint: str
    policy: str
    learns: bool
    sampler: SamplerName
    clock: ClockName
    traffic_share: NotNegative
    sampling_rate: PositiveShare
    window_rounds: Count | None
    window_ticks: Count | None
    window: str
    tau_window: Share | None
    delay_steps: tuple[tuple[Count, PositiveShare], ...]
    followed: str | None
    propensity: PropensityKind
    policy_delays: str | None
    reward_bound: RewardBound
    warm_start: WarmStart | None
    cap: CapLoss | None
    clusters: Column | None
    outcomes: Mapping[str, OutcomePlan]
    options: ReplayOptions
    counts: Mapping[str, Finite]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class PlanDocument(PlanFacts, JsonDocument):
    """Result of evaluate replay --dry-run."""

    schema: ClassVar[str] = "evaluate.plan/2"


def with_label(spec: str, labels: Sequence[str]) -> str:
    """Return a policy's spec as reports write it: an action by its label, or by its index with the label beside it.

    >>> [with_label(spec, ["blue", "red shoes"]) for spec in ("fixed", "fixed:action=1", "ucb1")]
    ['fixed:action=blue', 'fixed:action=1 (red shoes)', 'ucb1']
    """
    if (found := re.fullmatch(r"fixed(?::action=(\d+))?", spec)) is None or int(found[1] or 0) >= len(labels):
        return spec
    index = int(found[1] or 0)
    label = labels[index]
    if _BARE.fullmatch(label):
        return f"fixed:action={label}"
    return f"fixed:action={index}" if label == str(index) else f"fixed:action={index} ({label})"


def of_conversions(followed: str | None) -> str:
    """Return of what such a share is one, where `followed_for` says how long the log looked.

    Examples
    --------
    >>> of_conversions(None)
    'of the conversions'
    >>> of_conversions("30 d")
    'of the conversions that come within 30 d (the log looked no longer)'
    """
    return "of the conversions" + (f" that come within {followed} (the log looked no longer)" if followed else "")
