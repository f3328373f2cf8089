"""The four small charts of a comparison's page: the difference, who gains, when it pays, and what is shown."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from evaluator.comparisons.result import Comparison
from evaluator.comparisons.variants import Line
from evaluator.comparisons.verdict import Verdict
from evaluator.replays.result import ReplayResult
from evaluator.reports.chapter import Spec
from evaluator.reports.chart_parts import CORRECTED, LINES, apart, drawable
from evaluator.reports.decision_words import (
    MOST_ROWS,
    groups_of,
    name_of,
    ranked,
    reward_of,
    rule_words,
    short_name,
)
from evaluator.reports.numbers import percent_text, significant_text
from evaluator.reports.small_charts import (
    FONT,
    LETTER,
    OTHER,
    WIDTH,
    Row,
    intervals_chart,
    shares_chart,
    small_chart,
)

_GAIN_HEIGHT = 190
# Letters of a name beside its interval, and of a name with its number beside a line.
_LETTERS_OF_NAME, _LETTERS_BESIDE = 26, 24
# Parts of a run whose actions are shown: its first and its last one.
_PARTS = 10


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
        return drawable(label) + (f"  {percent_text(displays[label] / total)}" if label in displays else "")

    groups = [(name(group.label), group.of_values) for group in found.groups]
    return intervals_chart(groups, f"Difference to the baseline by {drawable(found.column)}")


def gain_chart(comparison: Comparison) -> Spec | None:
    """Return what the run of each candidate has earned more than the baseline so far, over days or displays."""
    verdict, results = comparison.verdict, comparison.results
    if verdict is None:
        return None
    base, unit = comparison.curves[comparison.baseline], _days_a_round(results[verdict.variant])
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
    bars: list[tuple[str, Any]] = [(name_of(verdict.baseline, verdict), np.asarray(base.action_share, np.float64))]
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
