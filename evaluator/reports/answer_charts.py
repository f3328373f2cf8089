"""The small charts that follow the answers of every command, before the folds of its page, and their parts.

Each is as wide as a phone's screen allows with letters of 12 pixels, and has no title: the page has it beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import altair as alt
import numpy as np

from evaluator.comparisons.variants import Line
from evaluator.escape import escape, shortened
from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.reports.chart_parts import CORRECTED, GREY, LINES, NAIVE, apart, colours_of, delay_axis, drawable
from evaluator.reports.decision_words import MOST_ROWS, groups_of, limit_of, ranked, reward_of, rule_words, short_name
from evaluator.reports.document import Spec
from evaluator.reports.numbers import interval_text, percent_text, significant_text

if TYPE_CHECKING:
    from evaluator.audits.result import Audit
    from evaluator.checks.run import CheckReport
    from evaluator.comparisons.result import Comparison
    from evaluator.delays.study.result import DelayStudy

_ALARM = {"fail": "#c0392b", "warn": "#b87800", "pass": "#2e9e5b"}
# Smallest p-value that is told from smaller ones, in powers of ten.
_SURE = 9.0
_HEIGHT, _POINTS = 220, 200
# At 350 pixels, a phone's, letters of 15.5 have 12.3.
WIDTH, ROW, FONT = 440, 50, 15.5
# Right end of the numbers of rows, in pixels: some letters are wider on a page than where their width is estimated.
_RIGHT = WIDTH - 4
_DAY_MS = 86_400_000
LETTER = 8.6
OTHER = "#7a8694"
_ZONE, _LOSS, _NEAR_BLACK = "#2e9e5b", "#D55E00", "#333333"
# Letters of an action's name at least.
_FEWEST = 4
# Actions that have a colour of their own: those that are shown most, and of many those with such a share at least.
_NAMED, _SHARE = 6, 0.1
Row = dict[str, Any]
_GAIN_HEIGHT = 190
# Letters of a name beside its interval, and of a name with its number beside a line.
_LETTERS_OF_NAME, _LETTERS_BESIDE = 26, 24
# Parts of a run whose actions are shown: its first and its last one.
_PARTS = 10


def left_chart(report: CheckReport) -> Spec | None:
    """Return how many of a log's displays can be judged, and the rounds and conversions that a replay has of them."""
    young = report["immature displays"].numbers.get("immature")
    rows = [("displays", float(report.displays))]
    if isinstance(young, int) and young:
        rows.append(("old enough to be judged", float(report.displays - young)))
    rows += [("rounds of a replay", report.replay.rounds), ("conversions in them", report.replay.conversions)]
    values = [
        {
            "of": name, "said": f"{number:,.0f}", "words": ROW * i + 12.0, "top": ROW * i + 26.0,
            "bottom": ROW * i + 38.0, "zero": 0.0, "number": number, "told": f"{name}: {number:,.0f}",
            "colour": CORRECTED if i else GREY,
        }
        for i, (name, number) in enumerate(rows)
    ]  # fmt: skip
    chart, base = RowChart((0.0, float(report.displays)), ROW * len(rows) - 6), alt.Chart(alt.InlineData(values))
    chart.draw(base.mark_rect(), "zero", "top", x2="number", y2="bottom", coloured=True, told=True)
    chart.name_rows(base, right=_RIGHT)
    return chart.spec("Displays that a replay can use")


