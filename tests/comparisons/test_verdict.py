"""Ship, wait or don't: what decides, and what would settle it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import Log, check, compare, load
from evaluator.arguments import as_descriptions
from evaluator.comparisons.conditions import UNCHECKED, with_audit, with_checks
from evaluator.comparisons.result import Comparison
from evaluator.comparisons.rule import ANY_UPLIFT, ShipRule, parse_ship_rule
from evaluator.comparisons.run import execute_comparison, plan_comparison
from evaluator.comparisons.variant_runs import FIRST, MOST, VariantRuns
from evaluator.comparisons.variants import Line
from evaluator.comparisons.verdict import Candidate, Condition, ConditionName, Decision, decide
from evaluator.errors import ParameterError
from evaluator.estimates.confidence import Interval
from evaluator.replays.options import ReplayOptions
from tests.cli.runs import evaluate
from tests.logs import build_log, with_outcome

BASELINE = Line(0, "ucb1", "500", "ucb1")
NAMES: tuple[ConditionName, ...] = ("difference", "guardrails", "checks", "propensities", "audit")


def candidate(variant: int, estimate: float, **met: bool | None) -> Candidate:
    conditions = tuple(Condition(name, met.get(name, True), f"{name} found", f"{name} settles") for name in NAMES)
    found = Interval(estimate, estimate - 1, estimate + 1, 10, 0.95, "test")
    return Candidate(Line(variant, "linucb", "500", "linucb"), "wait", found, "expected", conditions)


@pytest.mark.parametrize(
    ("met", "decision"),
    [
        ({}, "ship"),
        ({"difference": None}, "wait"),
        ({"difference": False}, "don't"),
        ({"guardrails": False}, "don't"),
        ({"guardrails": None}, "wait"),
        ({"checks": None}, "wait"),
        # Of a log that no number is believed of, no number says don't either.
        ({"checks": False, "difference": False, "guardrails": False}, "wait"),
        ({"propensities": False}, "wait"),
        ({"audit": False, "difference": False}, "wait"),
        ({"checks": None, "difference": False}, "don't"),
    ],
)
def test_what_decides(met: dict[str, bool | None], decision: Decision) -> None:
    found = decide([candidate(1, 2.0, **met)], rule=ANY_UPLIFT, level=0.95, baseline=BASELINE)
    assert found.decision == decision
    open_ = [name for name in NAMES if met.get(name, True) is not True]
    assert found.settle == (() if decision == "don't" else tuple(f"{name} settles" for name in open_))


def test_the_best_of_those_that_ship_is_named_else_of_those_that_wait() -> None:
    lines = [
        candidate(1, 3.0, difference=None),
        candidate(2, 1.5),
        candidate(3, 2.0),
        candidate(4, 9.0, guardrails=False),
    ]
    found = decide(lines, rule=ANY_UPLIFT, level=0.95, baseline=BASELINE)
    assert (found.variant, found.decision) == (3, "ship")
    assert [of.decision for of in found.candidates] == ["wait", "ship", "ship", "don't"]
    assert found.sentence == "Ship linucb: it is expected to earn +2 [+1, +3] per round beyond ucb1."
    waiting = decide([lines[0], lines[3]], rule=ANY_UPLIFT, level=0.95, baseline=BASELINE)
    assert (waiting.variant, waiting.decision) == (1, "wait")
    assert waiting.sentence.endswith("Difference found.")


@pytest.mark.parametrize(
    "text", ["", "uplift", "uplift < 1", "value > 1", "uplift > x", "uplift > 2 percent", "uplift > 1e999"]
)
def test_what_is_no_rule_is_refused_in_a_line_that_says_how_one_is_written(text: str) -> None:
    with pytest.raises(ParameterError, match=r"uplift > 0\.002") as error:
        parse_ship_rule(text)
    assert text in str(error.value)


def shown(rates: tuple[float, ...], *, n: int = 6_000, seed: int = 0, **more: Any) -> Log:
    """Return a uniform log of actions with these rates, whose conversions come at once."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, len(rates), n)
    of = np.flatnonzero(rng.random(n) < np.array(rates)[action])
    return build_log(
        time=np.arange(n), action=action, conversion_display=of, conversion_time=of, n_actions=len(rates),
        propensity=np.full(n, 1 / len(rates)), **more,
    )  # fmt: skip


