"""Outcomes that no policy sees: valued as rewards are, by their own window and end, and never a reason for a choice."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from evaluator import compare, plan, replay
from evaluator.estimates.confidence import UNKNOWN
from evaluator.log import Log
from evaluator.replays.result import ReplayResult
from evaluator.reports.html import notebook_html
from tests.logs import bernoulli_log, linear_log, with_outcome

RATES = np.array([0.05, 0.2, 0.02])


def with_complaints(log: Log, *, seed: int = 5, rates: np.ndarray = RATES, **about: Any) -> Log:
    """Return a log with complaints, by action, that come late; those beyond its window and end are not in it."""
    rng = np.random.default_rng(seed)
    of = np.flatnonzero(rng.random(len(log)) < rates[log.column("action")])
    when = log.column("time")[of] + rng.geometric(0.02, len(of))
    window, until = about.get("attribution_window"), about.get("observed_until")
    seen = np.ones(len(of), np.bool_) if window is None else when - log.column("time")[of] <= window
    seen &= np.ones(len(of), np.bool_) if until is None else when <= until
    return with_outcome(log, "complaint", of[seen], when[seen], **{"value_max": 1.0, **about}).validated()


@cache
def plain() -> Log:
    return bernoulli_log(4000, [0.2, 0.6, 0.4], mean_delay=30, seed=1)


def told(result: ReplayResult) -> dict[str, Any]:
    """All that a result says but for outcomes."""
    said = result.to_dict()
    del said["outcomes"], said["plan"]["outcomes"]
    return said


@pytest.mark.parametrize(
    ("policy", "more"), [("ucb1", {}), ("thompson", {"sampler": "queue"}), ("ucb1", {"repeats": 2})]
)
def test_changing_outcomes_changes_no_choice_to_the_bit(policy: str, more: dict[str, Any]) -> None:
    without = replay(plain(), policy, window=200, **more)
    for seed in (5, 6):
        found = replay(with_complaints(plain(), seed=seed), policy, window=200, **more)
        assert found.trajectory.equals(without.trajectory)
        assert told(found) == told(without)
        assert [of.outcome for of in found.outcomes] == ["complaint"]
    assert without.outcomes == ()


def test_a_contextual_policy_sees_none_either() -> None:
    log = linear_log(1500, n_actions=3, dimension=4, mean_delay=10.0, seed=1)
    found, without = (replay(one, "linucb", window=50) for one in (with_complaints(log), log))
    assert found.trajectory.equals(without.trajectory)


@pytest.mark.parametrize(
    ("more", "until"), [({}, 3999), ({"repeats": 3}, 4200), ({"sampler": "rejection"}, 3999), ({"level": 0.8}, 3999)]
)
def test_an_outcome_is_valued_as_a_reward_is(more: dict[str, Any], until: int) -> None:
    """A policy that does not learn chooses alike, whatever it is told: its value on the log of the events is that."""
    log = with_complaints(plain(), attribution_window=100, observed_until=until)
    (complaint,) = replay(log, "random", window=200, **more).outcomes
    alone = replay(log.of_outcome("complaint"), "random", window=200, **more)
    n = alone.plan["displays_used"]
    assert n == min(until - 99, 4000)
    assert complaint.value == replace(alone.value, estimate=pytest.approx(alone.value.estimate))
    assert complaint.logging_value == alone.logging_value
    assert complaint.uplift.low == pytest.approx(alone.uplift.low)
    assert complaint.uplift.high == pytest.approx(alone.uplift.high)


def test_young_displays_are_judged_by_each_outcomes_own_window_and_end() -> None:
    log = plain().with_meta(attribution_window=None)
    for window, until, used in ((100, 3999, 3900), (10, 3999, 3990), (100, 4200, 4000), (4500, 3999, 0)):
        late = with_complaints(log, attribution_window=window, observed_until=until)
        found = replay(late, "random")
        of_plan = found.plan["outcomes"]["complaint"]
        assert (of_plan["displays_used"], of_plan["displays_immature"]) == (used, 4000 - used)
        assert found.plan["displays_used"] == 4000
        shown = found.trajectory["display_id"].to_numpy()
        assert found.outcomes[0].value.n == (shown < used).sum()
        assert found.outcomes[0].logging_value.n == used
    assert math.isnan(found.outcomes[0].value.estimate)
    assert (found.outcomes[0].value.low, found.outcomes[0].value.high) == (0.0, 1.0)
    assert any("Outcome complaint: no replayed display was followed for 4,500 rounds" in w for w in found.warnings)


def test_an_outcome_without_a_window_is_cut_by_the_replays_or_warned_of() -> None:
    log = with_complaints(plain(), observed_until=3999)
    cut = replay(log, "random", window=50)
    assert cut.plan["outcomes"]["complaint"]["displays_used"] == 3950
    alone = replay(log.of_outcome("complaint"), "random", window=50)
    assert cut.outcomes[0].value.estimate == pytest.approx(alone.value.estimate)
    free = replay(log, "random")
    assert free.outcomes[0].value.n == free.rounds
    assert any("nothing says how long after a display such an event may come" in line for line in free.warnings)
    assert not any("such an event" in line for line in cut.warnings)


def test_young_displays_may_be_corrected_by_the_outcomes_own_delays() -> None:
    log = with_complaints(plain(), attribution_window=300, observed_until=3999)
    dropped = replay(log, "random").outcomes[0]
    corrected = replay(log, "random", immature="correct").outcomes[0]
    assert dropped.logging_value.n == 3700
    assert corrected.logging_value.n > 3900
    truth = RATES.mean()
    error = (truth / 4000) ** 0.5
    assert abs(corrected.logging_value.estimate - truth) < 4 * error
    none = with_outcome(plain(), "complaint", [], [], attribution_window=300, observed_until=3999)
    assert replay(none, "random", immature="correct").outcomes[0].logging_value.n == 3700


def test_the_bound_is_said_where_nobody_knows_it() -> None:
    rng = np.random.default_rng(0)
    of = np.arange(0, 4000, 10)
    log = with_outcome(plain(), "minutes", of, of, rng.exponential(3.0, len(of)))
    found = replay(log, "random")
    assert found.outcomes[0].value.kind == UNKNOWN
    assert any("Outcome minutes: the largest value of a display seen" in line for line in found.warnings)
    largest = found.plan["outcomes"]["minutes"]["value_bound"]["largest"]
    assert found.outcomes[0].value.high < largest
    alike = replay(with_outcome(plain(), "click", of, of), "random")
    assert alike.plan["outcomes"]["click"]["value_bound"] == {"largest": 1.0, "known": True}
    assert alike.outcomes[0].value.kind != UNKNOWN


def test_a_sum_that_reaches_the_bound_by_rounding_is_no_more_than_it() -> None:
    of = np.repeat(np.arange(0, 4000, 20), 3)
    assert 0.1 + 0.1 + 0.1 > 0.3
    log = with_outcome(plain(), "third", of, of, np.full(len(of), 0.1), value_max=0.3).validated()
    (found,) = replay(log, "random").outcomes
    assert found.logging_value.estimate == pytest.approx(0.3 / 20)


def test_what_is_observed_by_the_horizon_concerns_rewards_alone() -> None:
    log = with_complaints(plain())
    eventual, observed = (replay(log, "random", window=200, reward=which) for which in ("eventual", "observed"))
    assert observed.value.estimate < eventual.value.estimate
    assert observed.outcomes == eventual.outcomes


def test_displays_left_out_for_delays_or_the_final_policy_are_left_out_here_too() -> None:
    log = with_complaints(plain())
    later = replay(log, "random", delays_from="first:20%")
    assert later.outcomes[0].logging_value.n == 3200
    assert replay(log, "random", final="last:20%").outcomes[0].logging_value.n == 3200


def test_a_comparison_reports_the_outcomes_of_every_line() -> None:
    log = with_complaints(plain())
    found = compare(log, ["ucb1", "random"], baseline="ucb1", window=200)
    assert [r.outcomes for r in found.results] == [replay(log, p, window=200).outcomes for p in ("ucb1", "random")]
    table = found.results[0].outcome_table
    assert table.column_names[:5] == ["outcome", "value", "value_low", "value_high", "uplift"]
    assert table["value"].to_pylist() == [found.results[0].outcomes[0].value.estimate]
    for shown in (notebook_html(found), notebook_html(found.results[0])):
        assert "Other outcomes" in shown
        assert "complaint" in shown


def test_a_plan_says_how_outcomes_will_be_valued() -> None:
    log = with_complaints(plain(), attribution_window=100, observed_until=3999)
    assert plan(log, "ucb1").to_dict()["outcomes"] == {
        "complaint": {
            "events": log.outcomes.num_rows, "attribution_window": 100, "observed_until": 3999, "displays_used": 3900,
            "displays_immature": 100, "value_bound": {"largest": 1.0, "known": True},
        }
    }  # fmt: skip
