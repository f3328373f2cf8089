"""A comparison on the terminal: one line a variant, what differs and of what, then what to read before trusting it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.lines import window_text
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.variant_inputs import VariantInputs
from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted import WeightedValue
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.replays.result import ReplayResult
from evaluator.replays.words.unknown_maximum import ends_seen, outside_seen
from evaluator.report.check import checks_of_log
from evaluator.report.console import ReportConsole
from evaluator.report.decision_table import SAME_DISPLAYS, fitting_table, notes
from evaluator.report.outcome_tables import guardrails, outcomes
from evaluator.report.segment_tables import segments
from evaluator.report.short import coded, counted, first_of, left_out, of_intervals
from evaluator.report.shown_verdict import ShownVerdict
from evaluator.report.table_widths import WIDE
from evaluator.report.terminal import TRUST, delivered_each, details, print_resting, sentences
from evaluator.visible import visible

_ACTIONS_SHOWN = 4
HOW_TO_READ = (
    "told: conversions delivered to the policy within its rounds. {which} holds for its own number. Whether two "
    "of them overlap says little about the difference of the two: that is below."
)
REALISED = (
    "n: displays that only one of the two runs showed; those that both did cancel. A difference is realised: it is of "
    "what these two runs showed, and another log or seed would give others, of either sign. "
)
HOLDS = "Each interval (Howard et al. 2021) holds for its own difference."
MAY_NOT_HOLD = "Each interval holds for its own difference only if no display can earn {}, which nobody knows."
OF_CLUSTERS = (
    "Displays hang together by {by}: realised differences, and the ranking below, are for the clusters of this log; "
    "expected differences are for new ones."
)
Column = tuple[str, Callable[[int], "Interval | str"]]

NO_EXPECTED = "No difference of expected values: "
APART = "Lines whose rewards are cut by different windows stand apart: their values cannot be compared."


def print_comparison(console: ReportConsole, comparison: Comparison, *, full: bool = True) -> None:
    """Print a comparison: all of it, or what fits a screen."""
    if comparison.verdict is not None:
        console.print(ShownVerdict(comparison.verdict, full=full))
        console.print()
    (_print_all if full else _print_short)(console, comparison)


def _print_short(console: ReportConsole, comparison: Comparison) -> None:
    """Print the lines as they rank, what was asked for, and what to read before trusting the numbers."""
    results = comparison.results
    level = f"{results[0].value.level:.0%}"
    console.print(_heading(results))
    if comparison.verdict is None:
        for line in _together([result.meaning[:1] for result in results]):
            console.print(line, style="dim")
    console.print(fitting_table(console, comparison))
    for line in notes(comparison):
        console.print(line, style="dim")
    if results[0].guardrails:
        console.print(guardrails(results, full=False))
    if any(result.final is not None or result.doubly_robust is not None for result in results):
        console.print(_weighted(results, level))
    for found in segments(results, comparison.segments, full=False):
        console.print(found)
    if comparison.check is not None:
        console.print(checks_of_log(comparison.check))
    warnings = first_of(_warnings(comparison))
    if warnings:
        console.print(sentences(TRUST, warnings, style="yellow"))
    assumptions = _assumptions(comparison)
    print_resting(console, _together([of_intervals(result.findings) for result in results]))
    console.print(
        left_out(
            "regret and uplift",
            "ranking" if len(results) > 1 else "",
            "cost of the window" if comparison.window_costs else "",
            "other outcomes" if any(result.outcomes for result in results) else "",
            "actions",
            counted(len(assumptions), "assumption"),
        )
    )


def _heading(results: Sequence[ReplayResult]) -> Text:
    return Text.assemble(f"{len(results)} replays of ", (visible(results[0].plan["dataset"]), "bold"))


def _warnings(comparison: Comparison) -> list[str]:
    each = _together([coded(warnings_of(result.findings)) for result in comparison.results])
    return [*coded(warnings_of(comparison.findings)), *each]


def _assumptions(comparison: Comparison) -> list[str]:
    results = comparison.results
    each = zip(results, comparison.assumed, strict=True)
    return _together([(*coded(assumptions_of(one.findings)), *_told(to)) for one, to in each])


def _print_all(console: ReportConsole, comparison: Comparison) -> None:
    results = comparison.results
    wide = console.width >= WIDE
    console.print(_heading(results))
    for line in _together([result.meaning[:1] for result in results]):
        console.print(line, style="dim")
    level = f"{results[0].value.level:.0%}"
    named: list[Column] = [
        ("window", lambda i: window_text(results[i])),
        ("rounds", lambda i: f"{results[i].rounds:,}"),
        ("told", lambda i: f"{delivered_each(results[i]):,}"),
        ("value", lambda i: results[i].value),
    ]
    expected = [result.expected_value for result in results]
    if any(expected):
        named.append((f"expected value, {level}", lambda i: _ends(expected[i])))
    against: list[Column] = [("regret", lambda i: results[i].regret), ("uplift", lambda i: results[i].uplift)]
    lines = range(len(results))
    names = [result.plan["policy"] for result in results]
    if wide:
        console.print(_table(lines, [*named, *against], level, names=names))
    else:
        console.print(_table(lines, named, level, names=names, stacked=True))
        console.print(_table(lines, against, level, stacked=True))
    ends = ends_seen(comparison.results)
    which = f"If no display can earn {outside_seen(ends)}, each interval" if ends else "Each interval"
    console.print(HOW_TO_READ.format(which=which))
    if results[0].guardrails:
        console.print(guardrails(results))
    if any(result.outcomes for result in results):
        console.print(outcomes(results, stacked=not wide))
    if any(result.final is not None or result.doubly_robust is not None for result in results):
        console.print(_weighted(results, level))
    if len(results) > 1:
        _print_differences(console, comparison, level)
        console.print(_ranking(comparison))
    for found in segments(results, comparison.segments):
        console.print(found)
    if any(len(curve.rounds) for curve in comparison.curves):
        console.print(_regret(comparison, level, wide=wide))
    console.print(details("Actions (share of rounds)", [(str(i + 1), _shares(results[i])) for i in lines]))
    if comparison.check is not None:
        console.print(checks_of_log(comparison.check))
    warnings = _warnings(comparison)
    if warnings:
        console.print(sentences(TRUST, warnings, style="yellow"))
    console.print(sentences("Assumptions", _assumptions(comparison)))


def _weighted(results: Sequence[ReplayResult], level: str) -> RenderableType:
    """Return what displays that were weighed say of each line: another target than its rounds."""
    table = _plain_table()
    for column in ("", "final policy", "value (DR)", level, "over all displays read (DR)", level):
        justify: JustifyMethod = "left" if column == "final policy" else "right"
        table.add_column(column, justify=justify, no_wrap=column == level, overflow="fold")
    for i, result in enumerate(results):
        final, robust = result.final, result.doubly_robust
        table.add_row(
            str(i + 1),
            "" if final is None else final.policy,
            *_weighed(None if final is None else final.dr),
            *_weighed(robust),
        )
    return Group(
        Text.assemble(("\nWeighted values ", "bold"), "per round: other targets than the rounds above"),
        Padding(table, (0, 0, 0, 2), expand=False),
        Padding(Text("Other estimators, and what the weights are worth, are in --json and in replay."), (0, 0, 0, 2)),
    )


def _weighed(found: WeightedValue | None) -> tuple[str | Text, str | Text]:
    if found is None:
        return "", ""
    return _cells(found.value) if found.given else ("not given", "too few rewards")


def _print_differences(console: ReportConsole, comparison: Comparison, level: str) -> None:
    base = comparison.results[comparison.baseline]
    horizon = comparison.horizon
    why = f", {horizon.why}" if horizon.fixed else ""
    console.print(
        Text.assemble(
            ("\nDifference per round ", "bold"),
            f"to line {comparison.baseline + 1} ({visible(base.plan['policy'])}, window {visible(window_text(base))})",
            f" over the first {horizon.rounds:,} rounds{visible(why)}",
        )
    )
    console.print(Padding(_differences(comparison.differences, level), (0, 0, 0, 2), expand=False))
    of = comparison.differences
    said = _together([_limits(d) for d in of], _lines(of))
    of_whom = [] if base.plan["clusters"] is None else [OF_CLUSTERS.format(by=base.plan["clusters"]["by"])]
    ends = ends_seen(comparison.results)
    realised = REALISED + (MAY_NOT_HOLD.format(outside_seen(ends)) if ends else HOLDS)
    for line in [*(f"{line}." for line in said), realised, *of_whom]:
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    if comparison.window_costs:
        console.print(
            Text.assemble(("\nCost of the window ", "bold"), "per round: to the widest one of the same policy")
        )
        table = _differences(comparison.window_costs, level, to=True)
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
        costs = comparison.window_costs
        for line in _together([_limits(d) for d in costs], _lines(costs)):
            console.print(Padding(f"{line}.", (0, 0, 0, 2), expand=False))


def _limits(of: Difference) -> list[str]:
    expected = f"{NO_EXPECTED}{of.why_not_expected}" if of.why_not_expected else ""
    return [line for line in (of.why_not, expected) if line]


def _differences(differences: Sequence[Difference], level: str, *, to: bool = False) -> Table:
    table = _plain_table()
    expects = any(difference.expected for difference in differences)
    last = [f"expected difference, {level}"] if expects else []
    for column in ("", *(["to"] if to else []), "difference", level, "n", *last):
        table.add_column(column, justify="right", overflow="fold")
    for difference in differences:
        of = difference.realised
        if of is None:
            cells: tuple[str | Text, ...] = ("none", "", "")
        elif not of.n:  # an interval of width 0 would look like a measurement
            cells = (f"{of.estimate:.4g}", SAME_DISPLAYS, "0")
        else:
            cells = (*_cells(of), f"{of.n:,}")
        table.add_row(
            str(difference.variant + 1),
            *([str(difference.reference + 1)] if to else []),
            *cells,
            *([_ends(difference.expected)] if expects else []),
        )
    return table


def _ends(of: Interval | None) -> str:
    return "none" if of is None or np.isnan(of.low) else f"[{of.low:.4g}, {of.high:.4g}]"


def _lines(differences: Sequence[Difference]) -> list[int]:
    return [difference.variant + 1 for difference in differences]


def _ranking(comparison: Comparison) -> RenderableType:
    ranking = comparison.ranking
    table = _plain_table()
    for column in ("", f"value after {comparison.horizon.rounds:,}"):
        table.add_column(column, justify="right")
    expected = ranking.target == "expected"
    ahead = "expected ahead of lines" if expected else "ahead in these runs of lines"
    table.add_column(ahead + ("" if not ranking.rests_on else ", if so"), overflow="fold")
    for group in ranking.groups:
        if group is not ranking.groups[0]:
            table.add_row()
        for i in group:
            behind = ", ".join(str(j + 1) for j in ranking.ahead_of[i])
            table.add_row(
                str(i + 1),
                f"{comparison.curves[i].value.estimate[-1]:.4g}",
                behind or "-",
            )
    of = "of expected values" if expected else "of these runs"
    tested = "all pairs tested" if ranking.all_pairs else "differences to the baseline tested"
    title = Text.assemble(("\nRanking ", "bold"), f"{of} ({tested}, adjusted for their number by Holm's method)")
    said = [Text(visible(ranking.conclusion), style="bold"), *([Text(APART)] if len(ranking.groups) > 1 else [])]
    below: list[RenderableType] = [table, *said]
    return Group(title, *(Padding(line, (0, 0, 0, 2), expand=False) for line in below))


def _regret(comparison: Comparison, level: str, *, wide: bool) -> RenderableType:
    rounds = max((curve.rounds for curve in comparison.curves), key=len)
    total = int(rounds[-1])
    at = np.searchsorted(rounds, [-(-total * share // 100) for share in (10, 25, 50, 100)])
    table = _plain_table()
    table.add_column("after", justify="right")
    for i in at:
        table.add_column(f"{rounds[i]:,}", justify="right")
    for line, curve in enumerate(comparison.curves, start=1):
        of = curve.regret
        if not len(curve.rounds):
            table.add_row(str(line), *("none" for _ in at))
            continue
        table.add_row(
            str(line),
            *(Text(f"{of.estimate[i]:.4g}" + (f" [{of.low[i]:.4g}, {of.high[i]:.4g}]" if wide else "")) for i in at),
        )
    bands = f"approximate {level} bands" if ends_seen(comparison.results) else f"{level} bands"
    band = bands if wide else f"{bands} with --json or --out"
    kind = comparison.results[0].best_fixed_action.kind
    title = Text.assemble(("\nRegret ", "bold"), f"against the best fixed {kind} ({band})")
    return Group(title, Padding(table, (0, 0, 0, 2), expand=False))


def _shares(result: ReplayResult) -> str:
    pairs = sorted(zip(result.action_labels, result.action_share, strict=True), key=lambda p: -p[1])
    shown = [f"{label} {share:.1%}" for label, share in pairs[:_ACTIONS_SHOWN] if share > 0]
    rest = [(label, share) for label, share in pairs[_ACTIONS_SHOWN:] if share > 0]
    return ", ".join(shown) + (f", {len(rest)} others {sum(s for _, s in rest):.1%}" if rest else "")


def _told(assumed: VariantInputs) -> list[str]:
    said = []
    if assumed.needs_cdf:
        said.append(f"the policy was told the delay CDF: {assumed.delay_cdf or 'none, for there are no conversions'}")
    if assumed.horizon is not None:
        said.append(f"the policy was told the horizon: at most {assumed.horizon:,} rounds")
    return said


def _table(
    lines: Sequence[int], columns: Sequence[Column], level: str, *, names: Sequence[str] = (), stacked: bool = False
) -> Table:
    table = _plain_table(gap=1)
    table.add_column("", justify="right")
    if names:
        table.add_column("policy", overflow="fold")
    for title, of in columns:
        interval = isinstance(of(0), Interval)
        table.add_column(Text(f"{title}\n{level}") if interval and stacked else title, justify="right", overflow="fold")
        if interval and not stacked:
            table.add_column(level, justify="right", overflow="fold")
    for i in lines:
        row: list[str | Text] = [str(i + 1), *([names[i]] if names else [])]
        for _, of in columns:
            cell = of(i)
            if isinstance(cell, str):
                row.append(cell)
            elif stacked:
                estimate, ends = _cells(cell)
                row.append(Text(f"{estimate}\n").append(ends))
            else:
                row.extend(_cells(cell))
        table.add_row(*row)
    return table


def _plain_table(*, gap: int = 2) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))


def _together(said: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> list[str]:
    """Return every sentence once, with the lines it is about unless these are all."""
    about: dict[str, list[int]] = {}
    for i, lines in zip(numbers or range(1, len(said) + 1), said, strict=True):
        for line in lines:
            about.setdefault(line, []).append(i)
    return [line if len(of) == len(said) else f"{line} (line {', '.join(map(str, of))})" for line, of in about.items()]


def _cells(interval: Interval) -> tuple[str, Text]:
    if math.isnan(interval.estimate):
        return "unknown", Text("none")
    return f"{interval.estimate:.4g}", Text(f"[{interval.low:.4g}, {interval.high:.4g}]")
