"""Documents as HTML: pages without scripts and without network access, and the view of a result in a notebook."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeGuard

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evaluator.escape import escape
from evaluator.reports.decision_words import candidate_rows, head, rule_text, sentences, stakes, steps, tiles
from evaluator.reports.document import ANSWER, Block, Chapter, Column, Run, Section, Spec, VerdictBlock, Words
from evaluator.reports.documents import document_of, first_chart, name_command_options_in_sections
from evaluator.reports.terminal import DO, MARKS, SETTLE
from evaluator.version import __version__

PAGE = "report.html"
# The section that each condition of a verdict depends on, and the kind of chapter that explains it further.
_RESTS_ON = {
    "difference": "difference",
    "guardrails": "guardrails",
    "propensities": "assumptions",
    "checks": "checks",
    "users": "checks",
}
_MORE = {"check": "checks", "audit": "audit"}
_VERDICT_COLOUR = {"ship": "green", "wait": "yellow", "don't": "red"}
_CHECK_COLOUR = {"pass": "green", "warn": "yellow", "fail": "red"}
_WORST_FIRST = ("fail", "warn", "pass", "not applicable")
_PAGE_COLOURS = {name: f"var(--{name})" for name in ("green", "yellow", "red", "cyan")}
# Grey that is visible on light and on dark backgrounds: about as far from white as from black.
NOTEBOOK_COLOURS = {"green": "#1f8a45", "yellow": "#a86a00", "red": "#d5433f", "cyan": "#1c86a5"}
# Words and lines that the drawing library makes black get the colour of the page's text.
_BLACK = re.compile(r'"(?:#000|#000000|black)"')
_SPACES = re.compile(r' xmlns(?::xlink)?="[^"]*"')
_NAMES = re.compile(r'\bid="([^"]+)"')
_NAMED = re.compile(r'(id="|href="#|url\(#)([^")]+)(?=[")])')
# Marks that stand for one row of the data; the pointer shows their names.
_MARK = re.compile(
    r'<path aria-label="([^"]*)" role="graphics-symbol"'
    r' aria-roledescription="(?:point|bar|tick|rect|rect mark|bar mark)"([^>]*)/>'
)
_ON_ANY = {"gridColor": "#888888", "gridOpacity": 0.25}
# Seconds for all charts of a result. Our own charts take less than a second each.
_SECONDS = 60.0
_DRAW = Path(__file__).with_name("draw.py")


@dataclass(frozen=True)
class _Group:
    """Sections that a page folds together, those that stand side by side, or the others."""

    fold: Words
    half: bool
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Place:
    """A chapter on a page: its number, its sections, the links of its verdict's conditions, and its figures by name."""

    number: int
    chapter: Chapter
    sections: tuple[Section, ...]
    links: Mapping[str, str]
    figures: Mapping[str, Markup]

    @property
    def decisions(self) -> list[VerdictBlock]:
        """Blocks that say the decision."""
        blocks = (block for section in self.sections for block in section.blocks)
        return [block for block in blocks if _is_decision(block)]

    @property
    def answered(self) -> bool:
        """Whether a section says the answer, which then is the heading of the page."""
        return any(section.id == ANSWER and section.title for section in self.sections)

    @property
    def groups(self) -> list[_Group]:
        """Sections in their order, together where they are folded together or stand side by side."""
        # A picture that cannot be drawn leaves no heading without one.
        return _grouped(
            part for part in self.sections if not (part.half and part.charts) or self.figures.keys() & set(part.charts)
        )

    @property
    def loose(self) -> list[str]:
        """Names of the figures of no section."""
        named = {name for section in self.sections for name in section.charts}
        return [name for name in self.figures if name not in named]


def page_of(chapters: Sequence[Chapter]) -> str:
    """Return the page of some chapters in their order; if one of them is a comparison, its verdict comes first."""
    alone = len(chapters) == 1
    title = chapters[0].title if alone else " · ".join(dict.fromkeys(chapter.title for chapter in chapters))
    places = [
        _Place(
            number,
            chapter,
            name_command_options_in_sections(chapter.sections),
            _links(chapters, number),
            {name: Markup(figure) for name, figure in figures(_in_order(chapter), focusable=True).items()},
        )
        for number, chapter in enumerate(chapters, start=1)
    ]
    decided = [place for place in places if place.decisions]
    dated = chapters[0].kind == "over time"
    first = decided[0] if len(decided) == 1 and not alone else None
    if first is not None:

        def without_decision(section: Section) -> Section:
            return replace(section, blocks=tuple(block for block in section.blocks if not _is_decision(block)))

        places = [replace(place, sections=tuple(map(without_decision, place.sections))) for place in places]
    return _filled(
        "page.html", colours=_PAGE_COLOURS, focus=' tabindex="0"', title=title, alone=alone, places=places,
        first=first, decided=alone and any(place.decisions or place.answered for place in places), dated=dated,
        joint=dated and bool(places[0].decisions), version=__version__,
    )  # fmt: skip


def notebook_html(result: object) -> str:
    """Return the report of a result, a plan or a log as HTML with its most telling chart; options have Python names."""
    sections = document_of(result).sections
    # The drawing library escapes what it writes, and its pictures hold no scripts.
    chart = Markup("".join(figures(first_chart(result)).values()))
    return _filled(
        "notebook.html", colours=NOTEBOOK_COLOURS, focus="", groups=_grouped(sections), first=sections[0], figures=chart
    )


def _grouped(sections: Iterable[Section]) -> list[_Group]:
    return [_Group(*key, tuple(parts)) for key, parts in groupby(sections, lambda part: (part.fold, part.half))]


