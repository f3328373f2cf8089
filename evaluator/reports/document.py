"""A report as data: sections with sentences, lists and tables, which are rendered as text, HTML or in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field

from evaluator.checks.result import CheckResult
from evaluator.checks.result import Verdict as CheckVerdict
from evaluator.comparisons.verdict import Verdict
from evaluator.escape import escape
from evaluator.reports.numbers import Measured, decimals_of

T = TypeVar("T")
# A chart, as a Vega-Lite specification with its data.
Spec = dict[str, Any]
# Read from a file, they end at the first that is wrong: millions of errors would take memory without end.
Many = Annotated[tuple[T, ...], Field(fail_fast=True)]
_MOST_LINES, _MOST_CONDITIONS = 10_000, 100
Colour = Literal["", "green", "yellow", "red", "cyan"]
# Alignment of a column: left, right for numbers, or whole for cells that are never broken over lines.
Standing = Literal["", "number", "whole"]


@dataclass(frozen=True)
class Layout:
    """Room for a document, and how much of a result it contains: everything or what fits a screen, or the page.

    A page can fold sections and holds charts. Dates are those of the log in words, empty where they are not known.
    """

    full: bool = True
    width: int = 120
    ascii: bool = False
    page: bool = False
    dates: str = ""

    @property
    def wide(self) -> bool:
        """Whether there is room for an interval beside its estimate."""
        return self.width >= 100

    @property
    def plus_minus(self) -> str:
        """Sign between a number and its standard error."""
        return "+-" if self.ascii else "±"


@dataclass(frozen=True)
class Run:
    """Words in one style, as data without markup; a line break in them is a line break of the page.

    Verbatim words come from the log, so that they name no option of this package.
    """

    text: str
    bold: bool = False
    dim: bool = False
    colour: Colour = ""
    verbatim: bool = False


Words = Many[Run]
# Value that can be turned into words: a text of one line, a run, or words.
Wordable: TypeAlias = str | Run | tuple[Run, ...]
# Value of a cell of a table.
Cell: TypeAlias = Wordable | Measured


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of one or several sentences."""

    words: Words
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: Many[Words]
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Column:
    """A column of a table: the words above it, alignment and style of its cells, and whether these break over lines."""

    name: Words
    standing: Standing = ""
    bold: bool = False
    dim: bool = False
    folds: bool = True


@dataclass(frozen=True)
class Grid:
    """A table, whose first column names the rows; `gap` is the number of characters between two columns of text."""

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
    """Return a verdict, or the value that a file has in its place; raise if it has more lines than any comparison."""
    match verdict:
        case {"candidates": [*lines], "settle": [*settle]}:
            conditions = [len(line["conditions"]) for line in lines if isinstance(line, dict) and "conditions" in line]
            if max(len(lines), len(settle)) > _MOST_LINES or max(conditions, default=0) > _MOST_CONDITIONS:
                raise ValueError("The verdict is on more lines than any comparison.")
    return verdict


@dataclass(frozen=True)
class VerdictBlock:
    """The verdict (ship, wait or don't), with a link to each part of the page that it depends on.

    A page shows it in several places, each a block, which says what the page shows of it: what a check or an audit adds
    to the verdict is then said in each. `earned` is what a display earns with each line, in the order of the lines,
    empty where that is not known; `notes` what else to know of the numbers before trusting them, each in a few words.
    """

    verdict: Annotated[Verdict, BeforeValidator(_refuse_many_lines)]
    part: Literal["decision", "candidates", "next", "conditions"] = "decision"
    reward: str = "reward"
    earned: Many[str] = ()
    notes: Many[str] = ()
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True)
class Light:
    """The result of one check of a log: its verdict, its number in words, what it means and what to do, or no words."""

    verdict: CheckVerdict
    name: str
    number: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Lights:
    """Results of the checks of a log, in the order of a table; pages show the worst first.

    Brief ones leave the sentences out, because another report has them.
    """

    lights: Many[Light]
    brief: bool = False
    kind: Literal["lights"] = "lights"


Block = Paragraph | Bullets | Grid | VerdictBlock | Lights
_Kinds = Annotated[Block, Field(discriminator="kind")]


@dataclass(frozen=True)
class Section:
    """A part of a document under one title.

    Parameters
    ----------
    title, blocks, id
        Words of the title, none for a section without one; blocks in their order; name of the section in links.
    folded
        Whether a page shows the section only on a click, because it explains or repeats other sections.
    fold
        Words of what a page folds together: sections that follow each other and have the same; empty for none.
    half
        Whether a page shows the section beside the next such one, where there is room.
    charts
        Names of the charts that a page shows in the section; those of no section stand after the first one.
    """

    title: Words = ()
    blocks: Annotated[tuple[_Kinds, ...], Field(fail_fast=True)] = field(default=())
    id: str = ""
    folded: bool = False
    fold: Words = ()
    half: bool = False
    charts: Many[str] = ()

    @property
    def name(self) -> str:
        """The title without its style."""
        return "".join(run.text for run in self.title).strip()


