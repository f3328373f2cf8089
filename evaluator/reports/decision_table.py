"""A comparison on a terminal: the verdict in words, intervals as text, what it rests on, and what to do next."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.verdict import Verdict
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.reports.decision_charts import limit_of
from evaluator.reports.decision_page import decision_block
from evaluator.reports.decision_words import Tile, head, name_of, sentences, steps, tiles
from evaluator.reports.document import (
    Cell,
    Grid,
    Layout,
    Section,
    Wordable,
    column,
    grid,
    lines,
    paragraph,
    run,
    section,
    words,
)
from evaluator.reports.numbers import interval_parts, measured, measured_below, significant_text
from evaluator.reports.shared_sections import CANDIDATES, NEXT, counted
from evaluator.reports.terminal import MARKS, VERDICT_STYLES, fits

# A step that is an option alone.
_OPTION = re.compile("`\\w+=")
SAME_DISPLAYS = "same displays"
SAME_POLICY = "same policy"
SEEN_BOUNDS = "These intervals hold only if no display can earn {}, which nobody knows."


def answer_sections(comparison: Comparison, verdict: Verdict, layout: Layout) -> Iterator[Section]:
    """Yield the verdict, what it is worth, and the intervals of all candidates."""
    block = decision_block(comparison)
    first, name = head(verdict)
    before, number, after = sentences(verdict)
    yield section(
        "",
        paragraph(run(f"{first} {name}", VERDICT_STYLES[verdict.decision])),
        paragraph(before, run(number, "bold"), after),
        *(paragraph(line) for line in ([] if block is None else _worth(tiles(block)))),
    )
    plan = comparison.results[0].plan
    which = words(run(str(plan["dataset"]), "bold"), f": {plan['displays']:,} displays, ")
    yield section(
        "",
        paragraph(which, f"{plan['conversions']:,} conversions"),
        _intervals(comparison, verdict, layout),
        *(paragraph(line, style="dim") for line in _without_difference(verdict)),
        id=CANDIDATES,
    )


def _without_difference(verdict: Verdict) -> Iterator[str]:
    """Yield why candidates have no difference; the sentence on the headline's says it of that one."""
    for of in verdict.candidates:
        if of.difference is None and of.line.variant != verdict.variant:
            (why,) = [one.what for one in of.conditions if one.name == "difference"]
            yield f"{name_of(of.line, verdict)} has no difference: {why}."


def _worth(found: Sequence[Tile]) -> list[str]:
    """Return the tiles of the page in two lines: per cent; and money, with the chance of a loss."""
    texts = [f"{of.number}{' ' if of.what[:1].isalpha() else ', '}{of.what}" for of in found[:3]]
    return [line for line in (*texts[:1], "; ".join(texts[1:])) if line]


def closing_section(verdict: Verdict, assumptions: int, layout: Layout) -> Section:
    """Return one line on what the verdict rests on, and one on what to do next."""
    states: list[Wordable] = []
    for of in verdict.conditions:
        if of.name != "difference":
            mark, word, colour = MARKS[of.met]
            states += [f"{', ' if states else ''}{of.name} ", run(word if layout.ascii else f"{mark} {word}", colour)]
    more = [f"{', ' if states else ''}{counted(assumptions, 'assumption')}"] if assumptions else []
    blocks = [paragraph(run("Rests on: ", "dim"), *states, *more, ".")] if states or more else []
    step = steps(verdict)[0]
    again = "the same command with " if _OPTION.match(step) else ""
    return section("", *blocks, paragraph(run("Next: ", "bold"), f"{again}{step}"), id=NEXT)


