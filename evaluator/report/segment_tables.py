"""Groups of displays, as replays and comparisons print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evaluator.comparisons.segment_differences import SegmentDifferences
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.segment_values import GroupTest
from evaluator.report.outcome_tables import section
from evaluator.report.short import FEW_ROWS
from evaluator.visible import visible

ABOUT = "A group's rounds are those of its accepted displays; the intervals of all groups{line} hold at once."


def segments(
    results: Sequence[ReplayResult], differences: Sequence[SegmentDifferences] = (), *, full: bool = True
) -> Iterator[RenderableType]:
    """Yield value and uplift in the groups of each column, line by line where there are several results.

    Parameters
    ----------
    results
        Results of the lines.
    differences
        Differences to the baseline in the groups.
    full
        Whether tables of more than a few rows are shown; what the tests say always is.
    """
    for of_lines in zip(*(result.segments for result in results), strict=True):
        table = _table(several=len(results) > 1)
        for column in ("value", "uplift over logging", "n"):
            table.add_column(column, justify="right")
        for groups in zip(*(split.groups for split in of_lines), strict=True):
            for i, group in enumerate(groups):
                name = visible(group.label) if i == 0 else ""
                line = [str(i + 1)] if len(results) > 1 else []
                table.add_row(name, *line, _cell(group.value), _cell(group.uplift, sign="+"), f"{group.value.n:,}")
        column = of_lines[0].column
        about = ABOUT.format(line=" of a line" if len(results) > 1 else "")
        said = [_answer("realised uplift", split.test, i, len(results)) for i, split in enumerate(of_lines)]
        yield _section(f"By {visible(column)}", about, table, said, full=full)
        if own := [of for of in differences if of.column == column]:
            yield _differences(own, full=full)


def _differences(found: Sequence[SegmentDifferences], *, full: bool) -> RenderableType:
    """Return the differences to the baseline in the groups of one column."""
    table = _table(several=True)
    for column in ("difference", "n"):
        table.add_column(column, justify="right")
    compared = [of for of in found if not of.why_not]
    for groups in zip(*(of.groups for of in compared), strict=True):
        for i, (of, group) in enumerate(zip(compared, groups, strict=True)):
            name = visible(group.label) if i == 0 else ""
            table.add_row(name, str(of.variant + 1), _cell(group.realised, sign="+"), f"{group.realised.n:,}")
    said = [
        f"Line {of.variant + 1}: not compared: {of.why_not}."
        if of.why_not
        else _answer("realised difference", of.test, of.variant, 2)
        for of in found
    ]
    title = f"Difference to line {found[0].reference + 1} by {visible(found[0].column)}"
    return _section(title, "Up to the common horizon; all these intervals hold at once.", table, said, full=full)


def _answer(number: str, test: GroupTest, line: int, lines: int) -> str:
    """Return what a test says of the groups."""
    if test.groups < 2:
        said = "Fewer than two groups are large enough to compare."
    else:
        told = "differs" if test.differ else "is not told apart"
        said = f"The {number} {told} between groups (p = {test.p_adjusted:.2g})."
    return f"Line {line + 1}: {said}" if lines > 1 else said


def _cell(of: Interval, *, sign: str = "") -> Text:
    if of.n == 0 and of.estimate != 0.0:
        return Text("no rounds", style="dim")
    return Text(f"{of.estimate:{sign}.4g}\n[{of.low:{sign}.4g}, {of.high:{sign}.4g}]")


def _table(*, several: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", style="bold", overflow="fold")
    if several:
        table.add_column("line", justify="right")
    return table


def _section(title: str, about: str, table: Table, said: Sequence[str], *, full: bool) -> RenderableType:
    below = [Padding(Text(line), (0, 0, 0, 2)) for line in said]
    if full or table.row_count <= FEW_ROWS:
        return Group(section(title, about, table), *below)
    return Group(Text.assemble((f"\n{title} ", "bold"), f"({table.row_count:,} rows: --full prints them)"), *below)
