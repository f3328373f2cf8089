"""What a replay of a part of the traffic counts, says and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from evaluator.api import audit, check, compare, plan, replay, study_delays
from evaluator.errors import DataError, ParameterError, PropensityError
from evaluator.log import Log
from evaluator.log.schema import fixed_size_lists
from evaluator.replays.rounds.propensity import Propensities, resolve_propensities
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log, with_outcome
from tests.parts import converted, part_of, stored

N, K = 6_000, 5
# By context: the logger, and the conversion rates.
LOGGER = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.05, 0.05, 0.3, 0.3, 0.3]])
RATES = np.array([[0.3, 0.1, 0.2, 0.3, 0.1], [0.1, 0.15, 0.1, 0.4, 0.2]])


def a_log(**meta: Any) -> Log:
    """Displays a second apart under a logger that looks at the context."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, N)
    action = (rng.random(N)[:, None] > np.cumsum(LOGGER[x], axis=1)).sum(axis=1).clip(0, K - 1)
    shown = np.flatnonzero(rng.random(N) < RATES[x, action])
    context = np.column_stack([np.ones(N), 2.0 * x - 1.0]) / np.sqrt(2.0)
    return build_log(
        time=np.arange(N), action=action, propensity=LOGGER[x, action], context=context, n_actions=K, tick="s",
        conversion_display=shown, conversion_time=shown + rng.geometric(1 / 100, len(shown)), **meta,
    )  # fmt: skip


@pytest.fixture
def chosen(tmp_path: Path) -> Log:
    return stored(a_log(), tmp_path / "chosen", actions="a0,a1,a2")


def by_outcome(log: Log) -> Log:
    p = np.where(converted(log), 1.0, 0.1)
    return part_of(log, np.random.default_rng(2).random(len(log)) < p, weight=1 / p)


@pytest.fixture
def weighted() -> Log:
    return by_outcome(a_log())


def read(log: Log) -> Propensities:
    return resolve_propensities(survey(log), None)


@pytest.mark.parametrize("make", ["chosen", "weighted"])
def test_the_mean_of_1_over_p_is_1_for_every_action(make: str, request: pytest.FixtureRequest) -> None:
    log = request.getfixturevalue(make)
    p = read(log)
    assert p.tilted
    for _, batch in log.batches(list(dict.fromkeys(["action", "propensity", *p.reads])), size=10**6):
        assert p.shown(batch) == pytest.approx(batch["propensity"])
        right, wrong = (
            [off_from_1(np.where(batch["action"] == action, inverse, 0.0)) for action in range(log.n_actions)]
            for inverse in (1.0 / p.of(batch), 1.0 / batch["propensity"])
        )
        assert max(right) < 4 < max(wrong)


def off_from_1(terms: npt.NDArray[np.float64]) -> float:
    """Return how many standard errors a mean is off from 1."""
    return float(abs(terms.mean() - 1.0) / terms.std() * np.sqrt(len(terms)))


def test_the_horizon_does_not_shrink_with_the_actions(chosen: Log) -> None:
    # The smallest propensity is that of a kept action: as many displays are accepted as of the whole log.
    policy = "odaaf"
    whole, part = (plan(log, policy, sampler="rejection").setting.horizon for log in (a_log(), chosen))
    assert abs(part - whole) <= 0.02 * whole
    assert plan(chosen.with_meta(kept_share=1.0), policy, sampler="rejection").setting.horizon < 0.7 * whole


