"""A result on the terminal: numbers first, then how they came about, then what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.estimates.clustered import clusters_text
from evaluator.estimates.confidence import Interval
from evaluator.estimates.estimators import ESTIMATORS
from evaluator.estimates.weighted import NORMAL, WeightedValue
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.doubly_robust import LEARNING
from evaluator.replays.values.final import FinalValue
from evaluator.replays.within import of_conversions
from evaluator.report.console import ReportConsole
from evaluator.report.numbers import count_text
from evaluator.report.outcome_tables import guardrails, outcomes
from evaluator.report.segment_tables import segments
from evaluator.visible import visible

_ACTIONS_SHOWN = 10
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


def print_result(console: ReportConsole, result: ReplayResult) -> None:
    """Print a replay's result."""
    plan = result.plan
    console.print(Text.assemble((visible(plan["policy"]), "bold"), " replayed on ", (visible(plan["dataset"]), "bold")))
    for line in result.meaning:
        console.print(line, style="dim")
    console.print(_estimates(result))
    if result.guardrails:
        console.print(guardrails([result]))
    if result.outcomes:
        console.print(outcomes([result]))
    for found in segments([result]):
        console.print(found)
    console.print(details("How", _how(result)))
    console.print(_action_shares(result))
    if result.final is not None:
        console.print(frozen(result.final))
    # What the adapter did not have to do is no news.
    counts = [(name.replace("_", " "), count_text(value)) for name, value in plan["counts"].items() if value]
    if counts:
        console.print(details("Log", counts))
    if result.warnings:
        console.print(sentences("Read before trusting the numbers", result.warnings, style="yellow"))
    console.print(sentences("Assumptions", result.assumptions))


def _estimates(result: ReplayResult) -> Table:
    level = result.value.level
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="bold")
    table.add_column("estimate", justify="right")
    table.add_column(f"{level:.0%} interval", justify="right")
    table.add_column("n", justify="right")
    unit = (
        "reward per round" if result.plan["options"]["reward"] == "eventual" else "reward per round seen by the horizon"
    ).replace("reward", "reward" if result.money is None else "profit", 1)
    clusters = result.plan["clusters"]
    by = "" if clusters is None else f", by {clusters['by']}"
    about = "" if result.plan["reward_bound"]["known"] else APPROXIMATE
    table.add_row(f"realised value ({unit}){about}", *_cells(result.value))
    if result.expected_value is not None:
        table.add_row(f"expected value at {result.rounds:,} rounds (bootstrap{by})", *_cells(result.expected_value))
    if result.doubly_robust is not None and result.doubly_robust.target == LEARNING:
        of = "all displays read" if result.plan["options"]["repeats"] == 1 else "all that the first repeat read"
        table.add_row(f"value over {of}, doubly robust{by}", *_given(result.doubly_robust))
    best = result.best_fixed_action
    table.add_row(
        f"regret over {result.rounds:,} rounds vs best fixed {best.kind}{about}",
        *_cells(result.regret),
    )
    if not math.isnan(result.true_regret):
        table.add_row("true regret vs the best action of each display", f"{result.true_regret:.5g}", "known truth", "")
    table.add_row(f"uplift over the logging policy (per round){about}", *_cells(result.uplift))
    for name, amount in () if result.money is None else result.money.rows():
        table.add_row(f"{name}{about if name != 'cost per round' else ''}", *_cells(amount))
    table.add_row(f"logging policy's value{about}", *_cells(result.logging_value))
    how = " (halves choose and value)" if best.by_halves else ""
    table.add_row(f"best fixed {best.kind}: {best.label or 'unknown'}{how}{about}", *_cells(best.value))
    return table


def frozen(final: FinalValue) -> RenderableType:
    """Return the value of a frozen policy by every estimator, and what it rests on."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="bold")
    table.add_column("estimate", justify="right")
    table.add_column(f"{final.ips.value.level:.0%} interval", justify="right")
    table.add_column("n", justify="right")
    for one in reversed(ESTIMATORS):
        table.add_row(one.title, *_given(final.estimates[one.name]))
    table.add_row("logging policy on these displays", *_given(final.logging))
    w = final.weights
    weights = (
        f"effective sample size {w.effective_sample_size:,.0f} of {w.n:,}, mean {w.mean:.3g} (1 if propensities are "
        f"right), largest {w.largest:.3g}; {final.rewarded:,} displays with a reward count"
    )
    heading, said = _FINAL[final.policy]
    probabilities = "" if not final.draws else f"probabilities: shares of {final.draws:,} draws at each display\n"
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
