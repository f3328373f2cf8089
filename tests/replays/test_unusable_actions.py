"""An action that nobody can replay, or hardly anybody, is named, and decides nothing for the others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaluator.api import compare, plan, replay
from evaluator.errors import NoRoundsError
from evaluator.log import Log
from evaluator.policies.base import Setting
from tests.logs import build_log

N, YOUNG = 6000, 500
RATES = np.array([0.1, 0.3, 0.2, 0.5])


def log_of(action: Any, **more: Any) -> Log:
    n = len(action)
    converted = np.flatnonzero(np.random.default_rng(1).random(n) < RATES[action])
    return build_log(
        time=np.arange(n), action=action, n_actions=4, conversion_display=converted, conversion_time=converted, **more
    )


def never_shown() -> Log:
    return log_of(np.random.default_rng(2).integers(0, 3, N), propensity=np.full(N, 1 / 3))


def launched_lately() -> Log:
    """Return a log whose last action is shown among the young displays only, with the smallest propensity of all."""
    rng = np.random.default_rng(3)
    late = np.arange(N) >= N - YOUNG
    action = np.where(late & (rng.random(N) < 0.1), 3, rng.integers(0, 3, N))
    p = np.where(~late, 1 / 3, np.where(action == 3, 0.1, 0.3))
    return log_of(action, propensity=p, observed_until=N, attribution_window=YOUNG + 100)


def rare() -> Log:
    """Return a log whose last action is shown one time in a hundred."""
    p = np.array([0.33, 0.33, 0.33, 0.01])
    action = np.random.default_rng(4).choice(4, N, p=p)
    return log_of(action, propensity=p[action])


class First:
    """Reads contexts, and always chooses the first action."""

    contextual = True

    def __init__(self, setting: Setting) -> None: ...

    def choose(self, vectors: Any, rng: np.random.Generator) -> int:
        return 0

    def displayed(self, vectors: Any, action: int) -> None: ...

    def converted(self, vector: Any, action: int, delay: int, value: float) -> None: ...


UNUSABLE = {"never shown": never_shown, "launched lately": launched_lately}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("sampler", [None, "keep", "queue", "rejection"])
def test_the_others_are_replayed_as_if_it_were_not_there(make: Any, sampler: str | None) -> None:
    log = make()
    used = plan(log, "random").rounds.used
    result = replay(log, "fixed:action=1", sampler=sampler)
    # c is the smallest propensity of the other actions; that of the action without usable displays decides nothing.
    assert result.rounds > 0.3 * used - 4 * (used * 0.3 * 0.7) ** 0.5
    assert "Action a3 has no usable display" in " ".join(result.warnings)
    best = result.best_fixed_action
    assert (best.label, best.value.high < 0.5) == ("a1", True)
    assert best.value.low < RATES[1] < best.value.high


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("sampler", ["keep", "queue", "rejection"])
def test_a_policy_that_chooses_it_says_so_first(make: Any, sampler: str) -> None:
    result = replay(make(), "ucb1", sampler=sampler)
    assert 0 < result.rounds < 10
    assert result.warnings[0].startswith(
        f"After {result.rounds} rounds the policy chose action a3, which has no usable"
    )
    assert not any("ran dry" in said or "Nothing was learned" in said for said in result.warnings)


@pytest.mark.parametrize(("make", "why"), [(never_shown, "never shown"), (launched_lately, "young displays only")])
@pytest.mark.parametrize("sampler", ["keep", "queue", "rejection"])
def test_a_replay_without_a_round_names_it_and_the_way_out_works(make: Any, why: str, sampler: str) -> None:
    log = make()
    with pytest.raises(NoRoundsError, match="it chose action a3") as raised:
        replay(log, "fixed:action=3", sampler=sampler)
    assert why in str(raised.value)
    assert raised.value.exit_code == 3
    other = str(raised.value).split("displays: ")[-1].rstrip(".")
    assert other.startswith("fixed:action=")
    assert replay(log, other, sampler=sampler).rounds > 1000


def test_rejection_that_accepts_nothing_names_the_smallest_propensity() -> None:
    rng = np.random.default_rng(5)
    action = rng.integers(0, 2, 1000)
    p = np.full(1000, 0.5)
    p[action.argmax()] = 1e-7
    log = log_of(action, propensity=p, context=np.ones((1000, 1)))
    for policy, way in (("fixed:action=0", "`sampler='keep'`"), (First, "`accept_quantile=0.01`")):
        with pytest.raises(NoRoundsError, match=r"smallest propensity, 1e-07 \(display \d+, action a1\)") as raised:
            replay(log, policy, sampler="rejection")
        assert way in str(raised.value)
    assert replay(log, First, accept_quantile=0.01).rounds > 100
    assert replay(log, "fixed:action=0", sampler="keep").rounds > 100


def test_a_comparison_fails_only_where_all_do() -> None:
    log = never_shown()
    found = compare(
        log,
        ["fixed:action=3", "fixed:action=1", "fixed:action=0"],
        baseline="fixed:action=3",
        sampler="rejection",
        horizon=1,
    )
    assert [result.rounds for result in found.results] == [0, 1, 1]
    assert found.horizon.rounds == 1
    assert not math.isnan(found.curves[1].value.estimate[-1])
    assert [d.why_not for d in found.differences] == ["no rounds", "no rounds"]
    with pytest.raises(NoRoundsError, match=r"None of 2 variants lived a round\. The first: fixed:action=3 lived no"):
        compare(log, ["fixed:action=3"], baseline="fixed:action=3", windows=[10, 20], sampler="rejection")


def test_a_comparison_never_speaks_of_zero_rounds_fixed_beforehand() -> None:
    found = compare(never_shown(), ["ucb1", "fixed:action=1", "fixed:action=0"], baseline="ucb1", sampler="keep")
    # The line that chose the action without displays decides nothing for the others.
    assert (found.results[0].ended_by, found.horizon.fixed) == (("a3",), True)
    assert found.horizon.rounds > 1000
    assert [d.why_not for d in found.differences] == ["no rounds", "no rounds"]
    assert found.ranking.tests[0].difference.why_not == ""
    assert any("chose an action that cannot be replayed" in said for said in found.warnings)
    assert "short of the 0 rounds" not in found.horizon.why
    tiny = compare(
        log_of(np.array([0, 1, 2, 3, 0, 1])), ["random", "fixed:action=1"], baseline="random", sampler="keep"
    )
    assert (tiny.horizon.fixed, "no number of rounds is sure beforehand" in tiny.horizon.why) == (False, True)


@pytest.mark.parametrize(
    ("policy", "options", "advice"),
    [
        ("random", {"sampler": "rejection"}, "`actions='top:3'`, or use `sampler='keep'`"),
        ("random", {"sampler": "queue"}, "`actions='top:3'`, or ask for a `horizon`"),
        ("odaaf", {"sampler": "keep", "window": 20}, "`actions='top:3'`, or ask for a `horizon`"),
    ],
)
def test_the_rarest_action_sets_no_horizon_in_silence(policy: str, options: dict[str, Any], advice: str) -> None:
    log = rare()
    shown = int((log.column("action") == 3).sum())
    said = " ".join(plan(log, policy, **options).warnings)
    least = "" if options["sampler"] == "queue" else ", smallest propensity 0.01"
    assert f"Action a3 ({shown} displays{least}) decides how many rounds there are: about" in said
    assert advice in said
    assert "decides how many rounds" not in " ".join(plan(log, policy, **options, horizon=20).warnings)
    even = log_of(np.random.default_rng(6).integers(0, 4, N))
    assert "decides how many rounds" not in " ".join(plan(even, policy, **options).warnings)
    # What is advised: all of it gives more rounds.
    if options["sampler"] == "rejection":
        assert replay(log, policy, sampler="keep").rounds > 1.5 * replay(log, policy, **options).rounds


def test_a_replay_that_waited_for_one_action_most_of_the_time_says_so() -> None:
    log = rare()
    result = replay(log, "random", sampler="keep")
    (said,) = [w for w in result.warnings if w.startswith("Waiting for action a3")]
    without = float(said.split("would be about ")[1].split(". ")[0].replace(",", ""))
    # The others are shown .33 of the time each; what it promises rests on the rounds that showed them.
    rounds = result.rounds * (1 - result.action_share[3])
    assert abs(without - 0.33 * N) < 4 * 0.33 * N * (0.67 / rounds) ** 0.5
    others = log_of(np.random.default_rng(4).integers(0, 3, N), propensity=np.full(N, 1 / 3))
    assert not any(w.startswith("Waiting for") for w in replay(others, "fixed:action=0", sampler="keep").warnings)


def test_a_comparison_says_which_action_sets_its_horizon() -> None:
    found = compare(rare(), ["random", "fixed:action=0"], baseline="random", sampler="keep")
    assert any("decides how many rounds there are" in said for said in found.warnings)
    assert found.to_dict()["findings"] == [one.to_dict() for one in found.findings]
