"""The four small charts of a comparison's page: the difference, who gains, when it pays, and what is shown.

Each is as wide as a phone's screen allows with letters of 12 pixels, and has no title: the page has it beside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from evaluator.comparisons.result import Comparison
from evaluator.comparisons.verdict import Verdict
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.reports.action_charts import action_colours
from evaluator.reports.chapter import Spec
from evaluator.reports.chart_parts import CORRECTED, GREY, LINES, apart, drawable
from evaluator.reports.decision_words import groups_of, name_of, rule_words
from evaluator.reports.numbers import interval_text, significant_text

# At 350 pixels, a phone's, letters of 15.5 have 12.3.
WIDTH, ROW, FONT = 440, 50, 15.5
LETTER = 8.6
_ZONE = "#2e9e5b"
# Rows of a chart at most; more are in the tables.
MOST_ROWS = 6
_GAIN_HEIGHT = 190
# Parts of a run whose actions are shown: its first and its last one.
_PARTS = 10
_NAMED = 6
Row = dict[str, Any]


def decision_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of each candidate that decides, with the zone in which the rule is met."""
    verdict = comparison.verdict
    if verdict is None:
        return None
    ordered = sorted(verdict.candidates, key=lambda of: of.line.variant != verdict.variant)
    known = [(drawable(name_of(of.line, verdict)), of.difference) for of in ordered if of.difference is not None]
    limit = limit_of(verdict)
    said = "" if limit is None else f"rule: more than {rule_words(verdict)}"
    return intervals_chart(known, "Difference to the baseline of each candidate", zone=limit, said=said)


def limit_of(verdict: Verdict) -> float | None:
    """Return the limit of the rule in reward per display; None for a share of what is not known."""
    if not verdict.rule.relative:
        return verdict.rule.limit
    of = verdict.candidate
    if of.uplift is None or of.uplift.share is None or of.difference is None or not of.uplift.share.estimate:
        return None
    return verdict.rule.limit * of.difference.estimate / of.uplift.share.estimate


def gainers_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of the headline's variant in each group of displays."""
    found = groups_of(comparison)
    if found is None:
        return None
    splits = [split for split in comparison.results[found.variant].segments if split.column == found.column]
    displays = {group.label: group.displays for split in splits for group in split.groups}
    total = sum(displays.values())

    def name(label: str) -> str:
        return drawable(label) + (f"  {displays[label] / total:.0%}".replace("%", " %") if label in displays else "")

    groups = [(name(group.label), group.realised) for group in found.groups]
    return intervals_chart(groups, f"Difference to the baseline by {drawable(found.column)}")


