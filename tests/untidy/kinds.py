"""What can be wrong with a log, alone and together: how it is drawn and replayed, and the words that name the cause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.untidy.settings import DAY_S, HOUR_S, Untidy

PLAIN = ("random", "fixed:action=2", "ucb1", "delayed-ucb")
CONTEXTUAL = ("random", "fixed:action=2", "ucb1", "linucb")
NUMBERS = ("value", "best fixed action", "logging policy")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One way in which logs are untidy.

    Parameters
    ----------
    name
        What is untidy.
    untidy
        What its logs are drawn from.
    causes
        A regular expression: a warning or a finding that matches it names the cause. Empty for tidy logs, of which
        nothing may be said.
    window_s
        Window of the replays in seconds; None for none.
    policies, options
        What is replayed, and how.
    numbers
        Which numbers of a replay are held against the truth: those of `NUMBERS`; rounds: a log of n displays gives
        policies that do not learn most of n / K; contexts: rounds have the contexts of the traffic, whatever the
        policy shows in them; money: the same log in another unit gives the same in that unit.
    live
        A learning policy whose replays are held against live runs after `options["horizon"]` rounds, or empty.
    """

    name: str
    untidy: Untidy
    causes: str = ""
    window_s: int | None = None
    policies: tuple[str, ...] = PLAIN
    options: dict[str, Any] = field(default_factory=dict)
    numbers: tuple[str, ...] = NUMBERS
    live: str = ""

    @property
    def window(self) -> str | None:
        """As an option of a replay."""
        return None if self.window_s is None else f"{self.window_s}s"


_TRAFFIC = r"traffic (varies|changes)|rhythm|uneven traffic"
_TIME = r"drift|with time|over time|time of day|by (day|hour)"
_HOUR = r"time of day|by hour|hour of|the hour|weekday"
_AVAILABLE = r"availab|launch|retire|eligible|could be shown|only (from|until|since)|first shown|last shown"
_NEWCOMER = r"\b(action|actions|arm) .*\b(a2|2)\b"
_ACCEPTANCE = r"acceptance|accepted instead of|mean of 1/propensity"
_PROPENSITY = r"calibration|replay of the logger|uniformity|" + _ACCEPTANCE
_COPIES = r"duplicated displays|shared conversions|several conversions|copies of"
_OUTAGE = r"outage|conversions? (are|were|was) (lost|missing)|no conversions?\b|without (a )?conversion"
_MONEY = r"range of (the )?rewards|unit of (money|the rewards)"
_STRAY = r"stray|observed_until|long after|isolated"
_COARSE = r"stamp|coarse|resolution|finer|shorter than (a|the|one) tick|whole (hours|minutes|days)"
_YOUNG = r"young displays"
_OVERLAP = r"overlap|never shown|never shows|independence|" + _ACCEPTANCE
_TIES = r"\bties?\b|share (one|a) time|displays of one time|order within"
_BY_ACTION = r"delays? .*\b(actions?|arms?)\b|\b(actions?|arms?)\b.* delays?"

_UNEVEN = (0.5, 0.3, 0.2)
_IN_A_WINDOW: dict[str, Any] = {"attribution_s": None}

