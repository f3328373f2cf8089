"""The document of a replay: its answer and its numbers, then how they were computed, then what they depend on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evaluator.escape import escape
from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import clusters_text
from evaluator.estimates.weighted import ESTIMATORS, NORMAL, WeightedValue
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.log.times import dated, time_words
from evaluator.replays.options import told_events_words
from evaluator.replays.plan import ReplayPlan, of_conversions, with_label
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.doubly_robust import LEARNING
from evaluator.replays.values.final import FinalValue
from evaluator.reports import document as doc
from evaluator.reports.numbers import Measured, count_text, interval_parts, measured, percent_text, significant_text
from evaluator.reports.outcome_tables import guardrails, outcomes, segments
from evaluator.units import SECONDS

_ACTIONS_SHOWN = 10
# Share of displays that are too young to judge from which on a page says so beside the answer.
_MANY = 0.05
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


def document(result: ReplayResult, layout: doc.Layout) -> doc.Document:
    """Return the document of a replay, its answer first: the page, all sections, or those that fit on a screen."""
    build = _page if layout.page else _sections
    title = f"{result.title} replayed on {result.plan['dataset']}"
    return doc.Document("replay", title, tuple(build(result, layout)))


def _log(result: ReplayResult, layout: doc.Layout) -> doc.Section:
    plan = result.plan
    size = f"{plan['displays']:,} displays, {plan['conversions']:,} conversions"
    window = f"window: {plan['window']}" if layout.full else f"window: {plan['window'].partition(', ')[0]}"
    known = layout if layout.dates else replace(layout, dates=_dates(result))
    return doc.which_log(plan["dataset"], size, window, layout=known)


def _dates(result: ReplayResult) -> str:
    """Return the days of the first and the last round; an empty text where the log has no dates."""
    tick = result.plan["tick"]
    if not result.rounds or tick not in SECONDS:
        return ""
    seconds, time = SECONDS[tick], result.trajectory["time"].to_numpy()
    ends = [float(time.min()), float(time.max())]
    if not all(dated(end, seconds) for end in ends):
        return ""
    return " to ".join(dict.fromkeys(time_words(end, seconds, start=0)[:10] for end in ends))


def _answer(result: ReplayResult, layout: doc.Layout) -> doc.Section:
    """Return the answer: what a display earned more or less than with the logging policy, and what that rests on."""
    uplift, value, logged = result.uplift, result.value, result.logging_value
    name, level = result.title, f"{100 * value.level:g} %"
    of = "reward" if result.money is None else "profit"
    young = result.plan["displays_immature"] / max(result.plan["displays"], 1)
    rests = [
        doc.mark(True if result.plan["propensity"] == "logged" else None, f"propensities: {result.plan['propensity']}"),
        *([doc.mark(None, f"{percent_text(young)} of the log is too young to judge")] if young >= _MANY else []),
        *(
            [doc.mark(None, doc.counted(len(warnings), "warning"))]
            if (warnings := warnings_of(result.findings))
            else []
        ),
    ]
    rounds = f"in {result.rounds:,} rounds of {result.plan['displays_used']:,} displays{_days(result)}"
    if math.isnan(value.estimate):
        found = f"No round of {name} has a reward to judge by" if result.rounds else f"No round shows what {name} earns"
        return doc.answer("No value", f" of {name}", f"{found}: {rounds}.", colour="yellow", rests=rests)
    number, low, high = interval_parts(value, sign=False)
    if math.isnan(uplift.estimate):
        return doc.answer(number, f" a display with {name}", f"Interval {low} to {high}, {rounds}.", rests=rests)
    difference, less, more = interval_parts(uplift)
    colour: doc.Colour = "green" if uplift.low > 0.0 else "red" if uplift.high < 0.0 else "yellow"
    told = {"green": "more than", "red": "less than", "yellow": "not told from"}[colour]
    logger = interval_parts(logged, sign=False)
    anytime = "good for any number of looks" if result.plan["reward_bound"]["known"] else APPROXIMATE[2:]
    showed = "these rounds" if layout.page else rounds.removeprefix("in ")
    sentence = f"{level} interval of the difference: {less} to {more}, of what {showed} showed; {anytime}."
    tiles = [
        (number, f"{of} a display with {name}, {low} to {high}"),
        (logger[0], f"with the logging policy, {logger[1]} to {logger[2]}"),
        (f"{result.rounds:,}", f"rounds of {result.plan['displays_used']:,} displays{_days(result)}"),
        _worth(result),
    ]
    return doc.answer(
        difference if uplift.estimate else "0", f" a display with {name}: {told} the logging policy", sentence,
        _expected_too(result), colour=colour, tiles=tiles if layout.page else (), rests=rests if layout.page else (),
    )  # fmt: skip


def _worth(result: ReplayResult) -> tuple[str, str]:
    """Return the effective sample size where it is smaller than the number of rounds, else that of conversions."""
    worth = f"{result.effective_sample_size:,.0f}"
    if worth != f"{result.rounds:,}":
        return worth, "displays of equal weight are these worth"
    return f"{delivered_each(result):,}", f"{_told(result)} delivered in these rounds"


def _expected_too(result: ReplayResult) -> str:
    """Return the expected value over logs, if it was estimated: what the policy would earn on another such log."""
    of = result.expected_value
    if of is None or math.isnan(of.estimate):
        return ""
    number, low, high = interval_parts(of, sign=False)
    return f"On another such log it is expected to earn {number} a display [{low}, {high}]."


def _days(result: ReplayResult) -> str:
    return "" if math.isnan(result.live_days) else f" ({result.live_days:.3g} days of live traffic)"


def _page(result: ReplayResult, layout: doc.Layout) -> Iterator[doc.Section]:
    full = list(_numbers(result, layout))
    yield _log(result, layout)
    yield _answer(result, layout)
    yield doc.picture(
        "How much a display?", f"dashed: the logging policy; bar: {100 * result.value.level:g} %", "earned"
    )
    in_fold = ["seen"] if result.segments else []
    if result.segments:
        about = f"uplift over the logging policy by {result.segments[0].column}; all bars hold at once"
        yield doc.picture("Who gains?", about, "gainers")
    else:
        yield doc.picture("What will customers see?", "share of displays; each action has its own colour", "seen")
    if result.guardrails:
        yield _few_columns(guardrails([result], replace(layout, full=False)))
    yield doc.section("In numbers", estimates(result, full=False, few=True))
    assumptions = doc.coded(assumptions_of(result.findings))
    warnings = doc.coded(warnings_of(result.findings))
    about = ", ".join(
        filter(None, (doc.counted(len(warnings), "warning"), doc.counted(len(assumptions), "assumption")))
    )
    rests = [
        *doc.warnings_section(warnings, full=True), doc.listed("Assumptions", assumptions, id="assumptions"),
        doc.listed("What kind of number it is", result.meaning),
    ]  # fmt: skip
    yield from doc.fold("What it rests on", about, rests, charts=("acceptance",))
    groups = [f"groups by {escape(split.column)}" for split in result.segments]
    charts = ("replay", "guardrails", *groups, "actions", *in_fold)
    yield from doc.fold("All numbers", "regret, best fixed action, actions over time", full, charts=charts)
    within = share_within(result) or f"window: {result.plan['window']}"
    yield from doc.fold("The log and how it was replayed", within, _how_replayed(result), charts=("window",))


def _few_columns(part: doc.Section) -> doc.Section:
    """Return the section of guardrails with those columns that a phone has room for: guardrail, answer, interval."""
    (table,) = (block for block in part.blocks if isinstance(block, doc.Grid))
    kept = (0, 1, 3)
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return replace(part, blocks=(replace(table, columns=tuple(table.columns[i] for i in kept), rows=rows),))


def share_within(result: ReplayResult) -> str:
    """Return a clause on the share of the conversions that come within a replay; empty where it is not known."""
    share = result.conversions_within
    return "" if math.isnan(share) else f"{percent_text(share)} of the conversions come within the replay"


def _numbers(result: ReplayResult, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the sections of all numbers."""
    yield doc.section("", estimates(result, full=layout.full))
    if result.guardrails:
        yield guardrails([result], layout)
    guarded = set() if layout.full else {one.outcome for one in result.guardrails}
    if any(one.outcome not in guarded for one in result.outcomes):
        yield outcomes([result], layout, but=guarded)
    if result.segments:
        yield from segments([result], full=layout.full)
    if layout.full:
        yield doc.named("Actions", [("share of rounds", action_shares(result, _ACTIONS_SHOWN))])
    if result.final is not None:
        yield final_section(result.final, full=layout.full)