def _filled(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        undefined=StrictUndefined,
        # Whatever a template shows, invisible characters are written as escapes.
        finalize=lambda value: escape(value) if type(value) is str else value,
    )
    environment.globals |= {
        "style": _css,
        "styled": _styled,
        "rule": rule_text,
        "stakes": stakes,
        "head": head,
        "sentences": sentences,
        "tiles": tiles,
        "steps": steps,
        "candidate_rows": candidate_rows,
        "worst_first": lambda lights: sorted(lights, key=lambda light: _WORST_FIRST.index(light.verdict)),
        "verdict_colour": _VERDICT_COLOUR,
        "check_colour": _CHECK_COLOUR,
        "marks": MARKS,
        "settle": SETTLE,
        "do": DO,
    }
    return environment


def _css(run: Run, colours: Mapping[str, str]) -> str:
    parts = ["font-weight:600"] if run.bold else []
    parts += ["opacity:.75"] if run.dim else []
    parts += [f"color:{colours[run.colour]}"] if run.colour else []
    return ";".join(parts)


def _styled(words: Words, column: Column) -> Words:
    """Return the words of a cell in the style of its column."""
    if not (column.bold or column.dim):
        return words
    return tuple(replace(run, bold=run.bold or column.bold, dim=run.dim or column.dim) for run in words)


def _is_decision(block: Block) -> TypeGuard[VerdictBlock]:
    return isinstance(block, VerdictBlock) and block.part == "decision"


def _links(chapters: Sequence[Chapter], number: int) -> dict[str, str]:
    """Return the link to the section that each condition of a chapter's verdict depends on."""
    chapter = chapters[number - 1]
    ids = {section.id for section in chapter.sections}
    here = {name: f"chapter-{number}-{id}" for name, id in _RESTS_ON.items() if id in ids}
    log = chapter.reproduce.get("fingerprint")
    more = {
        _MORE[other.kind]: f"chapter-{i}"
        for i, other in enumerate(chapters, start=1)
        if other.kind in _MORE and log is not None and other.reproduce.get("fingerprint") == log
    }
    return here | more


def figures(charts: Mapping[str, Spec], *, focusable: bool = False) -> dict[str, str]:
    """Return charts as figures, by name; a chart that cannot be drawn is left out.

    The keyboard can scroll figures that are wider than the screen, if they are `focusable`.
    """
    drawn = svg_pictures(charts)
    more = ' tabindex="0"' if focusable else ""
    return {name: _figure(of, str(charts[name].get("description", "")), more) for name, of in drawn.items()}


def _in_order(chapter: Chapter) -> dict[str, Spec]:
    """Return the charts of a chapter, those that need no click first: what takes too long is left out."""
    first = [name for part in chapter.sections if not part.fold for name in part.charts if name in chapter.charts]
    return {name: chapter.charts[name] for name in dict.fromkeys((*first, *chapter.charts))}


def _figure(picture: str, about: str, more: str) -> str:
    """Return an SVG as part of a page: in the page's colour, and with names that no other picture of the page has."""
    prefix = hashlib.sha256(picture.encode()).hexdigest()[:8]
    names = set(_NAMES.findall(picture))
    picture = _NAMED.sub(lambda match: f"{match[1]}{prefix}-{match[2]}" if match[2] in names else match[0], picture)
    picture = _MARK.sub(r"<path\2><title>\1</title></path>", picture)
    picture = _SPACES.sub("", _BLACK.sub('"currentColor"', picture))
    return f'<figure role="img" aria-label="{html.escape(escape(about or _title(picture)))}"{more}>{picture}</figure>'


def _title(picture: str) -> str:
    match = re.search(r'role-title-text"[^>]*><text[^>]*>([^<]*)<', picture)
    return html.unescape(match[1]) if match else "chart"


def pictures(charts: Mapping[str, Spec], *, form: Literal["png", "svg"] = "png") -> dict[str, bytes]:
    """Return charts as PNG at twice their size, or as SVG, by name; a chart that takes too long is left out."""
    drawings: dict[str, bytes] = {}
    names = list(charts)
    end = time.monotonic() + _SECONDS
    while names and time.monotonic() < end:
        lines = "".join(f"{json.dumps(charts[name])}\n" for name in names)
        try:
            answers = _answers(lines.encode(), form, end - time.monotonic())
        except OSError:  # the process cannot be started
            break
        drawn = answers.decode().split("\n")[:-1]
        drawings |= {name: base64.b64decode(line) for name, line in zip(names, drawn, strict=False) if line}
        # The first chart without an answer ended the process; the charts after it are drawn by another process.
        names = names[len(drawn) + 1 :]
    return drawings


def _answers(charts: bytes, form: str, seconds: float) -> bytes:
    """Return the answers of the drawing script, one line for each chart, or those that it gave within the time."""
    # -P: Python imports no module from the working folder.
    words = [sys.executable, "-P", str(_DRAW), form]
    try:
        return subprocess.run(words, input=charts, capture_output=True, timeout=seconds).stdout
    except subprocess.TimeoutExpired as late:
        return late.stdout or b""


def svg_pictures(charts: Mapping[str, Spec]) -> dict[str, str]:
    """Return charts as SVG, by name, without a background and with a grid that is visible on light and dark pages."""
    clear = {
        name: {
            **chart,
            "background": None,
            "config": {**chart.get("config", {}), "axis": {**chart.get("config", {}).get("axis", {}), **_ON_ANY}},
        }
        for name, chart in charts.items()
    }
    return {name: picture.decode() for name, picture in pictures(clear, form="svg").items()}