def tests_chart(report: CheckReport) -> Spec | None:
    """Return the p-value of each test with the limit from which it counts: a row an alarm, one for all that passed."""
    from evaluator.checks.dependence import WEAR_OUT
    from evaluator.checks.registry import number_tested

    users = "users" in report[WEAR_OUT.name].numbers
    level = report.options.false_alarms / number_tested(clustered=report.options.cluster_by is not None, users=users)
    tested = [one for one in report.checks if one.p_value is not None and one.verdict in _ALARM]
    alarms = sorted((one for one in tested if one.verdict != "pass"), key=lambda one: one.verdict)[: MOST_ROWS - 1]
    passed = [one for one in tested if one.verdict == "pass"]
    if not tested:
        return None
    rows = [(one.name, _p_text(one.p_value), [one]) for one in alarms]
    if passed:
        rows.append((f"{len(passed)} tests that passed", "", passed))
    limit = -math.log10(level)
    domain = (-0.2, max(_SURE, limit + 1.0) + 0.2)
    height = ROW * len(rows) + 24
    chart = RowChart(domain, height)
    heads = [{"of": name, "said": said, "words": ROW * i + 12.0} for i, (name, said, _) in enumerate(rows)]
    dots = [
        {"at": min(-math.log10(max(one.p_value or 0.0, 1e-300)), _SURE), "y": ROW * i + 34.0,
         "colour": _ALARM[one.verdict], "told": f"{one.name}: {_p_text(one.p_value)}"}
        for i, (_, _, checks) in enumerate(rows)
        for one in checks
    ]  # fmt: skip
    bands = [{"from": limit, "to": domain[1], "top": ROW * i + 24.0, "bottom": ROW * i + 44.0,
              "start": domain[0], "middle": ROW * i + 34.0} for i in range(len(rows))]  # fmt: skip
    band, dot = alt.Chart(alt.InlineData(bands)), alt.Chart(alt.InlineData(dots))
    chart.draw(band.mark_rect(color=_ALARM["fail"], opacity=0.16), "from", "top", x2="to", y2="bottom")
    chart.draw(band.mark_rule(color=GREY, opacity=0.6), "start", "middle", x2="to")
    chart.draw(dot.mark_point(filled=True, size=90, opacity=0.75), "at", "y", coloured=True, told=True)
    chart.name_rows(alt.Chart(alt.InlineData(heads)), right=_RIGHT)
    chart.say_below(domain[0], "by chance", align="left")
    chart.say_below(limit, f"p = {level:.1g}: it counts", align="left")
    return chart.spec("P-values of the tests")


def _p_text(p: float | None) -> str:
    return "" if p is None else "p < 1e-9" if p < 1e-9 else f"p {p:.2g}"


def bias_chart(audit: Audit) -> Spec | None:
    """Return the bias of each policy's replay with the interval within which it is called none."""
    rows = []
    for policy in audit.policies:
        low, high = policy.bias_range
        kind = "Student, over twins"
        rows.append(
            (drawable(audit.name_of(policy.policy)), Interval(policy.bias, low, high, audit.options.twins, 0.95, kind))
        )
    return intervals_chart(rows, "Replayed less live value of each policy", origin=(0.0, "no bias"))


def told_chart(audit: Audit) -> Spec | None:
    """Return each pair's live difference beside the smallest that is told; None where neither is known."""
    values: list[Row] = []
    for pair in audit.pairs:
        detects, live = (pair.alone if len(audit.pairs) == 1 else pair.ranked).high, pair.live_difference
        if not np.isfinite([detects, live]).all() or len(values) == MOST_ROWS:
            continue
        better, worse = (pair.first, pair.second) if live >= 0 else (pair.second, pair.first)
        name = f"{drawable(audit.name_of(better))} over {drawable(audit.name_of(worse))}"
        said = f"{abs(live):.2g}, told from {detects:.2g}"
        at = ROW * len(values)
        values.append({
            "of": name, "said": said, "words": at + 12.0, "top": at + 26.0, "bottom": at + 42.0, "middle": at + 34.0,
            "zero": 0.0, "detects": detects, "live": abs(live), "told": f"{name}: differs by {said}",
        })  # fmt: skip
    if not values:
        return None
    longest = max(max(row["detects"], row["live"]) for row in values)
    chart, base = RowChart((0.0, 1.04 * longest), ROW * len(values)), alt.Chart(alt.InlineData(values))
    chart.draw(base.mark_rect(color=GREY, opacity=0.45), "zero", "top", x2="detects", y2="bottom")
    diamonds = base.mark_point(color=NAIVE, shape="diamond", filled=True, size=150, opacity=1)
    chart.draw(diamonds, "live", "middle", told=True)
    chart.name_rows(base, right=_RIGHT)
    return chart.spec("Difference of each pair, and the smallest that is told")


