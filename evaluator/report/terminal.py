"""A result on the terminal: numbers first, then how they came about, then what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.estimates.confidence import Interval
from evaluator.estimates.standard_errors import clusters_text
from evaluator.estimates.weighted import ESTIMATORS, NORMAL, WeightedValue
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.replays.conversion_share import of_conversions
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.doubly_robust import LEARNING
from evaluator.replays.values.final import FinalValue
from evaluator.report.console import ReportConsole
from evaluator.report.numbers import count_text
from evaluator.report.outcome_tables import guardrails, outcomes
from evaluator.report.segment_tables import segments
from evaluator.report.short import coded, counted, first_of, left_out, of_intervals
from evaluator.report.table_widths import WIDE
from evaluator.visible import visible

_ACTIONS_SHOWN = 10
TRUST = "Read before trusting the numbers"
# Of intervals that rest on the largest reward seen.
APPROXIMATE = ", not anytime-valid"
_LEFT_OUT = (
    ", estimated on displays left out of the replay: another target than the value above, which is that of the rounds "
    "in which the policy learned."
)
# Heading, and what it is, of each kind of final policy.
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


def print_result(console: ReportConsole, result: ReplayResult, *, full: bool = True) -> None:
    """Print a replay's result: all of it, or what fits a screen."""
    plan = result.plan
    console.print(Text.assemble((visible(plan["policy"]), "bold"), " replayed on ", (visible(plan["dataset"]), "bold")))
    for line in result.meaning if full else result.meaning[:1]:
        console.print(line, style="dim")
    if not full:
        console.print(_lived(result))
    console.print(_estimates(result, full=full))
    if result.guardrails:
        console.print(guardrails([result], full=full))
    guarded = set() if full else {one.outcome for one in result.guardrails}
    if any(one.outcome not in guarded for one in result.outcomes):
        console.print(outcomes([result], full=full, stacked=console.width < WIDE, but=guarded))
    for found in segments([result], full=full):
        console.print(found)
    if full:
        console.print(details("How", _how(result)))
        console.print(_action_shares(result))
    if result.final is not None:
        console.print(frozen(result.final, full=full))
    # What the adapter did not have to do is no news.
    counts = [(name.replace("_", " "), count_text(value)) for name, value in plan["counts"].items() if value]
    if counts and full:
        console.print(details("Log", counts))
    said, assumed = coded(warnings_of(result.findings)), coded(assumptions_of(result.findings))
    warnings = said if full else first_of(said)
    if warnings:
        console.print(sentences(TRUST, warnings, style="yellow"))
    if full:
        console.print(sentences("Assumptions", assumed))
        return
    print_resting(console, of_intervals(result.findings))
    console.print(left_out("how it was replayed", "actions", "the log", counted(len(assumed), "assumption")))


def print_resting(console: ReportConsole, said: Sequence[str]) -> None:
    """Print what intervals rest on beyond what those of every replay do."""
    if said:
        console.print(sentences("What the intervals rest on", said))


def _lived(result: ReplayResult) -> str:
    days = "" if math.isnan(result.live_days) else f" ({result.live_days:.3g} days of live traffic)"
    clusters = "" if result.plan["clusters"] is None else f"; clusters: {_clusters(result)}"
    return (
        f"{result.rounds:,} rounds of {result.plan['displays_used']:,} logged displays{days}; effective sample size "
        f"{result.effective_sample_size:,.0f}; window: {result.plan['window']}{clusters}."
    )


class _Row(NamedTuple):
    """A number: its name, what the full form says of it, its name in the short form, and its cells."""

    name: str
    more: str
    cells: tuple[str, str, str]
    short: str = ""


