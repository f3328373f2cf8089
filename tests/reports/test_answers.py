"""Every report says its answer first, then shows pictures and a table, and folds everything else."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from evaluator.estimates.confidence import Interval
from evaluator.findings.codes import YOUNG_DISPLAYS
from evaluator.reports.document import ANSWER, Bullets, Document, Grid, Layout, Lights, Section
from evaluator.reports.documents import charts_of, document_of

ANSWERED = ["check", "audit", "delays", "replay", "log"]
PAGE = Layout(page=True, dates="1 to 9 March 2026")


def document(result: Any, layout: Layout = PAGE) -> Document:
    return document_of(result, layout)


def answer_of(result: Any, layout: Layout = PAGE) -> Section:
    (found,) = (part for part in document(result, layout).sections if part.id == ANSWER)
    return found


def colour_of(result: Any) -> str:
    return answer_of(result).title[0].colour


def said(part: Section) -> str:
    return " ".join(run.text for block in part.blocks for run in getattr(block, "words", ()))


@pytest.mark.parametrize("name", ANSWERED)
def test_a_page_has_answer_pictures_table_and_folds_in_this_order(name: str, results: dict[str, Any]) -> None:
    sections = document(results[name]).sections
    assert [part.id for part in sections[:2]] == ["log", ANSWER]
    kinds = ["fold" if part.fold else "picture" if part.half else "table" for part in sections[2:]]
    order = ["picture", "table", "fold"]
    assert kinds == sorted(kinds, key=order.index)
    assert kinds.count("picture") <= 2
    tables = [block for part in sections[2:] if not part.fold for block in part.blocks]
    assert any(isinstance(block, Grid | Lights) for block in tables) or name == "check"
    # A picture of no section would stand above the answer.
    drawn = charts_of(results[name])
    assert set(drawn) <= {chart for part in sections for chart in part.charts}
    assert all(part.fold[1].text.strip() for part in sections if part.fold)


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.parametrize("full", [True, False])
def test_a_terminal_says_the_answer_first(name: str, full: bool, results: dict[str, Any]) -> None:
    sections = document(results[name], Layout(full=full)).sections
    assert [part.id for part in sections[:2]] == [ANSWER, "log"]
    assert not any(part.half or part.charts for part in sections)


def test_dates_stand_beside_the_name_of_the_log(results: dict[str, Any]) -> None:
    for name in ("check", "audit", "delays", "replay"):
        assert "1 to 9 March 2026" in said(document(results[name]).sections[0])


def test_a_check_says_what_is_wrong_first_and_its_remedy(results: dict[str, Any]) -> None:
    found = results["check"]
    passed = replace(found.checks[0], verdict="pass")
    fit = replace(found, checks=tuple(replace(one, verdict="pass", follows_from="") for one in found.checks))
    assert colour_of(fit) == "green"
    assert answer_of(fit).name == "Fit for replay, as far as this log can tell"
    warned = replace(passed, verdict="warn", name="traffic", what="It stops.", remedy="Go on.")
    failed = replace(passed, verdict="fail", name="overlap", what="None there.", remedy="Leave it out.")
    with_warning = replace(fit, checks=(*fit.checks[1:], warned))
    assert (colour_of(with_warning), answer_of(with_warning).name[:21]) == ("yellow", "Fit with reservations")
    assert "traffic" in said(answer_of(with_warning))
    unfit = replace(fit, checks=(*(one for one in fit.checks if one.name != "overlap"), warned, failed))
    assert (colour_of(unfit), answer_of(unfit).name) == ("red", "Not fit for replay: 1 failed, 1 warned")
    assert re.search(r"First,  overlap .*None there\. What to do:  Leave it out\.", said(answer_of(unfit)))
    assert "It stops" not in said(answer_of(unfit))
    small = replace(fit, replay=replace(fit.replay, rewards=3.0))
    assert (colour_of(small), answer_of(small).title[0].text) == ("yellow", "Too small")


def test_an_audit_says_whether_a_bias_was_seen_and_what_could_go_unseen(results: dict[str, Any]) -> None:
    found = replace(results["audit"], not_in_twins=())
    off = replace(found.policies[0], bias=1.0, bias_standard_error=0.01)
    assert off.biased
    low, high = off.bias_range
    assert low > 0.0
    assert high - low == pytest.approx(2.0 * (off.detectable_bias - 0.8416 * 0.01), rel=1e-3)
    biased = replace(found, policies=(off, *found.policies[1:]))
    assert (colour_of(biased), answer_of(biased).name) == ("red", f"Biased: {off.policy}")
    sound = tuple(replace(one, bias=0.0, bias_standard_error=0.01) for one in found.policies)
    (pair,) = found.pairs
    for live, apart, colour in ((99.0, "is told apart", "green"), (0.0, "is not told apart", "yellow")):
        detects = replace(pair.alone, low=0.5, high=0.6, difference=0.5)
        pairs = (replace(pair, live_difference=live, live_standard_error=0.01, alone=detects, ranked=detects),)
        none = replace(found, policies=sound, pairs=pairs)
        assert colour_of(none) == colour
        unseen = f"{sound[0].detectable_bias:.2g}"
        assert answer_of(none).name == f"No bias seen, one below {unseen} could have gone unseen; the pair {apart}"


def test_an_audit_names_the_action_of_a_fixed_policy(results: dict[str, Any]) -> None:
    found = results["audit"]
    first = replace(found.policies[0], policy="fixed:action=1")
    named = replace(found, policies=(first, *found.policies[1:]), labels=("blue", "red"))
    for layout in (PAGE, Layout(), Layout(width=80), Layout(full=False)):
        tables = [
            block for part in document(named, layout).sections for block in part.blocks if isinstance(block, Grid)
        ]
        titles = [part.name for part in document(named, layout).sections]
        cells = ["".join(run.text for run in cell) for table in tables for row in table.rows for cell in row]
        assert "fixed:action=red" in [*cells, *titles]
        assert "fixed:action=1" not in [*cells, *titles]


def test_a_study_of_delays_says_when_90_of_100_conversions_are_in(results: dict[str, Any]) -> None:
    from evaluator.delays.study.result import words

    study = results["delays"]
    late = next(one for one in study.quantiles if one.level == 0.9)
    assert answer_of(study).name == f"{words(study.rows, late.corrected)} until 90 % of the conversions are in"
    assert words(study.rows, study.advice.recommended) in said(answer_of(study))
    assert study.drift is not None
    for changed, colour in ((True, "yellow"), (False, "")):
        assert colour_of(replace(study, drift=replace(study.drift, changed=changed))) == colour
    bounded = replace(study, drift=replace(study.drift, changed=False))
    endless = tuple(replace(one, high=float("inf")) for one in study.quantiles)
    assert colour_of(replace(bounded, quantiles=endless)) == "yellow"


@pytest.mark.parametrize(
    ("low", "high", "colour", "told"),
    [(0.1, 0.5, "green", "more than"), (-0.5, -0.1, "red", "less than"), (-0.1, 0.5, "yellow", "not told from")],
)
def test_a_replay_says_how_it_compares_with_the_logging_policy(
    low: float, high: float, colour: str, told: str, results: dict[str, Any]
) -> None:
    uplift = Interval((low + high) / 2.0, low, high, 900, 0.95, "known")
    found = replace(results["replay"], uplift=uplift)
    assert colour_of(found) == colour
    assert answer_of(found).name.endswith(f"a display with ucb1: {told} the logging policy")
    assert f"95 % interval of the difference: {low:+.2f} to {high:+.2f}" in said(answer_of(found))


def test_a_replay_without_rewards_says_that_it_has_no_value(results: dict[str, Any]) -> None:
    nothing = Interval(float("nan"), float("nan"), float("nan"), 0, 0.95, "known")
    found = replace(results["replay"], value=nothing, uplift=nothing)
    assert answer_of(found).name == "No value of ucb1"


def test_warnings_are_counted_beside_the_answer_and_folded(results: dict[str, Any]) -> None:
    young = YOUNG_DISPLAYS.found("many are young")
    found = replace(results["replay"], findings=(young,))
    (rests,) = (block for block in answer_of(found).blocks if isinstance(block, Bullets))
    assert "1 warning" in [item[-1].text for item in rests.items]
    (warnings,) = (part for part in document(found).sections if part.id == "warnings")
    assert warnings.fold
