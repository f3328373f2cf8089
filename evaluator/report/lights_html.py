"""Checks as a page shows them: a list of lights, each told by its shape, its colour and a word."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from evaluator.report.blocks import Light
from evaluator.report.shown_lights import DO
from evaluator.visible import visible

FOLD = "Not applicable to this log"
_COLOUR = {"pass": "green", "warn": "yellow", "fail": "red"}
# Shapes that are told apart without their colours: a cross in an octagon, a stroke in a triangle, a tick in a circle,
# an empty ring.
_SHAPES = {
    "fail": ("M7 1h6l6 6v6l-6 6H7l-6-6V7z", "M6.5 6.5l7 7M13.5 6.5l-7 7"),
    "warn": ("M10 1.5L19.5 18.5H.5z", "M10 7.5v5M10 15.2v.6"),
    "pass": ("M10 1a9 9 0 1 0 0 18a9 9 0 1 0 0-18z", "M5.5 10.5l3 3l6-7"),
}
_RING = "M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14z"
_LIST = "list-style:none;padding:0;max-width:48rem"
_ITEM = "display:grid;grid-template-columns:1.5rem 1fr;margin:0 0 .6rem"
_PASSED = ' style="opacity:.8"'
_ICON = "width:1.15rem;min-width:0;height:1.15rem;margin-top:.15rem"


def lights_html(lights: Sequence[Light], *, colours: Mapping[str, str]) -> str:
    """Return lights; those of checks that do not apply are folded.

    Parameters
    ----------
    lights
        Lights, in the order to be shown.
    colours
        Colour of each of the report's colours: a value of CSS.
    """
    shown = [light for light in lights if light.verdict != "not applicable"]
    rest = [light for light in lights if light.verdict == "not applicable"]
    found = _list(_item(light, colours) for light in shown) if shown else ""
    if rest:
        found += f"<details><summary>{FOLD}: {len(rest)}</summary>{_list(map(_quiet, rest))}</details>"
    return found


def _list(items: Iterable[str]) -> str:
    # Without its bullets, some browsers no longer say that it is a list.
    return f'<ul role="list" class="lights" style="{_LIST}">{"".join(items)}</ul>'


def _item(light: Light, colours: Mapping[str, str]) -> str:
    colour = colours[_COLOUR[light.verdict]]
    shape, sign = _SHAPES[light.verdict]
    icon = _svg(f'<path d="{shape}" fill="{colour}"/><path d="{sign}" {_stroke("var(--page,Canvas)")}/>')
    word = f'<span style="color:{colour};font-weight:600">{light.verdict}</span>'
    passed = light.verdict == "pass"
    number = f"{' ' if passed else '<br>'}{_escaped(light.number)}" if light.number else ""
    said = [f"<div>{word} {_bold(_escaped(light.name))}{number}</div>"]
    said += [f"<div{_PASSED if passed else ''}>{_escaped(light.means)}</div>"] if light.means else []
    said += [f"<div>{_bold(DO)}{_escaped(light.do)}</div>"] if light.do else []
    return f'<li style="{_ITEM}">{icon}<div>{"".join(said)}</div></li>'


def _quiet(light: Light) -> str:
    icon = _svg(f'<path d="{_RING}" {_stroke("currentColor")} opacity=".6"/>')
    return f'<li style="{_ITEM}">{icon}<div>{_bold(_escaped(light.name))} {_escaped(light.means)}</div></li>'


def _bold(words: str) -> str:
    return f'<span style="font-weight:600">{words}</span>'


def _svg(paths: str) -> str:
    return f'<svg viewBox="0 0 20 20" aria-hidden="true" style="{_ICON}">{paths}</svg>'


def _stroke(colour: str) -> str:
    return f'fill="none" stroke="{colour}" stroke-width="2"'


def _escaped(text: str) -> str:
    return html.escape(visible(text))
