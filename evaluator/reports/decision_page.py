"""The decision of a comparison: first on its page and on a terminal, with all that explains it below."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaluator.comparisons.differences import Difference
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.segment_differences import SegmentDifferences
from evaluator.comparisons.verdict import Harm, Verdict, level_text
from evaluator.estimates.confidence import Interval
from evaluator.findings.codes import LARGEST_REWARD_SEEN, SMALLEST_REWARD_SEEN, YOUNG_DISPLAYS
from evaluator.findings.finding import warnings_of
from evaluator.replays.result import ReplayResult
from evaluator.reports import document as doc
from evaluator.reports.decision_words import (
    MOST_ROWS,
    Tile,
    baseline_of,
    first_of,
    groups_of,
    head,
    left_out,
    limit_of,
    next_title,
    ranked,
    reward_of,
    sentences,
    steps,
    tiles,
)
from evaluator.reports.numbers import interval_parts, measured, measured_below, percent_text, significant_text
from evaluator.reports.replay import share_within
from evaluator.reports.terminal import MARKS, VERDICT_STYLES, fits

# Sections that say what the numbers rest on; all others are numbers.
_RESTS_ON = ("checks", "warnings", "assumptions")
_MOST_ACTIONS = 4
_SHORT = {
    LARGEST_REWARD_SEEN.name: "what a display can earn at most is not known",
    SMALLEST_REWARD_SEEN.name: "what a display can lose at most is not known",
}
# A step that is an option alone.
_OPTION = re.compile("`\\w+=")
SAME_DISPLAYS = "same displays"
SAME_POLICY = "same policy"
SEEN_BOUNDS = "These intervals hold only if no display can earn {}, which nobody knows."


def page_sections(comparison: Comparison, layout: doc.Layout, report: Sequence[doc.Section]) -> Iterator[doc.Section]:
    """Yield the sections of the page: the log, the decision, pictures, candidates, next steps; all else folded."""
    yield _log(comparison, layout)
    block = decision_block(comparison)
    if block is None:
        yield from report
        return
    yield doc.section("", block)
    yield from _pictures(comparison, block.verdict)
    more = left_out(block.verdict)
    below = [doc.paragraph(more, style="dim")] if more else []
    yield doc.section("All candidates", *below, replace(block, part="candidates"), half=True)
    yield doc.section(next_title(block.verdict), replace(block, part="next"), half=True)
    yield from _folds(comparison, report, block)


def _pictures(comparison: Comparison, verdict: Verdict) -> Iterator[doc.Section]:
    """Yield the four charts, each with a question for a title and a line on what it shows."""
    of, base = verdict.candidate, baseline_of(verdict)
    together = ", all together" if len(verdict.candidates) > 1 else ""
    name = verdict.name_of(of.line)
    shown = f"; the first {MOST_ROWS} of {len(verdict.candidates)}" if len(verdict.candidates) > MOST_ROWS else ""
    yield doc.picture(
        "How much more a display?",
        f"difference to {base}; bar: {level_text(verdict.interval_level)}{together}; green: the rule is met{shown}",
        "decision",
    )
    if groups := groups_of(comparison):
        yield doc.picture("Who gains?", f"{name} by {groups.column}; {_gainers(groups, of.harmed)}", "gainers")
    yield doc.picture("When does it pay?", f"extra {reward_of(comparison)} of this run against {base}, so far", "gain")
    yield doc.picture("What will customers see?", "share of displays; each action has its own colour", "seen")


def _gainers(groups: SegmentDifferences, harmed: Sequence[Harm]) -> str:
    """Return which groups are shown to lose, or that none is, and which are not told from 0."""
    lose = [one.group for one in harmed if one.column == groups.column]
    open_ = [one.label for one in groups.groups if one.of_values.low <= 0.0 <= one.of_values.high]
    of_run = "" if any(one.weighted for one in groups.groups) else " (of this run)"
    losing = f"shown to lose: {first_of(lose)}" if lose else "none is shown to lose"
    if not open_:
        return losing
    if len(open_) == len(groups.groups):
        return f"{losing}, none alone is told from 0{of_run}"
    return f"{losing}, {first_of(open_)} alone not told from 0{of_run}"


def _log(comparison: Comparison, layout: doc.Layout) -> doc.Section:
    plan, verdict = comparison.results[0].plan, comparison.verdict
    size = f"{plan['displays']:,} displays, {plan['conversions']:,} conversions"
    base = comparison.results[comparison.baseline].plan["policy"] if verdict is None else baseline_of(verdict)
    return doc.which_log(str(plan["dataset"]), size, layout=layout, baseline=base)


def decision_block(comparison: Comparison) -> doc.VerdictBlock | None:
    """Return the verdict with what each line earns and what else to know; None for a comparison without a verdict."""
    verdict = comparison.verdict
    if verdict is None:
        return None
    return doc.VerdictBlock(
        verdict, reward=reward_of(comparison), earned=tuple(_earned(comparison)), notes=tuple(_notes(comparison))
    )


def _earned(comparison: Comparison) -> Iterator[str]:
    """Yield what a display earns with each line: with the difference that decides, it adds up."""
    verdict = comparison.verdict
    known = {} if verdict is None else {one.line.variant: one.difference for one in verdict.candidates}
    base = _value_of_baseline(comparison)
    digits = {len(interval_parts(of)[0].partition(".")[2]) for of in known.values() if of is not None}
    for i, result in enumerate(comparison.results):
        difference, value = known.get(i), (result.expected_value or result.value).estimate
        if base is not None and i == comparison.baseline:
            value = base
        elif base is not None and difference is not None:
            value = base + difference.estimate
        yield f"{value:,.{max(digits, default=2)}f}" if math.isfinite(value) else ""


def _value_of_baseline(comparison: Comparison) -> float | None:
    """Return what a display earns with the baseline, of which the uplift of the headline is a share."""
    of = None if comparison.verdict is None else comparison.verdict.candidate
    if of is None or of.uplift is None or of.uplift.share is None or of.difference is None:
        return None
    share = of.uplift.share.estimate
    return of.difference.estimate / share if share else None


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield groups that lose, warnings in a few words, and the number of those that are too long for that."""
    groups = groups_of(comparison)
    harmed = () if comparison.verdict is None else comparison.verdict.candidate.harmed
    if groups is not None and (lose := [one.group for one in harmed if one.column == groups.column]):
        yield f"{groups.column}: {first_of(lose)} shown to lose"
    results = comparison.results
    plan = results[0].plan
    found = {finding.code: finding for result in results for finding in warnings_of(result.findings)}
    found |= {finding.code: finding for finding in warnings_of(comparison.findings)}
    if YOUNG_DISPLAYS.name in found and plan["displays"]:
        share = plan["displays_immature"] / plan["displays"]
        yield f"{percent_text(share)} of the log is too young to judge: left out"
    yield from (short for code, short in _SHORT.items() if code in found)
    more = len(found.keys() - {YOUNG_DISPLAYS.name, *_SHORT})
    if groups is None:
        yield "groups of displays were not compared (`by`)"
    if more:
        yield f"{doc.counted(more, 'warning')} more: below, in what it rests on"