def by_name(found: Comparison, number: int = 0) -> dict[str, Condition]:
    assert found.verdict is not None
    return {of.name: of for of in found.verdict.candidates[number].conditions}


def test_policies_that_do_not_learn_are_decided_by_what_they_would_earn() -> None:
    log = shown((0.2, 0.6))
    found = compare(
        log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0", ship_if="uplift > 0.3"
    ).verdict
    assert found is not None
    assert (found.decision, found.variant, found.candidates[0].target) == ("ship", 1, "weighted")
    worse = compare(log, ["fixed:action=1", "fixed:action=0"], baseline="fixed:action=1", ship_if="uplift > 0").verdict
    assert worse is not None
    assert worse.decision == "don't"
    # The interval that decides is the one of the report, where only one line is tested.
    report = compare(log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0")
    assert report.verdict is not None
    assert report.differences[0].weighted is not None
    assert report.verdict.candidates[0].difference == report.differences[0].weighted.value
    three = compare(log, ["fixed:action=0", "fixed:action=1", "random"], baseline="fixed:action=0").verdict
    assert three is not None
    wide = three.candidates[0].difference
    plain = report.differences[0].weighted.value
    assert wide is not None
    assert plain is not None
    assert wide.level == pytest.approx(0.975)
    assert wide.high - wide.low > plain.high - plain.low


def test_a_difference_is_seen_from_the_baseline_wherever_it_stands() -> None:
    log = shown((0.2, 0.6))
    first = compare(log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=1").verdict
    second = compare(log, ["fixed:action=1", "fixed:action=0"], baseline="fixed:action=1").verdict
    assert first is not None
    assert second is not None
    one, other = first.candidates[0].difference, second.candidates[0].difference
    assert one is not None
    assert other is not None
    assert (one.estimate, one.low, one.high) == (other.estimate, other.low, other.high)
    assert one.estimate < 0


def test_policies_that_learn_wait_for_what_is_to_be_expected_of_them() -> None:
    log = shown((0.1, 0.8))
    asked = {"policies": ["random", "ucb1"], "baseline": "random", "ship_if": "uplift > 0"}
    runs = compare(log, **asked, bootstrap=0)  # type: ignore[arg-type]
    assert runs.verdict is not None
    assert runs.verdict.decision == "wait"
    assert "`bootstrap=200`" in runs.verdict.settle
    different = compare(log, **asked, bootstrap=20, sampler="queue")  # type: ignore[arg-type]
    assert different.verdict is not None
    assert different.verdict.decision == "wait"


def test_as_many_logs_are_resampled_as_a_verdict_on_policies_that_learn_needs_whatever_its_rule() -> None:
    log, asked = shown((0.1, 0.8), n=1_500), {"windows": [50], "baseline": "random"}

    def resampled(policies: Sequence[str], log: Log = log, **more: Any) -> set[int]:
        found = compare(log, policies, **{**asked, **more})
        assert not any(result.resampled for result in found.results)
        kinds = [of.expected.kind for of in found.differences if of.expected is not None]
        return {int(re.search(r"of (\d+) resampled", kind)[1]) for kind in kinds}  # type: ignore[index]

    (logs,) = resampled(["random", "ucb1", "klucb"])
    assert FIRST <= logs <= MOST
    for rule, decision in (("uplift > 0", "ship"), ("uplift > 0.3", "wait"), ("uplift > 5", "don't")):
        found = compare(log, ["random", "ucb1"], ship_if=rule, **asked)  # type: ignore[arg-type]
        assert found.verdict is not None
        assert (found.verdict.decision, found.verdict.candidate.target) == (decision, "expected")
        assert f"of {logs} resampled" in str(found.verdict.candidate.difference)
    # A number is a number; where no policy learns, or the verdict waits whatever is expected, none is needed.
    assert resampled(["random", "ucb1"], bootstrap=0) == set()
    assert resampled(["random", "fixed:action=1"]) == set()
    for biased in ({"sampler": "queue"}, {"clock": "wall"}, {"accept_quantile": 0.05}, {"propensity": "estimate"}):
        assert resampled(["random", "ucb1"], **biased) == set(), biased
    absent = log.with_meta(propensity="absent")
    none = [np.full(len(log), np.nan)]
    absent = replace(absent, displays=log.displays.set_column(log.schema.names.index("propensity"), "propensity", none))
    assert resampled(["random", "ucb1"], absent) == set()


def test_too_few_clusters_are_named() -> None:
    log = shown((0.1, 0.8), n=2_000)
    log = replace(log, displays=log.displays.append_column("user", [np.arange(2_000) % 11]))
    words = {"horizon": 25, "bootstrap": 20, "cluster_by": "user"}
    found = compare(log, ["random", "ucb1"], baseline="random", **words)  # type: ignore[arg-type]
    assert "too few clusters" in by_name(found)["difference"].what
    assert by_name(found)["difference"].remedy == "a log of more clusters"


def test_a_log_without_propensities_waits_for_them_and_one_that_chose_at_random_says_so() -> None:
    log = shown((0.2, 0.6)).with_meta(propensity="absent")
    none = [np.full(len(log), np.nan)]
    log = replace(log, displays=log.displays.set_column(log.schema.names.index("propensity"), "propensity", none))
    policies = ["fixed:action=0", "fixed:action=1"]
    for asked in ({}, {"propensity": "estimate"}):
        found = compare(log, policies, ship_if="uplift > 0", **asked)  # type: ignore[arg-type]
        assert found.verdict is not None
        assert found.verdict.decision == "wait"
        assert by_name(found)["propensities"].met is False
        assert "`propensity='uniform'`" in by_name(found)["propensities"].remedy
    known = compare(log, policies, ship_if="uplift > 0", propensity="uniform").verdict
    assert known is not None
    assert known.decision == "ship"


@pytest.mark.parametrize(("limit", "met"), [("0.5", True), ("0.1", False), ("0.2", None)])
def test_guardrails_are_conditions(limit: str, met: bool | None) -> None:
    log = shown((0.2, 0.6))
    rng = np.random.default_rng(1)
    of = np.flatnonzero(rng.random(len(log)) < 0.2)
    log = with_outcome(log, "complaint", of, of)
    found = compare(
        log,
        ["fixed:action=0", "fixed:action=1"],
        baseline="fixed:action=0",
        ship_if="uplift > 0",
        guardrails=[f"complaint < {limit}"],
    )
    assert by_name(found)["guardrails"].met is met
    assert found.verdict is not None
    assert found.verdict.decision == {True: "ship", False: "don't", None: "wait"}[met]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampler": "queue"}, "queue is not right"),
        ({"accept_quantile": 0.05, "sampler": "rejection"}, "buys rounds by bias"),
    ],
)
def test_what_the_difference_does_not_tell_is_said(options: dict[str, Any], words: str) -> None:
    unbounded = {} if options else {"values": True}
    log = shown((0.2, 0.6))
    if unbounded:
        value = np.random.default_rng(0).lognormal(size=log.conversions.num_rows)
        log = replace(log, events=log.conversions.set_column(2, "value", [value])).with_meta(reward_max=None)
    policies = ["fixed:action=0", "fixed:action=1"]
    # What is seen by the horizon has no weighted difference, and is decided by what these runs earned.
    found = compare(log, policies, baseline=policies[0], reward="observed", **options)
    assert found.differences[0].weighted is None
    assert by_name(found)["difference"].met is None
    assert words in by_name(found)["difference"].what
    assert by_name(compare(log, policies, baseline=policies[0], **options))["difference"].met is True