@pytest.mark.parametrize("options", [{"doubly_robust": True}, {"final": "last:20%"}])
@pytest.mark.parametrize("make", ["chosen", "weighted"])
def test_what_averages_over_all_displays_is_refused(
    make: str, options: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    log = request.getfixturevalue(make)
    with pytest.raises(ParameterError, match=r"`(doubly_robust|final)` averages over all displays") as raised:
        plan(log, "otflinucb", **options)
    assert "\n" not in str(raised.value)
    # Of constant propensities the set is known: nothing is refused.
    plan(log, "otflinucb", **options, propensity="uniform") if make == "chosen" else None


@pytest.mark.parametrize("guardrail", ["click < +0.02", "click > -5%"])
def test_a_limit_relative_to_the_logger_is_refused_on_a_choice(tmp_path: Path, guardrail: str) -> None:
    log = a_log()
    log = with_outcome(log, "click", log.conversions["display_id"], log.conversions["time"])
    chosen = stored(log, tmp_path / "chosen", actions="a0,a1,a2")
    with pytest.raises(ParameterError, match=r"compares with the logging policy, whose displays .* even") as raised:
        plan(chosen, "random", guardrail=guardrail)
    assert "\n" not in str(raised.value)
    # The value itself is of the traffic; of all actions, so is the logging policy's.
    plan(chosen, "random", guardrail="click < 0.5")
    plan(log, "random", guardrail=guardrail)


def test_there_is_no_uplift_over_a_logger_that_is_known_on_other_displays(tmp_path: Path) -> None:
    log = a_log()
    log = with_outcome(log, "click", log.conversions["display_id"], log.conversions["time"])
    log = replace(log, displays=log.displays.append_column("device", pa.array(["phone", "desk"] * (N // 2))))
    part = stored(log, tmp_path / "part", actions="a0,a1,a2")
    for of, policy, known in ((part, "random", False), (log, "random", True), (part, "logging", True)):
        found = replay(of, policy)
        for uplift in (found.uplift, found.outcomes[0].uplift):
            assert np.isfinite([uplift.estimate, uplift.low, uplift.high]).all() == known
            assert known or np.isnan([uplift.estimate, uplift.low, uplift.high]).all()
        # The best action is of the traffic, too.
        assert np.isnan(found.regret.low) == (policy == "logging")
        assert np.isfinite(found.value.estimate)
    assert any("the uplift over it is not known" in note for note in replay(part, "random").assumptions)
    json.dumps(replay(part, "random").to_dict(), allow_nan=False)
    compared = compare(part, ["logging", "random", "ucb1"], bootstrap=0)
    assert [bool(of.why_not) for of in compared.differences] == [True, True]
    assert not compare(part, ["random", "ucb1"], baseline="random", bootstrap=0).differences[0].why_not
    with pytest.raises(ParameterError, match="`by` compares groups with the logging policy"):
        plan(part, "random", by="device")
    plan(log, "random", by="device")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"immature": "correct"}, "`immature='correct'` cannot weigh"),
        ({"delays_from": "first:20%"}, "`delays_from` cannot weigh"),
        ({"bootstrap": 20, "propensity": "estimate"}, "`bootstrap` cannot estimate"),
    ],
)
def test_what_knows_no_weights_is_refused(weighted: Log, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        plan(weighted, "random", **options)
    plan(a_log(), "random", **options)


def test_weights_need_propensities(weighted: Log) -> None:
    with pytest.raises(PropensityError, match="has display weights and no propensities"):
        plan(weighted.with_meta(propensity="absent"), "random")
    with pytest.raises(PropensityError, match="estimate:context'` cannot weigh"):
        plan(weighted, "random", propensity="estimate:context")


def test_estimated_shares_are_those_of_the_traffic(weighted: Log) -> None:
    p = resolve_propensities(survey(weighted), "estimate")
    share = np.bincount(weighted.column("action"), weighted.column("weight")) / weighted.column("weight").sum()
    whole = np.bincount(a_log().column("action")) / N
    for _, batch in weighted.batches(["action", "weight"], size=10**6):
        assert p.shown(batch) == pytest.approx(share[batch["action"]])
    # A display counts as 0 or 10: variance below 9 times its share.
    assert np.all(np.abs(share - whole) < 4 * np.sqrt(9 * whole / N))


def test_the_cost_of_weights_is_said(weighted: Log) -> None:
    found = plan(weighted, "random")
    weight = weighted.column("weight")
    (said,) = [said for said in found.warnings if said.startswith("Display weights")]
    assert "from 1 to 10. Thinning by them to an even sample of the traffic costs rounds" in said
    assert f"it leaves {weight.mean() / 10:.1%} of the displays" in said


def test_frozen_values_of_the_logs_own_columns_are_left_out(chosen: Log) -> None:
    target = np.tile([0.5, 0.5, 0.0], (len(chosen), 1))
    log = Log(
        chosen.displays.append_column("target", fixed_size_lists(target)),
        chosen.conversions, chosen.actions, chosen.meta,
    )  # fmt: skip
    found = replay(log, "columns")
    assert found.final is None
    assert any("IPS, SNIPS and DR of the policy's columns are left out" in said for said in found.warnings)
    truth = float(RATES[:, :2].mean())
    assert found.value.low < truth < found.value.high


def test_an_audit_of_tilted_displays_is_refused(chosen: Log, weighted: Log) -> None:
    for log in (chosen, weighted):
        with pytest.raises(DataError, match="no even sample of the traffic"):
            audit(log, "random", twins=10)


def test_weighted_conversions_rates_are_those_of_the_traffic(weighted: Log) -> None:
    mean = converted(a_log()).mean()
    found = check(weighted)["rewards"].numbers["mean"]
    # Of the displays that do not convert, each counts as 0 or 10.
    assert abs(float(found or 0.0) / mean - 1.0) < 4 * np.sqrt(9 / N)
    assert study_delays(weighted, families=["exponential"], bootstraps=19).rates[0].seen < 2 * mean


def test_a_sampled_log_says_so_and_counts_the_traffic() -> None:
    log = a_log(sampling_rate=0.1)
    found = plan(log, "otflinucb", window="10min")
    # Ten displays a second.
    assert found.window.rounds == 6_000
    assert found.to_dict()["traffic_share"] == 1.0
    assert found.to_dict()["sampling_rate"] == 0.1
    assert any("even sample of 0.1 of the traffic" in said for said in found.assumptions)
    assert np.array_equal(plan(log, "otflinucb").rounds.delay, 10 * plan(a_log(), "otflinucb").rounds.delay)
    assert plan(log, "otflinucb", traffic_share=0.5).clock.days(864_000) == pytest.approx(2.0)


def test_chosen_actions_say_which_rollout_is_meant(chosen: Log) -> None:
    said = plan(chosen, "otflinucb").assumptions
    share = survey(chosen).kept
    assert any(f"chosen actions are {share:.3g} of their traffic" in one for one in said)
    # A rollout on as many displays as theirs counts only these, but for the pace at which they come.
    alone = plan(chosen, "otflinucb", traffic_share=share).rounds.delay
    names = [name for name in chosen.schema.names if name != "position"]
    own = survey(Log(chosen.displays.select(names), chosen.conversions, chosen.actions, chosen.meta)).delay
    assert abs((alone - own).mean()) < 4 * (alone - own).std() / np.sqrt(len(own)) + 0.5


def test_on_the_wall_clock_a_round_takes_as_long_whatever_was_left_out(tmp_path: Path) -> None:
    log = a_log()
    whole = plan(log, "otflinucb", clock="wall")
    least = LOGGER.min()
    assert whole.clock.share == pytest.approx(least)
    sampled = plan(log.with_meta(sampling_rate=0.1), "otflinucb", clock="wall").clock
    assert sampled.share == pytest.approx(least)
    assert sampled.traffic_share == pytest.approx(least / 10)
    # The same displays are accepted, at the same times, when other actions are left out.
    part = plan(stored(log, tmp_path / "chosen", actions="a0,a1,a2"), "otflinucb", clock="wall").clock
    assert part.share == pytest.approx(least, rel=1e-3)
    assert part.days(100) == pytest.approx(whole.clock.days(100), rel=1e-3)


def test_a_traffic_share_above_1_stretches_delays() -> None:
    assert (
        plan(a_log(), "otflinucb", traffic_share=3.0).rounds.delay.tolist()
        == (3 * plan(a_log(), "otflinucb").rounds.delay).tolist()
    )


def test_columns_of_the_traffic_are_no_groups(weighted: Log) -> None:
    with pytest.raises(ParameterError, match="`by='weight'`"):
        study_delays(weighted, by="weight")
    assert pa.types.is_float64(weighted.schema.field("weight").type)