def _folds(comparison: Comparison, report: Sequence[doc.Section], block: doc.VerdictBlock) -> Iterator[doc.Section]:
    """Yield the sections of the full report in three folds."""
    rests = [part for part in report if part.id in _RESTS_ON]
    passed = 0 if comparison.check is None else len(comparison.check.checks)
    assumptions = sum(len(getattr(of, "items", ())) for part in rests if part.id == "assumptions" for of in part.blocks)
    about = ", ".join(filter(None, (doc.counted(assumptions, "assumption"), doc.counted(passed, "check"))))
    conditions = doc.section("Conditions of the rule", replace(block, part="conditions"))
    yield from doc.fold("What it rests on", about, [conditions, *rests])
    first = comparison.results[0]
    log = doc.section("", doc.paragraph(_used(first)))
    yield from doc.fold("The log and its delays", share_within(first), [log], charts=("windows", "acceptance"))
    numbers = [part for part in report if part.id not in _RESTS_ON]
    about = "regret, ranking, realised values, groups"
    groups = [f"differences by {column}" for column in dict.fromkeys(one.column for one in comparison.segments)]
    actions = [f"actions {i + 1}" for i in range(_MOST_ACTIONS)]
    charts = ("comparison", "differences", "guardrails", *groups, *actions)
    yield from doc.fold("All numbers", about, numbers, charts=charts)


def _used(result: ReplayResult) -> str:
    plan = result.plan
    return (
        f"{plan['displays_used']:,} of {plan['displays']:,} displays were used; {plan['displays_immature']:,} were "
        f"followed too briefly to be judged. Window: {plan['window']}."
    )


