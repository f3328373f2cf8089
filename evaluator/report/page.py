"""One self-contained page of results: it runs nothing, asks no host for anything, and reads without a script."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluator.report.block_html import in_words_of_commands, section_html
from evaluator.report.blocks import Section, VerdictBlock
from evaluator.report.chapter import Chapter
from evaluator.report.figures import figures
from evaluator.report.page_style import STYLE
from evaluator.report.shown_verdict import in_words_of_the_command
from evaluator.report.verdict_html import verdict_html
from evaluator.version import __version__
from evaluator.visible import visible

PAGE = "report.html"
# The page holds all it shows: whatever else it was made to ask for is refused by the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# The title under which a chapter has what a condition of its verdict rests on, and the kind of chapter that has more.
_RESTS_ON = {
    "difference": "difference-per-round",
    "guardrails": "guardrails",
    "propensities": "assumptions",
    "checks": "checks-of-the-log",
    "users": "checks-of-the-log",
}
_MORE = {"check": "checks", "audit": "audit"}
_COLOURS = {name: f"var(--{name})" for name in ("green", "yellow", "red", "cyan")}


def page_of(chapters: Sequence[Chapter]) -> str:
    """Return the page of some chapters, in their order; the verdict of the only comparison among them comes first."""
    title = chapters[0].title if len(chapters) == 1 else " · ".join(dict.fromkeys(c.title for c in chapters))
    alone = len(chapters) == 1
    places = [_links(chapters, number) for number in range(1, len(chapters) + 1)]
    numbered = list(zip(range(1, len(chapters) + 1), chapters, places, strict=True))
    decides = [verdict for number, of, links in numbered if (verdict := _verdict(of, number, links))]
    above = not alone and len(decides) == 1
    first = decides[0] if above else ""
    body = "".join(_chapter(of, number, links, alone=alone, decided=above) for number, of, links in numbered)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header>{_head(chapters)}</header>\n<main>\n{first}{body}</main>\n"
        f"<footer>Made by delayed-replay {_escaped(__version__)}. Numbers rest on the assumptions stated with them."
        "</footer>\n</body>\n</html>\n"
    )


def _head(chapters: Sequence[Chapter]) -> str:
    if len(chapters) == 1:
        return f"<h1>{_escaped(chapters[0].title)}</h1>"
    links = "".join(f'<li><a href="#chapter-{i}">{_escaped(c.title)}</a></li>' for i, c in enumerate(chapters, 1))
    return f'<h1>Report</h1><nav aria-label="Chapters"><ul>{links}</ul></nav>'


def _verdict(chapter: Chapter, number: int, links: Mapping[str, str]) -> str:
    """Return a chapter's verdict, to stand above all chapters; empty without one."""
    boxes = "".join(
        verdict_html(in_words_of_the_command(block.verdict), colours=_COLOURS, links=links)
        for section in chapter.sections
        for block in section.blocks
        if isinstance(block, VerdictBlock)
    )
    if not boxes:
        return ""
    return f'{boxes}<p class="quiet">On <a href="#chapter-{number}">{_escaped(chapter.title)}</a>.</p>\n'


def _chapter(chapter: Chapter, number: int, links: Mapping[str, str], *, alone: bool, decided: bool) -> str:
    name = f"chapter-{number}"
    title = "" if alone else f'<h2 id="{name}-title">{_escaped(chapter.title)}</h2>'
    labelled = "" if alone else f' aria-labelledby="{name}-title"'
    heading = "h2" if alone else "h3"
    shown = [_without_verdict(section) for section in chapter.sections] if decided else chapter.sections
    sections = [
        section_html(
            in_words_of_commands(of), colours=_COLOURS, heading=heading, anchor=_anchor(number, of), links=links
        )
        for of in shown
    ]
    drawn = figures(chapter.charts, focusable=True)
    head, rest = "".join(sections[:1]), "".join(sections[1:])
    return (
        f'<section id="{name}"{labelled}>{title}{head}{"".join(drawn.values())}{rest}{_reproduce(chapter)}</section>\n'
    )


def _without_verdict(section: Section) -> Section:
    return replace(section, blocks=[block for block in section.blocks if not isinstance(block, VerdictBlock)])


def _links(chapters: Sequence[Chapter], number: int) -> dict[str, str]:
    """Return where the page has what each condition of a chapter's verdict rests on."""
    of = chapters[number - 1]
    known = {_anchor(number, section) for section in of.sections}
    own = {name: f"chapter-{number}-{title}" for name, title in _RESTS_ON.items()}
    log = of.reproduce.get("fingerprint")
    more = {
        _MORE[other.kind]: f"chapter-{i}"
        for i, other in enumerate(chapters, 1)
        if other.kind in _MORE and log is not None and other.reproduce.get("fingerprint") == log
    }
    return {name: anchor for name, anchor in own.items() if anchor in known} | more


def _anchor(number: int, section: Section) -> str:
    """Return the name of a section for links, by what of its title stands out; empty without."""
    words = re.findall(r"[a-z]+", "".join(run.text for run in section.title if run.bold).lower())
    return "-".join((f"chapter-{number}", *words)) if words else ""


def _reproduce(chapter: Chapter) -> str:
    if not chapter.reproduce:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{_escaped(name)}</th><td><code>{_escaped(fact)}</code></td></tr>'
        for name, fact in chapter.reproduce.items()
    )
    return f"<details><summary>How to reproduce it</summary><table><tbody>{rows}</tbody></table></details>"


def _escaped(text: str) -> str:
    return html.escape(visible(text))