def arrival_chart(study: DelayStudy) -> Spec | None:
    """Return the share of the conversions that have come by each delay, as seen and corrected."""
    from evaluator.delays.study.result import first_positive, last_shown, words

    fit, rows = study.fit, study.rows
    scale = rows.tick_seconds or 1.0
    start, end = first_positive(fit), max(last_shown(fit), first_positive(fit) * 1.5)
    at = np.unique(np.concatenate([np.geomspace(start, end, _POINTS), [start, end]]))
    places = np.maximum(np.searchsorted(fit.delays, at, side="right") - 1, 0)
    lines = [("corrected", fit.cdf[places], CORRECTED)]
    if np.abs(fit.naive - fit.cdf).max() > 1e-9:
        lines.insert(0, ("as seen", fit.naive[places], NAIVE))
    values = [
        {"delay": float(t) * scale, "share": float(s), "of": name, "colour": colour}
        for name, shares, colour in lines
        for t, s in zip(at, shares, strict=True)
    ]
    x = delay_axis(rows.tick_seconds, values, end * scale)
    x["axis"]["labelOverlap"], x["axis"]["grid"] = True, False
    y = alt.Y(
        "share:Q",
        scale=alt.Scale(domain=[0, 1.06]),
        axis=alt.Axis(format="%", title=None, values=[0, 0.25, 0.5, 0.75, 1]),
    )
    line = alt.Chart(alt.InlineData(values)).mark_line(interpolate="step-after", strokeWidth=2.5)
    marks: list[Row] = [
        {"delay": q.corrected * scale, "share": q.level, "said": f"{percent_text(q.level)}: {words(rows, q.corrected)}"}
        for q in study.quantiles
        if q.level in (0.5, 0.9) and start <= q.corrected <= end
    ]
    layers = [line.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), detail="of:N")]
    for mark in marks:
        left = math.log(mark["delay"] / (start * scale)) < 0.5 * math.log(end / start)
        # Beside the curve, which rises: below it on its right, above it on its left.
        point = alt.Chart(alt.InlineData([{**mark, "place": mark["share"] + (-0.05 if left else 0.05)}]))
        layers += [
            point.mark_point(filled=True, color=CORRECTED, size=110, opacity=1).encode(
                x=x, y=y, description="said:N"
            ),
            point.mark_text(
                align="left" if left else "right", dx=10 if left else -10, fontSize=FONT,
                color="black", baseline="middle",
            ).encode(x=x, y=alt.Y("place:Q", scale=y["scale"]), text="said:N"),
        ]  # fmt: skip
    return small_chart(alt.layer(*layers), "Share of the conversions that have come by each delay", _HEIGHT)


def change_chart(study: DelayStudy) -> Spec | None:
    """Return conversions per display of each period, as seen and corrected; None without several periods."""
    periods = study.rows.periods
    if periods is None or len(study.rates) < 2:
        return None
    lines = [("as seen", NAIVE, [(rate.period, rate.seen) for rate in study.rates])]
    corrected = [(rate.period, rate.corrected) for rate in study.rates if rate.corrected is not None]
    if any(abs(rate.seen - (rate.corrected or rate.seen)) > 1e-9 for rate in study.rates):
        lines.append(("corrected", CORRECTED, corrected))
    else:
        lines = [("as seen", CORRECTED, lines[0][2])]
    named = {rate.period: periods.label(rate.period, study.rows.tick_seconds) for rate in study.rates}
    dates = not named[study.rates[0].period].isdecimal()
    values: list[Row] = [
        {"at": named[period] if dates else period, "rate": rate, "of": name, "colour": colour,
         "told": f"{periods.name} {named[period]}, {name}: {rate:.2%}"}
        for name, colour, points in lines
        for period, rate in points
        if math.isfinite(rate)
    ]  # fmt: skip
    if dates:
        axis = alt.Axis(title=None, format="%Y-%m-%d", labelOverlap=True, tickMinStep=_DAY_MS, grid=False, tickCount=4)
        x: Any = alt.X("at:T", scale=alt.Scale(type="utc"), axis=axis)
    else:
        axis = alt.Axis(title=f"{periods.name} of the displays", tickMinStep=1, format="d", grid=False, tickCount=5)
        x = alt.X("at:Q", axis=axis)
    y = alt.Y("rate:Q", axis=alt.Axis(format="%", title=None, tickCount=4), scale=alt.Scale(zero=True))
    base = alt.Chart(alt.InlineData(values)).encode(x=x, y=y, color=alt.Color("colour:N", scale=None))
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5).encode(detail="of:N"),
        base.mark_point(filled=True, size=40, opacity=1).encode(description="told:N"),
    )
    return small_chart(chart, "Conversions per display of each period", _HEIGHT)


