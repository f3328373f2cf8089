"""What the page of a comparison says of its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from evaluator.comparisons.expected import LiveTest, Uplift
from evaluator.comparisons.rule import parse_ship_rule
from evaluator.comparisons.variants import Line
from evaluator.comparisons.verdict import Candidate, Condition, Verdict, decide
from evaluator.estimates.confidence import Interval
from evaluator.reports.answer_charts import intervals_chart
from evaluator.reports.decision_words import (
    candidate_rows,
    head,
    left_out,
    limit_of,
    next_title,
    ranked,
    sentences,
    short_name,
    steps,
    tiles,
)
from evaluator.reports.document import VerdictBlock


def of(estimate: float, half: float = 0.3) -> Interval:
    return Interval(estimate, estimate - half, estimate + half, 900, 0.975, "known")


def verdict(met: bool | None, *, checks: bool = True, estimate: float = 0.5, window: str = "7d") -> Verdict:
    test = LiveTest(0.5, 4_000, 12.4, 9_000, 27.2, 30.0, "where it is below 0")
    uplift = Uplift(of(estimate / 2, 0.1), "month", 10_146.0, of(10_146.0 * estimate, 3_000.0), 0.0004, 5_073.0, test)
    conditions = (
        Condition("difference", met, "its interval lies there", "" if met else "more displays"),
        Condition(
            "checks", checks, "a check failed" if not checks else "no check failed", "" if checks else "repair it"
        ),
    )
    known = [
        Candidate(Line(0, "ucb1", "7d", "ucb1"), "wait", of(estimate), "expected", conditions, uplift),
        Candidate(Line(1, "linucb", window, "linucb"), "wait", of(estimate / 5), "expected", conditions, uplift),
    ]
    return decide(known, rule=parse_ship_rule("uplift > 2%"), level=0.95, baseline=Line(2, "logging", "7d", "logging"))


def said(found: Verdict) -> str:
    return "".join(sentences(found))


def test_a_decision_names_policies_and_never_lines() -> None:
    block = VerdictBlock(verdict(True), earned=("1.50", "1.10", "1.00"))
    assert head(block.verdict) == ("Ship", "ucb1")
    assert said(block.verdict) == (
        "It is expected to earn 0.50 more a display than the logging policy (95 % interval 0.20 to 0.80, two "
        "candidates together, good for one look). The rule asks for more than 2 %."
    )
    assert [tile.number for tile in tiles(block)] == ["+25 %", "+5,100 a month", "under 0.1 %", "5,100"]
    assert "(1.50 instead of 1.00)" in tiles(block)[0].what
    rows = candidate_rows(block)
    assert [(row.name, row.earned, row.decision) for row in rows] == [
        ("ucb1", "1.50", "ship"), ("linucb", "1.10", "ship"), ("logging", "1.00", "")
    ]  # fmt: skip
    assert steps(block.verdict)[0] == (
        "Half of the traffic for 13 days (4,000 displays) shows +0.50 live with 80 % power; "
        "28 days if only +0.20 is true."
    )
    assert not any("line" in words for words in (said(block.verdict), *steps(block.verdict)))
    # Windows are named where they differ.
    assert head(verdict(True, window="1d")) == ("Ship", "ucb1, window 7d")


def test_what_is_wrong_takes_the_numbers_away_and_says_what_to_do() -> None:
    failed = verdict(True, checks=False)
    assert head(failed) == ("Wait", "with ucb1")
    assert "A check failed." in said(failed)
    assert tiles(VerdictBlock(failed)) == []
    assert steps(failed) == ["Repair it."]


@pytest.mark.parametrize(("met", "word"), [(None, "Wait"), (False, "Don't ship")])
def test_a_loss_is_said_as_less(met: bool | None, word: str) -> None:
    found = verdict(met, estimate=-0.5)
    assert head(found)[0] == word
    assert "more a display" not in said(found)
    assert "less a display than the logging policy (95 % interval -0.4" in said(found)


def test_a_row_says_what_stands_in_its_way_alone() -> None:
    found = verdict(True)
    broken = Condition("guardrails", False, "a guardrail is broken")
    one = verdict(True).with_condition([None, broken])
    assert [row.against for row in candidate_rows(VerdictBlock(found))] == ["", "", ""]
    assert [row.against for row in candidate_rows(VerdictBlock(one))] == ["", "guardrails", ""]
    assert [row.against for row in candidate_rows(VerdictBlock(verdict(True, checks=False)))] == ["", "", ""]


def of_many(estimates: Sequence[float], title: str) -> Verdict:
    """Return a verdict on candidates of these differences."""
    known = [
        Candidate(Line(i, f"p{i}", "7d", title.format(i)), "wait", of(estimate), "weighted",
                  (Condition("difference", estimate > 0.3, "its interval lies there"),))
        for i, estimate in enumerate(estimates)
    ]  # fmt: skip
    baseline = Line(len(known), "logging", "7d", "logging")
    return decide(known, rule=parse_ship_rule("uplift > 0"), level=0.95, baseline=baseline)


def test_a_table_has_the_best_candidates_and_counts_the_others() -> None:
    found = of_many([0.1, 0.9, 0.2, 0.8, 0.0, 0.7, 0.6, 0.5], "fixed:action=banner {} of the long spring sale")
    assert [one.line.variant for one in ranked(found)] == [1, 3, 5, 6, 7, 2, 0, 4]
    rows = candidate_rows(VerdictBlock(found))
    assert [row.name for row in rows[:2]] == ["banner 1 of the long spring sale", "banner 3 of the long spring sale"]
    assert len(rows) == 7
    assert left_out(found) == "Two more (2 don't): below, in all numbers."
    assert left_out(of_many([0.5, 0.4], "ucb{}")) == ""
    assert next_title(found) == "What to do next"


@pytest.mark.parametrize(
    "title",
    ["fixed:action=sale {} of the long and green spring", "fixed:action=9 (the long and green spring sale of {})",
     "the very long sale in spring of this and that year, {}", "policy:of_a_long_name=2,alpha=0.{}"],
)  # fmt: skip
def test_short_names_are_told_apart(title: str) -> None:
    found = of_many([0.5, 0.4, 0.6], title)
    names = [short_name(one.line, found, 18) for one in found.candidates]
    assert len(set(names)) == 3
    assert max(map(len, names)) <= 18
    assert [short_name(one.line, found, 90) for one in found.candidates] == [title.format(i) for i in range(3)]


def test_a_short_name_keeps_the_schedule_that_tells_it_from_others() -> None:
    found = of_many([0.5, 0.4, 0.3, 0.2], "")
    asked = (("thompson", "event"), ("thompson", "1d@03:00"), ("delayed-klucb", "event"), ("delayed-klucb", "1d@03:00"))
    lines = [Line(i, policy, "7d", learns=learns) for i, (policy, learns) in enumerate(asked)]
    known = tuple(replace(of, line=line) for of, line in zip(found.candidates, lines, strict=True))
    found = replace(found, candidates=known)
    assert [short_name(line, found, 18) for line in lines] == [
        "thompson, event", "thompson, 1d@03:00", "delay…klucb, event", "dela…ucb, 1d@03:00"
    ]  # fmt: skip
    assert short_name(lines[0], found, 30) == "thompson, at each event"


@pytest.mark.parametrize(
    ("estimates", "limit"), [([0.5], 0.0), ([-0.9], 0.0), ([0.5], 0.02), ([-5.0], 0.02), ([-0.2], 5.0), ([3.0], 2.9)]
)
def test_words_below_a_chart_are_within_it_and_apart(estimates: list[float], limit: float) -> None:
    words = f"rule: more than {limit:g}"
    chart = intervals_chart([("ucb1", of(one)) for one in estimates], "about", zone=limit, said=words)
    assert chart is not None
    low, high = chart["layer"][1]["encoding"]["x"]["scale"]["domain"]
    below = {}
    for layer in chart["layer"]:
        [row] = chart["datasets"][layer["data"]["name"]][-1:]
        if row.keys() == {"at", "y", "said"}:
            at = 440 * (row["at"] - low) / (high - low) + layer["mark"]["dx"]
            long, align = 8.6 * len(row["said"]), layer["mark"]["align"]
            start = at - {"left": 0.0, "center": long / 2, "right": long}[align]
            below[row["said"]] = (start, start + long)
    # A limit that lies on the 0 needs no other mark.
    apart = limit * 440 / (high - low) > 3.0
    assert below.keys() == ({words, "0"} if apart else {words})
    assert all(start >= 0.0 and end <= 440.0 for start, end in below.values())
    ordered = sorted(below.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


def test_groups_that_lose_stand_out() -> None:
    chart = intervals_chart([("phone", of(0.5)), ("desktop", of(-0.5))], "about", zone=None, said="")
    assert chart is not None
    colours = {row["of"]: row["colour"] for rows in chart["datasets"].values() for row in rows if "colour" in row}
    assert colours["phone"] != colours["desktop"]
    assert limit_of(verdict(True)) == pytest.approx(0.04)
