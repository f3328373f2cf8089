"""Parameters at the ends of their ranges: a choice at each display, or one line that names policy and parameter."""

from __future__ import annotations

import dataclasses
import math
import sys
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.frozen import FrozenPolicy
from evaluator.engine.kernels.argmax import NanScoreError, argmax
from evaluator.engine.log_replay import Replay, run
from evaluator.errors import ParameterError, PolicyError
from evaluator.options.declaration import declaration
from evaluator.policies import names, resolve
from evaluator.policies.base import Policy
from evaluator.replays.learned.policy import learned_policy
from tests.policies.rounds import random_rounds, setting_for

N, K = 400, 4
TINY, HUGE = 5e-324, sys.float_info.max
NO_NUMBERS = (math.inf, -math.inf, math.nan, 10**400, -(10**400), True, "x", None, [1.0])
FIELDS = [
    (name, field)
    for name in names()
    for field in dataclasses.fields(type(resolve(name)))
    if typing.get_type_hints(type(resolve(name)))[field.name] in (int, float)
]
EACH = pytest.mark.parametrize(("name", "field"), [pytest.param(n, f, id=f"{n}:{f.name}") for n, f in FIELDS])


def ends(field: Any) -> Iterator[float]:
    """The least and the largest values that a parameter may have, and the smallest above 0."""
    range_ = declaration(field)
    if range_.above is not None:
        yield math.nextafter(range_.above, math.inf)
    yield range_.at_least if range_.at_least is not None else TINY
    yield TINY
    yield range_.at_most if range_.at_most is not None else HUGE
    yield math.nextafter(range_.below, 0.0) if range_.below is not None else HUGE / 2


def played(policy: Policy) -> Replay:
    rounds = random_rounds("contexts" if policy.contextual else "none", N, n_actions=K, kept=1.0)
    setting = setting_for(rounds, window=15, delay_cdf=DelayCDF.geometric(12.0))
    return run(policy, setting, rounds, sampler="rejection" if policy.contextual else "keep", seed=2)


@EACH
def test_the_ends_of_a_range_play_or_are_refused(name: str, field: Any) -> None:
    accepted = []
    for value in set(ends(field)):
        try:
            policy = type(resolve(name))(**{field.name: value})
        except ParameterError:
            continue
        said = f"{policy.spec} scores action"
        try:
            accepted.append(len(played(policy).displays))
        except PolicyError as error:
            accepted += [] if said in error.what and f"change {field.name}=" in error.remedy else [0]
    # One choice a display, and uniform logging: a binomial count, here with 5 standard errors.
    for count in accepted:
        assert abs(count - N / K) < 5 * math.sqrt(N * (K - 1)) / K, accepted


@EACH
@pytest.mark.parametrize("value", NO_NUMBERS, ids=str)
def test_what_is_no_number_in_range_is_refused(name: str, field: Any, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{name}: parameter {field.name}") as raised:
        type(resolve(name))(**{field.name: value})
    assert "\n" not in str(raised.value)


def unchecked(name: str, **parameters: Any) -> Any:
    """A policy with parameters that its ranges refuse."""
    policy = resolve(name)
    for key, value in parameters.items():
        object.__setattr__(policy, key, value)
    return policy


LINEAR = ("linucb", "lints", "otflinucb", "otflints", "nonambiguous-linucb", "waitlinucb")


@pytest.mark.parametrize("name", LINEAR)
def test_a_nan_score_is_an_error(name: str) -> None:
    policy = unchecked(name, ridge=1e-320)
    with (
        np.errstate(over="ignore"),
        pytest.raises(PolicyError, match=rf"{name}:ridge=1e-320 scores action \d as NaN in round \d+\.") as raised,
    ):
        played(policy)
    assert "change ridge=1e-320" in str(raised.value)
    assert raised.value.__cause__ is None


def test_the_command_of_the_issue() -> None:
    with pytest.raises(ParameterError, match=r"linucb: parameter ridge = .* take a number >= 1e-08"):
        resolve("linucb:ridge=1e-320")


def test_a_log_may_be_at_fault() -> None:
    rounds = random_rounds("contexts", N, n_actions=K)
    rounds.vectors[:] = 1e200
    with pytest.raises(PolicyError, match=r"linucb scores action .* look for numbers of extreme size"):
        run(resolve("linucb"), setting_for(rounds), rounds, sampler="rejection")


def test_learned_and_frozen_policies_say_so_too() -> None:
    replay = played(resolve("linucb"))
    rounds = random_rounds("contexts", 1, n_actions=K)
    learned = learned_policy(resolve("linucb"), setting_for(rounds), ("a", "b", "c", "d"), replay)
    replay.state.optimist.ridge.theta[2] = np.nan
    context = np.ones(5)
    with pytest.raises(PolicyError, match=r"linucb scores action 2 as NaN in round \d+\."):
        learned.choose(context)
    with pytest.raises(PolicyError, match="linucb scores action 2 as NaN"):
        learned.choose(context, greedy=True)
    for wanted in ("greedy", "exploring"):
        frozen = FrozenPolicy(resolve("linucb"), replay.state, n_actions=K, displays=1, wanted=wanted)
        with pytest.raises(PolicyError, match="linucb scores action 2 as NaN"):
            frozen.probabilities(context.reshape(1, 1, 5), 1)


def test_no_largest_of_what_is_no_number() -> None:
    for k in range(3):
        scores = np.zeros(3)
        scores[k] = np.nan
        with pytest.raises(NanScoreError) as raised:
            argmax(scores, True, np.random.default_rng(0))
        assert raised.value.args == (k,)