def intervals_chart(
    rows: Sequence[tuple[str, Interval]],
    about: str,
    *,
    zone: float | None = None,
    said: str = "",
    origin: tuple[float, str] = (0.0, "0"),
    sign: bool = True,
) -> Spec | None:
    """Return intervals below one another, each with its name and numbers above it; None where none is known.

    Parameters
    ----------
    rows
        Name and interval of each row.
    about
        What the chart shows, for who does not see it.
    zone, said
        Where the zone begins in which a rule is met, and its words; None for no zone.
    origin
        Number that the intervals are compared with, and its words.
    sign
        Whether to write the sign of numbers above 0.
    """
    finite = [(name, of) for name, of in rows if np.isfinite([of.estimate, of.low, of.high]).all()][:MOST_ROWS]
    if not finite:
        return None
    ends = [origin[0], *([] if zone is None else [zone]), *(end for _, of in finite for end in (of.low, of.high))]
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    domain = [min(ends) - room, max(ends) + room]
    height = ROW * len(finite) + 24
    values: list[Row] = [
        {
            "of": name, "estimate": of.estimate, "low": of.low, "high": of.high,
            "words": ROW * i + 12.0, "bar": ROW * i + 34.0, "above": ROW * i + 24.0, "below": ROW * i + 44.0,
            "said": interval_text(of.estimate, of.low, of.high, sign=sign),
            "told": f"{name}: {interval_text(of.estimate, of.low, of.high, sign=sign)}",
            "colour": CORRECTED if i == 0 or zone is None else "#7a8694", "from": zone, "to": domain[1],
        }
        for i, (name, of) in enumerate(finite)
    ]  # fmt: skip
    base = alt.Chart(alt.InlineData(values))
    y: Row = {"scale": alt.Scale(domain=[height, 0], nice=False, zero=False), "axis": None}
    x: Row = {"scale": alt.Scale(domain=domain, nice=False, zero=False), "axis": None}
    colour = alt.Color("colour:N", scale=None)
    axis = [{"at": origin[0], "y": height - 9.0, "said": origin[1]}]
    layers = []
    if zone is not None:
        layers.append(
            base.mark_rect(color=_ZONE, opacity=0.16).encode(
                x=alt.X("from:Q", **x), x2="to:Q", y=alt.Y("above:Q", **y), y2="below:Q"
            )
        )
    rows_of_zero = [{"at": origin[0], "above": row["above"] - 2.0, "below": row["below"] + 2.0} for row in values]
    zero = alt.Chart(alt.InlineData(rows_of_zero))
    layers += [
        zero.mark_rule(color=GREY, strokeDash=[4, 3]).encode(
            x=alt.X("at:Q", **x), y=alt.Y("above:Q", **y), y2="below:Q"
        ),
        base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", **x), x2="high:Q", y=alt.Y("bar:Q", **y), color=colour),
        base.mark_point(filled=True, size=110, opacity=1).encode(
            x=alt.X("estimate:Q", **x), y=alt.Y("bar:Q", **y), color=colour, description="told:N"
        ),
        row_words(base, "of", y, x=alt.value(0), align="left"),
        row_words(base, "said", y, x=alt.value(WIDTH), align="right"),
        axis_words(axis, x, y, align=_aligned(origin, domain)),
    ]
    if said and zone is not None:
        # Beside the 0, and within the chart.
        room_right = (domain[1] - zone) / (domain[1] - domain[0]) * WIDTH
        at = {"at": zone, "y": height - 9.0, "said": said}
        fits = room_right > LETTER * len(said) + 20.0
        near = abs(zone) / (domain[1] - domain[0]) * WIDTH < 20.0
        layers.append(axis_words([at], x, y, align="left" if fits else "right", dx=16.0 if near else 0.0))
    return small_chart(alt.layer(*layers), about, height)


def _aligned(origin: tuple[float, str], domain: Sequence[float]) -> str:
    """Return how words below a place are aligned, so that they stay within the chart."""
    at = (origin[0] - domain[0]) / (domain[1] - domain[0]) * WIDTH
    half = LETTER * len(origin[1]) / 2.0
    return "left" if at < half else "right" if at > WIDTH - half else "center"


def row_words(base: Any, field: str, y: Row, *, x: Any, align: Any) -> Any:
    """Return the layer of the words above each row, at its left or right end."""
    marks = base.mark_text(align=align, baseline="middle", fontSize=FONT, color="black")
    return marks.encode(x=x, y=alt.Y("words:Q", **y), text=f"{field}:N")


def axis_words(rows: Sequence[Row], x: Row, y: Row, *, align: Any = "center", dx: float = 0.0) -> Any:
    """Return the layer of words below a chart, each at its place."""
    marks = alt.Chart(alt.InlineData(list(rows))).mark_text(
        align=align, baseline="middle", fontSize=FONT, color="black", dx=dx, opacity=0.75
    )
    return marks.encode(x=alt.X("at:Q", **x), y=alt.Y("y:Q", **y), text="said:N")


def small_chart(chart: Any, about: str, height: float) -> Spec:
    """Return a chart in the size of the page's small ones, with words for who does not see it."""
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    named = chart.properties(width=WIDTH, height=height, description=about, padding=1, autosize=fit)
    letters: Row = {"labelFontSize": FONT, "titleFontSize": FONT, "titleFontWeight": "normal"}
    spec: Spec = named.configure_view(strokeWidth=0).configure_axis(**letters).to_dict()
    return spec


