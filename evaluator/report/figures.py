"""Charts as figures of a page: SVG in the page's own colour, whose marks tell their numbers when pointed at."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from typing import Any

from evaluator.report.pictures import svg_pictures
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