def _how_replayed(result: ReplayResult) -> Iterator[doc.Section]:
    yield doc.named("How", _how(result), folded=True)
    # Counts of 0, of steps that the adapter did not need, are left out.
    counts = [(name.replace("_", " "), count_text(value)) for name, value in result.plan["counts"].items() if value]
    if counts:
        yield doc.named("Log", counts, folded=True)


def _sections(result: ReplayResult, layout: doc.Layout) -> Iterator[doc.Section]:
    full = layout.full
    yield _answer(result, layout)
    yield _log(result, layout)
    yield from _numbers(result, layout)
    if full:
        yield doc.listed("What kind of number it is", result.meaning, folded=True)
        yield from _how_replayed(result)
    yield from doc.warnings_section(doc.coded(warnings_of(result.findings)), full=full)
    assumptions = doc.coded(assumptions_of(result.findings))
    if full:
        yield doc.listed("Assumptions", assumptions, id="assumptions", folded=True)
    else:
        yield from resting(doc.interval_assumptions(result.findings))
        yield doc.name_omitted("how it was replayed", "actions", "the log", doc.counted(len(assumptions), "assumption"))


def plan_document(plan: ReplayPlan, layout: doc.Layout) -> doc.Document:
    """Return the document of a plan: the choices of a replay, as the document of its result lists them."""
    facts = plan.to_dict()
    title = with_label(facts["policy"], plan.log.labels)
    head = doc.paragraph(doc.run(title, "bold"), " to be replayed on ", doc.run(facts["dataset"], "bold"))
    sections = (
        doc.section("", head),
        doc.named("Plan", _plan_rows(plan)),
        *doc.warnings_section(doc.coded(warnings_of(plan.findings)), full=layout.full),
        doc.listed("Assumptions", doc.coded(assumptions_of(plan.findings)), id="assumptions", folded=True),
    )
    return doc.Document("plan", "Plan of a replay", sections)


