"""Charts as figures of a page: SVG in the page's own colour, whose marks tell their numbers when pointed at."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from evaluator.visible import visible

# Words and lines that the drawing library makes black follow the page's own colour.
_BLACK = re.compile(r'"(?:#000|#000000|black)"')
_SPACES = re.compile(r' xmlns(?::xlink)?="[^"]*"')
_NAMES = re.compile(r'\bid="([^"]+)"')
_NAMED = re.compile(r'(id="|href="#|url\(#)([^")]+)(?=[")])')
# Marks that stand for one row of the data: what they are called is shown where the pointer rests.
_MARK = re.compile(
    r'<path aria-label="([^"]*)" role="graphics-symbol"'
    r' aria-roledescription="(?:point|bar|tick|rect|rect mark|bar mark)"([^>]*)/>'
)
_ON_ANY = {"gridColor": "#888888", "gridOpacity": 0.25}
# For all charts of a result, of which each takes less than one: what takes longer is none of ours.
_SECONDS = 60.0
_DRAW = Path(__file__).with_name("draw.py")


def figures(charts: Mapping[str, dict[str, Any]], *, focusable: bool = False) -> dict[str, str]:
    """Return charts as figures, by name; one that cannot be drawn has none.

    Parameters
    ----------
    charts
        Charts as Vega-Lite specifications.
    focusable
        Whether the keyboard can scroll those that are wider than the screen.
    """
    drawn = svg_pictures(charts)
    return {name: _figure(picture, ' tabindex="0"' if focusable else "") for name, picture in drawn.items()}


def _figure(picture: str, more: str) -> str:
    """Return an SVG as part of a page: in the page's colour, its own names apart from those of other pictures."""
    own = hashlib.sha256(picture.encode()).hexdigest()[:8]
    names = set(_NAMES.findall(picture))
    picture = _NAMED.sub(lambda found: f"{found[1]}{own}-{found[2]}" if found[2] in names else found[0], picture)
    picture = _MARK.sub(r"<path\2><title>\1</title></path>", picture)
    picture = _SPACES.sub("", _BLACK.sub('"currentColor"', picture))
    return f'<figure role="img" aria-label="{html.escape(visible(_title(picture)))}"{more}>{picture}</figure>'


def _title(picture: str) -> str:
    found = re.search(r'role-title-text"[^>]*><text[^>]*>([^<]*)<', picture)
    return html.unescape(found[1]) if found else "chart"


def pictures(charts: Mapping[str, dict[str, Any]], *, form: Literal["png", "svg"] = "png") -> dict[str, bytes]:
    """Return charts as PNG at twice their size, or as SVG, by name; one that cannot be drawn in a minute has none."""
    found: dict[str, bytes] = {}
    names = list(charts)
    end = time.monotonic() + _SECONDS
    while names and time.monotonic() < end:
        lines = "".join(f"{json.dumps(charts[name])}\n" for name in names)
        try:
            said = _answers(lines.encode(), form, end - time.monotonic())
        except OSError:  # no process can be started
            break
        drawn = said.decode().split("\n")[:-1]
        found |= {name: base64.b64decode(line) for name, line in zip(names, drawn, strict=False) if line}
        # The first that is not answered ended the process: on with the others.
        names = names[len(drawn) + 1 :]
    return found


def _answers(charts: bytes, form: str, seconds: float) -> bytes:
    """Return what the script that draws answers to charts, a line each, or what it did before the time was over."""
    # -P: no file of the folder it is run in is taken for a module.
    words = [sys.executable, "-P", str(_DRAW), form]
    try:
        return subprocess.run(words, input=charts, capture_output=True, timeout=seconds).stdout
    except subprocess.TimeoutExpired as late:
        return late.stdout or b""


def svg_pictures(charts: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return charts as SVG on no background, with a grid that is seen on light and dark pages, by name."""
    clear = {
        name: {
            **chart,
            "background": None,
            "config": {**chart.get("config", {}), "axis": {**chart.get("config", {}).get("axis", {}), **_ON_ANY}},
        }
        for name, chart in charts.items()
    }
    return {name: picture.decode() for name, picture in pictures(clear, form="svg").items()}
