"""The verdict says what was tested, what was not, and what such a log could have shown."""

from __future__ import annotations

import io

import numpy as np
import pytest

from evaluator import check, replay
from evaluator.checks.run import CheckReport
from evaluator.errors import UnknownNameError
from evaluator.reports.command_words import use_command_words
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from tests.checks.defects import DEFECTS
from tests.checks.shops import shop
from tests.logs import bernoulli_log, build_log


def printed(report: CheckReport) -> str:
    out = io.StringIO()
    show(ReportConsole(file=out, width=80), report)
    assert max(len(line) for line in out.getvalue().splitlines()) <= 80
    return " ".join(out.getvalue().split())


def test_a_log_without_findings_says_what_was_tested_and_what_it_could_show() -> None:
    report = check(shop(3).log())
    said = printed(report)
    tests = len(report.tested)
    assert said.startswith("Fit for replay, as far as this log can tell")
    assert (
        f"{tests} tests of {report.displays:,} displays and {report.conversions:,} conversions found nothing." in said
    )
    assert "nothing found against it" not in said
    assert "without a column of users, effects of their earlier displays" in said
    for finding in report.checks:
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
    (warned,) = report.having("warn")
    said = printed(report)
    assert said.startswith(f"Fit with reservations for replay: 0 failed, 1 warned {warned.name}: {warned.what}")
    assert f"What to do: {use_command_words(warned.remedy)}" in said
    assert "This rests on" in said
    report = check(DEFECTS["an action never shown"][0](7))
    assert not report.fit
    assert printed(report).startswith("Not fit for replay: 1 failed, 0 warned")


def test_a_name_that_no_check_has_is_answered_with_the_nearest() -> None:
    report = check(bernoulli_log(500, [0.1, 0.2], mean_delay=20, seed=1))
    with pytest.raises(UnknownNameError, match=r"No check is called 'uniformty'\. Hint: did you mean uniformity\?"):
        report["uniformty"]
    with pytest.raises(KeyError):
        report["typo"]


def test_a_log_of_few_conversions_is_too_small_to_be_called_fit() -> None:
    # As many clicks and actions as a public sample of ten thousand displays has: a replay has 134 rounds of it.
    rng = np.random.default_rng(4)
    clicks = np.sort(rng.choice(10_000, 38, replace=False))
    log = build_log(
        time=np.arange(10_000), action=rng.integers(0, 80, 10_000), n_actions=80,
        conversion_display=clicks, conversion_time=clicks + 1, observed_until=10_010, attribution_window=5,
    )  # fmt: skip
    report = check(log)
    assert report.fit  # no check failed
    assert report.replay.rounds == pytest.approx(125)
    assert abs(replay(log, "random").rounds - report.replay.rounds) < 4 * 125**0.5
    assert report.replay.conversions == pytest.approx(38 / 80)
    said = printed(report)
    assert "Too small to be called fit for replay" in said
    assert "Fit for replay" not in said
    assert "about 125 rounds with 0.475 conversions" in said
    assert "about 52.7 times as many displays" in said
    assert "too small for replay" in repr(report)
    assert report.to_dict()["replay"]["enough"] is False
    assert report.to_dict()["replay"]["smallest_uplift"] is None


def test_a_log_says_which_uplift_a_replay_of_it_tells() -> None:
    shares = [0.2, 0.3, 0.5]
    log = bernoulli_log(20_000, [0.1, 0.1, 0.1], mean_delay=3, seed=1, logger=shares)
    found = check(log).replay
    assert found.rounds == pytest.approx(20_000 / np.mean(1 / np.array(shares)))
    assert abs(replay(log, "random", sampler="keep").rounds - found.rounds) < 4 * found.rounds**0.5
    rate = log.conversions.num_rows / 20_000
    expected = (1.96 + 0.8416) * ((1 - rate) / rate / found.rounds) ** 0.5
    assert found.smallest_uplift == pytest.approx(expected, rel=0.01)
    assert f"it tells an uplift of {expected:.0%} or more on 80 % of such logs" in printed(check(log))