def earned_chart(result: ReplayResult) -> Spec | None:
    """Return what a display earned with the policy and with the best fixed action, against the logging policy."""
    best = result.best_fixed_action
    rows = [(drawable(result.title), result.value)]
    if best.label:
        rows.append((drawable(f"best fixed {best.kind}: {best.label}"), best.value))
    if result.final is not None and result.final.estimates["snips"].given:
        own = result.final.policy in ("fixed", "columns")
        name = f"{drawable(result.title) if own else 'final policy'}, by weights"
        rows.append((name, result.final.estimates["snips"].value))
    logged = result.logging_value.estimate
    if not (result.rounds and math.isfinite(logged)):
        return None
    number = significant_text(logged, 3)
    return intervals_chart(rows, "Reward of a display", origin=(logged, f"logging policy {number}"), sign=False)


def learned_chart(result: ReplayResult) -> Spec | None:
    """Return the share of each action, at first and at last where the policy learns; None for a single action."""
    shares = np.asarray(result.action_share, np.float64)
    if not result.rounds or np.count_nonzero(shares) < 2:
        return None
    first, last = first_and_last(result)
    name = result.title
    bars = [(name, shares)] if first is None else [(f"{name}, first tenth", first), (f"{name}, last tenth", last)]
    return shares_chart(bars, list(map(str, result.action_labels)))


def uplifts_chart(result: ReplayResult) -> Spec | None:
    """Return the uplift over the logging policy in the groups of the first column of groups."""
    if not result.segments:
        return None
    split = result.segments[0]
    total = sum(group.displays for group in split.groups) or 1
    rows = [
        (f"{drawable(group.label)}  {percent_text(group.displays / total)}", group.uplift) for group in split.groups
    ]
    return intervals_chart(rows, f"Uplift over the logging policy by {drawable(split.column)}")


def shown_chart(facts: Mapping[str, Any]) -> Spec | None:
    """Return the shares of a log's displays that its actions have, from the facts of `evaluator.datasets.show`."""
    log = facts.get("log")
    if not log or "top_actions" not in log:
        return None
    actions: Sequence[Mapping[str, Any]] = log["top_actions"]
    displays = log["displays"]
    if len(actions) < 2 or not displays:
        return None
    shares = [action["displays"] / displays for action in actions]
    labels = [str(action["label"]) for action in actions]
    if log["actions"] > len(actions):
        shares, labels = [*shares, 1.0 - sum(shares)], [*labels, f"{log['actions'] - len(actions):,} others"]
    return shares_chart([("displays of each action", np.asarray(shares))], labels)


def intervals_chart(
    rows: Sequence[tuple[str, Interval]],
    about: str,
    *,
    zone: float | None = None,
    said: str = "",
    origin: tuple[float, str] = (0.0, "0"),
    sign: bool = True,
    ends: Sequence[float] = (),
    most: int = MOST_ROWS,
    headline: int = 0,
) -> Spec | None:
    """Return intervals, one below the other, each with its name and its numbers; None without any.

    Parameters
    ----------
    rows, about
        Name and interval of each row, and words on the chart for who does not see it.
    zone, said
        Limit above which the rule is met, and words on it; None without a rule, where intervals below the origin stand
        out.
    origin
        Number that the intervals are compared with, and its words.
    sign, most
        Whether to write the sign of numbers above 0; number of rows at most.
    ends
        Numbers that the scale has room for beside those of the rows.
    headline
        Row that stands out; the others do where there is no rule.
    """
    finite = [(name, of) for name, of in rows if np.isfinite([of.estimate, of.low, of.high]).all()][:most]
    if not finite:
        return None
    ends = [origin[0], *([] if zone is None else [zone]), *filter(math.isfinite, ends),
            *(end for _, of in finite for end in (of.low, of.high))]  # fmt: skip
    room = 0.04 * (max(ends) - min(ends)) or 1.0
    domain = (min(ends) - room, max(ends) + room)
    height = ROW * len(finite) + 24

    def colour_of(i: int, of: Interval) -> str:
        if zone is None:
            return _LOSS if of.high < origin[0] else CORRECTED
        return CORRECTED if i == headline else OTHER

    values: list[Row] = [
        {
            "of": name, "estimate": of.estimate, "low": of.low, "high": of.high,
            "words": ROW * i + 12.0, "bar": ROW * i + 34.0, "above": ROW * i + 24.0, "below": ROW * i + 44.0,
            "said": interval_text(of.estimate, of.low, of.high, sign=sign),
            "told": f"{name}: {interval_text(of.estimate, of.low, of.high, sign=sign)}",
            "colour": colour_of(i, of),
            "from": zone, "to": domain[1],
        }
        for i, (name, of) in enumerate(finite)
    ]  # fmt: skip
    chart, base = RowChart(domain, height), alt.Chart(alt.InlineData(values))
    if zone is not None:
        chart.draw(base.mark_rect(color=_ZONE, opacity=0.16), "from", "above", x2="to", y2="below")
    rows_of_zero = [{"at": origin[0], "above": row["above"] - 2.0, "below": row["below"] + 2.0} for row in values]
    zero = alt.Chart(alt.InlineData(rows_of_zero))
    chart.draw(zero.mark_rule(color=GREY, strokeDash=[4, 3]), "at", "above", y2="below")
    chart.draw(base.mark_rule(strokeWidth=3), "low", "bar", x2="high", coloured=True)
    chart.draw(base.mark_point(filled=True, size=110, opacity=1), "estimate", "bar", coloured=True, told=True)
    chart.name_rows(base, right=WIDTH - 2)
    for mark in _marks_below(domain, zone, said, origin):
        chart.say_below(mark.at, mark.said, align=mark.align, dx=mark.dx)
    return chart.spec(about)