def _intervals(comparison: Comparison, verdict: Verdict, layout: Layout) -> Grid:
    """Return the candidates, the headline's first, each with its interval as text and in numbers."""

    def standing(of: Interval | None) -> float:
        return -math.inf if of is None or math.isnan(of.estimate) else of.estimate

    candidates = sorted(
        verdict.candidates, key=lambda of: (of.line.variant != verdict.variant, -standing(of.difference))
    )
    base, limit = verdict.baseline, limit_of(verdict)
    axis = _axis([of.difference for of in candidates if of.difference is not None], limit)
    rows: list[list[Cell]] = []
    for of in candidates:
        number, low, high = ("none", "", "") if of.difference is None else interval_parts(of.difference)
        ends = f"[{low}, {high}]" if low else ""
        decision = run(of.decision, VERDICT_STYLES[of.decision])
        bar = "" if of.difference is None or axis is None else draw_interval(of.difference, axis, limit, layout)
        rows.append([name_of(of.line, verdict), bar, number, ends, decision])
    rows.append([name_of(base, verdict), run("baseline", "dim"), "", "", ""])
    columns = [column(""), column(_scale(axis, layout), "whole"), column("difference", "number")]
    columns += [column(f"{100 * verdict.level:g} %", "number"), column("verdict", "whole")]
    if layout.wide:
        values = [result.value.estimate for result in comparison.results]
        earned = [f"{value:.3g}" if math.isfinite(value) else "" for value in values]
        for row, line in zip(rows, [*(of.line for of in candidates), base], strict=True):
            row.insert(1, earned[line.variant])
        columns.insert(1, column("replayed", "number"))
    return grid(columns, rows, gap=2 if layout.wide else 1)


def _axis(found: Sequence[Interval], limit: float | None) -> tuple[float, float] | None:
    """Return the ends of the scale that all bars share: all intervals, 0 and the rule's limit lie in it."""
    ends = [0.0, limit or 0.0, *(end for of in found for end in (of.low, of.high, of.estimate) if math.isfinite(end))]
    return (min(ends), max(ends)) if min(ends) < max(ends) else None


def draw_interval(of: Interval, axis: tuple[float, float], limit: float | None, layout: Layout) -> str:
    """Return an interval as characters on a scale, with 0 and the limit of the rule, where that is another.

    >>> draw_interval(Interval(2.0, 1.0, 3.0, 9, 0.95, "known"), (-1.0, 4.0), 0.5, Layout(width=80, ascii=True))
    '...|.:====o===...'
    """
    dot, line, middle, zero, rule = ".=o|:" if layout.ascii else "·━●│┊"

    def at(value: float) -> int:
        share = (value - axis[0]) / (axis[1] - axis[0])
        return round(min(max(share, 0.0), 1.0) * (_cells(layout) - 1))

    drawn = [dot] * _cells(layout)
    drawn[at(0.0)] = zero
    if limit:
        drawn[at(limit)] = rule
    if not math.isnan(of.estimate):
        low, high = (at(end) for end in (of.low, of.high))
        drawn[low : high + 1] = [line if one == dot else one for one in drawn[low : high + 1]]
        drawn[at(of.estimate)] = middle
    return "".join(drawn)


def _cells(layout: Layout) -> int:
    """Return the characters of a bar."""
    return 40 if layout.wide else 17


def _scale(axis: tuple[float, float] | None, layout: Layout) -> str:
    """Return the ends of the scale, above the bars."""
    if axis is None:
        return ""
    low, high = (significant_text(end, 2, sign=True) for end in axis)
    return f"{low}{high:>{_cells(layout) - len(low)}}"


def value_table(result: ReplayResult, layout: Layout) -> Grid:
    """Return value and uplift of the only policy of a comparison; intervals stand below where there is little room."""
    table = _value_table(result, stacked=False)
    return table if fits(table, layout, len(result.title)) else _value_table(result, stacked=True)


def _value_table(result: ReplayResult, *, stacked: bool) -> Grid:
    level = f"{result.value.level:.0%}"
    value = ("expected value", result.expected_value) if result.expected_value else ("value", result.value)
    columns = [column("policy")]
    cells: list[Cell] = [result.title]
    for title, of in (value, ("uplift", result.uplift)):
        columns += [column(name, "number") for name in ([lines(title, level)] if stacked else [title, level])]
        cells += [measured_below(of)] if stacked else [*measured(of)]
    return grid(columns, [cells], gap=1)


def said_of_weighted(differences: Sequence[Difference], names: Sequence[str]) -> Iterator[str]:
    """Yield what the differences of policies that do not learn are of, where there are any."""
    found = {names[of.variant]: of.weighted for of in differences if of.weighted is not None}
    displays = max((of.value.n for of in found.values()), default=0)
    if displays:
        several = len(found) > 1
        yield (
            f"{', '.join(found)} {'do' if several else 'does'} not learn: the "
            f"difference is per display, weighted over all {displays:,} displays that can be judged."
        )
