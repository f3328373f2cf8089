"""Every report fits a screen by default, loses no warning and no number's interval, and names what --full prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import evaluator
from evaluator import datasets
from evaluator.cli.command_parameters import declarations
from evaluator.comparisons.verdict import decide
from evaluator.estimates.confidence import Interval
from evaluator.findings.codes import FEW_ROUNDS, LOG_NOTE, PROPENSITIES_AS_GIVEN
from evaluator.findings.finding import warnings_of
from evaluator.replays.result import ReplayResult
from evaluator.reports.command_words import use_command_words
from evaluator.reports.console import ReportConsole
from evaluator.reports.decision_page import draw_interval
from evaluator.reports.decision_words import head, interval_parts
from evaluator.reports.document import Layout
from evaluator.reports.documents import show
from evaluator.reports.terminal import LINES
from tests.cli.runs import evaluate
from tests.cli.test_declared_options import COMMANDS
from tests.reports.digits import as_written

# The README's examples.
NAMES = ("replay", "guardrails", "compare", "check", "audit", "delays", "simulate", "show")
Shown = tuple[Callable[..., None], Any]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    folder = tmp_path_factory.mktemp("shop")
    datasets.make("shop", folder / "shop")
    spec = str(folder / "shop" / "spec.toml")
    log = evaluator.load(spec)
    policies = ["random", "delayed-klucb", "linucb:alpha=0.3", "linucb"]
    return {
        "replay": (show, evaluator.replay(log, "delayed-klucb", window="7d")),
        "guardrails": (
            show,
            evaluator.replay("promotions", "linucb", window="14d", guardrails=["unsubscribe < +0.02"]),
        ),
        "compare": (
            show,
            evaluator.compare(log, policies, windows=["1d", "7d"], baseline="random", reward_max=20, bootstrap=20),
        ),
        "check": (show, evaluator.check(log)),
        "audit": (show, evaluator.audit(log, ["delayed-klucb", "random"], window="7d", twins=20)),
        "delays": (show, evaluator.study_delays(log, windows=["1d", "7d", "30d"])),
        "simulate": (
            show,
            evaluator.simulate("vernade2017-low", ["delayed-klucb", "ucb1"], runs=20, horizon=2000),
        ),
        "show": (show, datasets.show(spec)),
    }


def printed(shown: Shown, *, width: int = 80, **full: bool) -> str:
    console = ReportConsole(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        shown[0](console, shown[1], **full)
    return captured.get()


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_of_the_readme_fits_a_screen(name: str, examples: dict[str, Shown]) -> None:
    assert len(printed(examples[name], full=False).splitlines()) <= LINES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_is_cut_or_wrapped(name: str, width: int, examples: dict[str, Shown]) -> None:
    for full in (False, True):
        text = printed(examples[name], width=width, full=full)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        if full and width < 80:
            continue
        # Sentences may break anywhere.
        tables = text.partition("Rule: ")[2] or text
        rows = [line for line in tables.splitlines() if not re.search("[a-z]{3} [a-z]|[a-z],", line)]
        assert [line for line in rows if line.count("[") != line.count("]")] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_files_and_notebooks_get_is_whole(name: str, examples: dict[str, Shown]) -> None:
    whole = printed(examples[name])
    assert whole == printed(examples[name], full=True)
    assert "--full" not in whole
    short = printed(examples[name], full=False)
    if name != "simulate":  # which fits as it is, but for the width of its table
        assert words(short).count("--full prints the rest: ") == 1
        assert len(short.splitlines()) < len(whole.splitlines())


@pytest.mark.parametrize("name", ["replay", "guardrails", "compare", "audit"])
def test_warnings_are_never_dropped(name: str, examples: dict[str, Shown]) -> None:
    show, result = examples[name]
    results = result.results if name == "compare" else [result]
    said = words(printed((show, result), full=False))
    # The end of a long sentence may be left out, its code never.
    for code, what in {(of.code, of.what) for one in results for of in warnings_of(one.findings)}:
        assert f"[{code}]" in said
        assert words(use_command_words(what))[:25] in said
    if name != "audit":
        assert "Read before trusting the numbers" in said


def test_of_many_warnings_the_first_are_printed_and_the_others_counted(examples: dict[str, Shown]) -> None:
    show, result = examples["replay"]
    many = replace(result, findings=tuple(FEW_ROUNDS.found(f"Warning {number}.") for number in range(1, 6)))
    said, whole = (words(printed((show, many), full=full)) for full in (False, True))
    assert (
        "- Warning 1. [few-rounds] - Warning 2. [few-rounds] - Warning 3. [few-rounds] - 2 more: --full prints them"
        in said
    )
    assert "Warning 4. [few-rounds] - Warning 5." in whole


def test_what_an_interval_rests_on_is_printed(examples: dict[str, Shown]) -> None:
    show, result = examples["replay"]
    rests = PROPENSITIES_AS_GIVEN.found("anytime-valid intervals take the estimated propensities as given")
    note = LOG_NOTE.found("readings come at an interval of five minutes")
    assert "the logged propensities are right" not in printed((show, result), full=False)
    said = words(printed((show, replace(result, findings=(*result.findings, rests, note))), full=False))
    # By its code, and not by its words.
    assert re.search(
        r"What the intervals rest on - anytime-valid intervals .{1,60} \[propensities-as-given\] --full", said
    )
    assert "8 assumptions." in said


def test_numbers_of_the_short_form_have_their_intervals(examples: dict[str, Shown]) -> None:
    result: ReplayResult = examples["replay"][1]
    said = words(printed(examples["replay"], full=False))
    assert "not anytime-valid" in said  # nobody named the largest reward
    for of in (result.value, result.regret, result.uplift, result.logging_value):
        assert f"{' '.join(as_written(of))} {of.n:,}" in said


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_comparison_begins_with_the_verdict_and_draws_each_interval(width: int, examples: dict[str, Shown]) -> None:
    verdict = examples["compare"][1].verdict
    text = printed(examples["compare"], width=width, full=False)
    assert text.startswith(" ".join(head(verdict)))
    assert "Next: " in text
    # Variants have names: no line is called by its number.
    assert not re.search(r"\blines? \d", text + printed(examples["compare"], width=width))
    for of in verdict.candidates:
        number, low, high = interval_parts(of.difference)
        assert f"{number} [{low}, {high}] {of.decision}" in words(text) or re.search(r"\d more: --full", text)


@pytest.mark.parametrize("limit", [0.0, 0.5])
@pytest.mark.parametrize("ascii", [False, True])
def test_a_bar_has_the_interval_between_its_ends_and_marks_zero_and_the_rule(limit: float, ascii: bool) -> None:
    layout = Layout(width=80, ascii=ascii)
    bar = draw_interval(Interval(2.0, 1.0, 3.0, 9, 0.95, "known"), (-1.0, 4.0), limit, layout)
    middle, zero, rule = "o|:" if ascii else "●│┊"
    assert (bar.count(middle), bar.count(zero), bar.count(rule)) == (1, 1, 1 if limit else 0)
    assert bar.index(zero) < bar.index(middle)
    assert bar.isascii() is ascii
    below = draw_interval(Interval(-0.5, -0.9, -0.1, 9, 0.95, "known"), (-1.0, 4.0), limit, layout)
    assert below.index(middle) < below.index(zero)
    assert len(bar) == len(below)


@pytest.mark.parametrize("number", [1, 3, 12])
@pytest.mark.parametrize("width", [80, 140])
def test_any_number_of_candidates_fits(number: int, width: int, examples: dict[str, Shown]) -> None:
    comparison = examples["compare"][1]
    one = comparison.verdict.candidate
    many = tuple(
        replace(one, line=replace(one.line, variant=i % 6, policy=f"policy{i}", title="")) for i in range(number)
    )
    verdict = decide(many, rule=comparison.verdict.rule, level=0.95, baseline=comparison.verdict.baseline)
    text = printed((show, replace(comparison, verdict=verdict)), width=width, full=False)
    assert len(text.splitlines()) <= LINES
    assert ("more: --full" in text) is (number == 12)


def test_a_failed_check_keeps_its_paragraph() -> None:
    run = evaluate("check", "--limit", "50")
    assert "Not fit for replay: 1 failed" in run.out
    assert "What to do:" in run.out
    assert "verdict  check" not in run.out
    assert "verdict  check" in evaluate("check", "--limit", "50", "--full").out


def test_full_is_an_option_of_every_command_that_reports() -> None:
    with_it = {path for path in COMMANDS if "full" in declarations(COMMANDS[path])}
    assert with_it == {"replay", "compare", "check", "audit", "delays", "simulate", "datasets show"}


def test_json_is_the_same_with_it() -> None:
    asked = ("replay", "-p", "random", "--limit", "2000", "--json")
    assert evaluate(*asked).out == evaluate(*asked, "--full").out