class RowChart:
    """The layers of a small chart with a row a line, whose words stand beside its marks: axes have no ticks."""

    def __init__(self, domain: tuple[float, float], height: float, *, zero: Any = False) -> None:
        self._height = height
        self._x: Row = {"scale": alt.Scale(domain=list(domain), nice=False, zero=zero), "axis": None}
        self._y: Row = {"scale": alt.Scale(domain=[height, 0], nice=False, zero=False), "axis": None}
        self._layers: list[Any] = []

    def draw(
        self, marks: Any, x: str, y: str, *, x2: str = "", y2: str = "", text: str = "", coloured: bool = False,
        told: bool = False,
    ) -> None:  # fmt: skip
        """Add marks at some columns of their rows, which have their own colours, or words for who does not see them."""
        channels: Row = {"x": alt.X(f"{x}:Q", **self._x), "y": alt.Y(f"{y}:Q", **self._y)}
        channels |= {name: f"{of}:Q" for name, of in (("x2", x2), ("y2", y2)) if of}
        channels |= {"text": f"{text}:N"} if text else {}
        channels |= {"color": alt.Color("colour:N", scale=None)} if coloured else {}
        channels |= {"description": "told:N"} if told else {}
        self._layers.append(marks.encode(**channels))

    def name_rows(self, base: Any, *, name: str = "of", right: float | None = None) -> None:
        """Add the names of the rows above them, at their left, and their numbers at the right, in pixels."""
        places = [(name, 0, "left"), *([] if right is None else [("said", right, "right")])]
        for field, at, align in places:
            marks = base.mark_text(align=align, baseline="middle", fontSize=FONT, color="black")
            self._layers.append(marks.encode(x=alt.value(at), y=alt.Y("words:Q", **self._y), text=f"{field}:N"))

    def say_below(self, at: float, said: str, *, align: Any = "center", dx: float = 0.0) -> None:
        """Add words below the rows, at a place of the axis."""
        base = alt.Chart(alt.InlineData([{"at": at, "y": self._height - 9.0, "said": said}]))
        marks = base.mark_text(align=align, baseline="middle", fontSize=FONT, color="black", dx=dx, opacity=0.75)
        self.draw(marks, "at", "y", text="said")

    def spec(self, about: str) -> Spec:
        """Return the chart, with words for who does not see it."""
        return small_chart(alt.layer(*self._layers), about, self._height)


class _Mark(NamedTuple):
    """Words below a chart of intervals, their place, on which side of it they stand, and by how much they move."""

    at: float
    said: str
    align: Literal["left", "center", "right"] = "center"
    dx: float = 0.0


