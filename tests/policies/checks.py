"""What every policy keeps to. Each check takes a policy's description; test_contract crosses them with the registry."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from evaluator.engine import frozen as frozen_loop
from evaluator.engine import loop
from evaluator.engine.frozen import FrozenPolicy
from evaluator.engine.log_replay import Replay, SamplerName, run
from evaluator.engine.pending import nothing_pending
from evaluator.errors import ParameterError
from evaluator.options.declaration import declaration
from evaluator.options.shared import FinalPolicyName
from evaluator.policies import describe, dispatch, resolve
from evaluator.policies.base import Policy
from evaluator.policies.registry import as_policy
from evaluator.replays.rounds.stream import read_only
from tests.logged_rounds import LoggedRounds
from tests.policies.rounds import Layout, random_rounds, setting_for
from tests.policies.variants import CDFS

Check = Callable[[Policy], None]
WINDOW = 20


def layouts(policy: Policy) -> tuple[Layout, ...]:
    if policy.reads == "target":
        return ("target",)
    if policy.reads.startswith("target:"):
        return ("target", "taken")
    return ("sets", "contexts", "catalogue") if policy.contextual else ("none",)


def samplers(policy: Policy) -> tuple[SamplerName, ...]:
    """Queues call a policy as the others do, in a loop that takes seconds to compile: one policy stands for all."""
    if policy.name == "logging":
        return ("logged",)
    return ("rejection",) if policy.contextual else ("keep", "queue") if policy.name == "ucb1" else ("keep",)


def play(
    policy: Policy, rounds: LoggedRounds, *, seed: int = 3, batch_size: int = 65_536, reward_max: float = 1.0
) -> Replay:
    setting = setting_for(rounds, window=WINDOW, delay_cdf=CDFS["geometric from 0"], reward_max=reward_max)
    sampler: SamplerName = "rejection"
    if policy.name == "logging":
        sampler = "logged"
    return run(policy, setting, rounds, sampler=sampler, seed=seed, batch_size=batch_size)


def same(a: Replay, b: Replay) -> None:
    # What the policy knows may hold vectors that it does not read, and marks that only make it faster.
    inner = {"state", "rng", "calendar"}
    for field in (f for f in dataclasses.fields(Replay) if f.name not in inner):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


def walked_states(policy: Policy, layout: Layout, rounds_played: int = 60) -> Iterator[tuple]:
    """Yield (state, a display's vectors) at rounds of a random walk through the policy's states."""
    rounds = random_rounds(layout, rounds_played, kept=1.0, mean_delay=4.0, seed=13)
    setting = setting_for(rounds, window=WINDOW, delay_cdf=CDFS["geometric from 0"])
    state, rng = policy.start(setting), np.random.default_rng(2)
    for t in range(rounds_played):
        vectors = rounds.vectors[t % len(rounds.vectors)]
        dispatch.begin(state, rng)
        yield state, vectors
        arm = int(rounds.action[t])
        dispatch.shown(state, vectors, arm)
        for c in range(rounds.first_conversion[t], rounds.first_conversion[t + 1]):
            vector = vectors[arm] if len(vectors) > 1 else vectors[0]
            # At once: the delay is part of what is told, and 0 is always a possible one.
            dispatch.told(state, vector, arm, 0, float(rounds.value[c]))


def check_representation_round_trips(policy: Policy) -> None:
    assert eval(repr(policy), {type(policy).__name__: type(policy)}) == policy
    assert resolve(policy.spec) == policy
    assert as_policy(type(policy), policy.parameters) == policy


def check_every_parameter_is_in_the_spec(policy: Policy) -> None:
    for field in dataclasses.fields(policy):
        changed = dataclasses.replace(policy, **{field.name: another(policy, field.name)})
        assert changed != policy
        assert resolve(changed.spec) == changed


def another(policy: Policy, name: str) -> object:
    """Return another value within the parameter's range."""
    hint = typing.get_type_hints(type(policy))[name]
    value = getattr(policy, name)
    if typing.get_origin(hint) is typing.Literal:
        return next(choice for choice in typing.get_args(hint) if choice != value)
    if hint is bool:
        return not value
    if hint is int or hint == int | str:
        return value + 1
    if hint == str | None:
        return "another"
    assert hint is float
    return 0.75 * value or 0.25


def check_parameters_are_keyword_only(policy: Policy) -> None:
    kinds = [p.kind for p in inspect.signature(type(policy)).parameters.values()]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds)
    if kinds:
        with pytest.raises(TypeError):
            type(policy)(next(iter(policy.parameters.values())))


