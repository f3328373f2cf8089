"""A plan of a replay as a document: what `--dry-run` prints, and what a result says of its plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evaluator.engine.log_replay import SamplerName
from evaluator.findings.finding import Finding
from evaluator.log.bounds import CapLoss
from evaluator.log.column import Column
from evaluator.log.meta import Objective, PropensityKind
from evaluator.options.shared import ClockName
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.reward_range import RewardEnd
from evaluator.replays.warm_start import WarmStart
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
)


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
        Options as they were asked for.
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


# A label that a spec of a policy takes as it stands.
_BARE = re.compile(r"(?!(?:true|false|none|null|inf|nan)$)[a-z_][\w-]*", re.IGNORECASE)


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
