"""What a replay found: every number with its interval, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa

from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted import WeightedValue
from evaluator.findings.finding import Finding, WithFindings
from evaluator.replays.learned.policy import LearnedPolicy
from evaluator.replays.plan import PlanFacts, with_label
from evaluator.replays.schedule import LivedSchedule
from evaluator.replays.values.final import FinalValue
from evaluator.replays.values.kind_values import GuardrailAnswer, Money, OutcomeValue, guardrail_table, outcome_table
from evaluator.replays.values.segments import SegmentValues, segment_table
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import (
    Count,
    Finite,
    IndexOrNone,
    JsonDocument,
    ShareOrNull,
    at_most,
    in_document,
    in_place_of,
    omitted,
    values_of,
)
from evaluator.results.tabular import ACTION, COUNT, NUMBER, TEXT, arrow_table


@dataclass(frozen=True)
class Reference:
    """The best fixed action, as `evaluator.estimates.best_fixed` estimates it.

    Parameters
    ----------
    action, label
        Index and label of the action that all displays put first; -1 and empty where none has displays.
    value
        Interval of the largest value of any action; its estimate is the value of the action that one half of the
        displays chose, on the other half.
    by_halves
        Labels of the actions that the halves chose; empty where there was no choice to make.
    kind
        Kind of reference: an action, or, where not every action is always eligible, an order of them of which the first
        eligible one is shown (`evaluator.estimates.best_fixed`), whose first ones `label` names.
    """

    action: IndexOrNone
    label: str
    value: Interval
    by_halves: Annotated[tuple[str, ...], at_most(2)] = ()
    kind: Literal["action", "order"] = "action"


@dataclass(frozen=True)
class ReplayResult(JsonDocument, ShownInNotebooks, WithFindings):
    """Result of a replay, and of evaluate replay --json.

    To keep it, as ``evaluate replay --out`` does: ``json.dumps(result.to_dict())`` is its ``result.json``,
    ``pyarrow.parquet.write_table(result.trajectory, ...)`` its ``trajectory.parquet``, and ``result.learned.save(...)``
    writes what the policy learned.

    Parameters
    ----------
    value
        Realised value of this run: mean reward per round of the learning policy over the rounds replayed, as its
        conditional expectation round by round (not of one frozen policy). Of several repeats, over the rounds of all;
        its n counts each display once.
    expected_value
        Estimate of the same value with an interval of its expectation over logs and seeds: what the policy earns on
        average in T rounds. None unless a bootstrap was asked for.
    regret
        Regret, the total over the rounds against the best fixed action, with its interval; nan of the logging policy on
        a choice of actions by context.
    uplift
        Value minus the value of the logging policy; nan on a choice of actions by context, where that is known on other
        displays.
    logging_value
        Mean reward of the logged displays.
    best_fixed_action
        Reference of the regret, whose estimate is against the value of the action that half the data would choose.
    true_regret
        Total pseudo-regret against the best action of each display, where the log holds the truth and rewards
        are whole, not cut by the policy's window or the horizon; nan elsewhere.
    rounds
        Number of rounds T, that of the shortest repeat.
    live_days
        Days of live traffic these rounds stand for; nan on a log of rounds.
    conversions_within
        Share of the conversions that come within T rounds of their display, of those that come as long as the log
        looked (`evaluator.replays.rounds.clock`).
    acceptance_rate, effective_sample_size, clipped
        Share of displays accepted, effective sample size and share clipped of the sampler, mean over repeats.
    generated, delivered, expired, pending
        Numbers of conversions of the accepted displays, summed over repeats: all; revealed; later than the window;
        still to come at the end.
    read
        Numbers of displays that the repeats read for their rounds, one each.
    action_share
        Share of the rounds of each action, K numbers in the order of the log's actions; by its label in a document.
    action_labels
        Labels of these K actions.
    plan
        Choices of the replay, every one by name (`evaluator.replays.plan.ReplayPlan.to_dict`).
    trajectory
        Table of the rounds, one row each: repeat, round, display_id, time, action, propensity, reward, reward_observed.
    learned
        Policy after its last round, of the first repeat: it can go on, decide, and be saved. None in a comparison that
        took this result up from an interrupted one.
    resampled
        Mean reward per round of each resampled replay, B numbers; the same resampled logs for all policies of a seed.
        Empty without a bootstrap.
    findings
        What to read before the numbers, and what they rest on.
    final
        Value of the final policy, frozen: another target than `value`; None where it was not asked for.
    doubly_robust
        Value over all displays that the first repeat read (`evaluator.replays.values.doubly_robust`): another target
        than `value`, which is that of the accepted rounds; None where it was not asked for. For a policy that does not
        learn it is `final.dr`.
    acceptance_expected
        Acceptance rate that was to be expected, mean over repeats; nan where nothing is accepted by chance.
    ended_by
        Labels of actions without a usable display that the policy chose, so that the replay ended there.
    meaning
        Sentences that say what kind of number the values are and how far they carry.
    outcomes
        Values of the outcomes that the log has and no policy sees, in the same rounds.
    guardrails
        Answers to the guardrails. In a comparison they are adjusted for the number of its variants, too.
    clusters
        Number of clusters of equal size that the rounds are worth, where resampled logs were drawn by clusters; None
        elsewhere.
    money
        Revenue, cost, profit and profit per cost of a round, where the objective is profit; None elsewhere.
    segments
        Value and uplift in the groups of each column that ``by`` named; empty without it.
    schedule
        Pushes at which the policy learned; None where it learns at each event, or never.
    """

    schema: ClassVar[str] = "evaluate.replay/2"

    value: Interval
    expected_value: Interval | None
    regret: Interval
    uplift: Interval
    logging_value: Interval
    best_fixed_action: Reference
    true_regret: float
    rounds: Count
    live_days: float
    conversions_within: float
    acceptance_rate: float
    effective_sample_size: float
    clipped: float
    generated: Count
    delivered: Count
    expired: Count
    pending: Count
    read: Annotated[tuple[int, ...], *omitted]
    action_share: tuple[float, ...]
    action_labels: Annotated[tuple[str, ...], *omitted]
    plan: Annotated[dict[str, Any], values_of(PlanFacts)]
    trajectory: Annotated[pa.Table, *omitted]
    learned: Annotated[LearnedPolicy | None, *omitted]
    resampled: Annotated[tuple[float, ...], *omitted]
    findings: tuple[Finding, ...]
    final: FinalValue | None = None
    doubly_robust: WeightedValue | None = None
    acceptance_expected: ShareOrNull = math.nan
    ended_by: tuple[str, ...] = ()
    meaning: tuple[str, ...] = ()
    clusters: Annotated[float | None, *omitted] = None
    money: Money | None = None
    outcomes: tuple[OutcomeValue, ...] = ()
    guardrails: tuple[GuardrailAnswer, ...] = ()
    segments: tuple[SegmentValues, ...] = ()
    schedule: LivedSchedule | None = None

    @in_document
    @property
    def policy(self) -> str:
        """Spec of the policy."""
        return str(self.plan["policy"])

    @property
    def title(self) -> str:
        """Spec of the policy as reports write it, with the label of a fixed action."""
        return with_label(self.policy, self.action_labels)

    @in_document
    @property
    def dataset(self) -> str:
        """Name of the log."""
        return str(self.plan["dataset"])

    @property
    def estimate_table(self) -> pa.Table:
        """Every estimate with its interval, one row each: name, estimate, low, high, level, n, kind of the interval.

        Those of a final policy begin with ``final_``.
        """
        weighed: dict[str, WeightedValue | None] = {"doubly_robust": self.doubly_robust}
        if self.final is not None:
            weighed |= {f"final_{name}": getattr(self.final, name) for name in ("dr", "snips", "ips", "logging")}
        found = {
            **{name: getattr(self, name) for name in ("value", "expected_value", "regret", "uplift", "logging_value")},
            "best_fixed_action": self.best_fixed_action.value,
            **{name: of.value for name, of in weighed.items() if of is not None},
            **(
                {}
                if self.money is None
                else {name: getattr(self.money, name) for name in ("revenue", "cost", "profit_per_cost")}
            ),
        }
        columns = {"name": TEXT, "estimate": NUMBER, "low": NUMBER, "high": NUMBER, "level": NUMBER, "n": COUNT}
        rows = ({"name": name, **vars(interval)} for name, interval in found.items() if interval is not None)
        return arrow_table({**columns, "kind": TEXT}, rows)

    @property
    def action_table(self) -> pa.Table:
        """Share of the rounds of each action, one row an action: action, label, share."""
        pairs = zip(self.action_labels, self.action_share, strict=True)
        rows = ({"action": k, "label": label, "share": share} for k, (label, share) in enumerate(pairs))
        return arrow_table({"action": ACTION, "label": TEXT, "share": NUMBER}, rows)

    @property
    def outcome_table(self) -> pa.Table:
        """Values of the outcomes, one row each: outcome; value, uplift and logging_value with their ends; n, level."""
        return outcome_table(self.outcomes)

    @property
    def guardrail_table(self) -> pa.Table:
        """Answers to the guardrails, one row each, with the interval, its level, and how many it is adjusted for."""
        return guardrail_table(self.guardrails)

    @property
    def segment_table(self) -> pa.Table:
        """Value, uplift and logged mean of each group, one row a column and group; no rows without ``by``."""
        return segment_table(self.segments)

    @in_place_of("action_share")
    def _by_label(self, shares: tuple[float, ...]) -> dict[str, Finite]:
        return dict(zip(self.action_labels, shares, strict=True))

    def __repr__(self) -> str:
        v = self.value
        return (
            f"ReplayResult({self.title} on {self.dataset}: value {v.estimate:.4g} "
            f"[{v.low:.4g}, {v.high:.4g}], regret {self.regret.estimate:.4g} "
            f"[{self.regret.low:.4g}, {self.regret.high:.4g}] over {self.rounds:,} rounds)"
        )
