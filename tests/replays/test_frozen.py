"""What `final` changes of a replay, what it tells, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evaluator import compare, replay
from evaluator.api import plan
from evaluator.errors import DataError, ParameterError, PropensityError
from evaluator.estimates.weighted import ips, snips
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from tests.logs import bernoulli_log, build_log, linear_log

LOG = linear_log(3000, n_actions=4, dimension=5, mean_delay=10.0, seed=1, temperature=0.2)
ARMS = bernoulli_log(3000, [0.5, 0.3, 0.2], mean_delay=10.0, seed=2, logger=[0.5, 0.3, 0.2])


def with_target(log: Log, target: np.ndarray) -> Log:
    displays = log.displays.append_column("target", fixed_size_lists(target))
    return Log(displays, log.conversions, log.actions, log.meta).validated()


def rewards(log: Log) -> np.ndarray:
    return np.bincount(log.conversions["display_id"].to_numpy(), minlength=len(log)).astype(float)


def test_the_replay_is_that_of_the_displays_before() -> None:
    early = pc.less(LOG.conversions["display_id"], 2400)
    first = Log(LOG.displays.slice(0, 2400), LOG.conversions.filter(early), LOG.actions, LOG.meta)
    with_final = replay(LOG, "otflinucb", window=50, final="last:20%", delays="geometric:10")
    alone = replay(first, "otflinucb", window=50, delays="geometric:10")
    # The c of the whole log may be smaller than that of its first part.
    assert with_final.plan["displays_used"] == alone.plan["displays_used"] == 2400
    assert with_final.trajectory["display_id"].to_numpy().max() < 2400
    assert with_final.final.displays == with_final.plan["displays_judged"] == 600
    assert alone.final is None
    assert alone.to_dict()["final"] is None


def test_a_fixed_action_by_hand() -> None:
    found = replay(ARMS, "fixed:action=1", window=50, final="last:25%").final
    shown = (ARMS.column("action") == 1)[2250:].astype(float)
    weighted = (rewards(ARMS)[2250:], shown, ARMS.column("propensity")[2250:])
    assert found.ips == ips(*weighted)
    assert found.snips == snips(*weighted)
    assert found.logging.value.estimate == weighted[0].mean()
    assert found.action_share == (0.0, 1.0, 0.0)
    assert (found.policy, found.draws, found.tied, found.learned) == ("fixed", 0, 0.0, False)
    assert found.rewarded == int((shown * weighted[0] > 0).sum())


def test_repeats_are_one_policy_that_is_any_of_them() -> None:
    options: dict[str, Any] = {"final": "last:30%", "final_policy": "exploring", "horizon": 100, "seed": 3}
    one, two = (replay(LOG, "lints", window=50, repeats=r, **options).final for r in (1, 2))
    assert two.displays == one.displays
    assert (one.repeats, two.repeats) == (1, 2)
    assert two.draws == 2 * one.draws
    assert two.ips != one.ips


@pytest.mark.parametrize("final_policy", ["greedy", "exploring"])
@pytest.mark.parametrize("spec", ["otflints", "thompson", "qpm-d"])
def test_neither_jobs_nor_batches_nor_company_matter(spec: str, final_policy: str) -> None:
    options: dict[str, Any] = {"final": "last:30%", "final_policy": final_policy, "seed": 4, "repeats": 2}
    # As text, in which an interval that is not given (nan) equals another.
    alone = repr(replay(LOG, spec, window=40, **options).final)
    assert alone == repr(execute(plan(LOG, spec, window=40, jobs=2, **options), batch_size=100).final)
    together = compare(LOG, ["random", spec], baseline="random", windows=[40, 41], jobs=2, **options)
    assert alone == repr(together.results[2].final)
    assert all(r.final is not None for r in together.results)


class Epsilon:
    """Greedy on counts, one display in five at random; draws when asked."""

    contextual = True

    def __init__(self, setting: Any) -> None:
        self.k, self.sums, self.pulls = setting.n_actions, np.zeros(setting.n_actions), np.ones(setting.n_actions)

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return int(rng.integers(self.k)) if rng.random() < 0.2 else int(np.argmax(self.sums / self.pulls))

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self.pulls[action] += 1

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self.sums[action] += value


def test_python_policies_are_frozen_too() -> None:
    result = replay(LOG, Epsilon, window=50, final="last:20%")
    found = result.final
    # It says nothing of its estimates.
    assert found.policy == "exploring"
    assert "Epsilon says nothing of its estimates (it has no method estimates)" in said_of(result)
    shares = np.array(found.action_share)
    assert shares.sum() == pytest.approx(1.0)
    # 0.8 + 0.2 / 4 for one action, 0.05 for the others, each from 600 displays of 100 draws.
    error = 4 * (0.25 / (600 * found.draws)) ** 0.5
    np.testing.assert_allclose(np.sort(shares), [0.05, 0.05, 0.05, 0.85], atol=error)


class Estimating(Epsilon):
    def estimates(self, vectors: np.ndarray) -> np.ndarray:
        return self.sums / self.pulls


def test_python_policies_may_say_what_they_estimate() -> None:
    result = replay(LOG, Estimating, window=50, final="last:20%")
    assert (result.final.policy, result.final.draws) == ("greedy", 0)
    assert sorted(result.final.action_share) == [0.0, 0.0, 0.0, 1.0]
    assert "estimates" not in said_of(result)
    asked = replay(LOG, Estimating, window=50, final="last:20%", final_policy="exploring")
    assert asked.final.policy == "exploring"
    assert max(asked.final.action_share) < 0.9
    assert "estimates" not in said_of(asked)


def test_the_greedy_policy_is_what_was_learned_and_the_exploring_one_its_next_pull() -> None:
    """After 60 rounds ucb1 pulls what it knows least of; what it has learned is that the first action is best."""
    options: dict[str, Any] = {"window": 50, "horizon": 60, "final": "last:50%", "seed": 1}
    greedy = replay(ARMS, "ucb1:exploration=50", **options)
    exploring = replay(ARMS, "ucb1:exploration=50", final_policy="exploring", **options)
    assert (greedy.final.policy, exploring.final.policy) == ("greedy", "exploring")
    state = greedy.learned.state
    means = state.conversions / state.pulls
    assert greedy.final.action_share == tuple(np.eye(3)[means.argmax()])
    assert exploring.final.action_share == tuple(np.eye(3)[state.pulls.argmin()])
    assert means.argmax() != state.pulls.argmin()
    assert greedy.value == exploring.value
    assert [greedy.learned.labels[greedy.learned.choose(greedy=True)] for _ in range(2)] == ["a0", "a0"]


def test_a_posteriors_choices_are_named_so_and_drawn_often() -> None:
    options: dict[str, Any] = {"window": 50, "final": "last:20%", "final_policy": "exploring", "horizon": 100}
    arms, sets = replay(ARMS, "thompson", **options).final, replay(LOG, "lints", **options).final
    assert (arms.policy, sets.policy) == ("posterior sampling",) * 2
    assert (arms.draws, sets.draws) == (200_000, 100)
    # All displays share one set of probabilities, so their weights take three values.
    assert arms.weights.largest < 1 / 0.2
    assert replay(ARMS, "thompson", window=50, final="last:20%").final.policy == "greedy"


def test_what_has_learned_nothing_says_so() -> None:
    rare = bernoulli_log(3000, [0.0, 0.0, 0.0], mean_delay=1.0, seed=2)
    result = replay(rare, "ucb1", window=50, final="last:20%")
    np.testing.assert_allclose(result.final.action_share, 1 / 3)
    assert result.final.tied == 1.0
    assert "at 100.0% of the displays several actions have the same largest estimate" in said_of(result)
    even = replay(ARMS, "random", window=50, final="last:20%").final
    assert (even.policy, even.tied) == ("fixed", 0.0)
    np.testing.assert_allclose(even.action_share, 1 / 3)


def test_which_final_policy_needs_a_final_policy() -> None:
    with pytest.raises(ParameterError, match=r"`final_policy='exploring'` says which policy `final` values"):
        replay(ARMS, "ucb1", final_policy="exploring")
    with pytest.raises(ParameterError, match=r"`final_policy` 'best' is not a choice"):
        replay(ARMS, "ucb1", final="last:20%", final_policy="best")


def test_the_logging_policy_has_no_final_policy() -> None:
    assert replay(ARMS, "logging", window=50, final="last:20%").final is None


def test_columns_are_weighed_exactly_on_all_displays() -> None:
    target = np.random.default_rng(5).dirichlet(np.ones(4), 3000)
    log = with_target(LOG, target)
    result = replay(log, "columns", window=50)
    found = result.final
    of_shown = target[np.arange(3000), log.column("action")]
    assert found.ips.value.estimate == pytest.approx(
        ips(rewards(log), of_shown, log.column("propensity")).value.estimate
    )
    assert (found.displays, found.learned, found.draws) == (3000, False, 0)
    np.testing.assert_allclose(found.action_share, target.mean(axis=0))
    assert replay(log, "columns", window=50, final="last:20%").final.displays == 600
    # Beside a policy that reads the action sets, in one scan.
    both = compare(log, ["columns", "linucb"], baseline="columns", windows=[50])
    assert both.results[0].final == found
    assert both.results[1].value == replay(LOG, "linucb", window=50).value


def test_replaying_columns_gives_their_shares() -> None:
    log = with_target(ARMS, np.tile([0.2, 0.0, 0.8], (3000, 1)))
    result = replay(log, "columns", window=50)
    n = result.rounds
    assert result.action_share[1] == 0.0
    assert abs(result.action_share[0] - 0.2) < 4 * (0.2 * 0.8 / n) ** 0.5


def test_columns_need_the_columns() -> None:
    with pytest.raises(ParameterError, match=r"columns needs the column 'target' of displays, and log 'test' has none"):
        replay(ARMS, "columns", window=50)


@pytest.mark.parametrize("text", ["first:20%", "last:0%", "last:100%", "last:20", "20%", "last:x%"])
def test_another_part_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=rf"`final` '{text}' is no part of the log"):
        replay(ARMS, "ucb1", final=text)


def test_a_log_too_short_for_its_share_is_refused() -> None:
    log = build_log(time=[0, 1], action=[0, 1], n_actions=2)
    with pytest.raises(DataError, match="leaves 2 displays to replay and 0 for the final policy"):
        replay(log, "ucb1", final="last:10%")


def test_propensities_are_needed() -> None:
    log = ARMS.with_meta(propensity="absent")
    with pytest.raises(PropensityError, match="`final` weighs displays by their propensities"):
        replay(log, "ucb1", final="last:20%")
    found = replay(log, "ucb1", final="last:20%", propensity="estimate", window=50)
    assert any("estimated propensities as known" in said for said in found.assumptions)


def test_young_displays_are_left_out_before_the_share_is_taken() -> None:
    log = ARMS.with_meta(observed_until=3100, attribution_window=200)
    cut = log.conversions.filter(pc.less_equal(
        pc.subtract(log.conversions["time"], log.conversions["display_id"]), 200))  # fmt: skip
    log = Log(log.displays, cut, log.actions, log.meta)
    found = replay(log, "ucb1", final="last:20%", window=50)
    mature = 3100 - 200 + 1
    assert found.plan["displays_used"] + found.final.displays == mature
    assert found.final.displays == round(0.2 * mature)
    corrected = replay(log, "ucb1", final="last:20%", window=50, immature="correct")
    assert corrected.final.displays > found.final.displays


def said_of(result: ReplayResult) -> str:
    return " ".join(result.warnings)


def test_weights_that_tell_little_are_said_aloud() -> None:
    rare = bernoulli_log(3000, [0.5, 0.3], mean_delay=1.0, seed=6, logger=[0.01, 0.99])
    assert "of its own (effective sample size)" in said_of(replay(rare, "fixed:action=0", final="last:50%"))
    wrong = replay(ARMS, "fixed:action=0", final="last:50%", propensity="uniform")
    assert "where right propensities give 1" in said_of(wrong)
    assert "Frozen policy" not in said_of(replay(ARMS, "fixed:action=0", final="last:50%"))
    seldom = bernoulli_log(3000, [0.002, 0.003], mean_delay=1.0, seed=7)
    few = replay(seldom, "fixed:action=0", final="last:50%")
    assert "no value by IPS, SNIPS, DR is given: no reward tells it" in said_of(few)
    assert np.isnan([few.final.dr.value.estimate, few.final.dr.value.low, few.final.dr.value.high]).all()


def test_the_result_is_json() -> None:
    result = replay(ARMS, "ucb1", window=50, final="last:20%")
    told = json.loads(json.dumps(result.to_dict()))["final"]
    assert set(told["action_share"]) == {"a0", "a1", "a2"}
    assert told["dr"]["value"]["kind"] == "asymptotic normal, shifted for skewness"
    assert told["weights"]["n"] == told["displays"] == 600


def with_sets(seed: int, n: int = 6_000) -> Log:
    """Return a log whose displays have the first one, two or three of three actions eligible, shown evenly."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 4, n)
    action = rng.integers(size)
    rows = pa.table(
        {
            "t": np.arange(n), "ad": action, "sold": rng.random(n) < np.array([0.2, 0.4, 0.3])[action],
            "p": 1 / size, "could": [list(range(k)) for k in size],
        }
    )  # fmt: skip
    return Log.from_frames(
        rows, time="t", action="ad", eligible="could", propensity="p", indicator="sold", immediate=True, unit="min"
    )


def test_the_greedy_policy_shows_eligible_actions_alone() -> None:
    final = replay(with_sets(1), "ucb1", final="last:50%").final
    assert sum(final.action_share) == pytest.approx(1.0, abs=1e-12)
    # It shows 0 alone, 1 of 0 and 1, and 1 of all: .2, .4 and .4 at a third of the displays each.
    assert final.action_share == pytest.approx((1 / 3, 2 / 3, 0.0), abs=4 * (2 / 9 / 3_000) ** 0.5)
    for one in (final.dr, final.snips, final.ips):
        error = (one.value.high - one.value.low) / 2 / 1.96
        assert abs(one.value.estimate - 1 / 3) < 4 * error
    assert abs(final.dr.value.estimate - final.ips.value.estimate) < 0.02
