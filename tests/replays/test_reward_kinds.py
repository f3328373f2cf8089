"""Outcomes that count as rewards: "returned damaged" is told to policies, below 0, and has a window of its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import audit, check, load, replay
from evaluator.datasets.summary import log_facts
from evaluator.datasets.writing import write_canonical
from evaluator.errors import EvaluatorError, LogError, ParameterError
from evaluator.log import EventKind, Log
from evaluator.log.events import merge_events, with_kind
from evaluator.log.schema import to_numpy
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


def test_a_guardrail_limits_it_and_what_knows_no_kinds_refuses_it() -> None:
    (answer,) = replay(renamed(), "random", guardrails=["damaged > -0.5"]).guardrails
    assert answer.answer == "holds"
    with pytest.raises(ParameterError, match="may be below 0"):
        replay(renamed(), "random", guardrails=["damaged > -5%"])
    with pytest.raises(LogError, match="the twins of an audit know of conversions alone"):
        audit(damaged(), ["random"], twins=10)


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


def test_rewards_need_a_window() -> None:
    log = damaged(N - 1)
    with pytest.raises(LogError, match="nothing says how long after a display rewards may come"):
        log.with_meta(attribution_window=None, observed_until=N - 1).validated()
    with pytest.raises(LogError, match="is told to policies, and is no reward"):
        log.with_meta(outcomes=(replace(log.meta.outcomes[0], reward=False),)).validated()


def test_a_check_says_that_it_does_not_see_it() -> None:
    assert check(damaged()).left_out == "No check sees returned damaged, which counts as a reward."
    assert check(plain()).left_out == ""


def test_what_is_bounded_by_0_is_known_and_nothing_advises_what_cannot_help() -> None:
    found = replay(damaged(), "ucb1", window=500)
    assert "nobody knows" not in " ".join(found.warnings)
    assert found.outcomes[0].value.kind.startswith("anytime-valid")


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
