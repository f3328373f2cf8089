"""Sections that all reports share: the answer, pictures, folds, findings with their codes, and what is left out.

A report says its answer first, then shows one or two pictures and a table; a page folds everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from evaluator.findings.codes import CODES
from evaluator.findings.finding import Finding
from evaluator.reports.document import (
    Block,
    Bullets,
    Colour,
    Layout,
    Section,
    Wordable,
    Words,
    listed,
    names,
    paragraph,
    run,
    section,
    words,
)

# Name of the section with the answer of a report: a page shows it in large print, in the colour of its first word.
ANSWER = "answer"
TRUST = "Read before trusting the numbers"
# Sections of all candidates, of what to do next, and of the line that names what the short form leaves out.
CANDIDATES, NEXT, OMITTED = "candidates", "next", "omitted"
# Largest number of warnings that the short form prints in full.
_WARNINGS = 3
# Largest number of rows of a table in the short form.
FEW_ROWS = 8


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


def cut_sentences(sentences: Sequence[Wordable], most: int = _WARNINGS) -> list[Wordable]:
    """Return all sentences if there are few; otherwise the first few and the number of the others.

    >>> cut_sentences(["one", "two", "three", "four", "five"])
    ['one', 'two', 'three', '2 more: --full prints them']
    """
    if len(sentences) <= most:
        return list(sentences)
    return [*sentences[:most], f"{len(sentences) - most:,} more: --full prints them"]


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