def _marks_below(domain: Sequence[float], zone: float | None, said: str, origin: tuple[float, str]) -> list[_Mark]:
    """Return the origin, and what the rule asks for, beside it: a rule of 0 is both."""
    per = WIDTH / (domain[1] - domain[0])
    if zone is None or not said:
        at, half = (origin[0] - domain[0]) * per, LETTER * len(origin[1]) / 2.0
        return [_Mark(*origin, "left" if at < half else "right" if at > WIDTH - half else "center")]
    length = LETTER * len(said)
    left = (domain[1] - zone) * per > length + 20.0
    align: Literal["left", "right"] = "left" if left else "right"
    # Places of the 0 relative to the words.
    zero = (origin[0] - zone) * per
    if abs(zero) < 3.0:
        return [_Mark(zone, said, align)]
    over = -14.0 < zero < length + 14.0 if left else -length - 14.0 < zero < 14.0
    shift = (zero + 14.0 if left else zero - 14.0) if over else 0.0
    return [_Mark(*origin), _Mark(zone, said, align, shift)]


def small_chart(chart: Any, about: str, height: float) -> Spec:
    """Return a chart in the size of the page's small ones, with words for who does not see it."""
    fit = alt.AutoSizeParams(type="fit", contains="padding")
    named = chart.properties(width=WIDTH, height=height, description=about, padding=1, autosize=fit)
    letters: Row = {"labelFontSize": FONT, "titleFontSize": FONT, "titleFontWeight": "normal"}
    spec: Spec = named.configure_view(strokeWidth=0).configure_axis(**letters).to_dict(validate=False)
    return spec


def shares_chart(bars: Sequence[tuple[str, Any]], labels: Sequence[str]) -> Spec | None:
    """Return a bar for each name, cut into the shares of the actions, each of which has its own colour.

    Each bar has its name, and the share of each action, shape (K,), by the K labels.
    """
    most = np.max([share for _, share in bars], axis=0)
    largest = np.argsort(-most, kind="stable")[:_NAMED]
    several = len(labels) > _NAMED
    named = sorted(k for k in largest if not several or most[k] >= _SHARE or k == largest[0])
    # Black would become the colour of the page's words.
    colours = [_NEAR_BLACK if of == "#000000" else of for of in colours_of(named, labels, others=False)]
    values: list[Row] = []
    for i, (bar, shares) in enumerate(bars):
        if not np.isfinite(shares).all():
            return None
        left = 0.0
        parts = [(labels[k], float(shares[k]), colour) for k, colour in zip(named, colours, strict=True)]
        if several:
            parts.append(("others", float(shares.sum() - shares[named].sum()), GREY))
        for label, share, colour in parts:
            if share <= 0.0:
                continue
            values.append({
                "low": left, "high": left + share, "middle": left + share / 2.0, "said": _within_bar(label, share),
                "told": f"{drawable(bar)}: {drawable(label)} {percent_text(share)}", "colour": colour,
                "ink": ink_on(colour), "top": ROW * i + 18.0, "bottom": ROW * i + 18.0 + 26.0,
                "centre": ROW * i + 31.0,
            })  # fmt: skip
            left += share
    height = ROW * len(bars)
    chart, base = RowChart((0, 1), height, zero=alt.Undefined), alt.Chart(alt.InlineData(values))
    chart.draw(base.mark_rect(), "low", "top", x2="high", y2="bottom", coloured=True, told=True)
    heads = [{"bar": escape(bar), "words": ROW * i + 8.0} for i, (bar, _) in enumerate(bars)]
    chart.name_rows(alt.Chart(alt.InlineData(heads)), name="bar")
    for ink in sorted({row["ink"] for row in values}):
        rows = [{key: row[key] for key in ("middle", "centre", "said")} for row in values if row["ink"] == ink]
        text = alt.Chart(alt.InlineData(rows)).mark_text(align="center", baseline="middle", fontSize=FONT, color=ink)
        chart.draw(text, "middle", "centre", text="said")
    return chart.spec("Share of each action")


def _within_bar(label: str, share: float) -> str:
    """Return as much of an action's name and share as the part of a bar has room for."""
    letters, number = int((share * WIDTH - 6.0) / LETTER), percent_text(share)
    if letters > len(number) + _FEWEST:
        return f"{shortened(escape(label), letters - len(number) - 1)} {number}"
    return number if letters >= len(number) else ""


