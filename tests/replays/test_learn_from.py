"""A policy that learns from an outcome: told its events as if they were the rewards, and valued by the rewards."""

from __future__ import annotations

import re
from dataclasses import replace as changed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import compare, load, load_policy, plan, replay
from evaluator.errors import ParameterError, UnknownNameError
from evaluator.log import Log
from evaluator.log.reward_kinds import events_that_teach
from evaluator.log.schema import to_numpy
from tests.logs import bernoulli_log, linear_log, with_outcome
from tests.logs_with_sets import make_log

CLICKS = np.array([0.5, 0.1, 0.3])


def with_clicks(log: Log, *, mean_delay: float = 20.0, value: float = 1.0, **about: Any) -> Log:
    """Return a log with clicks that favour the first action, and some displays with several of them."""
    rng = np.random.default_rng(5)
    clicked = rng.random(len(log)) < np.resize(CLICKS, log.n_actions)[log.column("action")]
    of = np.concatenate([rng.choice(len(log), len(log) // 3, replace=False), np.flatnonzero(clicked)])
    when = log.column("time")[of] + rng.geometric(1 / mean_delay, len(of))
    order = np.lexsort((when, of))
    return with_outcome(log, "click", of[order], when[order], np.full(len(of), value), **{"value_max": 4.0, **about})


@cache
def a_log() -> Log:
    return with_clicks(bernoulli_log(4000, [0.2, 0.6, 0.4], mean_delay=30, seed=1))


@cache
def contextual() -> Log:
    return with_clicks(linear_log(1500, n_actions=3, dimension=4, mean_delay=10.0, seed=1))


CASES: list[tuple[str, dict[str, Any]]] = [
    ("ucb1", {}),
    ("thompson", {"sampler": "queue"}),
    ("thompson", {"sampler": "keep"}),
    ("delayed-ucb", {"window": 60}),
    ("delayed-klucb", {"window": 60, "clock": "wall", "sampler": "rejection"}),
    ("delayed-ucb", {"window": 60, "repeats": 2, "learn_every": 50, "learn_lag": 10}),
    ("delayed-ucb", {"window": 60, "delays_from": "first:20%"}),
    ("delayed-ucb", {"window": 60, "final": "last:20%", "sampler": "rejection"}),
    ("thompson", {"traffic_share": 0.5}),
    ("odaaf", {"window": 60}),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "options"), CASES)
def test_the_policy_lives_what_it_lives_where_the_events_are_the_rewards(policy: str, options: dict[str, Any]) -> None:
    log = a_log()
    taught = replay(log, policy, learn_from="click", **options)
    alone = replay(log.of_outcome("click"), policy, **options)
    assert taught.trajectory.select(["round", "display_id", "action"]).equals(
        alone.trajectory.select(["round", "display_id", "action"])
    )
    counted = [(of.generated, of.delivered, of.pending, of.expired) for of in (taught, alone)]
    assert counted[0] == counted[1]
    assert counted[0][0] > 100
    assert taught.learned is not None
    assert alone.learned is not None
    assert [*map(str, taught.learned.state)] == [*map(str, alone.learned.state)]
    # ... and is valued by the rewards of what it showed.
    of = to_numpy(log.conversions["display_id"])
    reward = np.bincount(of, weights=to_numpy(log.conversions["value"]), minlength=len(log))
    shown = to_numpy(taught.trajectory["display_id"])
    assert np.array_equal(to_numpy(taught.trajectory["reward"]), reward[shown])
    (click,) = taught.outcomes
    assert click.outcome == "click"
    assert click.value.estimate == pytest.approx(alone.value.estimate, abs=1e-12)


@pytest.mark.parametrize("policy", ["linucb", "otflinucb"])
def test_so_does_one_that_reads_contexts(policy: str) -> None:
    log = contextual()
    taught = replay(log, policy, window=60, learn_from="click")
    alone = replay(log.of_outcome("click"), policy, window=60)
    assert taught.trajectory["display_id"].equals(alone.trajectory["display_id"])


def test_so_does_one_on_eligible_sets() -> None:
    log = with_clicks(make_log(4_000, "random", "uniform", 3))
    taught, alone = replay(log, "ucb1", learn_from="click"), replay(log.of_outcome("click"), "ucb1")
    assert taught.trajectory["display_id"].equals(alone.trajectory["display_id"])


def test_resampled_logs_teach_by_it_too() -> None:
    log = a_log()
    taught = replay(log, "delayed-ucb", window=60, learn_from="click", bootstrap=20)
    told = replay(log, "delayed-ucb", window=60, bootstrap=20)
    flipped = with_clicks(log.without_outcomes(), mean_delay=20.0)
    again = replay(flipped, "delayed-ucb", window=60, learn_from="click", bootstrap=20)
    assert taught.resampled == again.resampled != told.resampled
    # The clicks favour another action than the sales do.
    assert taught.expected_value is not None
    assert told.expected_value is not None
    assert taught.expected_value.high < told.expected_value.low


@pytest.mark.parametrize("cut", [1, 7, 20])
def test_events_within_a_time_are_those_of_no_longer_delay(cut: int) -> None:
    log = a_log()
    events = log.of_outcome("click").conversions.to_pandas() if False else log.of_outcome("click").conversions
    of, when = (to_numpy(events[name]) for name in ("display_id", "time"))
    early = when - log.column("time")[of] <= cut
    found = events_that_teach(log, f"click@{cut}")
    assert found.conversions.equals(events.filter(early))
    assert (found.meta.attribution_window, found.meta.reward_max) == (cut, 4.0)
    made = with_outcome(log.without_outcomes(), "click", of[early], when[early], value_max=4.0, attribution_window=cut)
    taught, alone = replay(log, "ucb1", learn_from=f"click@{cut}"), replay(made, "ucb1", learn_from="click")
    assert taught.trajectory.equals(alone.trajectory)


def test_values_are_told_as_shares_of_their_own_bounds() -> None:
    log = a_log()
    dear = with_clicks(log.without_outcomes(), value=100.0, value_max=400.0)
    one, many = (replay(of, "ucb1", learn_from="click") for of in (log, dear))
    assert one.trajectory.equals(many.trajectory)
    assert any("as shares of 4, the log's largest possible value of click" in said for said in one.assumptions)


def test_displays_whose_events_were_followed_too_briefly_are_left_out() -> None:
    """Their clicks may still come: telling none would teach false zeros."""
    log = bernoulli_log(4000, [0.2, 0.6, 0.4], mean_delay=30, seed=1)
    brief = with_clicks(log).meta.outcomes[0]
    followed = with_clicks(log).with_meta(outcomes=(changed(brief, attribution_window=500, observed_until=4_000),))
    events = followed.events.filter(to_numpy(followed.events["time"]) <= 4_000)
    short = followed.changed(events=events)
    assert plan(short, "ucb1").maturity.used == 4_000
    own = plan(short, "ucb1", learn_from="click").maturity
    assert own.used == plan(short.of_outcome("click"), "ucb1").maturity.used < 3_600
    assert own.immature == 4_000 - own.used
    # Of early clicks more displays are known.
    assert plan(short, "ucb1", learn_from="click@100").maturity.used == own.used + 400


def test_the_default_is_told_as_before_and_sales_of_a_log_without_others_are_the_rewards() -> None:
    log = a_log()
    told = replay(log, "delayed-ucb", window=60)
    for word in ("objective", "revenue", "sale", "sales"):
        assert replay(log, "delayed-ucb", window=60, learn_from=word).trajectory.equals(told.trajectory)


def test_what_does_not_learn_is_taught_by_nothing() -> None:
    log = a_log()
    found = replay(log, "fixed:action=1", learn_from="click")
    assert found.plan["options"]["learn_from"] == "objective"
    plain = replay(log, "fixed:action=1")
    assert found.trajectory.equals(plain.trajectory)
    assert (found.value, found.uplift) == (plain.value, plain.uplift)
    (said,) = (finding.what for finding in found.findings if finding not in plain.findings)
    assert said == "fixed does not learn, and is replayed as without `learn_from`"
    with pytest.raises(UnknownNameError, match="clik"):
        replay(log, "fixed:action=1", learn_from="clik")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("clik", r"has no such events.*known: objective, revenue, sales, unsubscribe"),
        ("cost", r"cost is a loss, and a policy learns from rewards.*learn_from='objective'"),
        ("refunds", "refunds is a loss"),
        ("click@0s", "out of range.*click@1d"),
        ("click@", "Expected a duration"),
        ("click@5", "Expected a duration"),
        ("objective@1d", "has no such events"),
    ],
)
def test_what_cannot_teach_is_refused_in_one_line(asked: str, says: str) -> None:
    log = load("promotions", limit=2_000)
    if asked.startswith("click"):
        log = with_outcome(log, "click", [3], [int(log.column("time")[3])])
    with pytest.raises((ParameterError, UnknownNameError), match=says) as refused:
        replay(log, "ucb1", learn_from=asked)
    assert "\n" not in str(refused.value)


