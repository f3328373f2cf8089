"""Windows on a chart of a delay CDF: a line each, and what it cuts off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt

from evaluator.report.line_labels import apart

# The page's own colour: those of the curves mean something else.
_COLOUR = "black"
_WIDTH, _LETTER, _LINE, _STROKE = 640, 5.8, 14.0, 12
# More windows are a table, not a picture.
_MOST = 8


class WindowMark(NamedTuple):
    """A window to be marked: where it lies on the axis, the share that comes within it, and its name."""

    at: float
    share: float
    name: str


def window_layers(
    marks: Sequence[WindowMark], low: float, high: float, conversions: int, *, height: int
) -> tuple[list[alt.Chart], int]:
    """Return the layers that mark windows on a CDF, and the width that their words leave it.

    Below the CDF a line stands at each window, above it a bar: what is cut off. Words stand at the right end.

    Parameters
    ----------
    marks
        Windows, of which those beyond the axis are left out.
    low, high
        Range of the axis, which is logarithmic.
    conversions
        Number of conversions from which the shares are known.
    height
        Height of the chart in pixels.
    """
    inside = sorted((mark for mark in marks if low < mark.at <= high), key=lambda mark: (mark.share, mark.at))
    if not 0 < len(inside) <= _MOST:
        return [], _WIDTH
    said = [f"{mark.name}: {cut_words(mark.share, conversions)}" for mark in inside]
    width = _WIDTH - round(_STROKE + _LETTER * max(map(len, said)))
    places = apart([min(mark.share, 1.0) for mark in inside], _LINE / height, (0.0, 1.0))
    rows = [
        {
            "at": mark.at,
            "share": min(mark.share, 1.0),
            "none": 0.0,
            "all": 1.0,
            "end": high,
            "place": place,
            "said": words,
        }
        for mark, place, words in zip(inside, places, said, strict=True)
    ]
    base = alt.Chart(alt.InlineData(rows))
    beside = alt.value(width + _STROKE)
    return [
        base.mark_rule(color=_COLOUR, strokeDash=[5, 3]).encode(x="at:Q", y="none:Q", y2="share:Q"),
        base.mark_rule(color=_COLOUR, strokeWidth=5, opacity=0.5).encode(x="at:Q", y="share:Q", y2="all:Q"),
        base.mark_rule(color=_COLOUR, opacity=0.4).encode(x="at:Q", x2="end:Q", y="share:Q"),
        base.mark_rule(color=_COLOUR, opacity=0.4).encode(x="end:Q", x2=beside, y="share:Q", y2="place:Q"),
        base.mark_point(filled=True, opacity=0, size=160).encode(x="at:Q", y="share:Q", description="said:N"),
        base.mark_text(align="left", baseline="middle", dx=3, fontSize=11, color=_COLOUR).encode(
            x=beside, y="place:Q", text="said:N"
        ),
    ], width


def cut_words(share: float, conversions: int) -> str:
    """Return what a window cuts off, in as many digits as so many conversions tell.

    Examples
    --------
    >>> cut_words(0.994, 17_603), cut_words(0.98, 50), cut_words(1.0, 50), cut_words(0.9999, 17_603)
    ('cuts off 0.6%', 'cuts off 2%', 'cuts off nothing seen', 'cuts off less than 0.1%')
    """
    lost = 1.0 - share
    if lost <= 0.0:
        return "cuts off nothing seen"
    digits = 1 if math.sqrt(share * lost / max(conversions, 1)) < 0.005 else 0
    least = 10.0 ** -(digits + 2)
    return f"cuts off {lost:.{digits}%}" if lost >= least / 2 else f"cuts off less than {least:.{digits}%}"
