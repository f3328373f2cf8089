"""The document of a replay: its numbers, then how they were computed, then what they depend on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import clusters_text
from evaluator.estimates.weighted import ESTIMATORS, NORMAL, WeightedValue
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.replays.conversion_share import of_conversions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.plan_document import with_label
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.doubly_robust import LEARNING
from evaluator.replays.values.final import FinalValue
from evaluator.reports.document import (
    Cell,
    Document,
    Grid,
    Layout,
    Section,
    Words,
    column,
    grid,
    lines,
    listed,
    named,
    paragraph,
    run,
    section,
)
from evaluator.reports.numbers import count_text, measured, significant_text
from evaluator.reports.outcome_tables import guardrails, outcomes, segments
from evaluator.reports.shared_sections import coded, counted, interval_assumptions, name_omitted, warnings_section

_ACTIONS_SHOWN = 10
# Note on intervals that depend on the largest reward seen.
APPROXIMATE = ", not anytime-valid"
_LEFT_OUT = (
    ", estimated on displays left out of the replay: another target than the value above, which is that of the rounds "
    "in which the policy learned."
)
# Heading and description of each kind of final policy.
_FINAL = {
    "greedy": (
        "Final policy, greedy",
        "Reward per round of the best of what was learned: always the action with the largest estimated reward, no "
        "bonus, no draws, no learning on" + _LEFT_OUT,
    ),
    "exploring": (
        "Final policy, exploring",
        "Reward per round of the policy frozen as it would choose next, its bonus and draws included, without learning "
        "on: not what it has learned to be best" + _LEFT_OUT,
    ),
    "posterior sampling": (
        "Final policy, posterior sampling",
        "Reward per round of actions shown with the posterior's choice probabilities, without learning on" + _LEFT_OUT,
    ),
    "fixed": ("Fixed policy", "Reward per round of a policy that learns nothing, by weights on the displays left out."),
    "columns": (
        "Fixed policy",
        "Reward per round of the policy whose probabilities are columns of the log, by weights on all its displays, or "
        "on those that `final` names.",
    ),
}


def document(result: ReplayResult, layout: Layout) -> Document:
    """Return the document of a replay, with all of its sections or with those that fit on a screen."""
    return Document("replay", _title(result), tuple(_sections(result, layout)))


def _title(result: ReplayResult) -> str:
    return f"{result.title} replayed on {result.plan['dataset']}"


def _sections(result: ReplayResult, layout: Layout) -> Iterator[Section]:
    plan, full = result.plan, layout.full
    yield section(
        "",
        paragraph(run(result.title, "bold"), " replayed on ", run(plan["dataset"], "bold")),
        *(paragraph(line, style="dim") for line in (result.meaning if full else result.meaning[:1])),
        *([] if full else [paragraph(_size(result))]),
        _estimates(result, full=full),
    )
    if result.guardrails:
        yield guardrails([result], layout)
    guarded = set() if full else {one.outcome for one in result.guardrails}
    if any(one.outcome not in guarded for one in result.outcomes):
        yield outcomes([result], layout, but=guarded)
    if result.segments:
        yield from segments([result], full=full)
    if full:
        yield named("How", _how(result), folded=True)
        yield named("Actions", [("share of rounds", action_shares(result, _ACTIONS_SHOWN))])
    if result.final is not None:
        yield final_section(result.final, full=full)
    # Counts of 0, of steps that the adapter did not need, are left out.
    counts = [(name.replace("_", " "), count_text(value)) for name, value in plan["counts"].items() if value]
    if counts and full:
        yield named("Log", counts, folded=True)
    yield from warnings_section(coded(warnings_of(result.findings)), full=full)
    assumptions = coded(assumptions_of(result.findings))
    if full:
        yield listed("Assumptions", assumptions, id="assumptions", folded=True)
    else:
        yield from resting(interval_assumptions(result.findings))
        yield name_omitted("how it was replayed", "actions", "the log", counted(len(assumptions), "assumption"))


def plan_document(plan: ReplayPlan, layout: Layout) -> Document:
    """Return the document of a plan: the choices of a replay, as the document of its result lists them."""
    facts = plan.to_dict()
    title = with_label(facts["policy"], plan.log.labels)
    head = paragraph(run(title, "bold"), " to be replayed on ", run(facts["dataset"], "bold"))
    sections = (
        section("", head),
        named("Plan", _plan_rows(plan)),
        *warnings_section(coded(warnings_of(plan.findings)), full=layout.full),
        listed("Assumptions", coded(assumptions_of(plan.findings)), id="assumptions", folded=True),
    )
    return Document("plan", "Plan of a replay", sections)


def _plan_rows(plan: ReplayPlan) -> list[tuple[str, str]]:
    told = plan.to_dict()
    tau = told["tau_window"]
    within = "" if tau is None else f" ({tau:.1%} {of_conversions(told['followed'])} come within it)"
    rows = [
        ("displays", f"{told['displays_used']:,} of {told['displays']:,} (sampler: {told['sampler']})"),
        ("conversions", f"{told['conversions']:,}"),
        ("actions", f"{told['actions']:,}"),
        ("window", told["window"] + within),
        ("clock", f"{told['clock']}, share {told['traffic_share']:.3g}"),
        ("propensities", told["propensity"]),
        ("immature displays", f"{told['displays_immature']:,}"),
    ]
    return rows + ([("delay CDF", told["policy_delays"])] if told["policy_delays"] else [])


def resting(sentences: Sequence[Words]) -> list[Section]:
    """Return the section on assumptions of the intervals that not every replay makes, or an empty list without any."""
    return [listed("What the intervals rest on", sentences)] if sentences else []


def _size(result: ReplayResult) -> str:
    days = "" if math.isnan(result.live_days) else f" ({result.live_days:.3g} days of live traffic)"
    clusters = "" if result.plan["clusters"] is None else f"; clusters: {_clusters(result)}"
    return (
        f"{result.rounds:,} rounds of {result.plan['displays_used']:,} logged displays{days}; effective sample size "
        f"{result.effective_sample_size:,.0f}; window: {result.plan['window']}{clusters}."
    )


class _Row(NamedTuple):
    """A number: its name, its explanation in the full form, its name in the short form, and its cells."""

    name: str
    more: str
    cells: tuple[Cell, Cell, str]
    short: str = ""


def _estimates(result: ReplayResult, *, full: bool) -> Grid:
    about = "" if result.plan["reward_bound"]["known"] else APPROXIMATE
    level = f"{result.value.level:.0%} interval"
    columns = [
        column("" if full else _unit(result), bold=True),
        column("estimate", "number"),
        column(level if full or not about else lines(level, about[2:]), "number"),
        column("n", "number"),
    ]
    rows = _rows(result, about)
    named = [(f"{row.name}{row.more}" if full else row.short or row.name, *row.cells) for row in rows]
    return grid(columns, named, alike="rows")


def _unit(result: ReplayResult) -> str:
    seen = "" if result.plan["options"]["reward"] == "eventual" else " seen by the horizon"
    return f"{'reward' if result.money is None else 'profit'} per round{seen}"


def _rows(result: ReplayResult, about: str) -> Iterator[_Row]:
    clusters = result.plan["clusters"]
    by = "" if clusters is None else f", by {clusters['by']}"
    yield _Row("realised value", f" ({_unit(result)}){about}", _cells(result.value))
    if result.expected_value is not None:
        more = f" at {result.rounds:,} rounds (bootstrap{by})"
        yield _Row("expected value", more, _cells(result.expected_value), f"expected value (bootstrap{by})")
    if result.doubly_robust is not None and result.doubly_robust.target == LEARNING:
        displays = "all displays read" if result.plan["options"]["repeats"] == 1 else "all that the first repeat read"
        yield _Row(f"value over {displays}, doubly robust{by}", "", _given(result.doubly_robust))
    best = result.best_fixed_action
    name = f"regret over {result.rounds:,} rounds"
    yield _Row(name, f" vs best fixed {best.kind}{about}", _cells(result.regret), f"regret vs best fixed {best.kind}")
    if not math.isnan(result.true_regret):
        truth = (significant_text(result.true_regret, 4), "known truth", "")
        yield _Row("true regret", " vs the best action of each display", truth)
    yield _Row("uplift over the logging policy", f" (per round){about}", _cells(result.uplift))
    for name, amount in () if result.money is None else result.money.rows():
        yield _Row(name, about if name != "cost per round" else "", _cells(amount))
    yield _Row("logging policy's value", about, _cells(result.logging_value))
    how = " (halves choose and value)" if best.by_halves else ""
    yield _Row(f"best fixed {best.kind}: {best.label or 'unknown'}", f"{how}{about}", _cells(best.value))


def final_section(final: FinalValue, *, full: bool = True) -> Section:
    """Return the value of a frozen policy by every estimator, or by the first one, with its assumptions."""
    columns = [
        column("", bold=True),
        column("estimate", "number", folds=True),
        column(f"{final.ips.value.level:.0%} interval", "number"),
        column("n", "number", folds=True),
    ]
    estimators = tuple(reversed(ESTIMATORS))[: None if full else 1]
    rows = [(one.title, *_given(final.estimates[one.name])) for one in estimators]
    rows.append(("logging policy on these displays", *_given(final.logging)))
    w = final.weights
    weights = (
        f"weights: effective sample size {w.effective_sample_size:,.0f} of {w.n:,}, mean {w.mean:.3g} (1 if "
        f"propensities are right), largest {w.largest:.3g}; {final.rewarded:,} displays with a reward count"
    )
    heading, about = _FINAL[final.policy]
    probabilities = [f"probabilities: shares of {final.draws:,} draws at each display"] if final.draws and full else []
    if final.repeats > 1:
        about += f" It is any of the final policies of the {final.repeats} repeats, with equal chance."
    return section(
        heading,
        paragraph(f"{about} {_law(final)}", style="dim"),
        grid(columns, rows),
        paragraph(lines(*probabilities, weights)),
    )


def _law(final: FinalValue) -> str:
    kind = final.ips.value.kind
    return "Normal intervals." if kind == NORMAL else f"Intervals: {kind}."


def _given(weighted: WeightedValue) -> tuple[Cell, Cell, str]:
    return _cells(weighted.value) if weighted.given else ("not given", "too few rewards", f"{weighted.value.n:,}")


def _cells(interval: Interval) -> tuple[Cell, Cell, str]:
    return (*measured(interval), f"{interval.n:,}")


def _how(result: ReplayResult) -> list[tuple[str, str]]:
    plan = result.plan
    tau = plan["tau_window"]
    within = "" if tau is None else f" ({tau:.1%} {of_conversions(plan['followed'])} come within it)"
    cap = plan["cap"]
    rows = [
        (
            "rounds",
            f"{result.rounds:,} of {plan['displays_used']:,} logged displays (sampler: {plan['sampler']}); "
            f"{delivered_each(result):,} conversions delivered in them",
        ),
        (
            "acceptance rate",
            f"{result.acceptance_rate:.4g}{_expected(result)}, "
            f"effective sample size {result.effective_sample_size:,.0f}",
        ),
        ("window", plan["window"] + within),
        (
            "conversions",
            f"{result.generated:,} = {result.delivered:,} delivered + {result.pending:,} pending "
            f"+ {result.expired:,} expired",
        ),
        ("clock", f"{plan['clock']}, share {plan['traffic_share']:.3g}{_live(result)}"),
        ("propensities", plan["propensity"]),
        ("immature displays", f"{plan['displays_immature']:,}"),
    ]
    if plan["options"]["repeats"] > 1:
        orders = f"{plan['options']['repeats']} orders of the log, shuffled within short blocks: values are means"
        rows.insert(1, ("repeats", orders))
    if cap is not None:
        rows.append(("rewards", f"at most {cap['cap']:g} a display, which leaves out {cap['share']:.2%} of the log's"))
    if plan["clusters"] is not None:
        rows.append(("clusters", _clusters(result)))
    if plan["policy_delays"]:
        rows.append(("delay CDF", plan["policy_delays"]))
    return rows


def _clusters(result: ReplayResult) -> str:
    clusters = result.plan["clusters"]
    worth = "" if result.clusters is None else f"; the rounds are worth {clusters_text(result.clusters)} of equal size"
    return f"{clusters['count']:,} by {clusters['by']}{worth}"


def _live(result: ReplayResult) -> str:
    within = (
        ""
        if math.isnan(result.conversions_within)
        else f"; {result.conversions_within:.1%} {of_conversions(result.plan['followed'])} come within them"
    )
    share = result.plan["traffic_share"]
    rounds = (
        f"{result.rounds:,} rounds"
        if share == 1.0
        else f"{result.rounds:,} rounds, in {result.rounds / share:,.0f} displays"
    )
    if math.isnan(result.live_days):
        return f": {rounds} of live traffic{within}"
    return f": {rounds} = {result.live_days:.3g} days of live traffic{within}"


def delivered_each(result: ReplayResult) -> int:
    """Return the number of conversions delivered within the rounds, as the mean over repeats."""
    return round(result.delivered / int(result.plan["options"]["repeats"]))


def _expected(result: ReplayResult) -> str:
    expected = result.acceptance_expected
    return "" if math.isnan(expected) else f" ({expected:.4g} expected)"


def action_shares(result: ReplayResult, most: int) -> str:
    """Return the shares of the actions that were played, the largest first, and the share of all others together."""
    pairs = sorted(zip(result.action_labels, result.action_share, strict=True), key=lambda pair: -pair[1])
    played = [(label, share) for label, share in pairs if share > 0]
    largest = [f"{label} {share:.1%}" for label, share in played[:most]]
    rest = played[most:]
    return ", ".join(largest) + (f", {len(rest)} others {sum(share for _, share in rest):.1%}" if rest else "")