def gain_chart(comparison: Comparison) -> Spec | None:
    """Return what the run of each candidate has earned more than the baseline so far, over days or displays."""
    verdict, results = comparison.verdict, comparison.results
    if verdict is None:
        return None
    ordered = sorted(verdict.candidates, key=lambda of: of.line.variant != verdict.variant)
    base, unit = comparison.curves[comparison.baseline], _days_a_round(results[verdict.variant])
    mean = results[comparison.baseline].value.estimate
    lines: list[tuple[str, list[Row]]] = []
    for of in ordered[:MOST_ROWS]:
        curve = comparison.curves[of.line.variant]
        rounds = np.asarray(curve.rounds)
        if not len(rounds) or not np.isfinite(curve.value.estimate).all() or not math.isfinite(mean):
            continue
        level: Any = mean
        if of.target != "weighted" and results[comparison.baseline].plan["policy"] != "logging" and len(base.rounds):
            level = np.interp(rounds, base.rounds, base.value.estimate)
        gain = rounds * (np.asarray(curve.value.estimate) - level)
        points = zip([0.0, *(rounds * unit)], [0.0, *gain], strict=True)
        lines.append((drawable(name_of(of.line, verdict)), [{"at": float(t), "gain": float(g)} for t, g in points]))
    if not lines:
        return None
    named = [f"{name} {significant_text(round(rows[-1]['gain']), 6, sign=True)}" for name, rows in lines]
    last = max(rows[-1]["at"] for _, rows in lines)
    gains = [row["gain"] for _, rows in lines for row in rows]
    low, high = min(gains), max(gains)
    room = 0.06 * (high - low) or 1.0
    label = LETTER * max(map(len, named)) + 14.0
    # The names are beside the lines where there is room for both, else above the last point.
    share = max(0.45, (WIDTH - 60.0 - label) / (WIDTH - 60.0))
    domain = [0.0, last / share]
    x: Row = {"scale": alt.Scale(domain=domain, nice=False, zero=False)}
    y: Row = {"scale": alt.Scale(domain=[low - room, high + room], nice=False, zero=False)}
    colours = [CORRECTED, "#7a8694", *LINES[1:]]
    marks = marks_to(last)
    axis_x = alt.Axis(title="days live" if unit != 1.0 else "displays", values=marks, format=",d", grid=False)
    axis_y = alt.Axis(title=None, tickCount=4, format=",d" if high - low >= 5.0 else "")
    layers = []
    per = (high - low + 2 * room) / (_GAIN_HEIGHT - 50.0)
    order = sorted(range(len(lines)), key=lambda i: float(lines[i][1][-1]["gain"]))
    places = apart([lines[i][1][-1]["gain"] for i in order], 19.0 * per, (low, high + room))
    heights = dict(zip(order, places, strict=True))
    for i, (_, rows) in enumerate(lines):
        tagged = [{**row, "colour": colours[i % len(colours)]} for row in rows]
        place: Row = {"x": alt.X("at:Q", axis=axis_x, **x), "y": alt.Y("gain:Q", axis=axis_y, **y)}
        line = alt.Chart(alt.InlineData(tagged)).mark_line(strokeWidth=2.5 if i == 0 else 2)
        layers.append(line.encode(**place, color=alt.Color("colour:N", scale=None)))
        end = alt.Chart(alt.InlineData([{"at": last, "gain": heights[i], "said": named[i]}]))
        text = end.mark_text(align="left", dx=8, baseline="middle", fontSize=FONT, color="black")
        layers.append(text.encode(**place, text="said:N"))
    about = f"Extra {comparison.results[0].plan['objective'] or 'reward'} of each run against the baseline so far"
    return small_chart(alt.layer(*layers), about, _GAIN_HEIGHT)


def _days_a_round(result: ReplayResult) -> float:
    known = math.isfinite(result.live_days) and result.live_days > 0 and result.rounds > 0
    return result.live_days / result.rounds if known else 1.0


def marks_to(last: float) -> list[float]:
    """Return up to six round numbers from 0 to a last one."""
    step = 10.0 ** math.floor(math.log10(last)) if last > 0 else 1.0
    for by in (0.2, 0.5, 1.0, 2.0):
        if last / (by * step) <= 5.5 and (by * step >= 1.0 or last < 1.0):
            return [by * step * i for i in range(int(last / (by * step)) + 1)]
    return [0.0, last]


def seen_chart(comparison: Comparison) -> Spec | None:
    """Return the share of each action: with the baseline, and with the headline's variant at first and at last."""
    verdict = comparison.verdict
    if verdict is None:
        return None
    of, base = comparison.results[verdict.variant], comparison.results[comparison.baseline]
    bars = [(name_of(verdict.baseline, verdict), np.asarray(base.action_share, np.float64))]
    name = name_of(verdict.candidate.line, verdict)
    first, last = first_and_last(of)
    if first is None:
        bars.append((name, np.asarray(of.action_share, np.float64)))
    else:
        bars += [(f"{name}, first tenth", first), (f"{name}, last tenth", last)]
    return shares_chart(bars, list(map(str, of.action_labels)))