SINGLE = (
    Kind(name="tidy", untidy=Untidy(), numbers=(*NUMBERS, "rounds"), live="ucb1", options={"horizon": 1500}),
    Kind(
        name="tidy, two contexts", untidy=Untidy(contexts=2), policies=CONTEXTUAL, numbers=(*NUMBERS, "contexts"),
    ),
    Kind(
        name="tidy, two contexts, uneven logger", untidy=Untidy(contexts=2, logger=_UNEVEN), policies=CONTEXTUAL,
        numbers=(*NUMBERS, "contexts"),
    ),
    Kind(name="tidy, uneven logger", untidy=Untidy(logger=_UNEVEN)),
    Kind(
        name="daily rhythm", untidy=Untidy(rhythm=0.8, **_IN_A_WINDOW), window_s=HOUR_S, causes=_TRAFFIC,
        live="ucb1", options={"horizon": 2400},
    ),
    Kind(name="growth", untidy=Untidy(growth=5.0, **_IN_A_WINDOW), window_s=HOUR_S, causes=_TRAFFIC),
    Kind(name="drift of the rates", untidy=Untidy(drift=0.6, logger=_UNEVEN), causes=_TIME),
    Kind(name="rates by hour", untidy=Untidy(rate_by_hour=0.5, rhythm=0.5), causes=f"{_TIME}|{_HOUR}"),
    Kind(
        name="launch and retirement",
        untidy=Untidy(launches=(0.0, 0.0, 0.5), retirements=(0.75, 2.0, 2.0), drift=0.4),
        causes=_AVAILABLE, numbers=("value", "logging policy"),
    ),
    Kind(
        name="newcomer", untidy=Untidy(launches=(0.0, 0.0, 0.995)), causes=_NEWCOMER,
        policies=("random", "fixed:action=0", "ucb1"), numbers=("value", "logging policy", "rounds"),
    ),
    Kind(
        name="ties by minute, sorted by action",
        untidy=Untidy(days=0.2, stamp_s=60, by_action=True, in_files=True),
        causes=_TIES, numbers=(*NUMBERS, "rounds"),
    ),
    Kind(
        name="ties by day, sorted by action",
        untidy=Untidy(
            days=12, stamp_s=DAY_S, by_action=True, in_files=True, longest_s=20 * HOUR_S, attribution_s=DAY_S
        ),
        causes=_TIES, numbers=(*NUMBERS, "rounds"),
    ),
    Kind(
        name="revenue", untidy=Untidy(mean_values=(20.0, 30.0, 100.0), log_sd=0.5), causes=_MONEY,
        policies=("random", "fixed:action=2", "ucb1", "thompson"), numbers=(*NUMBERS, "money"),
    ),
    Kind(
        name="heavy revenue", untidy=Untidy(mean_values=(20.0, 20.0, 20.0), log_sd=1.8),
        causes=r"largest reward|heavy|one display",
    ),
    Kind(name="refunds", untidy=Untidy(refunded=0.3, attribution_s=DAY_S), causes=r"refund|negative"),
    Kind(name="few users", untidy=Untidy(users=60), policies=CONTEXTUAL),
    Kind(
        name="sample of the traffic", untidy=Untidy(displays=120_000, sampled=0.1), causes=r"sampl",
        live="ucb1", options={"horizon": 1500},
    ),
    Kind(
        name="delays by action", untidy=Untidy(slowness=(0.05, 0.3, 1.0)), causes=_BY_ACTION,
        live="ucb1", options={"horizon": 1500},
    ),
    Kind(
        name="delays by action, young corrected",
        untidy=Untidy(days=0.25, longest_s=5 * HOUR_S, slowness=(0.02, 0.02, 1.0), attribution_s=5 * HOUR_S),
        options={"immature": "correct"},
    ),
    Kind(
        name="heavy tails", untidy=Untidy(tail=0.6, **_IN_A_WINDOW), window_s=2 * HOUR_S,
        causes=r"tail|within the window",
    ),
    Kind(
        name="heavy tails, no window", untidy=Untidy(tail=0.4, days=0.5, **_IN_A_WINDOW), causes=_YOUNG,
    ),
    Kind(
        name="hole in the overlap", untidy=Untidy(contexts=2, hole=True, claim="constant"), causes=_OVERLAP,
        policies=CONTEXTUAL,
    ),
    Kind(
        name="swapped propensities", untidy=Untidy(contexts=2, logger=_UNEVEN, claim="swapped"),
        causes=_PROPENSITY, policies=CONTEXTUAL, numbers=(*NUMBERS, "contexts"),
    ),
    Kind(
        name="stale propensities", untidy=Untidy(contexts=2, logger=_UNEVEN, logger_changes=True, claim="stale"),
        causes=_PROPENSITY, policies=CONTEXTUAL, numbers=(*NUMBERS, "contexts"),
    ),
    Kind(
        name="logger follows the hour", untidy=Untidy(logger_by_hour=0.9, rate_by_hour=0.6, claim="constant"),
        causes=f"{_HOUR}|{_ACCEPTANCE}",
    ),
    Kind(name="copied displays", untidy=Untidy(copied=0.5), causes=_COPIES),
    Kind(name="copied conversions", untidy=Untidy(conversions_copied=0.5), causes=_COPIES),
    Kind(name="outage", untidy=Untidy(outage_h=24), causes=_OUTAGE),
    Kind(name="gap", untidy=Untidy(gap_h=24), causes=_OUTAGE + "|hours missing"),
    Kind(
        name="stray conversion",
        untidy=Untidy(days=1.0, longest_s=10 * HOUR_S, attribution_s=10 * HOUR_S, stray_h=9.9, in_files=True),
        causes=_STRAY,
    ),
    Kind(
        name="stamps coarser than the window", untidy=Untidy(stamp_s=HOUR_S, **_IN_A_WINDOW), window_s=900,
        causes=_COARSE,
    ),
)  # fmt: skip