def check_unknown_parameter_is_refused(policy: Policy) -> None:
    with pytest.raises(ParameterError, match=rf"^{policy.name}: unknown parameter 'burn_in'"):
        resolve(f"{policy.name}:burn_in=5")


def check_wrong_types_are_refused(policy: Policy) -> None:
    for name in policy.parameters:
        hint = typing.get_type_hints(type(policy))[name]
        words = str in typing.get_args(hint)
        for wrong in (1 if hint is bool else True, [], *([] if words else ["word"]), 1j):
            with pytest.raises(ParameterError, match=rf"^{policy.name}: parameter {name}\b"):
                as_policy(type(policy), {name: wrong})


def check_out_of_range_is_refused(policy: Policy) -> None:
    for field in dataclasses.fields(policy):
        beyond = {"above": 0.0, "below": 0.0, "at_least": -1.0, "at_most": 1.0}
        bounds = {k: v for k in beyond if (v := getattr(declaration(field), k)) is not None}
        outside = [type(field.default)(bound + beyond[kind]) for kind, bound in bounds.items()]
        if isinstance(field.default, float):
            assert bounds, "a number's range must be stated"
            outside += [float("nan"), float("inf")]
        for value in outside:
            with pytest.raises(ParameterError, match=rf"^{policy.name}: parameter {field.name} = .*out of range"):
                as_policy(type(policy), {field.name: value})


def check_description_is_frozen_hashable_and_unchanged(policy: Policy) -> None:
    before, hashed = copy.deepcopy(policy), hash(policy)
    for layout in layouts(policy):
        play(policy, random_rounds(layout, seed=1))
    assert (policy, hash(policy)) == (before, hashed)
    for name in policy.parameters:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, name, None)


def check_description_is_complete(policy: Policy) -> None:
    said = describe(policy.name)
    assert said.name == policy.name
    assert said.summary.endswith(".")
    assert said.summary == inspect.getdoc(type(policy)).splitlines()[0]
    assert said.contextual is policy.contextual
    assert bool(said.paper) is policy.learns, f"say where {policy.name} is from: paper = '...' in its class"
    assert said.delays, f"say what {policy.name} does about delays: delays = '...' in its class"
    assert [p.name for p in said.parameters] == list(policy.parameters)
    for p in said.parameters:
        assert p.help
        assert p.default == type(policy)().parameters[p.name]
        assert p.range or "|" in p.type, "numbers state their range, words their choices"


def check_same_seed_same_displays(policy: Policy) -> None:
    for layout in layouts(policy):
        rounds = random_rounds(layout, seed=2)
        same(play(policy, rounds), play(policy, rounds))


def check_batches_do_not_matter(policy: Policy) -> None:
    for layout in layouts(policy):
        rounds = random_rounds(layout, 1100, seed=3)
        whole = play(policy, rounds)
        for batch_size in (1, 7, 1000):
            same(whole, play(policy, rounds, batch_size=batch_size))


def check_threads_do_not_matter(policy: Policy) -> None:
    for layout in layouts(policy):
        rounds = random_rounds(layout, 4000, seed=4)
        alone = [play(policy, rounds, seed=seed) for seed in range(6)]
        with ThreadPoolExecutor(2) as pool:
            together = list(pool.map(lambda seed, r=rounds: play(policy, r, seed=seed), range(6)))
        for a, b in zip(alone, together, strict=True):
            same(a, b)


