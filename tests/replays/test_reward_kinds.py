"""Outcomes that count as rewards: "returned damaged" is told to policies, below 0, and has a window of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import audit, check, compare, load, plan, replay, study_delays
from evaluator.arguments import as_description
from evaluator.delays.cdf import DelayCDF
from evaluator.errors import EvaluatorError, LogError, ParameterError
from evaluator.log import EventKind, Log
from evaluator.log.log_tables import merge_events, with_kind
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import write_canonical
from evaluator.reading.summary import log_facts
from evaluator.worlds.live_policy import claimed_weights, claims_of, live_money, live_world, money_weights
from evaluator.worlds.live_rounds import play_live
from evaluator.worlds.truth import LogTruth
from evaluator.worlds.twin_log import draw_twin
from tests.audits.test_truth import truth_of
from tests.audits.test_twin_money import HEARD, Listener
from tests.cli.runs import evaluate, validate
from tests.logs import bernoulli_log, with_outcome

LOSS, N, RATES = 1.5, 4000, np.array([0.02, 0.3, 0.1])
NAME = "returned damaged"


@cache
def plain() -> Log:
    return bernoulli_log(N, [0.2, 0.6, 0.4], mean_delay=30, seed=1)


@cache
def damaged(until: int | None = None, window: int = 4_000, told: bool = True) -> Log:
    """A log with goods that come back damaged, by action, about 200 rounds after their display."""
    log, rng = plain(), np.random.default_rng(3)
    of = np.flatnonzero(rng.random(N) < RATES[log.column("action")])
    wait = rng.geometric(1 / 200, len(of))
    seen = (wait <= window) & (wait + of <= (10 * N if until is None else until))
    about: dict[str, Any] = {"reward": True, "told": told, "value_min": -LOSS, "value_max": 0.0}
    values = np.full(seen.sum(), -LOSS)
    found = with_outcome(log.with_meta(attribution_window=1_000, reward_max=1.0), NAME, of[seen], (of + wait)[seen],
                         values, attribution_window=window, observed_until=until, **about)  # fmt: skip
    return found.validated()


def as_refunds(log: Log) -> Log:
    """Return the log with the same events among the conversions."""
    events = pa.concat_tables([log.conversions, log.of_outcome(NAME).conversions])
    both = events.sort_by([("display_id", "ascending"), ("time", "ascending")])
    known = {"attribution_window": None, "reward_min": -LOSS, "reward_max": 1.0}
    return log.without_outcomes().with_conversions(both).with_meta(**known).validated()


@pytest.mark.parametrize(("policy", "more"), [("ucb1", {}), ("thompson", {"bootstrap": 20})])
def test_it_is_told_and_counts_as_a_refund_does(policy: str, more: dict[str, Any]) -> None:
    found, same = (replay(log, policy, window=150, horizon=600, **more) for log in (damaged(), as_refunds(damaged())))
    assert found.trajectory.equals(same.trajectory)
    assert (found.value, found.uplift) == (same.value, same.uplift)
    assert (found.expected_value, found.resampled) == (same.expected_value, same.resampled)
    (of_kind,) = found.outcomes
    assert of_kind.value.estimate < 0.0
    assert any(f"of the {NAME} come within it" in line for line in found.warnings)


def test_where_policies_are_not_told_they_choose_as_without_it() -> None:
    found = replay(damaged(told=False), "ucb1", window=500)
    without = replay(damaged().without_outcomes(), "ucb1", window=500)
    assert found.trajectory["action"].equals(without.trajectory["action"])
    assert found.trajectory["display_id"].equals(without.trajectory["display_id"])
    lost = found.value.estimate - without.value.estimate
    assert lost == pytest.approx(found.outcomes[0].value.estimate)
    assert lost < -0.05
    told = replay(damaged(), "ucb1", window=500)
    assert not told.trajectory["action"].equals(found.trajectory["action"])


def test_displays_are_judged_by_the_window_of_every_kind() -> None:
    for until, window, used in ((N - 1, 1_500, N - 1_500), (N + 500, 1_500, N - 999), (None, 1_500, N)):
        found = replay(damaged(until, window), "random")
        assert found.plan["displays_used"] == used
        assert found.outcomes[0].value.n == found.rounds


def test_young_displays_are_corrected_by_the_delays_of_each_kind() -> None:
    log = damaged(N - 1, 1_500)
    found = replay(log, "logging", immature="correct")
    assert found.plan["displays_used"] > N - 500
    assert any(f"{NAME} are corrected by delays of their own" in line for line in found.assumptions)
    whole = (
        np.bincount(to_numpy(plain().conversions["display_id"]), minlength=N) - LOSS * RATES[plain().column("action")]
    )
    assert abs(found.value.estimate - whole.mean()) < 4 * whole.std() / N**0.5
    seen = replay(log.with_meta(outcomes=(replace(log.meta.outcomes[0], observed_until=None),)), "logging")
    assert seen.value.estimate > found.value.estimate  # young displays without what is still to come back


def test_a_guardrail_limits_it_and_a_share_of_what_may_be_below_0_is_refused() -> None:
    (answer,) = replay(renamed(), "random", guardrails=["damaged > -0.5"]).guardrails
    assert answer.answer == "holds"
    compared = compare(renamed(), ["random", "ucb1"], windows=[500], guardrails=["damaged > -0.5", "revenue > -0.2"])
    for result in compared.results:
        assert [one.answer for one in result.guardrails if one.outcome == "damaged"] == ["holds"]
        assert {one.tests for one in result.guardrails} == {2 * len(compared.results)}
        assert {one.outcome for one in result.outcomes} == {"damaged", "revenue"}
    with pytest.raises(ParameterError, match="may be below 0"):
        replay(renamed(), "random", guardrails=["damaged > -5%"])


def renamed() -> Log:
    log = damaged()
    named = log.with_meta(outcomes=(replace(log.meta.outcomes[0], name="damaged"),))
    return named.changed(events=merge_events(log.conversions, with_kind(log.outcomes, "damaged")))


def test_a_folder_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    write_canonical(damaged(), tmp_path / "kept")
    kept = load(tmp_path / "kept")
    assert kept.meta.outcomes == damaged().meta.outcomes
    assert kept.outcomes.equals(damaged().outcomes)
    (facts,) = log_facts(kept).to_dict()["outcomes"]
    assert facts["value_per_display"] == pytest.approx(to_numpy(kept.outcomes["value"]).sum() / N)


FRAME = pa.table({"at": [1, 2, 3, 4], "ad": list("abab"), "sold": [2, None, 5, None], "back": [9, None, None, 12],
                  "loss": [-2.0, None, None, -1.0]})  # fmt: skip
ROLES = {"time": "at", "action": "ad", "conversion_time": "sold", "unit": "s", "attribution_window": "5s"}


def test_a_spec_declares_it() -> None:
    of = {"time": "back", "value": "loss", "reward": True, "attribution_window": "20s", "value_min": -2.0}
    log = Log.from_frames(FRAME, **ROLES, outcomes={"damaged": of})
    assert log.meta.outcomes == (
        EventKind(name="damaged", attribution_window=20, observed_until=12, value_max=0.0, reward=True, told=True,
                value_min=-2.0),
    )  # fmt: skip
    assert log.outcomes["value"].to_pylist() == [-2.0, -1.0]
    for wrong, said in (
        ({**of, "reward": False}, "told and value_min are of rewards"),
        ({**of, "reward": False, "value_min": None}, "value below 0"),
        ({**of, "value_min": -1.5}, "less than value_min = -1.5"),
        ({**of, "value_min": None}, "less than value_min = 0"),
    ):
        with pytest.raises(EvaluatorError, match=said):
            Log.from_frames(FRAME, **ROLES, outcomes={"damaged": {k: v for k, v in wrong.items() if v is not None}})


@pytest.mark.parametrize("reward", [True, False])
def test_its_delays_are_studied_as_those_of_sales_are(reward: bool) -> None:
    until, window = N + 500, 1_500
    log = damaged(until, window)
    about = log.meta.outcomes[0]
    if not reward:
        own = log.outcomes.set_column(3, "value", pa.array(np.ones(len(log.outcomes))))
        plainly = replace(about, reward=False, told=False, value_min=None, value_max=1.0)
        log = log.with_meta(outcomes=(plainly,)).changed(events=merge_events(log.conversions, with_kind(own, NAME)))
    found = study_delays(log, windows=[200], families=["geometric", "lognormal"], bootstraps=20)
    assert (
        found.to_dict() | {"outcomes": {}, "surrogates": []}
        == study_delays(
            log.without_outcomes(), windows=[200], families=["geometric", "lognormal"], bootstraps=20
        ).to_dict()
    )
    (of,) = found.outcomes.values()
    assert of.conversions == len(log.outcomes)
    assert of.fit.longest == window
    # Given a delay of at most the window, of a geometric law; the simultaneous band holds it at all delays at once.
    law = (1.0 - (1.0 - 1 / 200) ** of.fit.delays) / (1.0 - (1.0 - 1 / 200) ** window)
    naive = np.searchsorted(np.sort(of.rows.delay), of.fit.delays, side="right") / of.conversions
    off = np.abs(law - of.fit.cdf).max()
    assert off < 1.95 / of.conversions**0.5  # Massart's bound at .001, of delays that are seen whole
    assert off < np.abs(law - naive).max()  # young displays show short delays only
    assert of.choice is not None
    assert of.choice.comparison.best_fit.family == "geometric"
    validate(json.loads(json.dumps(found.to_dict())))
    assert f"delays of {len(log.outcomes):,} {NAME} events (called conversions below)" in " ".join(found.page().split())
    assert f"{NAME} events" in str(found)


@cache
def truth(tick: str) -> LogTruth:
    return truth_of(damaged(N - 1, 1_500).with_meta(tick=tick, attribution_window=250))


@pytest.mark.parametrize("tick", ["round", "s"])
def test_a_twin_has_it_by_rates_delays_values_and_window_of_its_own(tick: str) -> None:
    fitted = truth(tick)
    assert fitted.money is not None
    assert (fitted.traffic is not None) == (tick == "s")
    (one,) = fitted.money.outcomes
    judged = (N - 1_500) / 3
    within = 1.0 - (1.0 - 1 / 200) ** 1_500
    # Drawing towards the mean takes less than a hundredth of the distance: noise of .2/833 beside a variance of .014.
    room = 4 * np.sqrt(RATES * (1 - RATES) / judged) + 0.02 * np.abs(RATES - RATES.mean())
    assert (np.abs(one.rate - within * RATES) < room).all()
    twin = draw_twin(fitted, seed=3, twin=0).validated()
    (about,) = twin.meta.outcomes
    assert (about.name, about.told, about.attribution_window, about.observed_until) == (NAME, True, 1_500, N - 1)
    of, wait, action = to_numpy(twin.outcomes["display_id"]), twin.of_outcome(NAME), twin.column("action")
    late = to_numpy(wait.conversions["time"]) - twin.column("time")[of]
    assert (late >= 1).all()
    assert (late <= 1_500).all()
    assert set(to_numpy(twin.outcomes["value"])) == {-LOSS}
    old = of < N - 1_500
    came = np.bincount(action[of[old]], minlength=3) / np.bincount(action[: N - 1_500], minlength=3)
    assert (np.abs(came - one.rate) < 4 * np.sqrt(one.rate * (1 - one.rate) / judged)).all()
    assert abs(late[old].mean() - 200) < 4 * 200 * (2 / old.sum()) ** 0.5  # a geometric law, fitted and then drawn
    # It comes whether a display sold or not.
    sold = np.isin(np.arange(N), to_numpy(twin.conversions["display_id"]))[: N - 1_500]
    back = np.isin(np.arange(N), of)[: N - 1_500]
    for k in range(3):
        mine = action[: N - 1_500] == k
        p, n = back[mine].mean(), [(mine & sold).sum(), (mine & ~sold).sum()]
        gap = back[mine & sold].mean() - back[mine & ~sold].mean()
        assert abs(gap) < 4 * (p * (1 - p) * (1 / n[0] + 1 / n[1])) ** 0.5


@pytest.mark.parametrize("tick", ["round", "s"])
@pytest.mark.parametrize("told", [True, False])
def test_a_live_policy_in_a_twin_is_told_of_it_as_late_as_it_comes(tick: str, told: bool) -> None:
    fitted, rounds, window = truth(tick), 20_000, 600
    assert fitted.money is not None
    (one,) = fitted.money.outcomes
    heard = replace(fitted, money=replace(fitted.money, outcomes=(replace(one, kind=replace(one.kind, told=told)),)))
    planned = plan(draw_twin(heard, seed=0, twin=0), "random", window=window)
    claim = claims_of(heard, planned)
    world = live_world(heard, as_description("random"), claim, rounds, reach=window, arrivals=(0.0, N - 1.0))
    money, rng = live_money(heard, claim, told_costs=True), np.random.default_rng(5)
    assert money is not None
    found = heard.mean_value * play_live(
        as_description(Listener), planned.setting, world, rounds, own=rng, luck=np.random.default_rng(6),
        money=money._replace(luck=rng.random((rounds, 3 + 3 * told))), weights=claimed_weights(claim, [rounds], rounds),
        of_money=money_weights(claim, [rounds], rounds),
    )  # fmt: skip
    np.testing.assert_allclose(found, heard.rates[0, 2] * fitted.money.worth[2] - LOSS * one.rate[2])
    late = np.array([delay for delay, value in HEARD.pop() if value < 0.0])
    if not told:
        assert not len(late)
        return
    assert (planned.setting.reward_min, planned.setting.reward_max) == pytest.approx((-LOSS, 1.0))
    share = float(DelayCDF(delays=one.laws.grid, cdf=one.laws.tau[one.laws.of_action[2]], source="")(window))
    expected = rounds * one.rate[2] * share
    assert abs(len(late) - expected) < 4 * expected**0.5 + window * one.rate[2]  # those of the last rounds are to come
    law = np.diff(one.laws.tau[one.laws.of_action[2]], prepend=0.0)[one.laws.grid <= window] / share
    mean, square = (float(law @ one.laws.grid[one.laws.grid <= window] ** power) for power in (1, 2))
    # The last rounds, as many as the window has, tell short delays only.
    assert abs(late.mean() - mean) < 4 * ((square - mean**2) / len(late)) ** 0.5 + window / rounds * mean
    assert late.max() <= window


def test_an_audit_has_it() -> None:
    found = audit(damaged(N - 1, 1_500), ["ucb1", "logging"], twins=20, window=500)
    learner, logger = found.policies
    for one in (learner, logger):
        assert abs(one.bias) < 4 * one.bias_standard_error
        assert one.value_coverage.held >= 17  # of 20 at 95 %: fewer in 2 of 1,000
    log = damaged()
    earned = np.bincount(to_numpy(log.conversions["display_id"]), to_numpy(log.conversions["value"]), N)
    earned -= LOSS * np.bincount(to_numpy(log.outcomes["display_id"]), minlength=N)
    assert abs(logger.live_value - earned.mean()) < 4 * earned.std() * (2 / (N - 1_500)) ** 0.5
    assert any(f"{NAME} comes of" in line for line in found.truth)
    with pytest.raises(ParameterError, match="by what comes in the end"):
        audit(damaged(), ["random"], twins=10, reward="observed")


def test_the_command_that_audits_it_counts_it_too(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    write_canonical(damaged(N - 1, 1_500), tmp_path / "log")
    run = evaluate("audit", "-d", str(tmp_path / "log"), "-p", "random", "--twins", "10", "--window", "500", "--json")
    found = audit(load(tmp_path / "log"), "random", twins=10, window=500)
    assert json.loads(run.out)["policies"][0]["live_value"] == found.policies[0].live_value


def test_revenue_is_one_number() -> None:
    log = damaged()
    display = log.displays.append_column("cost", pa.array(np.full(N, 0.1)))
    found = replay(replace(log, displays=display), "random", window=500, guardrails=["revenue > 0", "sales > 0"])
    assert found.money is not None
    revenue, sold = (answer.interval.estimate for answer in found.guardrails)
    assert revenue == pytest.approx(found.money.revenue.estimate)
    assert revenue < sold - 0.1
    facts = log_facts(log)
    assert facts.reward_per_display == pytest.approx(
        (to_numpy(log.conversions["value"]).sum() + to_numpy(log.outcomes["value"]).sum()) / N
    )
    assert (facts.outcomes[0].reward, facts.outcomes[0].told) == (True, True)
    with pytest.raises(ParameterError, match=r"no share of them is defined. Hint: .*'revenue < \+0.001'"):
        replay(log, "random", window=500, guardrails=["revenue < +5%"])
    with pytest.raises(EvaluatorError, match="has no cost"):
        replay(log, "random", window=500, guardrails=["cost < 1"])


def test_rewards_need_a_window() -> None:
    log = damaged(N - 1)
    with pytest.raises(LogError, match="nothing says how long after a display rewards may come"):
        log.with_meta(attribution_window=None, observed_until=N - 1).validated()
    with pytest.raises(LogError, match="is told to policies, and is no reward"):
        log.with_meta(outcomes=(replace(log.meta.outcomes[0], reward=False),)).validated()


def with_defect(defect: str = "") -> Log:
    """A log whose goods come back in another way in its second half, or are no longer looked for at its end."""
    log, rng = plain(), np.random.default_rng(5)
    action, late = log.column("action"), np.arange(N) >= N // 2
    rate = np.array([0.15, 0.3, 0.2])[action] * np.where(late & (defect == "drift of conversion rates"), 2.0, 1.0)
    of = np.flatnonzero(rng.random(N) < rate)
    wait = rng.geometric(np.where(late[of] & (defect == "drift of delays"), 1 / 120, 1 / 40))
    value = -rng.lognormal(0.0, 0.3, len(of)) * np.where(late[of] & (defect == "drift of values"), 100.0, 1.0)
    window = 400
    seen = (wait <= window) & (wait + of < (N - 500 if defect == "immature displays" else N))
    found = with_outcome(
        log.with_meta(attribution_window=1_000, reward_max=1.0), NAME, of[seen], (of + wait)[seen], value[seen],
        reward=True, told=True, value_min=-1_000.0, value_max=0.0, attribution_window=window, observed_until=N,
    )  # fmt: skip
    return found.validated()


DEFECTS = ("drift of conversion rates", "drift of delays", "drift of values", "immature displays")


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_check_sees_what_is_wrong_with_it_alone(defect: str) -> None:
    found = check(with_defect(defect))
    one = found[defect]
    assert one.verdict in ("warn", "fail")
    assert one.numbers["kind"] == NAME
    assert one.what.startswith(f"Of {NAME}, whose events are called conversions here: ")
    alarmed = {of.name for of in found.checks if of.verdict in ("warn", "fail")}
    assert alarmed & set(DEFECTS) == {defect}


def test_a_check_says_which_of_its_tests_do_not_see_it() -> None:
    said = check(damaged()).left_out
    assert said.startswith(f"These checks see conversions alone, not {NAME}: ")
    assert "wear-out" in said
    assert check(plain()).left_out == ""


def test_a_check_passes_it_where_nothing_is_wrong() -> None:
    log = with_defect()
    found = check(log)
    assert found.left_out.startswith("These checks see conversions alone")
    assert not {one.name for one in found.checks if one.verdict in ("warn", "fail")} & set(DEFECTS)
    assert found[DEFECTS[0]].numbers["kind"] in ("conversions", NAME)
    assert "kind" not in check(plain())[DEFECTS[0]].numbers
    # What a replay has to tell from is what displays earn in all, of those followed for every kind.
    earned = to_numpy(log.conversions["value"]).sum() + to_numpy(log.outcomes["value"]).sum()
    logger = found["replay of the logger"]
    assert logger.numbers["log_mean"] == pytest.approx(earned / N)
    assert logger.verdict == "pass"
    assert found.replay.rounds == pytest.approx((N - 399) / 3)  # the first is shown at 0
    assert check(plain()).replay.rounds == pytest.approx(N / 3)


def test_what_is_bounded_by_0_is_known_and_nothing_advises_what_cannot_help() -> None:
    found = replay(damaged(), "ucb1", window=500)
    assert "nobody knows" not in " ".join(found.warnings)
    assert found.outcomes[0].value.kind.startswith("anytime-valid")
    (of,) = plan(damaged(), "ucb1", window=500).outcomes.values()
    assert (of.rewards.smallest, of.rewards.largest) == (-LOSS, 0.0)  # known to earn nothing, so 0 is no absent bound
    empty = damaged().changed(events=damaged().events.slice(0, 0)).with_meta(reward_max=None)
    nothing = plan(empty, "random").rewards
    assert (nothing.most, nothing.bounded) == (1.0, False)


def test_capped_rewards_know_of_conversions_alone() -> None:
    with pytest.raises(LogError, match="capped rewards"):
        replay(damaged(), "random", cap=0.5)


def test_an_outcome_that_was_not_seen_keeps_its_window_where_young_displays_are_corrected() -> None:
    log = damaged(N - 1, 1_500).with_meta(observed_until=N + 500)
    empty = log.changed(events=log.conversions)
    assert replay(empty, "logging", immature="correct").plan["displays_used"] == N - 1_500


def test_the_largest_reward_of_a_plan_is_of_what_is_not_told_too() -> None:
    log = damaged(told=False)
    more = log.with_meta(outcomes=(replace(log.meta.outcomes[0], value_max=2.0),))
    assert replay(more, "ucb1", window=500).plan["reward_bound"]["largest"] >= 3.0
