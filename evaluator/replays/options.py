"""What can be asked of a replay."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluator.errors import DataError, ParameterError
from evaluator.options.declaration import Option, Options, documented, option
from evaluator.options.deployment import OBJECTIVE, REVENUE_ALONE, deployment_of
from evaluator.options.shared import (
    BOOTSTRAP,
    BY,
    CLUSTER_BY,
    DECIDES,
    DELAYS,
    DEPLOYMENT,
    ESTIMATE,
    EXPLORE_FIRST,
    HORIZON,
    JOBS,
    KEEP_FOR,
    LEARN_EVERY,
    LEARN_FROM,
    LEARN_LAG,
    LEVEL,
    PROPENSITY,
    REPLAY,
    SEED,
    WINDOW,
    ClockName,
    FinalPolicyName,
    PropensityMode,
)

GUARDRAILS = Option(
    default=None,
    help="What must not happen to an outcome, or to sales, refunds, revenue or cost, stated before the run",
    more="Each is answered holds, broken or cannot tell, by an interval adjusted for their number, in a comparison "
    "times that of its lines. '+0.001' is the difference to the logging policy per display, '+5%' relative to its "
    "value, a number without a sign the value itself.",
    example="'unsubscribe < +0.001'",
    singular="guardrail",
    panel=ESTIMATE,
    question=DECIDES,
)
Quantity = Literal["value", "uplift", "relative uplift"]
_GRAMMAR = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*([<>])\s*([+-]?)((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
_HOW = (
    "write an outcome (or sales, refunds, revenue, cost), < or >, and a limit: 'unsubscribe < +0.001' (at most so much "
    "more per display than the logging policy), 'unsubscribe < +5%' (than its value), or 'unsubscribe < 0.02' (the "
    "value itself)."
)

SamplerName = Literal["rejection", "keep", "queue"]
RewardName = Literal["eventual", "observed"]
ObjectiveName = Literal["profit", "revenue"]


@documented
@dataclass(frozen=True, kw_only=True)
class BareReplayOptions(Options):
    """Options of a replay that rests on displays and conversions alone, as an audit's of its twins."""

    window: str | int | None = WINDOW.field()
    horizon: int | None = HORIZON.field()
    clock: ClockName = option(
        "traffic",
        "traffic: a round is one display of live traffic. wall: the log's pace, faster than live",
        panel=REPLAY,
    )
    traffic_share: float = option(
        1.0, "Share of the traffic the policy will serve: 0.1, or 2 for twice what was logged", panel=REPLAY
    )
    deployment: str | None = DEPLOYMENT.field()
    learn_every: str | int | None = LEARN_EVERY.field()
    learn_lag: str | int | None = LEARN_LAG.field()
    explore_first: str | int | None = EXPLORE_FIRST.field()
    keep_for: str | None = KEEP_FOR.field()
    sampler: SamplerName | None = option(
        None,
        "rejection, keep or queue. Default: keep for policies without contexts, where the logger is even or its "
        "propensities unknown, else rejection; both are right under drift, queue is not",
        panel=REPLAY,
    )
    propensity: PropensityMode | None = PROPENSITY.field()
    accept_quantile: float = option(
        0.0,
        "Accept by this quantile of the propensities instead of the smallest: more rounds, some bias",
        example="0.05",
        panel=REPLAY,
        at_least=0.0,
        below=1.0,
    )
    delays: str = DELAYS.field()
    delays_from: str | None = option(
        None,
        "first:20%: fit delays to what was known by then, and leave those displays out. Default: hindsight",
        panel=REPLAY,
    )
    final: str | None = option(
        None,
        "last:20%: leave those displays out, and estimate on them the final policy: IPS, SNIPS, DR",
        more="What the policy is told (delay CDF, largest reward, rounds of a window) is then fitted to what was known "
        "when these displays began.",
        panel=ESTIMATE,
    )
    final_policy: FinalPolicyName = option(
        "greedy",
        "Which final policy: greedy (largest estimated reward), or exploring (bonus and draws included)",
        panel=ESTIMATE,
    )
    doubly_robust: bool = option(
        False,
        "Estimate the value over all displays read, too, by a model of the rewards",
        more="Weights correct the model's errors; for rejection replays, and eventual rewards.",
        panel=ESTIMATE,
    )
    reward: RewardName = option(
        "eventual", "eventual: all conversions of a display. observed: those revealed by the last round", panel=ESTIMATE
    )
    immature: str = option(
        "drop",
        "Displays too young at the end of the log: drop; correct, by the delays of their action; or correct:device, by "
        "those of their action and a column of the source",
        more="The log must keep the column; several are separated by commas.",
        panel=ESTIMATE,
    )
    seed: int = SEED.field()
    repeats: int = option(
        1, "Replays of as many orders of the log, averaged", example="20", panel=REPLAY, flags=("--runs",), at_least=1
    )
    jobs: int = JOBS.field()
    level: float = LEVEL.field()
    bootstrap: int = BOOTSTRAP.field()
    objective: ObjectiveName | None = option(
        None,
        "profit: conversions less the cost of their display; revenue: conversions alone. Default: what the log "
        "says of itself, else profit where it has costs",
        panel=ESTIMATE,
    )
    learn_from: str | None = LEARN_FROM.field()

    def __post_init__(self) -> None:
        """Check every option, and which do not go together; ParameterError names the option and what it takes."""
        from evaluator.estimates.standard_errors import FEWEST
        from evaluator.replays.rounds.maturity import correct_by

        super().__post_init__()
        if 0 < self.bootstrap < FEWEST:
            raise ParameterError(
                f"`bootstrap={self.bootstrap}` is too few to know a spread.",
                remedy=f"take {FEWEST} at least, better 200; 0 for none.",
            )
        observed = self.reward == "observed"
        _refuse_both(
            correct_by(self.immature) is not None and observed,
            "`reward='observed'` and `immature='correct'`",
            "the correction is for eventual rewards: use `immature='drop'`.",
        )
        _refuse_both(
            observed and self.doubly_robust,
            "`reward='observed'` and `doubly_robust`",
            "what is observed by the horizon has no model: leave one out.",
        )
        deployment_of(vars(self))
        if self.delays_from is not None:
            known_share(self.delays_from)
            excluded = self.delays != "log"
            _refuse_both(excluded, "`delays` and `delays_from`", "give the delays, or fit them to the log.")
        if self.final is not None:
            final_share(self.final)
        elif self.final_policy != "greedy":
            raise ParameterError(
                f"`final_policy='{self.final_policy}'` says which policy `final` values, and there is no `final`.",
                remedy="give `final='last:20%'`, or leave it out.",
            )

    @property
    def teacher(self) -> str | None:
        """Kind of events that a policy learns from; None where these are the rewards, or the revenue alone."""
        return None if self.taught_by in (OBJECTIVE, REVENUE_ALONE) else self.taught_by

    @property
    def taught_by(self) -> str:
        """What a policy learns from, in the words of `learn_from`; of a plan also where nothing was asked."""
        return OBJECTIVE if self.learn_from is None else self.learn_from

    @property
    def keeps(self) -> list[str]:
        """Columns that the log must have kept from its source."""
        from evaluator.replays.rounds.maturity import correct_by

        kept = deployment_of(vars(self)).kept
        return [*(correct_by(self.immature) or ()), *([] if kept is None else [kept.column])]


