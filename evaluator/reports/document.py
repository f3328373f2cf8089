"""A report as data: sections of sentences, lists and tables, which text, HTML and a notebook lay out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field
from rich.cells import cell_len

from evaluator.checks.result import CheckResult
from evaluator.checks.result import Verdict as CheckVerdict
from evaluator.comparisons.verdict import Verdict
from evaluator.reports.numbers import Measured, decimals_of
from evaluator.visible import visible

T = TypeVar("T")
# Read from a file, they end at the first that is wrong: millions of errors would take memory without end.
Many = Annotated[tuple[T, ...], Field(fail_fast=True)]
_MOST_LINES, _MOST_CONDITIONS = 10_000, 100
Colour = Literal["", "green", "yellow", "red", "cyan"]
# How the cells of a column stand: left, right as numbers do, or never broken over lines.
Standing = Literal["", "number", "whole"]
# Characters of a name that stand in one line at the least; the rest of it may stand below.
_NAME = 12


@dataclass(frozen=True)
class Layout:
    """How much room a document has, and how much of a result it says.

    Parameters
    ----------
    full
        Whether it says everything; else what fits a screen.
    width
        Characters of a line.
    ascii
        Whether the reader's terminal has ASCII alone.
    """

    full: bool = True
    width: int = 120
    ascii: bool = False

    @property
    def wide(self) -> bool:
        """Whether an interval has room beside its estimate."""
        return self.width >= 100

    @property
    def plus_minus(self) -> str:
        """Sign between a number and its standard error."""
        return "+-" if self.ascii else "±"


@dataclass(frozen=True)
class Run:
    """Some words in one style; a line break in them is one of the page.

    Parameters
    ----------
    text
        Words, as data: nothing of them is markup.
    bold, dim, colour
        Style of the words.
    verbatim
        Whether they are the log's own words, in which no option of ours is named.
    """

    text: str
    bold: bool = False
    dim: bool = False
    colour: Colour = ""
    verbatim: bool = False


Words = Many[Run]
# What becomes words: a text of one line, a run, or words.
Wordable: TypeAlias = str | Run | tuple[Run, ...]
# What a table takes as a cell.
Cell: TypeAlias = Wordable | Measured


@dataclass(frozen=True)
class Paragraph:
    """A sentence, or some."""

    words: Words
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Many[Words]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name
        Words above it.
    standing
        Standing of its cells.
    bold, dim
        Style of its cells.
    folds
        Whether a narrow terminal may break its cells over lines.
    """

    name: Words
    standing: Standing = ""
    bold: bool = False
    dim: bool = False
    folds: bool = True


@dataclass(frozen=True)
class Grid:
    """A table, whose first column names the rows.

    Parameters
    ----------
    columns
        Columns of the table.
    rows
        Cells of each row.
    caption
        Words above it; none for no caption.
    headed
        Whether the names of its columns are shown.
    gap
        Characters between two columns of text.
    kind
        Kind of the block, as files name it.
    """

    columns: Many[Column]
    rows: Many[Many[Words]]
    caption: Words = ()
    headed: bool = True
    gap: int = 2
    kind: Literal["grid"] = "grid"

    def __post_init__(self) -> None:
        """Refuse rows of several lengths: no page could lay them out."""
        if {len(row) for row in self.rows} - {len(self.columns)}:
            raise ValueError("A row of a table has not as many cells as the table has columns.")


def _refuse_many_lines(verdict: object) -> object:
    """Return a verdict, or what a file has for one, unless it is on more lines than any comparison."""
    match verdict:
        case {"candidates": [*lines], "settle": [*settle]}:
            conditions = [len(line["conditions"]) for line in lines if isinstance(line, dict) and "conditions" in line]
            if max(len(lines), len(settle)) > _MOST_LINES or max(conditions, default=0) > _MOST_CONDITIONS:
                raise ValueError("The verdict is on more lines than any comparison.")
    return verdict


@dataclass(frozen=True)
class VerdictBlock:
    """Ship, wait or don't, with a link to each part of the page that it rests on.

    Parameters
    ----------
    verdict
        Verdict of a comparison.
    brief
        Whether conditions that are met share one line, and other candidates have none.
    kind
        Kind of the block, as files name it.
    """

    verdict: Annotated[Verdict, BeforeValidator(_refuse_many_lines)]
    brief: bool = False
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True)
class Light:
    """What one check of a log found.

    Parameters
    ----------
    verdict
        Verdict of the check.
    name, number
        Name of the check, and the number that decides, in words.
    what, remedy
        Sentences on what it means and on what to do; empty where nothing is said.
    """

    verdict: CheckVerdict
    name: str
    number: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Lights:
    """Checks of a log, in the order of a table; pages show the worst first.

    Parameters
    ----------
    lights
        What each check found.
    brief
        Whether what they mean, and what to do, is left to another report.
    kind
        Kind of the block, as files name it.
    """

    lights: Many[Light]
    brief: bool = False
    kind: Literal["lights"] = "lights"


Block = Paragraph | Bullets | Grid | VerdictBlock | Lights
_Kinds = Annotated[Block, Field(discriminator="kind")]


