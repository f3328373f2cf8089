"""What a replay would do, before it does."""

from __future__ import annotations

from rich.text import Text

from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.replays.conversion_share import of_conversions
from evaluator.replays.plan import ReplayPlan
from evaluator.report.console import ReportConsole
from evaluator.report.short import coded
from evaluator.report.terminal import details, sentences
from evaluator.visible import visible


def print_plan(console: ReportConsole, plan: ReplayPlan) -> None:
    """Print the choices of a replay, as `print_result` prints how a result came about."""
    told = plan.to_dict()
    console.print(
        Text.assemble((visible(told["policy"]), "bold"), " to be replayed on ", (visible(told["dataset"]), "bold"))
    )
    console.print(details("Plan", _choices(plan)))
    if warnings := coded(warnings_of(plan.findings)):
        console.print(sentences("Read before trusting the numbers", warnings, style="yellow"))
    console.print(sentences("Assumptions", coded(assumptions_of(plan.findings))))


def _choices(plan: ReplayPlan) -> list[tuple[str, str]]:
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
