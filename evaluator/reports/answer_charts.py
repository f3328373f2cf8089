"""The small pictures that follow the answers of checks, audits, studies of delays, replays and descriptions of logs.

Each is as wide as a phone's screen allows with letters of 12 pixels, and has no title: the page has it beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from evaluator.estimates.confidence import Interval
from evaluator.replays.result import ReplayResult
from evaluator.reports.chart_parts import CORRECTED, GREY, NAIVE, delay_axis, drawable
from evaluator.reports.decision_words import MOST_ROWS
from evaluator.reports.document import Spec
from evaluator.reports.numbers import percent_text, significant_text
from evaluator.reports.small_charts import (
    FONT,
    ROW,
    WIDTH,
    Row,
    RowChart,
    first_and_last,
    intervals_chart,
    shares_chart,
    small_chart,
)

if TYPE_CHECKING:
    from evaluator.audits.result import Audit
    from evaluator.checks.run import CheckReport
    from evaluator.delays.study.result import DelayStudy

_ALARM = {"fail": "#c0392b", "warn": "#b87800", "pass": "#2e9e5b"}
# Smallest p-value that is told from smaller ones, in powers of ten.
_SURE = 9.0
_HEIGHT, _POINTS = 220, 200
# Right end of the numbers of rows, in pixels: some letters are wider on a page than where their width is estimated.
_RIGHT = WIDTH - 4
_DAY_MS = 86_400_000


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