def test_where_nothing_says_how_long_conversions_take_nothing_ships() -> None:
    log = shown((0.2, 0.6)).with_meta(observed_until=6_000)
    found = compare(log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0", ship_if="uplift > 0")
    assert "how long conversions take" in by_name(found)["difference"].what


def test_a_failed_check_of_the_log_lets_nothing_ship() -> None:
    log = shown((0.2, 0.6))
    wrong = np.where(log.displays["action"].to_numpy() == 0, 0.8, 0.2)
    log = replace(log, displays=log.displays.set_column(log.schema.names.index("propensity"), "propensity", [wrong]))
    log = log.with_meta(propensity="logged")
    found = compare(log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0", ship_if="uplift > 0")
    assert found.check is not None
    assert not found.check.fit
    assert found.verdict is not None
    assert found.verdict.decision == "wait"
    failed = found.check.having("fail")
    assert all(
        of.name in by_name(found)["checks"].what and of.remedy in by_name(found)["checks"].remedy for of in failed
    )


def test_the_log_is_checked_wherever_a_number_decides_and_only_there() -> None:
    log, frozen = shown((0.2, 0.6), n=2_000), ["fixed:action=0", "fixed:action=1"]
    told: list[int] = []
    plain = compare(log, frozen, baseline=frozen[0])
    stated = compare(log, frozen, baseline=frozen[0], ship_if="uplift > 0")
    for found in (plain, stated, compare(log, ["random", "ucb1"], baseline="random", windows=[50])):
        assert found.check is not None
        assert found.check.to_dict() == check(log).to_dict()
        assert found.verdict is not None
        assert (found.verdict.decision, by_name(found)["checks"].met) == ("ship", True)
    assert plain.to_dict()["verdict"]["candidates"] == stated.to_dict()["verdict"]["candidates"]
    # Nothing decides between two runs of policies that learn, nor where hardly anything was earned.
    few = shown((0.002, 0.004), n=2_000)
    for rule in (None, "uplift > 0"):
        for nothing in (
            compare(log, ["thompson", "ucb1"], baseline="ucb1", bootstrap=0, ship_if=rule),
            compare(few, frozen, baseline=frozen[0], ship_if=rule),
        ):
            assert nothing.check is None
            assert by_name(nothing)["checks"] == UNCHECKED
            assert nothing.verdict is not None
            assert nothing.verdict.decision == "wait"
    # One number that decides is enough, and the check is of all candidates.
    mixed = compare(log, ["ucb1", *frozen], baseline=frozen[0], bootstrap=0)
    assert [by_name(mixed, i)["checks"].met for i in range(2)] == [True, True]
    # Every display is told of once more for it.
    plans = plan_comparison(log, as_descriptions(frozen), [None], ReplayOptions())
    runs = VariantRuns(plans)
    execute_comparison(plans, runs=runs, advance=told.append)
    assert sum(told) == sum(VariantRuns(plans).totals.values()) + len(log)
    assert compare(log, ["random"], baseline="random").verdict is None


def test_a_verdict_of_earlier_versions_is_completed_by_a_check() -> None:
    found = compare(shown((0.2, 0.6)), ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0").verdict
    assert found is not None
    before = [replace(of, conditions=(*of.conditions[:-1], UNCHECKED)) for of in found.candidates]
    unchecked = decide(before, rule=found.rule, level=found.level, baseline=found.baseline)
    assert unchecked.decision == "wait"
    known = with_checks(unchecked, {"checks": [{"name": "overlap", "verdict": "warn", "remedy": ""}]})
    assert known.decision == "ship"
    assert known.conditions[-1].what == "no check of the log failed, 1 warned"


def audited(*, biased: bool = False, difference: float | None = 0.01, window: int | None = 500) -> dict[str, Any]:
    power = {"difference": difference}
    return {
        "options": {"window": window},
        "policies": [
            {"policy": "linucb", "biased": biased, "detectable_bias": 0.14},
            {"policy": "ucb1", "biased": False, "detectable_bias": None},
        ],
        "pairs": [{"first": "linucb", "second": "ucb1", "alone": power, "expected": power}],
    }


def test_an_audit_is_a_condition_of_the_pairs_that_it_is_about() -> None:
    asking = ShipRule("uplift > 0.02", 0.02)
    one = replace(candidate(1, 2.0), conditions=candidate(1, 2.0).conditions[:-1])
    verdict = decide([one], rule=asking, level=0.95, baseline=BASELINE)
    assert with_audit(verdict, audited()).decision == "ship"
    assert with_audit(verdict, audited(biased=True)).decision == "wait"
    for of_check, decision in (("fail", "wait"), ("warn", "ship")):
        beside = {"name": "calibration", "verdict": of_check, "number": "", "what": "", "remedy": "Repair it."}
        found = with_audit(verdict, audited() | {"not_in_twins": [beside]})
        assert found.decision == decision
        assert ("calibration" in found.sentence) is (decision == "wait")
    # What it could have detected says how much its silence means, and decides nothing.
    for difference, silence in ((0.03, "a bias below 0.14 or a difference below 0.03"), (None, "a bias below 0.14")):
        silent = with_audit(verdict, audited(difference=difference))
        assert silent.decision == "ship"
        assert (
            silent.conditions[-1].what == f"replays show no bias on twins of the log; {silence} could have gone unseen"
        )
    assert with_audit(verdict, audited(window=None)) == verdict
    # Nor where the policy learned by another schedule.
    pushed = decide([replace(one, line=replace(one.line, learns="1d"))], rule=asking, level=0.95, baseline=BASELINE)
    nightly = audited(biased=True) | {"options": {"window": 500, "learn_every": "1d"}}
    assert with_audit(pushed, audited(biased=True)) == pushed
    assert with_audit(pushed, nightly).decision == "wait"
    # Of another candidate it says nothing.
    other = replace(one, line=Line(2, "klucb", "500", "klucb"))
    both = with_audit(decide([one, other], rule=asking, level=0.95, baseline=BASELINE), audited(biased=True))
    assert [of.decision for of in both.candidates] == ["wait", "ship"]


def test_the_command_says_its_verdict_first_and_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("compare", "-p", "fixed:action=0", "-p", "random", "--limit", "5000", "--ship-if", "uplift > 0")
    run = evaluate(*words)
    assert run.out.startswith(("Ship ", "Wait ", "Don't "))
    assert "The rule asks for more than 0" in " ".join(run.out.split())
    assert "Rule: uplift > 0 at 95 %" in evaluate(*words, "--full").out
    found = evaluate(*words, "--json").json
    twin = compare(load("synthetic", limit=5000), ["fixed:action=0", "random"], ship_if="uplift > 0")
    assert found["verdict"] == twin.to_dict()["verdict"]
    assert found["verdict"]["rule"] == {"text": "uplift > 0", "limit": 0.0, "relative": False}
    assert found["check"]["schema"] == "evaluate.check/2"
    assert found["verdict"]["sentence"] == repr(twin).splitlines()[-1]
    bad = evaluate("compare", "-p", "random", "-p", "fixed", "--ship-if", "uplift >")
    assert (bad.code, bad.err.count("\n")) == (2, 1)
    assert "--ship-if" in bad.err


def test_a_study_states_its_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = tmp_path / "study.toml"
    text = 'dataset = "synthetic"\nlimit = 3000\npolicies = ["fixed:action=0", "random"]\nship_if = "uplift > {}"\n'
    study.write_text(text.format(0.1))
    found = evaluate("compare", "--study", "study.toml", "--json").json
    assert found["verdict"]["rule"]["limit"] == 0.1
    assert (
        evaluate("compare", "--study", "study.toml", "--ship-if", "uplift > 0", "--json").json["verdict"]["rule"][
            "limit"
        ]
        == 0
    )
    twin = compare(study=study)
    assert json.loads(json.dumps(twin.to_dict()))["verdict"] == found["verdict"]
    study.write_text(text.format("much"))
    bad = evaluate("compare", "--study", "study.toml")
    assert "study.toml: line 4: `ship_if`" in bad.err or "study.toml: line 4: --ship-if" in bad.err


def test_values_that_cannot_be_compared_decide_nothing_whatever_is_expected_of_them() -> None:
    """On `promotions` eligible actions come and go: the logging policy's first rounds are of other days."""
    log = load("promotions", limit=12_000)
    asked = {"windows": ["14d"], "horizon": 1_000, "bootstrap": 20, "ship_if": "uplift > 0"}
    found = compare(log, ["logging", "ucb1"], **asked)  # type: ignore[arg-type]
    assert found.differences[0].realised is not None
    assert found.differences[0].expected is None
    assert found.verdict is not None
    assert (found.verdict.decision, found.verdict.candidates[0].difference) == ("wait", None)


def test_the_log_is_checked_as_it_was_read_not_with_its_costs_taken_off() -> None:
    log = load("promotions", limit=12_000)
    found = compare(log, ["random", "ucb1"], baseline="random", windows=["14d"], ship_if="uplift > 0")
    assert found.results[0].plan["objective"] == "profit"
    assert found.check is not None
    assert [of.verdict for of in found.check.checks] == [of.verdict for of in check(log).checks]
    assert found.check["rewards"].verdict != "fail"
