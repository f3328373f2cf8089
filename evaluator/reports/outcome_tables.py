"""Tables of outcomes that no policy sees, of guardrails on them, and of groups, for replays and comparisons."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from evaluator.comparisons.segment_differences import SegmentDifferences
from evaluator.comparisons.variants import names_of
from evaluator.estimates.confidence import Interval
from evaluator.replays.options import told_events_words
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.kind_values import GuardrailAnswer
from evaluator.replays.values.segments import GroupTest
from evaluator.reports import document as doc
from evaluator.reports.numbers import measured, measured_below

ABOUT = (
    "Events that no policy was told of, unless they are rewards, per round, of the displays followed for as long as "
    "such an event may take."
)
ABOUT_TAUGHT = ABOUT.replace("unless they are rewards", "unless they are rewards or it learns from them")
_STYLES = {"holds": "green", "broken": "bold red", "cannot tell": "yellow"}
ABOUT_GROUPS = "A group's rounds are those of its accepted displays; the intervals of all groups{line} hold at once."
ABOUT_DIFFERENCES = "Up to the common horizon{also}; all these intervals hold at once."
OF_WEIGHTED = ", or of policies that do not learn weighted over all displays of the group"


def guardrails(results: Sequence[ReplayResult], layout: doc.Layout) -> doc.Section:
    """Return the answers to the guardrails, one row for each policy of a comparison, and how they were answered."""
    first = results[0].guardrails[0]
    level = f"{100 * first.interval.level:.4g} %"
    columns = [
        *_line_column(results),
        doc.column("guardrail"),
        doc.column("answer"),
        doc.column("estimate", "number"),
        doc.column("interval" if layout.full else f"{level} interval", "number"),
        doc.column("n", "number"),
    ]
    rows: list[tuple[doc.Cell, ...]] = [
        (*name, one.guardrail, doc.run(one.answer, _STYLES[one.answer]), *_answer_cells(one))
        for name, result in zip(_names(results), results, strict=True)
        for one in result.guardrails
    ]
    times = f" times {len(results)} policies" if len(results) > 1 else ""
    about = (
        f"Stated before the run, answered by {level} intervals: the run's level, adjusted "
        f"for {len(results[0].guardrails)} guardrail{'s' * (len(results[0].guardrails) > 1)}{times}, so that any wrong "
        f"answer has a probability of {100 * (1 - results[0].value.level):.3g} % at the most."
    )
    note = [doc.paragraph(about, style="dim")] if layout.full else []
    return doc.section("Guardrails", *note, doc.grid(columns, rows, alike="rows"), id="guardrails")


def _answer_cells(one: GuardrailAnswer) -> tuple[doc.Cell, doc.Cell, str]:
    interval = one.interval
    if one.quantity == "relative uplift":
        ends = (
            f"[{interval.low:+.3g}, {interval.high:+.3g}]"
            if math.isinf(interval.high)
            else f"[{interval.low:+.2%}, {interval.high:+.2%}]"
        )
        return f"{interval.estimate:+.2%}", ends, f"{interval.n:,}"
    return (*measured(interval, sign=one.quantity == "uplift"), f"{interval.n:,}")


def outcomes(results: Sequence[ReplayResult], layout: doc.Layout, *, but: Collection[str] = ()) -> doc.Section:
    """Return value and uplift of each outcome, one row for each policy of a comparison.

    On a narrow terminal an interval stands below its estimate. Outcomes that are named by `but` are left out.
    """
    level = f"{results[0].value.level:.0%}"
    stacked = not layout.wide
    columns = [*_line_column(results), doc.column("", bold=True)]
    for quantity in ("per round", "uplift over the logging policy"):
        if stacked:
            columns.append(doc.column(doc.lines(quantity.removesuffix(" the logging policy"), level), "number"))
        else:
            columns += [doc.column(quantity, "number", folds=True), doc.column(level, "number")]
    columns.append(doc.column("n", "number"))
    rows = []
    for name, result in zip(_names(results), results, strict=True):
        for one in result.outcomes:
            if one.outcome not in but:
                pair = (one.value, one.uplift)
                cells = map(measured_below, pair) if stacked else chain.from_iterable(map(measured, pair))
                rows.append((*name, one.outcome, *cells, f"{one.value.n:,}"))
    taught = any(told_events_words(of.plan["options"]["learn_from"]) != "conversions" for of in results)
    about = [doc.paragraph(ABOUT_TAUGHT if taught else ABOUT, style="dim")] if layout.full else []
    return doc.section("Other outcomes", *about, doc.grid(columns, rows, alike="rows"))


def _line_column(results: Sequence[ReplayResult]) -> list[doc.Column]:
    return [doc.column("")] if len(results) > 1 else []


def _names(results: Sequence[ReplayResult]) -> list[list[str]]:
    """Return the cell with the name of each variant; no cell where there is one variant only."""
    return [[name] for name in names_of(results)] if len(results) > 1 else [[]]


def segments(
    results: Sequence[ReplayResult], differences: Sequence[SegmentDifferences] = (), *, full: bool = True
) -> Iterator[doc.Section]:
    """Yield value and uplift in the groups of each column, one row for each policy of a comparison.

    Unless `full`, tables of more than a few rows are left out; the results of the tests are always shown.
    """
    for splits in zip(*(result.segments for result in results), strict=True):
        columns = [*_first_columns(several=len(results) > 1), *_numbers("value", "uplift over logging", "n")]
        rows, names = [], _names(results)
        for groups in zip(*(split.groups for split in splits), strict=True):
            for i, group in enumerate(groups):
                label = group.label if i == 0 else ""
                rows.append(
                    (label, *names[i], _cell(group.value), _cell(group.uplift, sign=True), f"{group.value.n:,}")
                )
        by = splits[0].column
        about = ABOUT_GROUPS.format(line=" of a policy" if len(results) > 1 else "")
        answers = [_answer("realised uplift", split.test, *name) for name, split in zip(names, splits, strict=True)]
        yield _section(f"By {by}", about, doc.grid(columns, rows), answers, full=full)
        if column_differences := [one for one in differences if one.column == by]:
            yield _differences(column_differences, names_of(results), full=full)


def _differences(differences: Sequence[SegmentDifferences], names: Sequence[str], *, full: bool) -> doc.Section:
    """Return the differences to the baseline in the groups of one column."""
    compared = [one for one in differences if not one.why_not]
    rows = []
    for groups in zip(*(one.groups for one in compared), strict=True):
        for i, (one, group) in enumerate(zip(compared, groups, strict=True)):
            few = group.weighted is not None and group.weighted.withheld
            cell = doc.words("too few to say", style="dim") if few else _cell(group.of_values, sign=True)
            rows.append((group.label if i == 0 else "", names[one.variant], cell, f"{group.of_values.n:,}"))
    answers = [
        f"{names[one.variant]}: not compared: {one.why_not}."
        if one.why_not
        else _answer("realised difference", one.test, names[one.variant])
        for one in differences
    ]
    title = f"Difference to {names[differences[0].reference]} by {differences[0].column}"
    weighted = any(group.weighted for one in compared for group in one.groups)
    about = ABOUT_DIFFERENCES.format(also=OF_WEIGHTED if weighted else "")
    table = doc.grid([*_first_columns(several=True), *_numbers("difference", "n")], rows)
    return _section(title, about, table, answers, full=full)


def _answer(number: str, test: GroupTest, name: str = "") -> str:
    """Return a sentence with the result of a test of the groups."""
    if test.groups < 2:
        answer = "Fewer than two groups are large enough to compare."
    else:
        verb = "differs" if test.differ else "is not told apart"
        answer = f"The {number} {verb} between groups (p = {test.p_adjusted:.2g})."
    return f"{name}: {answer}" if name else answer


def _cell(interval: Interval, *, sign: bool = False) -> doc.Cell:
    if interval.n == 0 and interval.estimate != 0.0:
        return doc.words("no rounds", style="dim")
    return measured_below(interval, sign=sign)


def _first_columns(*, several: bool) -> list[doc.Column]:
    return [doc.column("", bold=True), *([doc.column("policy")] if several else [])]


def _numbers(*names: str) -> list[doc.Column]:
    return [doc.column(name, "number", folds=True) for name in names]


def _section(title: str, about: str, table: doc.Grid, answers: Sequence[str], *, full: bool) -> doc.Section:
    below = [doc.paragraph(line) for line in answers]
    if full or len(table.rows) <= doc.FEW_ROWS:
        return doc.section(title, doc.paragraph(about, style="dim"), table, *below)
    return doc.section(
        doc.words(doc.run(f"{title} ", "bold"), f"({len(table.rows):,} rows: --full prints them)"), *below
    )
