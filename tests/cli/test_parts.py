"""A log that is a part of its traffic, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runs import evaluate, sentences
from tests.logs import bernoulli_log
from tests.parts import stored

SYNTHETIC = ("-d", "synthetic", "--limit", "3000")


def test_the_sampling_rate_counts_the_traffic() -> None:
    plan = evaluate("replay", *SYNTHETIC, "-p", "random", "--sampling-rate", "0.1", "--dry-run", "--json").json
    assert plan["sampling_rate"] == 0.1
    assert any("even sample of 0.1 of the traffic" in said for said in sentences(plan))


def test_more_traffic_than_was_logged_is_no_error() -> None:
    plan = evaluate("replay", *SYNTHETIC, "-p", "random", "--traffic-share", "2", "--dry-run", "--json").json
    assert plan["traffic_share"] == 2.0


@pytest.mark.parametrize("rate", ["0", "1.5", "nan", "1e-320"])
def test_no_sampling_rate_is_refused_in_one_line(rate: str) -> None:
    run = evaluate("replay", *SYNTHETIC, "-p", "random", "--sampling-rate", rate)
    assert run.code == 2
    assert "--sampling-rate " in run.err
    assert "is out of range. Hint: take a number >= 1e-09, <= 1, such as 0.1." in run.err
    assert len(run.err.strip().splitlines()) == 1


def test_delays_of_more_rounds_than_can_be_counted_are_refused_in_one_line() -> None:
    shares = ("--sampling-rate", "1e-9", "--traffic-share", "1e6")
    run = evaluate("replay", *SYNTHETIC, "-p", "random", *shares, "--dry-run")
    assert run.code == 2
    assert "rounds of the policy are too many for a delay: 1e+15 for each display" in run.err
    assert len(run.err.strip().splitlines()) == 1


def test_chosen_actions_of_constant_propensities_allow_what_needs_their_sum(tmp_path: Path) -> None:
    logger = (0.1, 0.2, 0.3, 0.4)
    stored(bernoulli_log(4_000, (0.1, 0.2, 0.3, 0.4), mean_delay=20.0, seed=1, logger=logger), tmp_path / "log")
    words = ("replay", "-d", str(tmp_path / "log"), "--actions", "a1,a3", "-p", "random", "--doubly-robust")
    plan = evaluate(*words, "--dry-run", "--json").json
    assert any("made to sum to 1" in said for said in sentences(plan))