def test_a_time_that_stamps_do_not_tell_apart_is_refused() -> None:
    log = load("promotions", limit=2_000)
    hour = 3_600_000

    def by_the_hour(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("time")
        return table.set_column(at, table.schema.field("time"), pa.array(to_numpy(table["time"]) // hour * hour))

    coarse = log.changed(displays=by_the_hour(log.displays), events=by_the_hour(log.events))
    assert log.meta.tick == "ms"
    assert replay(coarse, "ucb1", learn_from="unsubscribe@1h").rounds
    with pytest.raises(ParameterError, match=r"`learn_from='unsubscribe@59min'`.* all are multiples of 1 h"):
        replay(coarse, "ucb1", learn_from="unsubscribe@59min")


def test_a_report_says_what_the_policy_was_told_and_what_the_numbers_are_of() -> None:
    found = replay(load("promotions", limit=4_000), "ucb1", window="2d", learn_from="unsubscribe@1d")
    (said,) = [line for line in found.assumptions if "learns from" in line]
    assert said.startswith("the policy learns from unsubscribe@1d events (`learn_from='unsubscribe@1d'`), 100.0% of")
    assert "told nothing of profit, of which value, regret, uplift and guardrails are" in said
    assert re.search(r"unsubscribe@1d events +\d+ = \d+ delivered", str(found))
    assert found.plan["options"]["learn_from"] == "unsubscribe@1d"


@pytest.mark.parametrize(
    ("learn_from", "said"),
    [
        ("objective", "told: conversions delivered"),
        ("unsubscribe@1d", "told: unsubscribe@1d events delivered"),
        ("objective,unsubscribe", "told: the events that each learns from, delivered"),
    ],
)
def test_a_comparison_says_what_its_column_of_told_events_counts(learn_from: str, said: str) -> None:
    log = load("promotions", limit=4_000)
    found = compare(log, ["ucb1", "random"], windows=["2d"], learn_from=learn_from, bootstrap=0)
    assert said in " ".join(str(found).split())


def test_a_policy_file_says_what_taught_it_and_goes_on_with_that_alone(tmp_path: Path) -> None:
    log = a_log()
    halves = log.until(2_000), log.after(2_000)
    learned = replay(halves[0], "ucb1", learn_from="click", window=60).learned
    assert learned is not None
    learned.save(tmp_path / "learned.npz")
    again = load_policy(tmp_path / "learned.npz")
    assert [of.taught_by for of in again.learned_from] == ["click"]
    with pytest.raises(ParameterError, match=r"the policy learned from click.*learn_from='click'"):
        replay(halves[1], again)
    on = replay(halves[1], again, learn_from="click")
    assert on.rounds
    plain = replay(halves[0], "ucb1", window=60).learned
    assert plain is not None
    with pytest.raises(ParameterError, match="learned from objective"):
        replay(halves[1], plain, learn_from="click")
    assert replay(halves[1], plain, learn_from="revenue").rounds
