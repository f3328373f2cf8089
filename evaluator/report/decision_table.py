"""A comparison in its short form: one table that ranks its lines, and what to know before reading it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.lines import window_text
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import Interval
from evaluator.replays.words.unknown_maximum import ends_seen, outside_seen
from evaluator.report.console import ReportConsole
from evaluator.report.shown_verdict import STYLES
from evaluator.report.table_widths import fits
from evaluator.visible import visible

BASELINE = "baseline"
SAME_DISPLAYS = "same displays"
SEEN_BOUNDS = "These intervals hold only if no display can earn {}, which nobody knows."


def fitting_table(console: ReportConsole, comparison: Comparison) -> Table:
    """Return the table with intervals beside their estimates where the console is wide enough, else below them."""
    table = _decision_table(comparison, stacked=False)
    longest = max(len(result.plan["policy"]) for result in comparison.results)
    return table if fits(console, table, longest) else _decision_table(comparison, stacked=True)


def _decision_table(comparison: Comparison, *, stacked: bool) -> Table:
    """Return the lines of a comparison, the best ones first, each with its value and its difference to the baseline.

    Parameters
    ----------
    comparison
        Comparison of one line or several.
    stacked
        Whether an interval stands under its estimate, for narrow terminals.
    """
    results, level = comparison.results, f"{comparison.results[0].value.level:.0%}"
    decisions = {} if comparison.verdict is None else {of.line.variant: of for of in comparison.verdict.candidates}
    differences = {of.variant: of for of in comparison.differences}
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    if stacked:
        table.add_column(Text("policy\nwindow"), overflow="fold")
    else:
        table.add_column("policy", overflow="fold")
        table.add_column("window", justify="right", no_wrap=True)
    expected = _of_expected(comparison)
    value = "expected value" if all(result.expected_value for result in results) else "value"
    for title in (value, "difference" if len(results) > 1 else "uplift"):
        # The name stands above the interval, which is the wider one.
        for name in [Text(f"{title}\n{level}")] if stacked else ["", f"{title}, {level}"]:
            table.add_column(name, justify="right", no_wrap=True)
    if decisions:
        table.add_column("verdict", no_wrap=True)
    for i in _order(comparison):
        result = results[i]
        of_value = result.value if value == "value" else result.expected_value
        against = _difference(differences.get(i), expected=expected) if len(results) > 1 else _cells(result.uplift)
        pairs = (_cells(of_value), against)
        cells: list[str | Text] = [end for pair in pairs for end in pair]
        if stacked:
            cells = [Text("\n".join(pair)) for pair in pairs]
        verdict: list[str | Text] = []
        if decisions:
            decision = decisions[i].decision if i in decisions else ""
            verdict = [Text(decision, STYLES.get(decision, ""))]
        called: list[str] = [result.plan["policy"], window_text(result)]
        of_line: list[str | Text] = [Text("\n".join(map(visible, called)))] if stacked else [*called]
        table.add_row(str(i + 1), *of_line, *cells, *verdict)
    return table


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what the differences are of, which are told apart, and which lines have none and why."""
    results, ranking = comparison.results, comparison.ranking
    if len(results) > 1:
        kind = "expected, over logs and seeds" if _of_expected(comparison) else "of what these runs earned"
        yield (
            f"difference: to line {comparison.baseline + 1}, per round, over the first {comparison.horizon.rounds:,} "
            f"rounds, {kind}."
        )
        yield _apart(comparison)
    if ends := ends_seen(results):
        yield SEEN_BOUNDS.format(outside_seen(ends))
    for of in comparison.differences:
        if of.realised is None and of.why_not:
            yield f"Line {of.variant + 1} has no difference: {of.why_not}."
        elif of.expected is None and of.why_not_expected:
            yield f"Line {of.variant + 1} has no expected difference: {of.why_not_expected}."
    if len(ranking.groups) > 1:
        yield "Lines whose rewards are cut by different windows stand apart: their values cannot be compared."


def _apart(comparison: Comparison) -> str:
    """Return of the line with the highest value, which others it is told from."""
    ranking = comparison.ranking
    tested = "all pairs tested" if ranking.all_pairs else "differences to the baseline tested"
    if not ranking.tests or not ranking.groups:
        return "No two lines can be compared."
    said = []
    for group in ranking.groups:
        ahead = ", ".join(str(j + 1) for j in sorted(ranking.ahead_of[group[0]]))
        others = f"of line{'s' * (len(ranking.ahead_of[group[0]]) > 1)} {ahead} only" if ahead else "of no other"
        if len(ranking.ahead_of[group[0]]) == len(group) - 1 > 0:
            others = "of all others"
        said.append(f"line {group[0] + 1} is ahead {others}")
    return f"Told apart ({tested}, Holm): {'; '.join(said)}."


def _of_expected(comparison: Comparison) -> bool:
    return any(of.expected is not None for of in comparison.differences)


def _order(comparison: Comparison) -> Sequence[int]:
    """Return the lines, the highest value first, then those without rounds."""
    ranked = [i for group in comparison.ranking.groups for i in group]
    return [*ranked, *(i for i in range(len(comparison.results)) if i not in ranked)]


def _difference(of: Difference | None, *, expected: bool) -> tuple[str, str]:
    if of is None:
        return "", BASELINE
    interval = of.expected if expected else of.realised
    if interval is None:
        return "none", ""
    # An interval of width 0 would look like a measurement.
    return (f"{interval.estimate:.4g}", SAME_DISPLAYS) if not expected and not interval.n else _cells(interval)


def _cells(of: Interval | None) -> tuple[str, str]:
    if of is None or math.isnan(of.estimate):
        return "unknown", "none"
    return f"{of.estimate:.4g}", "none" if math.isnan(of.low) else f"[{of.low:.4g}, {of.high:.4g}]"