def answer_sections(comparison: Comparison, verdict: Verdict, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the verdict, what it is worth, and the intervals of all candidates."""
    block = decision_block(comparison)
    first, name = head(verdict)
    before, number, after = sentences(verdict)
    yield doc.section(
        "",
        doc.paragraph(doc.run(f"{first} {name}", VERDICT_STYLES[verdict.decision])),
        doc.paragraph(before, doc.run(number, "bold"), after),
        *(doc.paragraph(line) for line in ([] if block is None else _worth(tiles(block)))),
    )
    plan = comparison.results[0].plan
    which = doc.words(doc.run(str(plan["dataset"]), "bold"), f": {plan['displays']:,} displays, ")
    yield doc.section(
        "",
        doc.paragraph(which, f"{plan['conversions']:,} conversions"),
        _intervals(comparison, verdict, layout),
        *(
            doc.paragraph(f"{verdict.name_of(of.line)} has no difference: {one.what}.", style="dim")
            for of in verdict.candidates
            for one in of.conditions
            # The sentence on the headline's says it of that one.
            if one.name == "difference" and of.difference is None and of.line.variant != verdict.variant
        ),
        id=doc.CANDIDATES,
    )


def _worth(found: Sequence[Tile]) -> list[str]:
    """Return the tiles of the page in two lines: per cent; and money, with the chance of a loss."""
    texts = [f"{of.number}{' ' if of.what[:1].isalpha() else ', '}{of.what}" for of in found[:3]]
    return [line for line in (*texts[:1], "; ".join(texts[1:])) if line]


def closing_section(verdict: Verdict, assumptions: int, layout: doc.Layout) -> doc.Section:
    """Return one line on what the verdict rests on, and one on what to do next."""
    states: list[doc.Wordable] = []
    for of in verdict.conditions:
        if of.name != "difference":
            mark, word, colour = MARKS[of.met]
            states += [
                f"{', ' if states else ''}{of.name} ",
                doc.run(word if layout.ascii else f"{mark} {word}", colour),
            ]
    more = [f"{', ' if states else ''}{doc.counted(assumptions, 'assumption')}"] if assumptions else []
    blocks = [doc.paragraph(doc.run("Rests on: ", "dim"), *states, *more, ".")] if states or more else []
    step = steps(verdict)[0]
    again = "the same command with " if _OPTION.match(step) else ""
    return doc.section("", *blocks, doc.paragraph(doc.run("Next: ", "bold"), f"{again}{step}"), id=doc.NEXT)


def _intervals(comparison: Comparison, verdict: Verdict, layout: doc.Layout) -> doc.Grid:
    """Return the candidates, the headline's first, each with its interval as text and in numbers."""
    candidates = ranked(verdict)
    base, limit = verdict.baseline, limit_of(verdict)
    found = [of.difference for of in candidates if of.difference is not None]
    # All intervals, 0 and the rule's limit lie in the scale that all bars share.
    ends = [0.0, limit or 0.0, *(end for of in found for end in (of.low, of.high, of.estimate) if math.isfinite(end))]
    axis = (min(ends), max(ends)) if min(ends) < max(ends) else None
    rows: list[list[doc.Cell]] = []
    for of in candidates:
        number, low, high = ("none", "", "") if of.difference is None else interval_parts(of.difference)
        interval = f"[{low}, {high}]" if low else ""
        decision = doc.run(of.decision, VERDICT_STYLES[of.decision])
        bar = "" if of.difference is None or axis is None else draw_interval(of.difference, axis, limit, layout)
        rows.append([verdict.name_of(of.line), bar, number, interval, decision])
    rows.append([verdict.name_of(base), doc.run("baseline", "dim"), "", "", ""])
    columns = [doc.column(""), doc.column(_scale(axis, layout), "whole"), doc.column("difference", "number")]
    columns += [doc.column(f"{100 * verdict.level:g} %", "number"), doc.column("verdict", "whole")]
    if layout.wide:
        values = [result.value.estimate for result in comparison.results]
        earned = [f"{value:.3g}" if math.isfinite(value) else "" for value in values]
        for row, line in zip(rows, [*(of.line for of in candidates), base], strict=True):
            row.insert(1, earned[line.variant])
        columns.insert(1, doc.column("replayed", "number"))
    return doc.grid(columns, rows, gap=2 if layout.wide else 1)


def draw_interval(of: Interval, axis: tuple[float, float], limit: float | None, layout: doc.Layout) -> str:
    """Return an interval as characters on a scale, with 0 and the limit of the rule, where that is another.

    >>> draw_interval(Interval(2.0, 1.0, 3.0, 9, 0.95, "known"), (-1.0, 4.0), 0.5, doc.Layout(width=80, ascii=True))
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


def _cells(layout: doc.Layout) -> int:
    """Return the characters of a bar."""
    return 40 if layout.wide else 17


def _scale(axis: tuple[float, float] | None, layout: doc.Layout) -> str:
    """Return the ends of the scale, above the bars."""
    if axis is None:
        return ""
    low, high = (significant_text(end, 2, sign=True) for end in axis)
    return f"{low}{high:>{_cells(layout) - len(low)}}"


def value_table(result: ReplayResult, layout: doc.Layout, *, stacked: bool = False) -> doc.Grid:
    """Return value and uplift of the only policy of a comparison; intervals stand below where there is little room."""
    level = f"{result.value.level:.0%}"
    value = ("expected value", result.expected_value) if result.expected_value else ("value", result.value)
    columns = [doc.column("policy")]
    cells: list[doc.Cell] = [result.title]
    for title, of in (value, ("uplift", result.uplift)):
        columns += [doc.column(name, "number") for name in ([doc.lines(title, level)] if stacked else [title, level])]
        cells += [measured_below(of)] if stacked else [*measured(of)]
    table = doc.grid(columns, [cells], gap=1)
    return table if stacked or fits(table, layout, len(result.title)) else value_table(result, layout, stacked=True)


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
