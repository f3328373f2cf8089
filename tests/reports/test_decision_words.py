"""What the page of a comparison says of its verdict."""

from __future__ import annotations

import pytest

from evaluator.comparisons.lines import Line
from evaluator.comparisons.ship_rule import parse_ship_rule
from evaluator.comparisons.uplift import LiveTest, Uplift
from evaluator.comparisons.verdict import Candidate, Condition, Verdict, decide
from evaluator.estimates.confidence import Interval
from evaluator.reports.decision_words import candidate_rows, head, sentences, steps, tiles
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
