"""A report as data: sections with sentences, lists and tables, which are rendered as text, HTML or in a notebook.

A report says its answer first, then shows one or two pictures and a table; a page folds everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field

from evaluator.checks.result import CheckResult
from evaluator.checks.result import Verdict as CheckVerdict
from evaluator.escape import escape
from evaluator.findings.codes import CODES
from evaluator.findings.finding import Finding
from evaluator.reports.numbers import Measured, column_digits

if TYPE_CHECKING:
    from evaluator.comparisons.verdict import Verdict  # reports of other commands load no comparison

T = TypeVar("T")
# A chart, as a Vega-Lite specification with its data.
Spec = dict[str, Any]
# Read from a file, they end at the first that is wrong: millions of errors would take memory without end.
Many = Annotated[tuple[T, ...], Field(fail_fast=True)]
_MOST_LINES, _MOST_CONDITIONS = 10_000, 100
Colour = Literal["", "green", "yellow", "red", "cyan"]
# Alignment of a column: left, right for numbers, or whole for cells that are never broken over lines.
Standing = Literal["", "number", "whole"]
# Name of the section with the answer of a report: a page shows it in large print, in the colour of its first word.
ANSWER = "answer"
TRUST = "Read before trusting the numbers"
# Sections of all candidates, of what to do next, and of the line that names what the short form leaves out.
CANDIDATES, NEXT, OMITTED = "candidates", "next", "omitted"
# Largest number of warnings that the short form prints in full.
_WARNINGS = 3
# Largest number of rows of a table in the short form.
FEW_ROWS = 8


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


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, folds: bool = False) -> Grid:
    """Return a table whose first column holds names, and the others numbers, which may break over lines if it `folds`.

    A verdict always may.
    """
    numbers = [column(name, "number", folds=folds or name == "verdict") for name in columns[1:]]
    return grid([column(columns[0]), *numbers], rows)


def _written(cells: Sequence[Cell]) -> tuple[Words, ...]:
    """Return cells of one unit as words, with the number of decimals that follows from their errors."""
    errors = [cell.error for cell in cells if isinstance(cell, Measured) and cell.error > 0]
    decimals = column_digits(errors) if errors else None
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


def answer(
    word: str,
    rest: str,
    *sentences: Wordable,
    colour: Colour = "",
    tiles: Iterable[tuple[str, str]] = (),
    rests: Iterable[Wordable] = (),
) -> Section:
    """Return the section with the answer of a report: its first word or number, highlighted, the rest, and sentences.

    The colour judges; tiles are numbers that a page shows in large print, and what each is; `rests` is what the answer
    rests on, in a few words each.

    >>> found = answer("Not fit", " for replay", "Repair it.", colour="red")
    >>> found.name, found.id, len(found.blocks)
    ('Not fit for replay', 'answer', 1)
    """
    large, below = list(tiles), tuple(map(words, rests))
    blocks: list[Block] = [paragraph(sentence) for sentence in sentences if sentence]
    blocks += [names(large)] if large else []
    blocks += [Bullets(below)] if below else []
    return section((run(word, f"bold {colour}"), *words(rest, style="bold")), *blocks, id=ANSWER)


def which_log(name: str, *facts: str, layout: Layout, baseline: str = "") -> Section:
    """Return the line that says which log it is, when its displays were shown, and what else is to be known of it.

    With a baseline it ends with what all is compared with.

    >>> which_log("shop", "3 displays", layout=Layout(page=True, dates="1 March 2026")).blocks[0].words[1].text
    ' · 1 March 2026 · 3 displays'
    """
    between = " · " if layout.page else ", "
    known = [fact for fact in (layout.dates, *facts) if fact]
    rest = (between if layout.page else ": ") + between.join(known)
    end = (run(f"{between}compared with ", "dim"), run(baseline, "bold")) if baseline else ()
    return section("", paragraph(run(name, "bold"), run(rest, "dim"), *end), id="log")


def mark(good: bool | None, said: str) -> Words:
    """Return what an answer rests on after a sign: a tick, a cross, or an exclamation mark where it is to be read.

    >>> mark(True, "22 checks passed")[0].text, mark(None, "half of the log is too young")[0].text
    ('✓ ', '! ')
    """
    signs = {True: ("✓ ", "green"), False: ("✗ ", "red"), None: ("! ", "yellow")}
    return words(run(*signs[good]), said)


def picture(title: str, about: str, chart: str) -> Section:
    """Return the section of a page with a picture below its question and a line on what it shows."""
    return replace(section(title, paragraph(about, style="dim"), half=True), charts=(chart,))


def fold(title: str, about: str, parts: Iterable[Section], *, charts: Sequence[str] = ()) -> Iterator[Section]:
    """Yield sections that a page folds together under a title, with what is in them and charts before the first one."""
    name = words(run(title, "bold"), run(f" {about}", "dim"))
    for i, part in enumerate(parts):
        yield replace(part, fold=name, folded=False, charts=part.charts if i else (*charts, *part.charts))


def coded(findings: Sequence[Finding]) -> list[Words]:
    """Return the sentences of findings, each with the code that `evaluate explain` takes.

    A note of the log is shown unchanged: names of options in it are the log's own words.

    >>> [[run.text for run in words] for words in coded([CODES["no-wear-out"].found("users do not tire")])]
    [['users do not tire', ' [no-wear-out]']]
    """
    return [
        tuple(replace(run, verbatim=finding.severity == "note") for run in words(str(finding), f" [{finding.code}]"))
        for finding in findings
    ]


def interval_assumptions(findings: Sequence[Finding]) -> list[Words]:
    """Return the assumptions of an interval that not every replay makes."""
    return coded([finding for finding in findings if CODES[finding.code].of_intervals])


def cut_sentences(sentences: Sequence[Wordable]) -> list[Wordable]:
    """Return all sentences if there are few; otherwise the first few and the number of the others.

    >>> cut_sentences(["one", "two", "three", "four", "five"])
    ['one', 'two', 'three', '2 more: --full prints them']
    """
    if len(sentences) <= _WARNINGS:
        return list(sentences)
    return [*sentences[:_WARNINGS], f"{len(sentences) - _WARNINGS:,} more: --full prints them"]


def warnings_section(sentences: Sequence[Wordable], *, full: bool) -> list[Section]:
    """Return the section of warnings, as a list that is empty if there are no warnings."""
    printed = list(sentences) if full else cut_sentences(sentences)
    return [listed(TRUST, printed, colour="yellow", id="warnings")] if printed else []


def name_omitted(*parts: str) -> Section:
    """Return the line that names what only the full form prints; empty parts are left out.

    >>> name_omitted("the law", "", "2 assumptions").blocks[0].words[0].text
    '--full prints the rest: the law, 2 assumptions.'
    """
    return section("", paragraph(f"--full prints the rest: {', '.join(filter(None, parts))}.", style="dim"), id=OMITTED)


def counted(number: int, what: str) -> str:
    """Return a count with its noun; empty for 0.

    >>> counted(1, "assumption"), counted(3, "assumption"), counted(0, "assumption")
    ('1 assumption', '3 assumptions', '')
    """
    return f"{number:,} {what}{'s' * (number > 1)}" if number else ""