@documented
@dataclass(frozen=True, kw_only=True)
class ReplayOptions(BareReplayOptions):
    """Options of a replay."""

    warm_start: str | Path | None = option(
        None,
        "File of what the policy learned elsewhere, from which it goes on instead of from nothing",
        more="In a comparison, the policy that it is of. Actions are matched by their labels; window and encoding must "
        "be those it learned with, and the displays others.",
        example="learned.npz",
        panel=REPLAY,
    )
    cluster_by: str | None = CLUSTER_BY.field()
    by: str | None = BY.but(
        default=None,
        help="Source columns, by commas: value and uplift in every group of each, and whether groups differ; of "
        "device+country, in every pair; of every:1d, in each part of the clock",
        more="From the same replay: a group's rounds are those of its accepted displays, and the policy learns from "
        "all groups. Columns of numbers are cut at their quartiles; small groups are pooled and counted. In a "
        "comparison, the differences in every group, too. The log must keep the columns (`load`, option `keep`).",
        example="device,country,device+country",
        panel=ESTIMATE,
        question=DECIDES,
    ).field()
    reward_max: float | None = option(
        None,
        "What a display can earn at most. Default: as the log says, else the largest seen",
        more="All its conversions together, in the log's unit: intervals and policies rest on it. A log in which a "
        "display earns more is refused.",
        example="500",
        panel=ESTIMATE,
        above=0.0,
    )
    reward_min: float | None = option(
        None,
        "What a display can earn at least, 0 or less: refunds. Default: as the log says, else the smallest seen",
        more="All its conversions together, at any time. A log in which a display earns less is refused.",
        example="-20",
        panel=ESTIMATE,
        at_most=0.0,
    )
    cap: float | None = option(
        None,
        "Count at most so much of a display's reward: a value whose intervals hold however large rewards can be",
        more="Of its conversions together, at any time: a refund first takes back what the cap had left out. Costs are "
        "no part of it.",
        example="200",
        panel=ESTIMATE,
        above=0.0,
    )
    guardrails: Sequence[str] | None = GUARDRAILS.field()

    def __post_init__(self) -> None:
        """Check every option, and which do not go together; ParameterError names the option and what it takes."""
        from evaluator.log.column import columns_of

        super().__post_init__()
        if self.guardrails:
            parse_guardrails(self.guardrails)
        columns_of(self.by)
        if self.warm_start is not None:
            object.__setattr__(self, "warm_start", str(self.warm_start))
        if self.reward == "observed" and self.by is not None:
            raise ParameterError(
                "`reward='observed'` and `by` exclude each other: what is seen of a group by the horizon depends on "
                "when its displays came.",
                remedy="leave one out.",
            )
        both = self.reward_max is not None and self.cap is not None
        _refuse_both(both, "`reward_max` and `cap`", "a cap is the largest reward that counts.")

    @property
    def keeps(self) -> list[str]:
        """Columns that the log must have kept from its source."""
        from evaluator.log.column import columns_of, source_columns

        named = [column for name in (self.cluster_by, *columns_of(self.by)) for column in source_columns(name)]
        return list(dict.fromkeys([*super().keeps, *named]))


