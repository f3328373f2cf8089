"""What is left out for speed changes nothing: lazy choices against eager ones, on the same displays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluator.engine import loop
from evaluator.engine.kernels.argmax import argmax
from evaluator.engine.log_replay import begin, policy_stream, run
from evaluator.engine.pending import nothing_pending
from evaluator.engine.pushes import PushTimes
from evaluator.policies import delayed_ucb, dispatch, naive_ucb, resolve
from evaluator.policies.base import Policy, Setting
from evaluator.policies.indices import forget, largest_index
from evaluator.replays.rounds.stream import Batch, read_only
from tests.logged_rounds import LoggedRounds
from tests.policies.rounds import random_rounds, setting_for
from tests.policies.variants import CDFS, DELAYED, LINEAR, WAITING, WINDOWED
from tests.twins.eager import EagerLinUCB

CONTEXTUAL = (*LINEAR, *WINDOWED, *WAITING)
# Every branch of every index, and the policies' own defaults.
INDICES = ("ucb1", "ucb1:exploration=0.3", "klucb", "klucb:c=3", *(spec.split(",")[0] for spec in DELAYED))
INDICES = tuple(spec.split(":ties")[0] for spec in INDICES)
N = 4_000


def log_t(state: tuple) -> float:
    rounds = state.exposure.rounds if hasattr(state, "exposure") else state.rounds
    return math.log(rounds[0] + 1.0)


def index_of(state: tuple) -> Callable[..., tuple[float, float]]:
    return family_of(state)._index


def weight_of(state: tuple) -> Callable[..., float]:
    return family_of(state)._weight


def family_of(state: tuple) -> ModuleType:
    return delayed_ucb if isinstance(state, delayed_ucb.DelayedState) else naive_ucb


def found(state: tuple, rng: np.random.Generator) -> int:
    return largest_index(state, state.indices, index_of(state), weight_of(state), log_t(state), rng)


def eager_begin(state: tuple, rng: np.random.Generator) -> None:
    """Compute every index in every round."""
    every = [index_of(state)(state, k, log_t(state))[0] for k in range(len(state.conversions))]
    state.choice[0] = argmax(np.array(every), False, rng)


@pytest.mark.parametrize("cdf", CDFS)
@pytest.mark.parametrize("spec", INDICES)
def test_lazy_indices_replay_as_eager_ones(spec: str, cdf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = random_rounds("none", 6000, n_actions=6, mean_delay=40.0, seed=31)
    policy = resolve(f"{spec}{',' if ':' in spec else ':'}ties=lowest")
    setting = setting_for(rounds, window=60, delay_cdf=CDFS[cdf])
    lazy = run(policy, setting, rounds, sampler="keep")
    kind = type(policy.start(setting))
    eager = dispatch._implementations[kind]._replace(begin=eager_begin)
    monkeypatch.setitem(dispatch._implementations, kind, eager)
    np.testing.assert_array_equal(lazy.displays, matched_interpreted(policy, setting, rounds))


@pytest.mark.parametrize("ties", ["random", "lowest"])
@pytest.mark.parametrize("spec", INDICES)
def test_choices_held_between_pushes_are_those_of_rounds_that_begin(
    spec: str, ties: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = random_rounds("none", 6000, n_actions=6, mean_delay=40.0, seed=32)
    policy = resolve(f"{spec}{',' if ':' in spec else ':'}ties={ties}")
    setting = setting_for(rounds, window=60, delay_cdf=CDFS["steps"])
    after = np.arange(30, len(rounds), 30)
    pushes = PushTimes(after, np.maximum(after - 7, 0))
    begun = 0

    def counted_begin(state: tuple, rng: np.random.Generator) -> None:
        nonlocal begun
        begun += 1
        dispatch.begin(state, rng)

    monkeypatch.setattr(loop, "begin", counted_begin)
    held, few = matched_interpreted(policy, setting, rounds, pushes), begun
    monkeypatch.setattr(loop, "is_settled", lambda state: False)
    anew = matched_interpreted(policy, setting, rounds, pushes)
    np.testing.assert_array_equal(held, anew)
    replay = begin(policy, setting, sampler="keep", pushes=pushes)
    for first, batch in rounds.batches(700):
        replay.read(first, batch)
    np.testing.assert_array_equal(held, replay.result().displays)
    assert len(anew) > 800
    assert few < 0.5 * (begun - few)


def matched_interpreted(
    policy: Policy, setting: Setting, rounds: LoggedRounds, pushes: PushTimes | None = None
) -> np.ndarray:
    _, batch = next(rounds.batches(len(rounds)))
    reach = setting.window + (0 if pushes is None else pushes.waits(setting.horizon))
    pending = nothing_pending(len(batch.delay), setting.dimension, reach=reach)
    progress, accepted = loop.no_progress(), np.empty(len(rounds), np.int64)
    loop.replay_interpreted(
        policy.start(setting),
        policy_stream(0, 0),
        batch,
        loop.Matched(setting.n_actions),
        setting.window,
        setting.horizon,
        pending,
        progress,
        accepted,
        None,
        None if pushes is None else pushes.begin(setting.horizon, setting.dimension),
    )
    return accepted[: int(progress[loop.ROUNDS])]


def played(spec: str, actions: list[int], conversions: list[int]) -> tuple:
    """Return a state after these displays and conversions."""
    state = resolve(spec).start(Setting(n_actions=3, window=20, horizon=10**6, delay_cdf=CDFS["steps"]))
    for action in actions:
        dispatch.shown(state, np.zeros((1, 0)), action)
    for action in conversions:
        dispatch.told(state, np.zeros(0), action, 0, 0.3)
    return state


@given(
    spec=st.sampled_from(INDICES),
    actions=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    conversions=st.lists(st.integers(0, 2), max_size=30),
    later=st.floats(0.0, 8.0),
)
def test_value_and_slope_bound_later_indices(
    spec: str, actions: list[int], conversions: list[int], later: float
) -> None:
    state = played(spec, actions, conversions)
    now = log_t(state)
    for k in set(actions):
        value, slope = index_of(state)(state, k, now)
        assert slope >= 0
        assert value + slope * later >= index_of(state)(state, k, now + later)[0] - 1e-11 * (1 + abs(value))


@given(
    spec=st.sampled_from(INDICES),
    actions=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    conversions=st.lists(st.integers(0, 2), max_size=30),
    other=st.integers(0, 2),
    displays=st.integers(1, 30),
)
def test_an_index_left_alone_never_rises_but_with_time(
    spec: str, actions: list[int], conversions: list[int], other: int, displays: int
) -> None:
    alone = (other + 1) % 3
    assume(alone in actions)
    state = played(spec, actions, conversions)
    later = math.log(len(actions) + displays + 1.0)
    before = index_of(state)(state, alone, later)[0]
    for _ in range(displays):
        dispatch.shown(state, np.zeros((1, 0)), other)
    assert index_of(state)(state, alone, later)[0] <= before * (1 + 1e-11)


@given(
    spec=st.sampled_from(INDICES),
    cdf=st.sampled_from(sorted(CDFS)),
    before=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    actions=st.lists(st.integers(0, 2), max_size=60),
    conversions=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.3, 1.0])), max_size=30),
    later=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0])), max_size=30),
)
def test_index_times_weight_never_falls(
    spec: str,
    cdf: str,
    before: list[int],
    actions: list[int],
    conversions: list[tuple[int, float]],
    later: list[tuple[int, float]],
) -> None:
    """Whether shown, converting or with time: an index is at least what it was, times the ratio of the weights."""
    state = resolve(spec).start(Setting(n_actions=3, window=20, horizon=10**6, delay_cdf=CDFS[cdf]))
    index, weight = index_of(state), weight_of(state)
    for action in before:
        dispatch.shown(state, np.zeros((1, 0)), action)
    for action, value in conversions:
        dispatch.told(state, np.zeros(0), action, 0, value)
    known = [k for k in set(before) if weight(state, k) > 0.0]
    least = {k: index(state, k, log_t(state))[0] * weight(state, k) for k in known}
    for action in actions:
        dispatch.shown(state, np.zeros((1, 0)), action)
    for action, value in later:
        dispatch.told(state, np.zeros(0), action, 0, value)
    for k in known:
        now = index(state, k, log_t(state))[0]
        assert now >= least[k] / weight(state, k) - 1e-10 * (1 + abs(now))


def test_no_index_is_computed_while_the_leader_lies_above_all_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    state = played("klucb:ties=lowest", [0, 1, 2] * 200, [1] * 300)
    rng = np.random.default_rng(0)
    assert found(state, rng) == 1
    computed: list[int] = []
    monkeypatch.setattr(naive_ucb, "_index", lambda state, k, log_t: computed.append(k) or (0.0, 0.0))
    dispatch.shown(state, np.zeros((1, 0)), 1)
    dispatch.told(state, np.zeros(0), 1, 0, 0.3)
    assert found(state, rng) == 1
    assert not computed
    # A refund may have taken it below the others, which stay where they were.
    dispatch.told(state, np.zeros(0), 1, 0, -0.3)
    found(state, rng)
    assert computed[0] == 1


def test_bounds_are_not_used_after_a_touch() -> None:
    state = played("ucb1:ties=lowest", [0, 1, 2, 0, 1, 2], [0])
    rng = np.random.default_rng(0)
    assert found(state, rng) == 0
    state.conversions[:] = [0.3, 0.0, 2.0]
    # Nobody has said that arm 2 changed, and its bound lies below arm 0.
    assert found(state, rng) == 0
    forget(state.indices, 2)
    assert found(state, rng) == 2
    state.conversions[:] = [0.3, 0.0, 0.0]
    assert found(state, rng) == 2
    forget(state.indices, 2)
    assert found(state, rng) == 0


def uniform(counts: np.ndarray) -> bool:
    """Whether counts are those of uniform draws: each is binomial(n, 1/k), 4 standard errors."""
    n, k = counts.sum(), len(counts)
    return bool((abs(counts - n / k) < 4 * np.sqrt(n / k * (1 - 1 / k))).all())


@pytest.mark.parametrize("spec", ["ucb1", "klucb", "delayed-ucb", "delayed-klucb"])
def test_equal_indices_are_drawn_from_uniformly(spec: str) -> None:
    # Arms 0, 1 and 2 have never been shown; then 0 and 2 are alike, and ahead of 1.
    rng = np.random.default_rng(4)
    unseen, alike = played(spec, [], []), played(spec, [0, 1, 1, 2] + [1] * 21, [0, 2])
    for state, tied in ((unseen, [0, 1, 2]), (alike, [0, 2])):
        counts = np.zeros(3, np.int64)
        for _ in range(N):
            dispatch.begin(state, rng)
            counts[state.choice[0]] += 1
        assert counts.sum() == counts[tied].sum() == N
        assert uniform(counts[tied])


@pytest.mark.parametrize("spec", ["linucb", "otflinucb", "otflinucb:width=theorem"])
def test_equal_scores_are_drawn_from_uniformly_and_held(spec: str) -> None:
    state = resolve(spec).start(Setting(n_actions=5, dimension=2, rows=5, window=10, horizon=10))
    vectors = np.array([[0.1, 0.1], [0.6, 0.8], [0.6, 0.8], [0.1, 0.2], [0.6, 0.8]])
    rng = np.random.default_rng(5)
    counts = np.zeros(5, np.int64)
    for _ in range(N):
        dispatch.begin(state, rng)
        chosen = dispatch.choose(state, vectors)
        counts[chosen] += 1
        assert [k for k in (4, 2, 1, 0, 3, 1, 2, 4) if dispatch.wins(state, vectors, k, 5)] == [chosen, chosen][
            : 1 + (chosen in (1, 2, 4))
        ]
    assert counts[[1, 2, 4]].sum() == N
    assert uniform(counts[[1, 2, 4]])


@pytest.mark.parametrize("ties", ["lowest", "random"])
@pytest.mark.parametrize("layout", ["sets", "contexts", "catalogue"])
@pytest.mark.parametrize("dimension", [5, 9])
def test_the_lazy_match_replays_as_scoring_every_action(layout: str, ties: str, dimension: int) -> None:
    rounds = random_rounds(layout, 8000, n_actions=40, dimension=dimension, seed=32)
    setting = setting_for(rounds, window=50)
    # Asked at every display even where all displays share their vectors.
    apart = replace(rounds, vectors=np.repeat(rounds.vectors, len(rounds) // len(rounds.vectors), axis=0))
    lazy, eager, asked = (
        run(policy, setting, of, sampler="rejection", seed=1).displays
        for policy, of in (
            (resolve(f"linucb:ties={ties}"), rounds),
            (EagerLinUCB(ties=ties), rounds),
            (resolve(f"linucb:ties={ties}"), apart),
        )
    )
    assert len(lazy) > 100
    np.testing.assert_array_equal(lazy, eager)
    np.testing.assert_array_equal(lazy, asked)


@pytest.mark.parametrize("spec", CONTEXTUAL)
def test_one_choice_for_a_catalogue_is_a_choice_a_display(spec: str) -> None:
    rounds = random_rounds("catalogue", 4000, n_actions=7, seed=33)
    apart = replace(rounds, vectors=np.repeat(rounds.vectors, len(rounds), axis=0))
    setting = setting_for(rounds, window=25)
    policy = resolve(spec.replace("ties=lowest", "ties=random"))
    once, each = (run(policy, setting, one, sampler="rejection", seed=2) for one in (rounds, apart))
    assert len(once.displays) > 300
    np.testing.assert_array_equal(once.displays, each.displays)


def layouts(dimension: int) -> Iterator[LoggedRounds]:
    for layout in ("sets", "contexts", "catalogue"):
        yield random_rounds(layout, 3000, dimension=dimension, seed=34)


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        # The regression, which all share, knows the length of short vectors when it is compiled.
        ("linucb", 9),
        *((name, 5) for name in ("linucb", "lints", "waitlinucb", "otflinucb", "otflinucb:bonus=exact", "otflints")),
    ],
)
def test_float32_vectors_replay_as_if_cast_first(name: str, dimension: int) -> None:
    policy = resolve(name)
    for rounds in layouts(dimension):
        setting = setting_for(rounds, window=25)
        _, batch = next(rounds.batches(len(rounds)))
        short = batch._replace(vectors=read_only(batch.vectors.astype(np.float32)))
        one = matched(policy, setting, short)
        other = matched(policy, setting, batch._replace(vectors=read_only(short.vectors.astype(np.float64))))
        assert len(one[0]) > 300
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def matched(policy: Policy, setting: Setting, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return the accepted displays, and the theta learned from them."""
    pending = nothing_pending(len(batch.delay), setting.dimension, reach=setting.window)
    progress, accepted, state = loop.no_progress(), np.empty(len(batch.action), np.int64), policy.start(setting)
    rng = np.random.default_rng(6)
    window, horizon = setting.window, setting.horizon
    asked = (loop.Matched(setting.n_actions), window, horizon, pending, progress, accepted, None, None)
    loop.replay(state, rng, batch, *asked)
    part = state.optimist if hasattr(state, "optimist") else state.sampler
    return accepted[: int(progress[loop.ROUNDS])], part.ridge.theta
