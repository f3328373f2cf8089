"""Windows on a chart of a delay CDF: a line each, and what it cuts off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

# The page's own colour: those of the curves mean something else.
_COLOUR = "black"
_LETTER = 6.0
_STEP = 0.07
# More lines are a table, not a picture.
_MOST = 6


class WindowMark(NamedTuple):
    """A window to be marked: where it lies on the axis, the share that comes within it, and its name."""

    at: float
    share: float
    name: str


def window_layers(
    marks: Sequence[WindowMark], low: float, high: float, conversions: int, *, width: int = 640
) -> list[Any]:
    """Return the layers that mark windows on a CDF.

    Parameters
    ----------
    marks
        Windows, of which those beyond the axis are left out.
    low, high
        Range of the axis, which is logarithmic.
    conversions
        Number of conversions from which the shares are known.
    width
        Width of the chart in pixels.
    """
    inside = sorted(mark for mark in marks if low < mark.at <= high)
    if not 0 < len(inside) <= _MOST:
        return []
    rules, labels = [], []
    for i, mark in enumerate(inside):
        said = f"{mark.name}: {cut_words(mark.share, conversions)}"
        place = math.log(mark.at / low) / math.log(high / low)
        left = place * width > 1.1 * len(said) * _LETTER
        # Below the curve where it has risen, else above it.
        y = 0.05 + _STEP * (len(inside) - 1 - i if left else i) if mark.share >= 0.5 else 0.95 - _STEP * i
        # A line ends at its label: that of the next one passes below.
        foot = max(y - _STEP / 2, 0.0) if mark.share >= 0.5 else 0.0
        rules.append({"at": mark.at, "from": foot, "share": min(mark.share, 1.0), "to": 1.0, "told": said})
        labels.append({"at": mark.at, "y": y, "said": said, "left": left})
    base = alt.Chart(alt.InlineData(rules)).encode(x="at:Q")
    layers = [
        base.mark_rule(color=_COLOUR, strokeDash=[5, 3]).encode(y="from:Q", y2="share:Q"),
        base.mark_rule(color=_COLOUR, strokeWidth=5, opacity=0.5).encode(y="share:Q", y2="to:Q"),
        base.mark_point(filled=True, opacity=0, size=160).encode(y="share:Q", description="told:N"),
    ]
    before = [label for label in labels if label["left"]]
    after = [label for label in labels if not label["left"]]
    if before:
        layers.append(_words(before).mark_text(align="right", dx=-6, fontSize=12, color=_COLOUR))
    if after:
        layers.append(_words(after).mark_text(align="left", dx=6, fontSize=12, color=_COLOUR))
    return layers


def _words(labels: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(labels)).encode(x="at:Q", y="y:Q", text="said:N")


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
