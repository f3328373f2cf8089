"""One self-contained page of results: it runs nothing, asks no host for anything, and reads without a script."""

from __future__ import annotations

import html
from collections.abc import Sequence

from evaluator.report.block_html import in_words_of_commands, section_html
from evaluator.report.chapter import Chapter
from evaluator.report.figures import figures
from evaluator.report.page_style import STYLE
from evaluator.version import __version__
from evaluator.visible import visible

PAGE = "report.html"
# The page holds all it shows: whatever else it was made to ask for is refused by the browser.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_COLOURS = {name: f"var(--{name})" for name in ("green", "yellow", "red", "cyan")}


def page_of(chapters: Sequence[Chapter]) -> str:
    """Return the page of some chapters, in their order."""
    title = chapters[0].title if len(chapters) == 1 else " · ".join(dict.fromkeys(c.title for c in chapters))
    body = "".join(_chapter(chapter, number, alone=len(chapters) == 1) for number, chapter in enumerate(chapters, 1))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<header>{_head(chapters)}</header>\n<main>\n{body}</main>\n"
        f"<footer>Made by delayed-replay {_escaped(__version__)}. Numbers rest on the assumptions stated with them."
        "</footer>\n</body>\n</html>\n"
    )


def _head(chapters: Sequence[Chapter]) -> str:
    if len(chapters) == 1:
        return f"<h1>{_escaped(chapters[0].title)}</h1>"
    links = "".join(f'<li><a href="#chapter-{i}">{_escaped(c.title)}</a></li>' for i, c in enumerate(chapters, 1))
    return f'<h1>Report</h1><nav aria-label="Chapters"><ul>{links}</ul></nav>'


def _chapter(chapter: Chapter, number: int, *, alone: bool) -> str:
    name = f"chapter-{number}"
    title = "" if alone else f'<h2 id="{name}-title">{_escaped(chapter.title)}</h2>'
    labelled = "" if alone else f' aria-labelledby="{name}-title"'
    heading = "h2" if alone else "h3"
    sections = [section_html(in_words_of_commands(of), colours=_COLOURS, heading=heading) for of in chapter.sections]
    drawn = figures(chapter.charts, focusable=True)
    head, rest = "".join(sections[:1]), "".join(sections[1:])
    return (
        f'<section id="{name}"{labelled}>{title}{head}{"".join(drawn.values())}{rest}{_reproduce(chapter)}</section>\n'
    )


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
