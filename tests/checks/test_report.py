"""The verdict says what was tested, what was not, and what such a log could have shown."""

from __future__ import annotations

import io

import pytest

from evaluator import check
from evaluator.checks.run import CheckReport
from evaluator.errors import UnknownNameError
from evaluator.report.check import print_check
from evaluator.report.console import ReportConsole
from tests.checks.defects import DEFECTS
from tests.checks.shops import shop
from tests.logs import bernoulli_log


def printed(report: CheckReport) -> str:
    out = io.StringIO()
    print_check(ReportConsole(file=out, width=80), report)
    assert max(len(line) for line in out.getvalue().splitlines()) <= 80
    return " ".join(out.getvalue().split())


def test_a_log_without_findings_says_what_was_tested_and_what_it_could_show() -> None:
    report = check(shop(3).log())
    said = printed(report)
    tests = len(report.tested)
    assert f"Fit for replay as far as this log can tell: {tests} tests of {report.displays:,} displays" in said
    assert "nothing found against it" not in said
    for finding in report.findings:
        listed = said.split("Not tested, for the reasons above: ")[1].split(".")[0].split(", ")
        assert (finding.name in listed) == (finding.verdict == "not applicable")
    for name in ("uniformity", "drift of conversion rates", "rates by action", "vectors without conversions"):
        assert report[name].shows
        assert report[name].shows in said
    assert report.to_dict()["checks"][1]["shows"] == report["uniformity"].shows


def test_more_displays_show_smaller_defects() -> None:
    def factor(n: int) -> float:
        said = check(bernoulli_log(n, [0.1, 0.2], mean_delay=20, seed=1))["drift of conversion rates"].shows
        return float(said.split(" become ")[1].split(" ")[0])

    assert 1.05 < factor(40_000) < factor(10_000) < factor(2500)


def test_verdicts_with_findings_say_so_first() -> None:
    report = check(DEFECTS["conversion rates fall by a quarter"][0](7))
    assert "Fit for replay, with care: 0 failed, 1 warned. This rests on" in printed(report)
    report = check(DEFECTS["an action never shown"][0](7))
    assert not report.fit
    assert "Not fit for replay: 1 failed, 0 warned." in printed(report)


def test_a_name_that_no_check_has_is_answered_with_the_nearest() -> None:
    report = check(bernoulli_log(500, [0.1, 0.2], mean_delay=20, seed=1))
    with pytest.raises(UnknownNameError, match=r"No check is called 'uniformty'\. Hint: did you mean uniformity\?"):
        report["uniformty"]
    with pytest.raises(KeyError):
        report["typo"]
