"""A comparison in its short form: one table that ranks its lines, and notes on how to read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.lines import window_text
from evaluator.comparisons.result import Comparison
from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted_difference import WeightedDifference
from evaluator.replays.words.unknown_maximum import ends_seen, outside_seen
from evaluator.reports.document import Cell, Grid, Layout, Wordable, column, grid, lines, run
from evaluator.reports.numbers import Measured, measured
from evaluator.reports.terminal import VERDICT_STYLES, fits

BASELINE = "baseline"
SAME_DISPLAYS = "same displays"
SAME_POLICY = "same policy"
SEEN_BOUNDS = "These intervals hold only if no display can earn {}, which nobody knows."


# A cell: text, or numbers whose decimals follow from the errors of the column.
Text = str | Measured


def decision_table(comparison: Comparison, layout: Layout) -> Grid:
    """Return the lines of a comparison, the best ones first, each with its value and its difference to the baseline.

    Intervals stand beside their estimates where there is room, else below them.
    """
    table = _table(comparison, stacked=False)
    longest = max(len(result.title) for result in comparison.results)
    return table if fits(table, layout, longest) else _table(comparison, stacked=True)


def _table(comparison: Comparison, *, stacked: bool) -> Grid:
    results, level = comparison.results, f"{comparison.results[0].value.level:.0%}"
    decisions = {}
    if comparison.verdict is not None:
        decisions = {one.line.variant: one.decision for one in comparison.verdict.candidates}
    differences = {difference.variant: difference for difference in comparison.differences}
    several = len(results) > 1
    columns = [column("", "number")]
    if stacked:
        columns.append(column(lines("policy", "window")))
    else:
        columns += [column("policy"), column("window", "number")]
    expected = _has_expected_values(comparison)
    value = "expected value" if all(result.expected_value for result in results) else "value"
    for title in (value, "difference" if several else "uplift"):
        # The name stands above the interval, which is wider than the estimate.
        names: list[Wordable] = [lines(title, level)] if stacked else ["", f"{title}, {level}"]
        columns += [column(name, "number") for name in names]
    if decisions:
        columns.append(column("verdict", "whole"))
    rows = []
    for i in _order(comparison):
        result = results[i]
        values = _cells(result.value if value == "value" else result.expected_value)
        against = _difference(differences.get(i), expected=expected) if several else _cells(result.uplift)
        name = (result.title, window_text(result))
        parts = (name, values, against)
        cells: list[Cell] = [_below(*part) for part in parts] if stacked else [cell for part in parts for cell in part]
        if decisions:
            decision = decisions.get(i, "")
            cells.append(run(decision, VERDICT_STYLES.get(decision, "")))
        rows.append((str(i + 1), *cells))
    return grid(columns, rows, gap=1)


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what the differences compare, which lines are told apart, and which lines have no difference and why."""
    results, ranking = comparison.results, comparison.ranking
    if len(results) > 1:
        kind = "expected, over logs and seeds" if _has_expected_values(comparison) else "of what these runs earned"
        line, weighted = f"to line {comparison.baseline + 1}", weighted_lines(comparison.differences)
        if len(weighted) < len(comparison.differences):
            yield f"difference: {line}, per round, over the first {comparison.horizon.rounds:,} rounds, {kind}."
            yield from said_of_weighted(comparison.differences)
        else:
            (displays,) = {of.value.n for of in weighted.values() if of.value.n} or {0}
            over = f", weighted over all {displays:,} displays that can be judged" if displays else ""
            yield f"difference: {line}, per display{over}: no policy here learns."
        yield _apart(comparison)
    if ends := ends_seen(results):
        yield SEEN_BOUNDS.format(outside_seen(ends))
    for difference in comparison.differences:
        if difference.weighted is not None:
            if difference.weighted.withheld:
                yield f"Line {difference.variant + 1} has no difference: {difference.weighted.withheld}."
        elif difference.realised is None and difference.why_not:
            yield f"Line {difference.variant + 1} has no difference: {difference.why_not}."
        elif difference.expected is None and difference.why_not_expected:
            yield f"Line {difference.variant + 1} has no expected difference: {difference.why_not_expected}."
    if len(ranking.groups) > 1:
        yield "Lines whose rewards are cut by different windows stand apart: their values cannot be compared."


def weighted_lines(differences: Sequence[Difference]) -> dict[int, WeightedDifference]:
    """Return the weighted differences, by the number of their line."""
    return {of.variant + 1: of.weighted for of in differences if of.weighted is not None}


def said_of_weighted(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield what the differences of lines that do not learn are of, where there are any."""
    found = weighted_lines(differences)
    displays = max((of.value.n for of in found.values()), default=0)
    if displays:
        several = len(found) > 1
        yield (
            f"Line{'s' * several} {', '.join(map(str, found))} {'do' if several else 'does'} not learn: the "
            f"difference is per display, weighted over all {displays:,} displays that can be judged."
        )


def _apart(comparison: Comparison) -> str:
    """Return a sentence on the lines that the line with the highest value is told apart from."""
    ranking = comparison.ranking
    tested = "all pairs tested" if ranking.all_pairs else "differences to the baseline tested"
    if not ranking.tests or not ranking.groups:
        return "No two lines can be compared."
    clauses = []
    for group in ranking.groups:
        ahead = ", ".join(str(j + 1) for j in sorted(ranking.ahead_of[group[0]]))
        others = f"of line{'s' * (len(ranking.ahead_of[group[0]]) > 1)} {ahead} only" if ahead else "of no other"
        if len(ranking.ahead_of[group[0]]) == len(group) - 1 > 0:
            others = "of all others"
        clauses.append(f"line {group[0] + 1} is ahead {others}")
    return f"Told apart ({tested}, Holm): {'; '.join(clauses)}."


def _has_expected_values(comparison: Comparison) -> bool:
    return any(difference.expected is not None for difference in comparison.differences)


def _order(comparison: Comparison) -> Sequence[int]:
    """Return the lines, the highest value first, then those without rounds."""
    ranked = [i for group in comparison.ranking.groups for i in group]
    return [*ranked, *(i for i in range(len(comparison.results)) if i not in ranked)]


def _below(above: Text, below: Text) -> Cell:
    """Return two cells as one."""
    if isinstance(above, Measured) and isinstance(below, Measured):
        return replace(above, part="below")
    return lines(
        *(line for cell in (above, below) for line in (cell.lines(None) if isinstance(cell, Measured) else [cell]))
    )


def _difference(difference: Difference | None, *, expected: bool) -> tuple[Text, Text]:
    if difference is None:
        return "", BASELINE
    if difference.weighted is not None:
        of = difference.weighted.value
        if difference.weighted.withheld:
            return "none", ""
        return _cells(of) if of.n else (measured(of)[0], SAME_POLICY)
    interval = difference.expected if expected else difference.realised
    if interval is None:
        return "none", ""
    # An interval of width 0 would look like a measurement.
    return (measured(interval)[0], SAME_DISPLAYS) if not expected and not interval.n else _cells(interval)


def _cells(interval: Interval | None) -> tuple[Text, Text]:
    return ("unknown", "none") if interval is None else measured(interval)
