"""Names of lines at their ends, instead of a legend: apart from each other, each with a stroke to its line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np

# Height of a label and width of a letter, in pixels.
_LINE, _LETTER = 13.0, 5.8
_STROKE = 14.0
# More labels are read off no line.
MOST_LABELS = 24
Domain = tuple[float, float]


class LineEnd(NamedTuple):
    """Where a line ends, what it is called there, and its colour."""

    name: str
    x: float
    y: float
    colour: str


class Frame(NamedTuple):
    """Ranges of both axes, and the size of what they span in pixels."""

    x: Domain
    y: Domain
    width: int
    height: int

    def axis_x(self, field: str, **axis: Any) -> alt.X:
        """Return the encoding of a field on the horizontal axis."""
        return alt.X(field, scale=alt.Scale(domain=list(self.x), nice=False), axis=alt.Axis(**axis))

    def axis_y(self, field: str, **axis: Any) -> alt.Y:
        """Return the encoding of a field on the vertical axis."""
        return alt.Y(field, scale=alt.Scale(domain=list(self.y), nice=False, zero=False), axis=alt.Axis(**axis))


def frame(x: Domain, ys: Sequence[float], names: Sequence[str], *, width: int, height: int) -> Frame:
    """Return the frame of lines within a width that their names share, high enough for these.

    Parameters
    ----------
    x
        Range of the horizontal axis.
    ys
        All values that the vertical axis is to span; those that are not finite are left out.
    names
        Names of the lines.
    width, height
        Size in pixels, of which the height is the least.
    """
    first, last = x
    known = np.asarray(ys, dtype=np.float64)
    known = known[np.isfinite(known)]
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or abs(high) or 1.0
    own = round(_STROKE + _LETTER * max(map(len, names)))
    tall = round(_LINE * (len(names) + 1))
    return Frame(
        (first, max(last, first + 1.0)), (low - room, high + room), max(width - own, width // 2), max(height, tall)
    )


def label_layers(ends: Sequence[LineEnd], of: Frame) -> list[alt.Chart]:
    """Return the layers that name lines at their ends; one whose end is not known has no name."""
    ordered = sorted((end for end in ends if np.isfinite(end.y)), key=lambda end: end.y)
    per_x, per_y = (of.x[1] - of.x[0]) / of.width, (of.y[1] - of.y[0]) / of.height
    at = apart([end.y for end in ordered], _LINE * per_y, of.y)
    rows: list[dict[str, Any]] = [
        {"of": end.name, "x": end.x, "y": end.y, "colour": end.colour, "at": y,
         "edge": of.x[1] + _STROKE * per_x, "text": of.x[1] + (_STROKE + 3.0) * per_x}
        for end, y in zip(ordered, at, strict=True)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(rows))
    strokes = base.mark_rule(strokeWidth=1).encode(
        x=of.axis_x("x:Q"), x2="edge:Q", y=of.axis_y("y:Q"), y2="at:Q", color=alt.Color("colour:N", scale=None)
    )
    # The page's own colour: those of lines are too light for letters.
    texts = base.mark_text(align="left", baseline="middle", fontSize=11, color="black")
    return [strokes, texts.encode(x=of.axis_x("text:Q"), y=of.axis_y("at:Q"), text="of:N")]


def apart(wanted: Sequence[float], gap: float, within: Domain) -> list[float]:
    """Return places at least `gap` apart and as near to those wanted as that lets them be from below.

    Parameters
    ----------
    wanted
        Places that are wanted, increasing.
    gap
        Least distance; the range holds so many.
    within
        Range of the places.

    Examples
    --------
    >>> apart([0.1, 0.2, 5.0], 1.0, (0.0, 10.0)), apart([9.0, 9.5, 10.0], 1.0, (0.0, 10.0))
    ([0.1, 1.1, 5.0], [8.0, 9.0, 10.0])
    """
    places = list(wanted)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    top = within[1]
    for i in reversed(range(len(places))):
        places[i] = min(places[i], top)
        top = places[i] - gap
    return places
