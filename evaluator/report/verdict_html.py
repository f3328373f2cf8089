"""A verdict as a page shows it: the decision in a box, each condition with a link to what it rests on."""

from __future__ import annotations

import html
from collections.abc import Mapping

from evaluator.comparisons.verdict import Condition, Verdict
from evaluator.report.shown_verdict import MARKS, SETTLE, rule_text, split
from evaluator.visible import visible

_COLOUR = {"ship": "green", "wait": "yellow", "don't": "red"}


def verdict_html(of: Verdict, *, colours: Mapping[str, str], links: Mapping[str, str]) -> str:
    """Return a verdict.

    Parameters
    ----------
    of
        Verdict to show.
    colours
        Colour of each of the report's colours: a value of CSS.
    links
        Place on the page of each condition, by its name, where there is one.
    """
    colour = colours[_COLOUR[of.decision]]
    first, rest = split(of)
    rows = "".join(_row(one, colours, links) for one in of.conditions)
    parts = [
        f'<p style="font-size:1.15em"><span style="color:{colour};font-weight:700">{_escaped(first)}</span>'
        f"{_escaped(rest)}</p><table><tbody>{rows}</tbody></table>"
    ]
    if of.settle:
        items = "".join(f"<li>{_escaped(one)}</li>" for one in of.settle)
        parts.append(f"<p>{SETTLE}</p><ul>{items}</ul>")
    parts.append(f'<p style="opacity:.75">{_escaped(rule_text(of))}</p>')
    style = f"border-left:.4rem solid {colour};padding:.1rem 0 .4rem 1rem;margin:.8rem 0"
    return f'<div class="verdict" style="{style}">{"".join(parts)}</div>'


def _row(of: Condition, colours: Mapping[str, str], links: Mapping[str, str]) -> str:
    mark, word, colour = MARKS[of.met]
    name = _escaped(of.name)
    if of.name in links:
        name = f'<a href="#{html.escape(links[of.name])}">{name}</a>'
    state = f'<span style="color:{colours[colour]}">{mark} {word}</span>'
    return f'<tr><th scope="row">{name}</th><td>{state}</td><td>{_escaped(of.said)}</td></tr>'


def _escaped(text: str) -> str:
    return html.escape(visible(text))