def ink_on(colour: str) -> str:
    """Return the colour of words on a colour: of near black and white that which is told from it better.

    >>> ink_on("#0072B2"), ink_on("#E69F00")
    ('#ffffff', '#111111')
    """
    r, g, b = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (light + 0.05) > (light + 0.05) / 0.0557 else "#111111"


def decision_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of each candidate that decides, with the zone in which the rule is met."""
    verdict = comparison.verdict
    if verdict is None:
        return None
    known = [
        (short_name(of.line, verdict, _LETTERS_OF_NAME), of.difference)
        for of in ranked(verdict)
        if of.difference is not None
    ]
    limit = limit_of(verdict)
    said = "" if limit is None else f"rule: more than {rule_words(verdict)}"
    return intervals_chart(known, "Difference to the baseline of each candidate", zone=limit, said=said)


def gainers_chart(comparison: Comparison) -> Spec | None:
    """Return the difference of the headline's variant in each group of displays."""
    found = groups_of(comparison)
    if found is None:
        return None
    splits = [split for split in comparison.results[found.variant].segments if split.column == found.column]
    displays = {group.label: group.displays for split in splits for group in split.groups}
    total = sum(displays.values())

    def name(label: str) -> str:
        return drawable(label) + (f"  {percent_text(displays[label] / total)}" if label in displays else "")

    groups = [(name(group.label), group.of_values) for group in found.groups]
    return intervals_chart(groups, f"Difference to the baseline by {drawable(found.column)}")


def gain_chart(comparison: Comparison) -> Spec | None:
    """Return what the run of each candidate has earned more than the baseline so far, over days or displays."""
    verdict, results = comparison.verdict, comparison.results
    if verdict is None:
        return None
    base, of_headline = comparison.curves[comparison.baseline], results[verdict.variant]
    dated = math.isfinite(of_headline.live_days) and of_headline.live_days > 0 and of_headline.rounds > 0
    unit = of_headline.live_days / of_headline.rounds if dated else 1.0
    mean = results[comparison.baseline].value.estimate
    lines: list[tuple[Line, list[Row]]] = []
    for of in ranked(verdict)[:MOST_ROWS]:
        curve = comparison.curves[of.line.variant]
        rounds = np.asarray(curve.rounds)
        if not len(rounds) or not np.isfinite(curve.value.estimate).all() or not math.isfinite(mean):
            continue
        level: Any = mean
        if of.target != "weighted" and results[comparison.baseline].plan["policy"] != "logging" and len(base.rounds):
            level = np.interp(rounds, base.rounds, base.value.estimate)
        gain = rounds * (np.asarray(curve.value.estimate) - level)
        points = zip([0.0, *(rounds * unit)], [0.0, *gain], strict=True)
        lines.append((of.line, [{"at": float(t), "gain": float(g)} for t, g in points]))
    if not lines:
        return None
    named = []
    for line, rows in lines:
        number = significant_text(round(rows[-1]["gain"]), 6, sign=True)
        named.append(f"{short_name(line, verdict, _LETTERS_BESIDE - 1 - len(number))} {number}")
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
    colours = [CORRECTED, OTHER, *LINES[1:]]
    marks = marks_to(last)
    # The title stands beside the last number, so that it takes no line of its own.
    whole = all(mark == round(mark) for mark in marks)
    beside = (WIDTH - 45.0) * marks[-1] / domain[1] + LETTER / 2.0 * len(f"{marks[-1]:,.3g}") + 14.0
    axis_x = alt.Axis(
        title="days live" if unit != 1.0 else "displays", values=marks, format=",d" if whole else ".2~f", grid=False,
        titleAlign="left", titleBaseline="top", titleX=beside, titleY=7,
    )  # fmt: skip
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
    about = f"Extra {reward_of(comparison)} of each run against the baseline so far"
    return small_chart(alt.layer(*layers), about, _GAIN_HEIGHT)


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
    bars: list[tuple[str, Any]] = [(verdict.name_of(verdict.baseline), np.asarray(base.action_share, np.float64))]
    name = short_name(verdict.candidate.line, verdict, _LETTERS_OF_NAME)
    first, last = (None, None) if verdict.candidate.target == "weighted" else first_and_last(of)
    if first is None:
        bars.append((name, np.asarray(of.action_share, np.float64)))
    else:
        bars += [(f"{name}, first tenth of the run", first), (f"{name}, last tenth", last)]
    return shares_chart(bars, list(map(str, of.action_labels)))


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