def told_events_words(learn_from: str) -> str:
    """Return what a policy is told of, as sentences count it.

    >>> told_events_words("objective"), told_events_words("click@1d")
    ('conversions', 'click@1d events')
    """
    return "conversions" if learn_from in (OBJECTIVE, REVENUE_ALONE) else f"{learn_from} events"


@dataclass(frozen=True)
class Guardrail:
    """A limit that an outcome, or another kind of events, must keep, with the words that state it.

    What is limited is the value per display, its difference to the logging policy's, or that difference as a share of
    the logging policy's; the limit is a share where the words give per cent. The quantity must stay `below` it, or
    above.
    """

    text: str
    outcome: str
    quantity: Quantity
    below: bool
    limit: float


def _refuse_both(given: bool, options: str, remedy: str) -> None:
    """Raise ParameterError if both of two options are given."""
    if given:
        raise ParameterError(f"{options} exclude each other.", remedy=remedy)


def parse_guardrail(text: str) -> Guardrail:
    """Return a guardrail from its words.

    Raises
    ------
    ParameterError
        They are no guardrail; says how one is written.

    Examples
    --------
    >>> parse_guardrail("unsubscribe < +5%")
    Guardrail(text='unsubscribe < +5%', outcome='unsubscribe', quantity='relative uplift', below=True, limit=0.05)
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ParameterError(f"`guardrails` {text!r} is no guardrail.", remedy=_HOW)
    outcome, side, sign, number, percent = found.groups()
    limit = float(sign + number)
    if percent and not sign:
        raise ParameterError(
            f"`guardrails` {text!r}: {number}% of what?",
            remedy=f"'{outcome} {side} +{number}%' is relative to the logging policy; a value has a plain number.",
        )
    if not math.isfinite(limit):
        raise ParameterError(f"`guardrails` {text!r}: the limit is no number.", remedy=_HOW)
    quantity: Quantity = "relative uplift" if percent else "uplift" if sign else "value"
    return Guardrail(text.strip(), outcome, quantity, side == "<", limit / 100.0 if percent else limit)


def parse_guardrails(texts: Sequence[str] | None) -> list[Guardrail]:
    """Return guardrails from their words, none for None; errors as of `parse_guardrail`, or one is there twice."""
    found = [parse_guardrail(text) for text in texts or ()]
    limits = [(one.outcome, one.quantity, one.below, one.limit) for one in found]
    for one, limit in zip(found, limits, strict=True):
        if limits.count(limit) > 1:
            raise ParameterError(f"`guardrails` {one.text!r} is there twice.", remedy="state each once.")
    return found


def held_out(used: int, text: str) -> int:
    """Return how many of the displays that can be judged are left for the final policy; DataError if none or all."""
    displays = round(final_share(text) * used)
    if not 0 < displays < used:
        raise DataError(
            f"`final='{text}'` leaves {used - displays:,} displays to replay and {displays:,} for the final policy.",
            remedy="take another share, or a longer log.",
        )
    return displays


def parse_share(text: str, *, end: Literal["first", "last"], option: str) -> float:
    """Return the share of the displays that ``first:20%`` or ``last:20%`` names.

    >>> parse_share("first:20%", end="first", option="`delays_from`")
    0.2

    Raises
    ------
    ParameterError
        The text has another form or end, or a share outside (0, 100) percent; the message names the option.
    """
    kind, _, percent = text.strip().partition(":")
    try:
        share = float(percent.removesuffix("%")) / 100.0
        if kind == end and percent.endswith("%") and 0.0 < share < 1.0:
            return share
    except ValueError:
        pass
    raise ParameterError(f"{option} {text!r} is no part of the log.", remedy=f"the {end} displays: {end}:20%.")


def known_share(text: str) -> float:
    """Return the share of ``--delays-from``."""
    return parse_share(text, end="first", option="`delays_from`")


def final_share(text: str) -> float:
    """Return the share of ``--final``."""
    return parse_share(text, end="last", option="`final`")