def shares_chart(bars: Sequence[tuple[str, Any]], labels: Sequence[str]) -> Spec | None:
    """Return a bar for each name, cut into the shares of the actions, each of which has its own colour.

    Parameters
    ----------
    bars
        Name of each bar, and the share of each action, shape (K,).
    labels
        Labels of the K actions.
    """
    largest = np.argsort(-np.max([share for _, share in bars], axis=0), kind="stable")
    named = largest[:_NAMED]
    colours = action_colours(labels)
    values: list[Row] = []
    for i, (bar, shares) in enumerate(bars):
        if not np.isfinite(shares).all():
            return None
        left = 0.0
        rest = float(shares.sum() - shares[named].sum())
        parts = [(labels[k], float(shares[k]), colours[k]) for k in sorted(named)]
        if len(largest) > len(named):
            parts.append(("others", rest, GREY))
        for label, share, colour in parts:
            if share <= 0.0:
                continue
            words = f"{drawable(label)} {share:.0%}".replace("%", " %")
            room = share * WIDTH > LETTER * len(words) + 6.0
            short = f"{share:.0%}".replace("%", " %")
            shown = words if room else short if share * WIDTH > LETTER * len(short) + 6.0 else ""
            values.append({
                "bar": drawable(bar), "low": left, "high": left + share, "middle": left + share / 2.0, "said": shown,
                "told": f"{drawable(bar)}: {words}", "colour": colour, "ink": ink_on(colour),
                "name_at": ROW * i + 8.0, "top": ROW * i + 18.0, "bottom": ROW * i + 18.0 + 26.0,
                "centre": ROW * i + 31.0,
            })  # fmt: skip
            left += share
    height = ROW * len(bars)
    x: Row = {"scale": alt.Scale(domain=[0, 1], nice=False), "axis": None}
    y: Row = {"scale": alt.Scale(domain=[height, 0], nice=False, zero=False), "axis": None}
    base_chart = alt.Chart(alt.InlineData(values))
    heads = [{"bar": drawable(bar), "words": ROW * i + 8.0} for i, (bar, _) in enumerate(bars)]
    layers = [
        base_chart.mark_rect().encode(
            x=alt.X("low:Q", **x), x2="high:Q", y=alt.Y("top:Q", **y), y2="bottom:Q",
            color=alt.Color("colour:N", scale=None), description="told:N",
        ),
        row_words(alt.Chart(alt.InlineData(heads)), "bar", y, x=alt.value(0), align="left"),
    ]  # fmt: skip
    for ink in sorted({row["ink"] for row in values}):
        rows = [{key: row[key] for key in ("middle", "centre", "said")} for row in values if row["ink"] == ink]
        text = alt.Chart(alt.InlineData(rows)).mark_text(align="center", baseline="middle", fontSize=FONT, color=ink)
        layers.append(text.encode(x=alt.X("middle:Q", **x), y=alt.Y("centre:Q", **y), text="said:N"))
    return small_chart(alt.layer(*layers), "Share of each action", height)


def first_and_last(result: ReplayResult) -> tuple[Any, Any]:
    """Return the shares of the actions in the first and last tenth of the rounds; two None where nothing learns."""
    number, action = (result.trajectory[name].to_numpy() for name in ("round", "action"))
    n = len(result.action_labels)
    if result.rounds < 10 * _PARTS or result.plan["policy"] == "logging":
        return None, None
    most = number.max()
    parts = [action[number <= most / _PARTS], action[number > most - most / _PARTS]]
    if any(len(part) == 0 for part in parts):
        return None, None
    first, last = (np.bincount(part, minlength=n) / len(part) for part in parts)
    return first, last


def ink_on(colour: str) -> str:
    """Return the colour of words on a colour: of near black and white that which is told from it better.

    >>> ink_on("#0072B2"), ink_on("#E69F00")
    ('#ffffff', '#111111')
    """
    r, g, b = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (light + 0.05) > (light + 0.05) / 0.0557 else "#111111"