@dataclass(frozen=True)
class Document:
    """The report of a result, of the command that gives such results; a first section may stand above all titles."""

    kind: str
    title: str
    sections: Many[Section]


def run(text: str, style: str = "") -> Run:
    """Return a text of one line in a style, such as ``bold yellow``; invisible characters are written as escapes."""
    names = style.split()
    colour = next((name for name in names if name not in ("bold", "dim")), "")
    return Run(escape(text), "bold" in names, "dim" in names, colour)  # type: ignore[arg-type]  # a colour


def words(*parts: Wordable, style: str = "") -> Words:
    """Return parts as words: a text gets the given style, and other parts keep their own."""
    runs: list[Run] = []
    for part in parts:
        if isinstance(part, str):
            runs += [run(part, style)] if part else []
        else:
            runs += [part] if isinstance(part, Run) else part
    return tuple(runs)


def lines(*parts: str, style: str = "") -> Words:
    """Return texts as words, one line for each text."""
    return (replace(run("", style), text="\n".join(map(escape, parts))),)


def paragraph(*parts: Wordable, style: str = "") -> Paragraph:
    """Return a paragraph; parts and style are those of `words`."""
    return Paragraph(words(*parts, style=style))


def section(title: Wordable, *blocks: Block, id: str = "", folded: bool = False, half: bool = False) -> Section:
    """Return a section; a title that is a text is bold, and an empty text gives a section without a title."""
    return Section(words(title, style="bold"), blocks, id, folded, half=half)


def listed(
    title: str, sentences: Iterable[Wordable], *, colour: str = "", id: str = "", folded: bool = False
) -> Section:
    """Return a section with a list of sentences."""
    items = tuple(words(line, style=colour) for line in sentences)
    return section(run(title, f"bold {colour}"), Bullets(items), id=id, folded=folded)


def named(title: str, rows: Iterable[tuple[str, Wordable]], *, id: str = "", folded: bool = False) -> Section:
    """Return a section with a table of names and a text on each."""
    return section(title, names(rows), id=id, folded=folded)


def names(rows: Iterable[tuple[str, Wordable]]) -> Grid:
    """Return a table of names and a text on each."""
    return grid([column("", "whole", dim=True), column("")], rows, headed=False)


def column(
    name: Wordable, standing: Standing = "", *, bold: bool = False, dim: bool = False, folds: bool | None = None
) -> Column:
    """Return a column of a table; unless `folds` is given, numbers and whole cells are not broken over lines."""
    return Column(words(name), standing, bold, dim, not standing if folds is None else folds)


def grid(
    columns: Iterable[Column], rows: Iterable[Sequence[Cell]], *, caption: Wordable = "",
    headed: bool = True, gap: int = 2, alike: Literal["columns", "rows"] = "columns",
) -> Grid:  # fmt: skip
    """Return a table; measured cells of a column, or of a row where these are alike, have the same decimals."""
    cells = list(map(tuple, rows))
    if alike == "rows":
        written = tuple(map(_written, cells))
    else:
        written = tuple(zip(*map(_written, zip(*cells, strict=True)), strict=True))
    return Grid(tuple(columns), written, words(caption), headed, gap)


def _written(cells: Sequence[Cell]) -> tuple[Words, ...]:
    """Return cells of one unit as words, with the number of decimals that follows from their errors."""
    decimals = decimals_of(cells)
    return tuple(lines(*cell.lines(decimals)) if isinstance(cell, Measured) else words(cell) for cell in cells)


def lights(checks: Iterable[CheckResult], *, brief: bool = False) -> Lights:
    """Return the results of checks as a block."""
    return Lights(
        tuple(Light(f.verdict, f.name, f.number, *(("", "") if brief else (f.what, f.remedy))) for f in checks), brief
    )


@dataclass(frozen=True)
class Chapter:
    """A chapter of a page, on one result: its document, its charts by name, and the facts that reproduce it.

    In a file, charts are what `evaluator.reports.chart_schema` lets through, and no program.
    """

    kind: str
    title: str
    sections: Many[Section]
    charts: Mapping[str, Spec] = field(default_factory=dict)
    reproduce: Mapping[str, str] = field(default_factory=dict)
