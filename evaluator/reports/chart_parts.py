"""Parts that charts share: size, colours and names of variants and actions, titles, axis of delays, window marks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from evaluator.comparisons.variants import names_of
from evaluator.escape import escape, shortened
from evaluator.replays.result import ReplayResult
from evaluator.reports.document import Spec
from evaluator.units import format_duration

# Okabe and Ito's colours, which colour-blind readers can tell apart.
CORRECTED, NAIVE, GREY = "#0072B2", "#D55E00", "#999999"
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#7F3C8D", "#B5A800", "#000000")
# Size of a chart, in pixels.
WIDTH, HEIGHT = 640, 300
# Characters of a label at most.
_LETTERS = 28
_DAYS = (1.0, 3.0, 7.0, 14.0, 30.0, 90.0, 365.0)
# Seconds of the marks of an axis of delays.
_MARKS = (1e-3, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, *(86400.0 * days for days in _DAYS))
# Height of a label and width of a letter, in pixels.
_LINE, _LETTER = 13.0, 5.8
_STROKE = 14.0
# With more labels no reader finds the line of a label.
MOST_LABELS = 24
Domain = tuple[float, float]
# Black follows the page's own colour; the colours of curves stand for policies and actions.
_COLOUR = "black"
_MARK_LETTER, _MARK_LINE, _MARK_STROKE = 5.8, 14.0, 12
# More windows are shown as a table only.
_MOST = 8
_WORDS = re.compile(r"[a-z]+")
# Colours by which actions are called; of the palette, those that look like one of them.
_CALLED = {
    "blue": "#2f6fd0", "green": "#2e9e5b", "red": "#c0392b", "grey": "#8a94a3", "gray": "#8a94a3", "black": "#333333",
    "orange": "#e67e22", "yellow": "#e3c000", "purple": "#7f3c8d", "violet": "#7f3c8d", "pink": "#e377a8",
    "brown": "#8c564b", "white": "#e8e8e8", "cyan": "#1fa8b8", "turquoise": "#1fa8b8",
}  # fmt: skip
_NEAR = {
    "#0072B2": "#2f6fd0", "#56B4E9": "#1fa8b8", "#009E73": "#2e9e5b", "#D55E00": "#c0392b", "#E69F00": "#e67e22",
    "#CC79A7": "#e377a8", "#8C564B": "#8c564b", "#7F3C8D": "#7f3c8d", "#B5A800": "#e3c000", "#000000": "#333333",
}  # fmt: skip


class LineEnd(NamedTuple):
    """The end of a line, with the line's name and colour."""

    name: str
    x: float
    y: float
    colour: str