def _plan_rows(plan: ReplayPlan) -> list[tuple[str, str]]:
    told = plan.to_dict()
    rows = [
        ("displays", f"{told['displays_used']:,} of {told['displays']:,} (sampler: {told['sampler']})"),
        ("conversions", f"{told['conversions']:,}"),
        ("actions", f"{told['actions']:,}"),
        ("window", _window_text(told)),
        ("clock", f"{told['clock']}, share {told['traffic_share']:.3g}"),
        ("propensities", told["propensity"]),
        ("immature displays", f"{told['displays_immature']:,}"),
    ]
    return rows + ([("delay CDF", told["policy_delays"])] if told["policy_delays"] else [])


def _window_text(plan: Mapping[str, Any]) -> str:
    tau = plan["tau_window"]
    within = "" if tau is None else f" ({tau:.1%} {of_conversions(plan['followed'])} come within it)"
    return f"{plan['window']}{within}"


def resting(sentences: Sequence[doc.Words]) -> list[doc.Section]:
    """Return the section on assumptions of the intervals that not every replay makes, or an empty list without any."""
    return [doc.listed("What the intervals rest on", sentences)] if sentences else []


def _how(result: ReplayResult) -> list[tuple[str, str]]:
    plan = result.plan
    cap, clusters, rate = plan["cap"], plan["clusters"], result.acceptance_expected
    expected = "" if math.isnan(rate) else f" ({rate:.4g} expected)"
    rows = [
        (
            "rounds",
            f"{result.rounds:,} of {plan['displays_used']:,} logged displays (sampler: {plan['sampler']}); "
            f"{delivered_each(result):,} {_told(result)} delivered in them",
        ),
        (
            "acceptance rate",
            f"{result.acceptance_rate:.4g}{expected}, effective sample size {result.effective_sample_size:,.0f}",
        ),
        ("window", _window_text(plan)),
        (
            _told(result),
            f"{result.generated:,} = {result.delivered:,} delivered + {result.pending:,} pending "
            f"+ {result.expired:,} expired",
        ),
        ("clock", f"{plan['clock']}, share {plan['traffic_share']:.3g}{_live(result)}"),
        *_learns(result),
        ("propensities", plan["propensity"]),
        ("immature displays", f"{plan['displays_immature']:,}"),
    ]
    if plan["options"]["repeats"] > 1:
        orders = f"{plan['options']['repeats']} orders of the log, shuffled within short blocks: values are means"
        rows.insert(1, ("repeats", orders))
    if cap is not None:
        rows.append(("rewards", f"at most {cap['cap']:g} a display, which leaves out {cap['share']:.2%} of the log's"))
    if clusters is not None:
        worth = "" if result.clusters is None else clusters_text(result.clusters)
        worth = f"; the rounds are worth {worth} of equal size" if worth else ""
        rows.append(("clusters", f"{clusters['count']:,} by {clusters['by']}{worth}"))
    if plan["policy_delays"]:
        rows.append(("delay CDF", plan["policy_delays"]))
    return rows


