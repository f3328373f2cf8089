"""A user's policy runs from its file, plain or compiled; what is wrong with it is said by name."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evaluator.engine.log_replay import Replay, SamplerName, run
from evaluator.errors import ParameterError, PolicyError, SourceError, UnknownNameError
from evaluator.policies import names, resolve
from evaluator.policies.registry import as_policy
from evaluator.policies.running import blamed
from evaluator.policies.user import UserPolicy
from tests.policies.rounds import Layout, random_rounds, setting_for

MINE = Path(__file__).with_name("mine.py")


@cache
def mine(name: str) -> type:
    """Return a class of the file; loading it once compiles it once."""
    policy = resolve(f"{MINE}:{name}")
    return policy.cls if isinstance(policy, UserPolicy) else type(policy)


def play(
    name: str,
    sampler: SamplerName = "keep",
    *,
    layout: Layout = "none",
    seed: int = 0,
    reward_max: float = 1.0,
    **parameters: Any,
) -> Replay:
    """Replay rounds whose values are shares of `reward_max`."""
    rounds = random_rounds(layout, seed=8)
    rounds = dataclasses.replace(rounds, value=reward_max * rounds.value)
    policy = as_policy(mine(name), parameters)
    return run(policy, setting_for(rounds, reward_max=reward_max), rounds, sampler=sampler, seed=seed)


@pytest.mark.parametrize("sampler", ["keep", "queue", "rejection"])
@pytest.mark.parametrize("prior", [0.25, 1.0])
def test_plain_and_compiled_play_alike(prior: float, sampler: SamplerName) -> None:
    plain = play("Greedy", sampler, seed=4, prior=prior)
    fast = play("CompiledGreedy", sampler, seed=4, prior=prior)
    np.testing.assert_array_equal(plain.displays, fast.displays)
    assert plain.delivered == fast.delivered > 20


@pytest.mark.parametrize("name", ["Greedy", "CompiledGreedy"])
def test_rewards_come_as_they_are_unless_shares_are_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rewards(replay: Replay) -> np.ndarray:
        return np.asarray(replay.state.policy.rewards if name == "Greedy" else replay.state.rewards)

    shares, money = play(name), play(name, reward_max=64.0)
    # All that its displays brought, and the prior of its four arms.
    assert rewards(money).max() > 64.0 > rewards(shares).max()
    assert not np.array_equal(money.displays, shares.displays)
    monkeypatch.setattr(mine(name), "unit_rewards", True, raising=False)
    told_shares = play(name, reward_max=64.0)
    np.testing.assert_array_equal(told_shares.displays, shares.displays)
    np.testing.assert_array_equal(rewards(told_shares), rewards(shares))


def test_parameters_reach_the_policy() -> None:
    assert resolve(f"{MINE}:Greedy:prior=0.25").parameters == {"prior": 0.25}
    assert resolve(f"{MINE}:CompiledGreedy:prior=0.25").prior == 0.25
    assert resolve(f"{MINE}:Greedy:prior=0.25").spec == "Greedy:prior=0.25"


def test_an_instance_is_copied_for_each_run() -> None:
    rounds = random_rounds("none", seed=8)
    setting = setting_for(rounds)
    instance = mine("Greedy")(setting)
    policy = UserPolicy(cls=type(instance), instance=instance)
    first, again = (run(policy, setting, rounds, sampler="keep", seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.displays, again.displays)
    assert (instance.pulls == 1).all()


@pytest.mark.parametrize("method", ["choose", "displayed", "converted"])
def test_a_policy_that_raises_is_named_with_its_method(method: str) -> None:
    with pytest.raises(
        PolicyError, match=rf"Raises:method={method} raised ZeroDivisionError in {method}, round \d+: own fault"
    ) as caught:
        play("Raises", method=method)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("sampler", ["keep", "queue"])
@pytest.mark.parametrize("action", [4, -1, 0.5, None, True, "left"])
def test_a_plain_policy_that_chooses_the_impossible_is_told_so(action: object, sampler: SamplerName) -> None:
    with pytest.raises(PolicyError, match=r"Impossible:action=\S+ returned .* from choose, round 1\..*from 0 to 3"):
        play("Impossible", sampler, action=action)


@pytest.mark.parametrize("after", [0, 3])
def test_a_compiled_contextual_policy_that_chooses_the_impossible_is_told_so(after: int) -> None:
    with pytest.raises(PolicyError, match=r"overflow\S* raised .* in round \d: .*impossible action.*from 0 to 3"):
        play("Overflow", "rejection", layout="sets", after=after)


@pytest.mark.parametrize("sampler", ["keep", "rejection", "queue"])
@pytest.mark.parametrize("action", [-1, 4])
def test_a_compiled_held_choice_that_is_impossible_is_told_so(action: int, sampler: SamplerName) -> None:
    with pytest.raises(PolicyError, match=r"held-overflow\S* raised .* in round 1: .*impossible action.*from 0 to 3"):
        play("HeldOverflow", sampler, action=action)


@pytest.mark.parametrize("sampler", ["keep", "queue"])
def test_a_compiled_policy_that_raises_is_named(sampler: SamplerName) -> None:
    with pytest.raises(PolicyError, match=r"compiled-raises raised RuntimeError in round 1: own fault\."):
        play("CompiledRaises", sampler)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError(), r"mine:a=1 raised ValueError in round 8\. Hint"),
        (KeyError(7), r"mine:a=1 raised KeyError in round 8: 7\. Hint"),
        # Which Python would go on with where a `with` has turned it into a RuntimeError.
        (StopIteration(), r"mine:a=1 raised StopIteration in round 8\. Hint"),
    ],
)
def test_what_a_policy_raises_is_said_with_its_parameters_and_the_round(error: Exception, said: str) -> None:
    with (
        pytest.raises(PolicyError, match=said),
        blamed(SimpleNamespace(name="mine", spec="mine:a=1"), 4, np.array([7])),
    ):
        raise error


def test_a_policy_that_does_not_compile_is_told_the_reason_and_the_line() -> None:
    with pytest.raises(PolicyError, match=r"uncompilable cannot be compiled: .*SystemExit.* \(mine\.py, line \d+\)\."):
        play("Uncompilable")


def test_installed_packages_bring_policies_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        name = "brought"

        def load(self) -> type:
            return mine("HeldOverflow")

    monkeypatch.setattr("evaluator.policies.registry.entry_points", lambda group: [Point()])
    assert names()[-1] == "brought"
    assert resolve("brought:action=2").action == 2
    with pytest.raises(UnknownNameError, match="did you mean brought"):
        resolve("brougth")


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(ParameterError, match="'alpha' is given twice"):
        resolve("otflinucb:alpha=1,alpha=2")


def test_a_missing_method_is_named() -> None:
    with pytest.raises(PolicyError, match="Mute has no method converted"):
        resolve(f"{MINE}:Mute")


def test_an_unknown_class_is_met_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"no class 'Gredy'\. Hint: did you mean Greedy"):
        resolve(f"{MINE}:Gredy")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No policy file"):
        resolve(f"{tmp_path / 'none.py'}:Greedy")


def test_a_file_that_fails_to_load_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module\n")
    with pytest.raises(PolicyError, match=r"broken\.py failed to load: ModuleNotFoundError"):
        resolve(f"{broken}:Any")


def test_unknown_parameters_are_named() -> None:
    rounds = random_rounds("none")
    with pytest.raises(ParameterError, match=r"compiled-greedy: unknown parameter 'priot'.*did you mean prior"):
        resolve(f"{MINE}:CompiledGreedy:priot=1")
    with pytest.raises(ParameterError, match=r"Greedy: .*'priot'"):
        resolve(f"{MINE}:Greedy:priot=1").start(setting_for(rounds))


@pytest.mark.parametrize(("wrong", "meant"), [("otflinucp", "otflinucb"), ("Delayed_KLUBC", "delayed-klucb")])
def test_an_unknown_policy_is_met_with_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"Unknown policy '{wrong}'\. Hint: did you mean {meant}"):
        resolve(wrong)


def test_a_name_like_none_lists_all() -> None:
    with pytest.raises(UnknownNameError) as caught:
        resolve("zzz")
    assert all(name in str(caught.value) for name in names())