@dataclass(frozen=True)
class Section:
    """What stands under one title.

    Parameters
    ----------
    title
        Words of the title; none for what stands under no title of its own.
    blocks
        Blocks in their order.
    id
        Name by which links find it; empty for none.
    folded
        Whether it explains or repeats, so that a page shows it on a click.
    """

    title: Words = ()
    blocks: Annotated[tuple[_Kinds, ...], Field(fail_fast=True)] = field(default=())
    id: str = ""
    folded: bool = False

    @property
    def name(self) -> str:
        """Return the title without its style."""
        return "".join(run.text for run in self.title).strip()


@dataclass(frozen=True)
class Document:
    """What a result says.

    Parameters
    ----------
    kind
        Command that gives such results: ``replay``, ``compare``, ``check``...
    title
        Title for it.
    sections
        Sections; what comes first stands above all titles.
    """

    kind: str
    title: str
    sections: Many[Section]


def run(text: str, style: str = "") -> Run:
    """Return a text of one line in a style, as in ``bold yellow``; characters that no one sees are spelled out."""
    names = style.split()
    colour = next((name for name in names if name not in ("bold", "dim")), "")
    return Run(visible(text), "bold" in names, "dim" in names, colour)  # type: ignore[arg-type]  # a colour


def words(*parts: Wordable, style: str = "") -> Words:
    """Return parts as words: a text in the style given, others in their own."""
    runs: list[Run] = []
    for part in parts:
        if isinstance(part, str):
            runs += [run(part, style)] if part else []
        else:
            runs += [part] if isinstance(part, Run) else part
    return tuple(runs)


def lines(*parts: str, style: str = "") -> Words:
    """Return texts as words, a line each."""
    return (replace(run("", style), text="\n".join(map(visible, parts))),)


def paragraph(*parts: Wordable, style: str = "") -> Paragraph:
    """Return a paragraph; parts and style as of `words`."""
    return Paragraph(words(*parts, style=style))


def section(title: Wordable, *blocks: Block, id: str = "", folded: bool = False) -> Section:
    """Return a section; a title that is a text is bold, and an empty one is none."""
    return Section(words(title, style="bold"), blocks, id, folded)


def listed(
    title: str, sentences: Iterable[Wordable], *, colour: str = "", id: str = "", folded: bool = False
) -> Section:
    """Return a section that is a list of sentences."""
    items = tuple(words(line, style=colour) for line in sentences)
    return section(run(title, f"bold {colour}"), Bullets(items), id=id, folded=folded)


def named(title: str, rows: Iterable[tuple[str, Wordable]], *, id: str = "", folded: bool = False) -> Section:
    """Return a section that is a list of names and what is said of each."""
    return section(title, names(rows), id=id, folded=folded)


def names(rows: Iterable[tuple[str, Wordable]]) -> Grid:
    """Return a table of names and what is said of each."""
    return grid([column("", "whole", dim=True), column("")], rows, headed=False)


def column(
    name: Wordable, standing: Standing = "", *, bold: bool = False, dim: bool = False, folds: bool | None = None
) -> Column:
    """Return a column of a table; unless told otherwise, numbers and whole cells are not broken over lines."""
    return Column(words(name), standing, bold, dim, not standing if folds is None else folds)


def grid(
    columns: Iterable[Column], rows: Iterable[Sequence[Cell]], *, caption: Wordable = "",
    headed: bool = True, gap: int = 2, alike: Literal["columns", "rows"] = "columns",
) -> Grid:  # fmt: skip
    """Return a table.

    Parameters
    ----------
    columns
        Columns of the table.
    rows
        Cells of each row; those that are measured have one number of decimals in each column.
    caption, headed, gap
        Words above the table, whether its columns are named, and the characters between two of them.
    alike
        What holds numbers of one unit: each column, or each row.
    """
    cells = list(map(tuple, rows))
    if alike == "rows":
        written = tuple(map(_written, cells))
    else:
        written = tuple(zip(*map(_written, zip(*cells, strict=True)), strict=True))
    return Grid(tuple(columns), written, words(caption), headed, gap)


def _written(cells: Sequence[Cell]) -> tuple[Words, ...]:
    """Return cells of one unit as words, in the decimals that their errors carry."""
    decimals = decimals_of(cells)
    return tuple(lines(*cell.lines(decimals)) if isinstance(cell, Measured) else words(cell) for cell in cells)


def lights(checks: Iterable[CheckResult], *, brief: bool = False) -> Lights:
    """Return what checks found."""
    return Lights(
        tuple(Light(f.verdict, f.name, f.number, *(("", "") if brief else (f.what, f.remedy))) for f in checks), brief
    )


def fits(table: Grid, layout: Layout, longest: int) -> bool:
    """Return whether a table has room for its numbers, and for its names after they are folded.

    Parameters
    ----------
    table
        Table with one column of names.
    layout
        Room that it has.
    longest
        Characters of the longest name.
    """
    widths = []
    for i, heading in enumerate(table.columns):
        cells = ([heading.name] if table.headed else []) + [row[i] for row in table.rows]
        each = [cell_len(line) for cell in cells for line in "".join(part.text for part in cell).split("\n")]
        widths.append(max(each, default=0))
    whole = sum(widths) + table.gap * (len(widths) - 1)
    return whole - max(longest - _NAME, 0) <= layout.width