def _learns(result: ReplayResult) -> list[tuple[str, str]]:
    """Return the row that says when the policy learned, none where that is at each event."""
    lived = result.schedule
    if lived is None:
        return []
    lag = "" if lived.learn_lag == "0" else f", lag {lived.learn_lag}"
    between = "" if lived.rounds_between is None else f", {lived.rounds_between:,.0f} rounds from one to the next"
    pushes = f"{lived.pushes:,} push{'' if lived.pushes == 1 else 'es'}"
    when = "at each event" if lived.learn_every == "event" else f"every {lived.learn_every}"
    return [("learns", f"{when}{lag}: {pushes}{between}")]


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


def _told(result: ReplayResult) -> str:
    """Return what the policy is told of, as sentences count it."""
    return told_events_words(result.plan["options"]["learn_from"])


def delivered_each(result: ReplayResult) -> int:
    """Return the number of events that the policy was told within the rounds, as the mean over repeats."""
    return round(result.delivered / int(result.plan["options"]["repeats"]))


def action_shares(result: ReplayResult, most: int) -> str:
    """Return the shares of the actions that were played, the largest first, and the share of all others together."""
    pairs = sorted(zip(result.action_labels, result.action_share, strict=True), key=lambda pair: -pair[1])
    played = [(label, share) for label, share in pairs if share > 0]
    largest = [f"{label} {share:.1%}" for label, share in played[:most]]
    rest = played[most:]
    return ", ".join(largest) + (f", {len(rest)} others {sum(share for _, share in rest):.1%}" if rest else "")


class _Row(NamedTuple):
    """A number: its name, its explanation in the full form, its name in the short form, and its cells."""

    name: str
    more: str
    cells: tuple[doc.Cell, doc.Cell, str]
    short: str = ""


def estimates(result: ReplayResult, *, full: bool, few: bool = False) -> doc.Grid:
    """Return the table of the estimates; with `few`, for a page as wide as a phone, intervals below estimates."""
    about = "" if result.plan["reward_bound"]["known"] else APPROXIMATE
    level = f"{result.value.level:.0%} interval"
    columns = [
        doc.column("" if full else _unit(result), bold=True),
        doc.column("estimate", "number"),
        doc.column(level if full or not about else doc.lines(level, about[2:]), "number"),
        doc.column("n", "number"),
    ]
    rows = list(_rows(result, about))
    if few:
        below = [(row.short or row.name, _below(row.cells)) for row in rows]
        return doc.grid([doc.column(_unit(result), bold=True), doc.column("estimate", "number")], below, alike="rows")
    named = [(f"{row.name}{row.more}" if full else row.short or row.name, *row.cells) for row in rows]
    return doc.grid(columns, named, alike="rows")


def _below(cells: tuple[doc.Cell, doc.Cell, str]) -> doc.Cell:
    """Return one cell of an estimate and its interval."""
    estimate, interval, _ = cells
    if isinstance(estimate, Measured):
        return replace(estimate, part="below")
    return doc.lines(str(estimate), str(interval))


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


def final_section(final: FinalValue, *, full: bool = True) -> doc.Section:
    """Return the value of a frozen policy by every estimator, or by the first one, with its assumptions."""
    columns = [
        doc.column("", bold=True),
        doc.column("estimate", "number", folds=True),
        doc.column(f"{final.ips.value.level:.0%} interval", "number"),
        doc.column("n", "number", folds=True),
    ]
    estimators = tuple(reversed(ESTIMATORS))[: None if full else 1]
    rows = [(one.title, *_given(final.estimates[one.name])) for one in estimators]
    rows.append(("logging policy on these displays", *_given(final.logging)))
    w = final.weights
    weights = (
        f"weights: effective sample size {w.effective_sample_size:,.0f} of {w.n:,}, mean {w.mean:.3g} (1 if "
        f"propensities are right), largest {w.largest:.3g}; {final.rewarded:,} displays with a reward count"
    )
    (heading, about), kind = _FINAL[final.policy], final.ips.value.kind
    probabilities = [f"probabilities: shares of {final.draws:,} draws at each display"] if final.draws and full else []
    if final.repeats > 1:
        about += f" It is any of the final policies of the {final.repeats} repeats, with equal chance."
    return doc.section(
        heading,
        doc.paragraph(f"{about} {'Normal intervals' if kind == NORMAL else f'Intervals: {kind}'}.", style="dim"),
        doc.grid(columns, rows),
        doc.paragraph(doc.lines(*probabilities, weights)),
    )


def _given(weighted: WeightedValue) -> tuple[doc.Cell, doc.Cell, str]:
    return _cells(weighted.value) if weighted.given else ("not given", "too few rewards", f"{weighted.value.n:,}")


def _cells(interval: Interval) -> tuple[doc.Cell, doc.Cell, str]:
    return (*measured(interval), f"{interval.n:,}")
