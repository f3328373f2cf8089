"""Checks as lights: the worst first, each with its word, number, meaning and remedy, on every page that shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator import CheckReport, check
from evaluator.reports.check import checks_of_log
from evaluator.reports.document import Lights
from evaluator.reports.documents import chapter_of
from evaluator.reports.html import page_of
from evaluator.reports.manifest import read_chapter, write_chapter
from tests.checks.defects import DEFECTS


@pytest.fixture(scope="module")
def report() -> CheckReport:
    """Of a log with a defect that two checks fail, a third of which is told as a warning."""
    found = check(DEFECTS["action depends on the context, propensities constant"][0](1))
    assert len(found.having("fail")) == 2
    third = replace(found.having("pass")[0], verdict="warn", remedy="Look at `propensity`.")
    return replace(found, checks=tuple(third if f.name == third.name else f for f in found.checks))


def test_a_page_lists_the_worst_first_with_meaning_and_remedy(report: CheckReport, tmp_path: Path) -> None:
    write_chapter(tmp_path, chapter_of(report))
    page = page_of([read_chapter(tmp_path)])
    shown, _, folded = page.partition('<details class="fold">')
    first, *more = (*report.having("fail"), *report.having("warn"))
    head = shown.partition("</h1>")
    assert head[0].endswith('Not fit</span><span style="font-weight:600"> for replay: 2 failed, 1 warned</span>')
    # The worst is the answer's, with its remedy; the others stand below, and what passed is folded.
    assert f">{first.name}</span>" in head[2].partition('class="two"')[0]
    verdicts = re.findall(r"font-weight:600\">(\w+)</span> <span", page)
    assert verdicts == [*(one.verdict for one in more), *(one.verdict for one in report.having("pass"))]
    assert page.count("What to do: ") == sum(1 for f in report.checks if f.remedy)
    assert "Look at --propensity." in page
    for f in report.checks:
        assert f">{f.name}</span>" in (shown if f.verdict in ("fail", "warn") else folded)


def test_lights_are_told_apart_without_their_colours(report: CheckReport) -> None:
    drawn = dict(re.findall(r'<path d="([^"]+)" fill="[^"]+"/>.*?font-weight:600">(\w+)<', report.page(), re.S))
    assert sorted(drawn.values()) == ["fail", "pass", "warn"]


def test_beside_a_comparison_stand_those_that_did_not_pass_in_brief(report: CheckReport) -> None:
    section = checks_of_log(report)
    assert section.name.startswith("Checks of the log")
    (block,) = section.blocks
    assert isinstance(block, Lights)
    assert [(of.verdict, of.name) for of in block.lights] == [
        (of.verdict, of.name) for of in (*report.having("fail"), *report.having("warn"))
    ]
    assert {of.what + of.remedy for of in block.lights} == {""}