def _estimates(result: ReplayResult, *, full: bool) -> Table:
    about = "" if result.plan["reward_bound"]["known"] else APPROXIMATE
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("" if full else _unit(result), style="bold")
    table.add_column("estimate", justify="right", no_wrap=True)
    level = f"{result.value.level:.0%} interval"
    table.add_column(level if full or not about else Text(f"{level}\n{about[2:]}"), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for row in _rows(result, about):
        table.add_row(f"{row.name}{row.more}" if full else row.short or row.name, *row.cells)
    return table


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
        of = "all displays read" if result.plan["options"]["repeats"] == 1 else "all that the first repeat read"
        yield _Row(f"value over {of}, doubly robust{by}", "", _given(result.doubly_robust))
    best = result.best_fixed_action
    name = f"regret over {result.rounds:,} rounds"
    yield _Row(name, f" vs best fixed {best.kind}{about}", _cells(result.regret), f"regret vs best fixed {best.kind}")
    if not math.isnan(result.true_regret):
        truth = (f"{result.true_regret:.5g}", "known truth", "")
        yield _Row("true regret", " vs the best action of each display", truth)
    yield _Row("uplift over the logging policy", f" (per round){about}", _cells(result.uplift))
    for name, amount in () if result.money is None else result.money.rows():
        yield _Row(name, about if name != "cost per round" else "", _cells(amount))
    yield _Row("logging policy's value", about, _cells(result.logging_value))
    how = " (halves choose and value)" if best.by_halves else ""
    yield _Row(f"best fixed {best.kind}: {best.label or 'unknown'}", f"{how}{about}", _cells(best.value))


def frozen(final: FinalValue, *, full: bool = True) -> RenderableType:
    """Return the value of a frozen policy by every estimator, or by the first one, and what it rests on."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="bold")
    table.add_column("estimate", justify="right")
    table.add_column(f"{final.ips.value.level:.0%} interval", justify="right", no_wrap=True)
    table.add_column("n", justify="right")
    for one in tuple(reversed(ESTIMATORS))[: None if full else 1]:
        table.add_row(one.title, *_given(final.estimates[one.name]))
    table.add_row("logging policy on these displays", *_given(final.logging))
    w = final.weights
    weights = (
        f"effective sample size {w.effective_sample_size:,.0f} of {w.n:,}, mean {w.mean:.3g} (1 if propensities are "
        f"right), largest {w.largest:.3g}; {final.rewarded:,} displays with a reward count"
    )
    heading, said = _FINAL[final.policy]
    probabilities = (
        "" if not (final.draws and full) else f"probabilities: shares of {final.draws:,} draws at each display\n"
    )
    if final.repeats > 1:
        said += f" It is any of the final policies of the {final.repeats} repeats, with equal chance."
    return Group(
        Text(f"\n{heading}", style="bold"),
        Padding(Text(f"{said} {_law(final)}", style="dim"), (0, 0, 0, 2)),
        Padding(table, (0, 0, 0, 2), expand=False),
        Padding(Text(f"{probabilities}weights: {weights}"), (0, 0, 0, 2)),
    )


def _law(final: FinalValue) -> str:
    kind = final.ips.value.kind
    return "Normal intervals." if kind == NORMAL else f"Intervals: {kind}."


def _given(found: WeightedValue) -> tuple[str, str, str]:
    return _cells(found.value) if found.given else ("not given", "too few rewards", f"{found.value.n:,}")


def _cells(interval: Interval) -> tuple[str, str, str]:
    ends = "none" if math.isnan(interval.low) else f"[{interval.low:.5g}, {interval.high:.5g}]"
    return "unknown" if math.isnan(interval.estimate) else f"{interval.estimate:.5g}", ends, f"{interval.n:,}"


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
    """Return the conversions delivered within the rounds, mean over repeats."""
    return round(result.delivered / int(result.plan["options"]["repeats"]))


def _expected(result: ReplayResult) -> str:
    expected = result.acceptance_expected
    return "" if math.isnan(expected) else f" ({expected:.4g} expected)"


def _action_shares(result: ReplayResult) -> RenderableType:
    pairs = sorted(zip(result.action_labels, result.action_share, strict=True), key=lambda p: -p[1])
    shown = [f"{label} {share:.1%}" for label, share in pairs[:_ACTIONS_SHOWN]]
    more = (
        f", {len(pairs) - len(shown)} others {sum(s for _, s in pairs[_ACTIONS_SHOWN:]):.1%}"
        if len(pairs) > len(shown)
        else ""
    )
    return details("Actions", [("share of rounds", ", ".join(shown) + more)])


def details(title: str, rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Return a titled list of names and what is said of each."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, words in rows:
        table.add_row(name, words)
    return Group(Text(f"\n{visible(title)}", style="bold"), Padding(table, (0, 0, 0, 2), expand=False))


def sentences(title: str, lines: Iterable[str], *, style: str = "") -> RenderableType:
    """Return a titled list of sentences."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(style=style)
    for line in lines:
        table.add_row("-", line)
    return Group(Text(f"\n{title}", style=f"bold {style}".strip()), Padding(table, (0, 0, 0, 2), expand=False))