TOGETHER = (
    Kind(
        name="rhythm, growth, drift", untidy=Untidy(rhythm=0.6, growth=4.0, drift=0.4, logger=_UNEVEN, **_IN_A_WINDOW),
        window_s=HOUR_S, causes=_TRAFFIC,
    ),
    Kind(
        name="rhythm, logger and rates by hour",
        untidy=Untidy(rhythm=0.6, logger_by_hour=0.9, rate_by_hour=0.6, claim="constant", **_IN_A_WINDOW),
        window_s=HOUR_S, causes=f"{_HOUR}|{_ACCEPTANCE}",
    ),
    Kind(
        name="rhythm and ties", numbers=(*NUMBERS, "rounds"),
        untidy=Untidy(days=1.0, rhythm=0.6, stamp_s=60, by_action=True, in_files=True),
        causes=f"{_TIES}|{_TRAFFIC}",
    ),
    Kind(
        name="revenue, delays by action, growth",
        untidy=Untidy(
            mean_values=(20.0, 30.0, 100.0), log_sd=0.5, slowness=(0.1, 0.5, 1.0), growth=4.0, attribution_s=None
        ),
        window_s=HOUR_S, causes=f"{_MONEY}|{_BY_ACTION}|{_TRAFFIC}", numbers=(*NUMBERS, "money"),
        policies=("random", "fixed:action=2", "ucb1", "thompson"),
    ),
    Kind(
        name="outage and copies", untidy=Untidy(outage_h=24, copied=0.5), causes=f"{_OUTAGE}|{_COPIES}",
    ),
    Kind(
        name="hole, drift, rhythm", untidy=Untidy(contexts=2, hole=True, claim="constant", drift=0.4, rhythm=0.6),
        causes=_OVERLAP, policies=CONTEXTUAL,
    ),
    Kind(
        name="launches, uneven logger, rhythm",
        untidy=Untidy(launches=(0.0, 0.0, 0.6), drift=0.4, rhythm=0.6, logger=_UNEVEN, **_IN_A_WINDOW),
        window_s=HOUR_S, causes=f"{_AVAILABLE}|{_TRAFFIC}", numbers=("value", "logging policy"),
    ),
)  # fmt: skip

KINDS = {kind.name: kind for kind in (*SINGLE, *TOGETHER)}

# What verdicts are held against beside those: what replays earn in them depends on the policy's own past, or on sets.
DECIDED = {
    kind.name: kind
    for kind in (
        Kind(name="eligible sets", untidy=Untidy(sets=0.6)),
        Kind(name="eligible sets, uneven logger", untidy=Untidy(sets=0.6, logger=_UNEVEN)),
        Kind(name="users without wear-out", untidy=Untidy(visitors=1_000)),
        Kind(name="wear-out", untidy=Untidy(visitors=1_000, wear_out=0.4), causes="wear-out"),
    )
} | KINDS