class Frame(NamedTuple):
    """Ranges of both axes, and the size of the plot in pixels."""

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
    """Return the frame of some lines, which leaves room for their names within the width and height.

    The vertical axis spans all values that are finite; of the size in pixels the height is the least.
    """
    first, last = x
    known = np.asarray(ys, dtype=np.float64)
    known = known[np.isfinite(known)]
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or abs(high) or 1.0
    label_width = round(_STROKE + _LETTER * max(map(len, names)))
    tall = round(_LINE * (len(names) + 1))
    return Frame(
        (first, max(last, first + 1.0)),
        (low - room, high + room),
        max(width - label_width, width // 2),
        max(height, tall),
    )


def label_layers(ends: Sequence[LineEnd], axes: Frame) -> list[alt.Chart]:
    """Return the layers that name lines at their ends; a line whose end is not known has no name."""
    ordered = sorted((end for end in ends if np.isfinite(end.y)), key=lambda end: end.y)
    per_x, per_y = (axes.x[1] - axes.x[0]) / axes.width, (axes.y[1] - axes.y[0]) / axes.height
    at = apart([end.y for end in ordered], _LINE * per_y, axes.y)
    rows: list[dict[str, Any]] = [
        {"of": end.name, "x": end.x, "y": end.y, "colour": end.colour, "at": y,
         "edge": axes.x[1] + _STROKE * per_x, "text": axes.x[1] + (_STROKE + 3.0) * per_x}
        for end, y in zip(ordered, at, strict=True)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(rows))
    strokes = base.mark_rule(strokeWidth=1).encode(
        x=axes.axis_x("x:Q"), x2="edge:Q", y=axes.axis_y("y:Q"), y2="at:Q", color=alt.Color("colour:N", scale=None)
    )
    # The page's own colour: those of lines are too light for letters.
    texts = base.mark_text(align="left", baseline="middle", fontSize=11, color="black")
    return [strokes, texts.encode(x=axes.axis_x("text:Q"), y=axes.axis_y("at:Q"), text="of:N")]


def apart(wanted: Sequence[float], gap: float, within: Domain) -> list[float]:
    """Return increasing places at least `gap` apart, each as near to its wanted place as the others allow.

    Wanted places increase, and the range holds so many.

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


class WindowMark(NamedTuple):
    """A window to mark: its place on the axis, the share of conversions within it, and its name."""

    at: float
    share: float
    name: str


def window_layers(
    marks: Sequence[WindowMark], low: float, high: float, conversions: int, *, height: int
) -> tuple[list[alt.Chart], int]:
    """Return the layers that mark windows on a CDF, and the width that their labels leave for the CDF.

    Each window has a line below the CDF, a bar above it for the share that it cuts off, and a label at the right. The
    axis is logarithmic; windows beyond it are left out. The shares are known from so many conversions.
    """
    inside = sorted((mark for mark in marks if low < mark.at <= high), key=lambda mark: (mark.share, mark.at))
    if not 0 < len(inside) <= _MOST:
        return [], WIDTH
    labels = [f"{mark.name}: {cut_words(mark.share, conversions)}" for mark in inside]
    width = WIDTH - round(_MARK_STROKE + _MARK_LETTER * max(map(len, labels)))
    places = apart([min(mark.share, 1.0) for mark in inside], _MARK_LINE / height, (0.0, 1.0))
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
        for mark, place, words in zip(inside, places, labels, strict=True)
    ]
    base = alt.Chart(alt.InlineData(rows))
    beside = alt.value(width + _MARK_STROKE)
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
    """Return the share that a window cuts off as text, with as many digits as the conversions can tell.

    >>> cut_words(0.994, 17_603), cut_words(0.98, 50), cut_words(1.0, 50), cut_words(0.9999, 17_603)
    ('cuts off 0.6%', 'cuts off 2%', 'cuts off nothing seen', 'cuts off less than 0.1%')
    """
    lost = 1.0 - share
    if lost <= 0.0:
        return "cuts off nothing seen"
    digits = 1 if math.sqrt(share * lost / max(conversions, 1)) < 0.005 else 0
    least = 10.0 ** -(digits + 2)
    return f"cuts off {lost:.{digits}%}" if lost >= least / 2 else f"cuts off less than {least:.{digits}%}"


def drawable(label: str) -> str:
    """Return a label with the characters that the drawing library cannot handle spelled out."""
    return shortened(escape(label), _LETTERS)


def delay_axis(tick_seconds: float | None, values: Sequence[dict[str, Any]], high: float) -> alt.X:
    """Return a logarithmic axis from the first value to `high`, with durations for labels, or rounds."""
    low = min((row["delay"] for row in values), default=1.0)
    high = max(high, 1.5 * low)
    # Not rounded to powers of ten: that would leave half of the axis empty.
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    if tick_seconds is None:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        rounds = [m * 10.0**k for k in decades for m in (1, 2, 5) if low <= m * 10.0**k <= high]
        return alt.X("delay:Q", scale=scale, axis=alt.Axis(title="delay in rounds", format=",", values=rounds))
    marks = [mark for mark in _MARKS if low <= mark <= 1.001 * high]
    label = "''"
    for mark in marks:
        label = f"abs(datum.value / {mark} - 1) < 1e-6 ? '{format_duration(mark)}' : {label}"
    axis = alt.Axis(title="delay", values=marks, labelExpr=label) if marks else alt.Axis(title="delay in seconds")
    return alt.X("delay:Q", scale=scale, axis=axis)


def finished(
    chart: Any, title: str, subtitle: str | Sequence[str], *, height: int = HEIGHT, width: int = WIDTH
) -> Spec:
    """Return a chart with its title, in the size and style of all charts."""
    return titled(chart.properties(width=width, height=height), title, subtitle)


def titled(chart: Any, title: str, subtitle: str | Sequence[str]) -> Spec:
    """Return a chart, or several that stand together, with a title and in the style of all charts."""
    words = alt.TitleParams(title, anchor="start", offset=10)
    if subtitle:  # an empty one would take its room
        words["subtitle"] = subtitle
    named = chart.properties(title=words)
    spec: Spec = named.configure_view(strokeWidth=0).configure_axis(gridColor="#EEEEEE").to_dict(validate=False)
    return spec


def colours_of(actions: Iterable[int], labels: Sequence[str], *, others: bool) -> list[str]:
    """Return a colour for each of these actions, and a last one for all others together where the chart shows them.

    With few actions each has its own colour, the same in the charts of all policies and of their log.
    """
    shown = list(actions)
    own = action_colours(labels if len(labels) <= len(LINES) else [labels[i] for i in shown])
    palette = [own[i if len(labels) <= len(LINES) else place] for place, i in enumerate(shown)]
    return [*palette, *([GREY] if others else [])]


def action_colours(labels: Sequence[str]) -> list[str]:
    """Return a colour for each action by its label: one that is called by a colour has it, and no other action does.

    >>> action_colours(["Blue banner", "red", "discount"])
    ['#2f6fd0', '#c0392b', '#E69F00']
    """
    own = [next((_CALLED[word] for word in _WORDS.findall(label.lower()) if word in _CALLED), "") for label in labels]
    free = [colour for colour in LINES if _NEAR.get(colour) not in own] or list(LINES)
    return [colour or free[i % len(free)] for i, colour in enumerate(own)]


def drawn_names(results: Sequence[ReplayResult]) -> list[str]:
    """Return the names of variants in charts: those of tables, with a number where shortening made them alike."""
    names = [drawable(name) for name in names_of(results)]
    return [name if names.count(name) == 1 else f"{i} {name}" for i, name in enumerate(names, start=1)]