def check_conversions_are_conserved(policy: Policy) -> None:
    for layout in layouts(policy):
        replay = play(policy, random_rounds(layout, seed=5))
        assert replay.generated == replay.delivered + replay.expired + replay.pending
        assert min(replay.delivered, replay.expired) > 0


def check_the_unit_of_money_does_not_matter(policy: Policy) -> None:
    for layout in layouts(policy):
        rounds = random_rounds(layout, seed=9)
        shares = play(policy, rounds)
        for factor, rtol in ((64.0, 0.0), (100.0, 1e-9)):
            money = play(policy, dataclasses.replace(rounds, value=factor * rounds.value), reward_max=factor)
            same(shares, money)
            for ours, theirs in zip(leaves(shares.state), leaves(money.state), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


def check_vectors_do_not_matter_without_contexts(policy: Policy) -> None:
    if policy.contextual or policy.name == "logging":
        return
    bare = random_rounds("none", seed=7)
    with_vectors = dataclasses.replace(bare, vectors=random_rounds("sets", dimension=9, seed=7).vectors)
    setting = setting_for(bare, window=WINDOW, delay_cdf=CDFS["geometric from 0"])
    for sampler in samplers(policy):
        same(run(policy, setting, bare, sampler=sampler), run(policy, setting, with_vectors, sampler=sampler))


def check_an_empty_log_is_no_rounds(policy: Policy) -> None:
    for layout in layouts(policy):
        empty = random_rounds(layout, 0, seed=1)
        setting = setting_for(empty, window=WINDOW, delay_cdf=CDFS["steps"])
        for sampler in samplers(policy):
            replay = run(policy, setting, empty, sampler=sampler)
            assert (len(replay.displays), replay.read, replay.generated) == (0, 0, 0)


def check_wins_is_choose(policy: Policy) -> None:
    """The lazy match answers as the full choice does, whatever it was asked before."""
    rng = np.random.default_rng(0)
    for layout in layouts(policy):
        for state, vectors in walked_states(policy, layout):
            chosen = dispatch.choose(state, vectors)
            arms = rng.permutation(4).tolist()
            assert [a for a in [*arms, *arms] if dispatch.wins(state, vectors, a, 4)] == [chosen, chosen]


def check_least_scores_are_not_above_scores(policy: Policy) -> None:
    """To the last bit: an action whose least score is above another's score has a larger score."""
    for layout in layouts(policy):
        for state, vectors in walked_states(policy, layout):
            if not dispatch.scores(state):
                continue
            for action in range(4):
                least = dispatch.least_score(state, vectors, action)
                assert least <= dispatch.score(state, vectors, action)
                assert least <= dispatch.score_among(state, vectors, action)


def check_interpreted_is_compiled(policy: Policy) -> None:
    if policy.name == "logging":
        return  # follows the log: the loop asks it nothing
    for layout in layouts(policy):
        rounds = random_rounds(layout, seed=6)
        setting = setting_for(rounds, window=WINDOW, delay_cdf=CDFS["geometric from 0"])
        _, batch = next(rounds.batches(len(rounds)))
        accepted, states, progress = [], [], []
        for step in (loop.replay, loop.replay_interpreted):
            state, counters = policy.start(setting), loop.no_progress()
            shown = np.full(len(rounds), -1)
            pending = nothing_pending(len(batch.delay), setting.dimension, reach=int(batch.delay.max(initial=0)))
            rng = np.random.default_rng(7)
            asked = (loop.Matched(4), setting.window, setting.horizon, pending, counters, shown, None, None)
            step(state, rng, batch, *asked)  # as replays call it: what is left out would be compiled for once more
            accepted.append(shown)
            states.append(state)
            progress.append(counters)
        np.testing.assert_array_equal(*accepted)
        np.testing.assert_array_equal(*progress)
        for ours, theirs in zip(*map(leaves, states), strict=True):
            # Compiled and interpreted logarithms may differ in the last bit.
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def check_beginning_a_round_again_only_draws_anew(policy: Policy) -> None:
    for layout in layouts(policy):
        for state, _ in walked_states(policy, layout):
            dispatch.begin(state, np.random.default_rng(5))
            again = copy.deepcopy(state)
            dispatch.begin(again, np.random.default_rng(5))
            for once, twice in zip(leaves(state), leaves(again), strict=True):
                np.testing.assert_array_equal(once, twice)


def check_a_settled_round_begins_anew_as_it_began(policy: Policy) -> None:
    """It chooses the same and draws nothing, whatever the stream holds."""
    for layout in layouts(policy):
        for state, vectors in walked_states(policy, layout):
            if dispatch.is_settled(state):
                chosen, rng = dispatch.choose(state, vectors), np.random.default_rng(5)
                dispatch.begin(state, rng)
                assert dispatch.choose(state, vectors) == chosen
                assert rng.random() == np.random.default_rng(5).random()


def check_freezing_asks_and_tells_nothing(policy: Policy) -> None:
    """The state stays, the probabilities sum to 1, batches do not matter, and Python asks as compiled code does."""
    for layout in layouts(policy):
        rounds = random_rounds(layout, 300, seed=8)
        for horizon in (20, 300):  # the state between rounds, and with a round begun
            setting = setting_for(rounds, window=WINDOW, horizon=horizon, delay_cdf=CDFS["geometric from 0"])
            sampler: SamplerName = "logged" if policy.name == "logging" else "rejection"
            replay = run(policy, setting, rounds, sampler=sampler)
            for wanted in typing.get_args(FinalPolicyName):
                if wanted == "exploring" or dispatch.has_estimates(replay.state):
                    _check_frozen(policy, replay.state, rounds, wanted)


def _check_frozen(policy: Policy, state: tuple, rounds: LoggedRounds, wanted: FinalPolicyName) -> None:
    def frozen() -> FrozenPolicy:
        return FrozenPolicy(policy, state, n_actions=4, displays=300, wanted=wanted, seed=1)

    before, of = copy.deepcopy(state), frozen()
    assert of.kind == (wanted if wanted == "greedy" or not policy.posterior else "posterior sampling")
    assert of.draws == 0 or wanted == "exploring"
    whole = of.probabilities(rounds.vectors, 300)
    np.testing.assert_allclose(whole.sum(axis=1), 1.0)
    of = frozen()
    parts = [
        of.probabilities(rounds.vectors if len(rounds.vectors) == 1 else rounds.vectors[i : i + 7], 7)
        for i in range(0, 294, 7)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), whole[:294])
    for ours, theirs in zip(leaves(state), leaves(before), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    few = read_only(rounds.vectors[:1] if len(rounds.vectors) == 1 else rounds.vectors[:20])
    if wanted == "greedy":
        begun, interpreted = copy.deepcopy(state), np.zeros((20, 4))
        dispatch.begin(begun, np.random.default_rng(0))
        frozen_loop.show_greedily_interpreted(begun, few, None, interpreted)
        np.testing.assert_array_equal(interpreted, whole[:20])
        return
    # Few draws: Python is slow.
    compiled, interpreted = np.zeros((2, 20, 4))
    frozen_loop.ask(state, np.random.default_rng(2), few, None, True, False, compiled, 3)
    frozen_loop.ask_interpreted(before, np.random.default_rng(2), few, None, True, False, interpreted, 3)
    np.testing.assert_array_equal(interpreted, compiled)
    assert compiled.sum() == 60.0


def leaves(state: tuple) -> list:
    """Return the arrays and scalars of a state, nested tuples opened."""
    return [leaf for part in state for leaf in (leaves(part) if isinstance(part, tuple) else [part])]


CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}
