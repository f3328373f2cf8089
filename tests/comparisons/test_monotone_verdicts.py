"""Verdicts are monotone and stable: properties of made candidates, checks and audits, for any that there could be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evaluator import compare
from evaluator.comparisons.candidates import UNCHECKED, judge_interval
from evaluator.comparisons.lines import Line
from evaluator.comparisons.log_conditions import with_audit, with_checks
from evaluator.comparisons.ship_rule import ShipRule
from evaluator.comparisons.verdict import Candidate, Condition, Decision, Verdict, decide
from evaluator.estimates.confidence import Interval
from tests.comparisons.test_verdict import shown

BASELINE = Line(0, "ucb1", "500")
LESS: dict[Decision, int] = {"ship": 2, "wait": 1, "don't": 0}
limits = st.sampled_from([-0.5, 0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 1.0])
states = st.sampled_from([True, True, True, None, False])


@st.composite
def made(draw: st.DrawFn, fewest: int = 1) -> list[Candidate]:
    """Draw candidates whose difference is not yet judged."""
    candidates = []
    for variant in range(1, draw(st.integers(fewest, 4)) + 1):
        estimate, half = draw(st.integers(-9, 9)) / 10, draw(st.integers(1, 6)) / 10
        difference = Interval(estimate, estimate - half, estimate + half, 10, 0.95, "test")
        conditions = [
            Condition("guardrails", draw(states), "guardrails found"),
            Condition("propensities", draw(st.sampled_from([True, True, True, False])), "propensities found"),
            draw(st.sampled_from([UNCHECKED, Condition("checks", True, "no check of the log failed")])),
        ]
        candidates.append(
            Candidate(Line(variant, f"policy{variant}", "500"), "wait", difference, "expected", tuple(conditions))
        )
    return candidates


def judged(candidates: list[Candidate], limit: float) -> Verdict:
    """Return the verdict by a rule, as a comparison gives it."""
    rule = ShipRule(f"uplift > {limit:g}", limit)
    known = [
        replace(of, conditions=(judge_interval(of.difference, rule, displays=1_000), *of.conditions))
        for of in candidates
        if of.difference is not None
    ]
    return decide(known, rule=rule, level=0.95, baseline=BASELINE)


def checked(*verdicts: str, wear_out: str = "") -> dict[str, Any]:
    """Return what a check says, with the verdict of wear-out where users are known."""
    found = [{"name": f"check{i}", "verdict": verdict, "remedy": "Repair it."} for i, verdict in enumerate(verdicts)]
    if wear_out:
        found.append({"name": "wear-out", "verdict": wear_out, "remedy": "", "number": "9% less", "what": "Unknown.",
                      "numbers": {"users": "user"}})  # fmt: skip
    return {"checks": found, "options": {}}


def audited(*policies: str, biased: str = "", detects: float | None = 0.3, failed: str = "") -> dict[str, Any]:
    """Return what an audit of some policies and the baseline says."""
    power = {"difference": detects}
    return {
        "options": {"window": 500},
        "policies": [{"policy": p, "biased": p == biased, "detectable_bias": 0.1} for p in (*policies, "ucb1")],
        "pairs": [{"first": p, "second": "ucb1", "alone": power, "expected": power} for p in policies],
        "not_in_twins": [{"name": failed, "verdict": "fail", "remedy": ""}] if failed else [],
    }


def decisions(verdict: Verdict) -> dict[int, Decision]:
    return {of.line.variant: of.decision for of in verdict.candidates}


@given(made(), limits, limits)
def test_a_stricter_rule_ships_nothing_that_a_weaker_one_did_not(
    candidates: list[Candidate], one: float, other: float
) -> None:
    weak, strict = judged(candidates, min(one, other)), judged(candidates, max(one, other))
    before, after = decisions(weak), decisions(strict)
    assert all(LESS[after[i]] <= LESS[before[i]] for i in before)
    assert LESS[strict.decision] <= LESS[weak.decision]
    audit = audited(*(of.line.policy for of in candidates))
    assert LESS[with_audit(strict, audit).decision] <= LESS[with_audit(weak, audit).decision]


@given(made(), limits, st.data())
def test_evidence_that_agrees_takes_no_ship_away(
    candidates: list[Candidate], limit: float, data: st.DataObject
) -> None:
    verdict = judged(candidates, limit)
    before = decisions(verdict)
    some = data.draw(st.lists(st.sampled_from([of.line.policy for of in candidates]), unique=True))
    detects = data.draw(st.sampled_from([None, 0.01, 0.12, 5.0]))
    for known in (
        with_audit(verdict, audited(*some, detects=detects)),
        with_checks(verdict, checked("pass", "warn", "not applicable")),
        with_checks(verdict, checked("pass", wear_out="pass")),
    ):
        assert all(LESS[decisions(known)[i]] >= LESS[before[i]] for i in before)
        assert LESS[known.decision] >= LESS[verdict.decision]


@given(made(), limits, st.data())
def test_what_is_found_to_be_wrong_turns_a_ship_into_wait_is_named_and_stays(
    candidates: list[Candidate], limit: float, data: st.DataObject
) -> None:
    verdict = with_checks(judged(candidates, limit), checked("pass"))
    which = data.draw(st.sampled_from([of.line.policy for of in candidates]))
    every = [of.line.policy for of in candidates]
    failed, biased = checked("pass", "fail"), audited(*every, biased=which)
    for add, found, name, about in (
        (with_checks, failed, "check1", every),
        (with_audit, biased, which, [which]),
        (with_audit, audited(*every, biased="ucb1"), "ucb1", every),
        (with_audit, audited(failed="overlap"), "overlap", every),
    ):
        known, agreeing = add(verdict, found), checked("pass") if add is with_checks else audited(*every)
        # What another check or audit does not see, it does not mend: in whatever order they come.
        for again in (known, add(known, agreeing), add(add(verdict, agreeing), found)):
            for of in again.candidates:
                if of.line.policy in about:
                    assert of.decision == "wait"
                    assert any(one.met is False and name in one.what for one in of.conditions)
                    assert again.variant != of.line.variant or name in again.sentence
                else:
                    assert of.decision == decisions(verdict)[of.line.variant]


@given(made(fewest=2), limits, st.randoms(use_true_random=False))
def test_names_and_order_of_candidates_change_nothing(candidates: list[Candidate], limit: float, random: Any) -> None:
    verdict = judged(candidates, limit)
    order = list(candidates)
    random.shuffle(order)
    names = {of.line.variant: f"z{random.random()}" for of in candidates}
    renamed = [replace(of, line=replace(of.line, policy=names[of.line.variant])) for of in order]
    for other in (judged(order, limit), judged(renamed, limit)):
        assert decisions(other) == decisions(verdict)
        assert other.decision == verdict.decision
        assert {other.variant, *other.ties} == {verdict.variant, *verdict.ties}


@given(made(fewest=2), limits)
def test_the_headline_is_about_the_best_candidate_by_the_number_that_decides(
    candidates: list[Candidate], limit: float
) -> None:
    verdict = judged(candidates, limit)
    named = next(of for of in verdict.candidates if of.line.variant == verdict.variant)
    assert named.difference is not None
    ships = [of for of in verdict.candidates if of.decision == "ship"]
    sound = [
        of for of in verdict.candidates if not any(c.met is False for c in of.conditions if c.name == "guardrails")
    ]
    for of in ships or ([] if any(c.met for c in named.conditions if c.name == "difference") else sound):
        assert of.difference is not None
        assert of.difference.estimate <= named.difference.estimate
    assert (verdict.decision == "ship") is bool(ships)


def test_the_worst_of_three_is_not_named_for_being_open() -> None:
    """Two are known to earn a little less; of the third, far worse, the interval still holds 0."""
    checks = Condition("checks", True, "no check of the log failed")

    def candidate(variant: int, low: float, high: float) -> Candidate:
        found = Interval((low + high) / 2, low, high, 10, 0.95, "test")
        return Candidate(Line(variant, "linucb", "500"), "wait", found, "expected", (checks,))

    verdict = judged([candidate(1, -2.1, 0.1), candidate(2, -0.2, -0.1), candidate(3, -0.4, -0.1)], 0.0)
    assert verdict.headline.startswith("Don't ship linucb, the best of 3: it is expected to earn -0.15")
    unknown = replace(
        candidate(1, 0, 0), difference=None, conditions=(Condition("difference", None, "unknown"), checks)
    )
    known = judged([candidate(2, -0.2, -0.1)], 0.0).candidates
    both = decide([unknown, *known], rule=verdict.rule, level=0.95, baseline=BASELINE)
    assert (both.variant, both.decision) == (2, "don't")


def test_equal_candidates_tie() -> None:
    log = shown((0.2, 0.6, 0.6))
    policies = ["fixed:action=0", "fixed:action=1", "fixed:action=2"]
    found = compare(log, policies, baseline=policies[0], ship_if="uplift > 0.1").verdict
    assert found is not None
    assert found.decision == "ship"
    assert {found.variant, *found.ties} == {1, 2}
    assert "; it ties with " in found.headline
    # One that earns more by far ties with none.
    apart = compare(shown((0.2, 0.4, 0.8)), policies, baseline=policies[0], ship_if="uplift > 0.1").verdict
    assert apart is not None
    assert (apart.variant, apart.ties) == (2, ())
