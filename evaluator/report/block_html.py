"""Blocks as HTML: every word is escaped, and no character of it steers anything."""

from __future__ import annotations

import html
from collections.abc import Mapping

from evaluator.report.blocks import (
    Block,
    Bullets,
    Grid,
    Light,
    Lights,
    Paragraph,
    Run,
    Section,
    Standing,
    VerdictBlock,
    Words,
)
from evaluator.report.command_words import in_command_words
from evaluator.report.lights_html import lights_html
from evaluator.report.shown_verdict import in_words_of_the_command
from evaluator.report.verdict_html import verdict_html
from evaluator.visible import visible

# Seen on light and dark backgrounds alike: about as far from white as from black.
COLOURS = {"green": "#1f8a45", "yellow": "#a86a00", "red": "#d5433f", "cyan": "#1c86a5"}
NO_LINKS: Mapping[str, str] = {}


def section_html(
    section: Section,
    *,
    colours: Mapping[str, str] = COLOURS,
    heading: str = "",
    anchor: str = "",
    links: Mapping[str, str] = NO_LINKS,
) -> str:
    """Return a section.

    Parameters
    ----------
    section
        Section to write.
    colours
        Colour of each of the report's colours: a value of CSS.
    heading
        Tag of the title, ``h3``, on a page whose wide tables the keyboard can scroll; empty for a paragraph.
    anchor
        Name by which links find the section; empty for none.
    links
        Place on the page of each condition of a verdict, by its name, where there is one.
    """
    page = _Html(colours, links, focusable=bool(heading))
    named = f' id="{html.escape(anchor)}"' if anchor else ""
    body = "".join(page.block(block) for block in section.blocks)
    if not section.title:
        return body
    words = page.words(section.title)
    if section.folded:
        return f"<details{named}><summary>{words}</summary>{body}</details>"
    return f"<{heading}{named}>{words}</{heading}>{body}" if heading else f'<p class="title">{words}</p>{body}'


class _Html:
    def __init__(self, colours: Mapping[str, str], links: Mapping[str, str], *, focusable: bool) -> None:
        self._colours = colours
        self._links = links
        self._focus = ' tabindex="0"' if focusable else ""

    def block(self, block: Block) -> str:
        match block:
            case Paragraph():
                return f"<p>{self.words(block.words)}</p>"
            case Bullets():
                return f"<ul>{''.join(f'<li>{self.words(item)}</li>' for item in block.items)}</ul>"
            case Grid():
                return self._table(block)
            case VerdictBlock():
                return verdict_html(block.verdict, colours=self._colours, links=self._links)
            case Lights():
                return lights_html(block.lights, colours=self._colours)

    def _table(self, grid: Grid) -> str:
        named = zip(grid.head, grid.standing, strict=True) if grid.head else ()
        cells = "".join(self._cell(of, standing, "col") for of, standing in named)
        head = f"<thead><tr>{cells}</tr></thead>" if cells else ""
        body = "".join(f"<tr>{''.join(self._row(row, grid.standing))}</tr>" for row in grid.rows)
        caption = f"<caption>{self.words(grid.caption)}</caption>" if grid.caption else ""
        return f'<div class="wide"{self._focus}><table>{caption}{head}<tbody>{body}</tbody></table></div>'

    def _row(self, row: tuple[Words, ...], standing: tuple[Standing, ...]) -> list[str]:
        heads = ["row", *[""] * (len(row) - 1)]
        return [self._cell(cell, of, head) for cell, of, head in zip(row, standing, heads, strict=True)]

    def _cell(self, cell: Words, standing: Standing, heads: str) -> str:
        """Return a cell, which names its row or column (`heads`) if it says anything."""
        words = self.words(cell)
        opened, tag = (f'th scope="{heads}"', "th") if heads and words else ("td", "td")
        return f"<{opened}{_class(standing)}>{words}</{tag}>"

    def words(self, words: Words) -> str:
        return "".join(map(self._run, words))

    def _run(self, run: Run) -> str:
        words = "<br>".join(html.escape(visible(line)) for line in run.text.split("\n"))
        said = []
        if run.bold:
            said.append("font-weight:600")
        if run.dim:
            said.append("opacity:.75")
        if run.colour:
            said.append(f"color:{self._colours[run.colour]}")
        return f'<span style="{";".join(said)}">{words}</span>' if said and words else words


def _class(standing: Standing) -> str:
    return f' class="{standing}"' if standing else ""


def in_words_of_commands(section: Section) -> Section:
    """Return a section whose options are named as on the command line."""

    def spoken(words: Words) -> Words:
        return tuple(Run(in_command_words(run.text), run.bold, run.dim, run.colour) for run in words)

    def changed(block: Block) -> Block:
        match block:
            case Paragraph():
                return Paragraph(spoken(block.words))
            case Bullets():
                return Bullets(tuple(map(spoken, block.items)))
            case Grid():
                rows = tuple(tuple(map(spoken, row)) for row in block.rows)
                return Grid(spoken(block.caption), tuple(map(spoken, block.head)), rows, block.standing)
            case VerdictBlock():
                return VerdictBlock(in_words_of_the_command(block.verdict))
            case Lights():
                said = in_command_words
                return Lights(
                    tuple(
                        Light(of.verdict, of.name, said(of.number), said(of.means), said(of.do)) for of in block.lights
                    )
                )

    return Section(spoken(section.title), [changed(block) for block in section.blocks], section.folded)
