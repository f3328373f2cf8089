"""Asking a plain Python policy teaches it nothing, or it is told so: rejected displays leave no trace."""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import Any

import numpy as np
import pytest

from evaluator.engine.frozen import FrozenPolicy
from evaluator.engine.log_replay import run
from evaluator.errors import PolicyError
from evaluator.policies import user
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy, changed_attributes
from tests.policies.rounds import random_rounds, setting_for


class Epsilon:
    """Greedy on each arm's rate but for a share epsilon = min(1, 8 / t) of the rounds; reads no context."""

    contextual = True

    def __init__(self, setting: Setting) -> None:
        self.rewards, self.pulls = np.zeros(setting.n_actions), np.full(setting.n_actions, 1e-9)
        self.t = 0

    def pick(self, t: int, rng: np.random.Generator) -> int:
        explores, arm = rng.random() < min(1.0, 8.0 / t), int(rng.integers(len(self.pulls)))
        return arm if explores else int(np.argmax(self.rewards / self.pulls))

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        raise NotImplementedError

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self.pulls[action] += 1

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self.rewards[action] += value


class CountsCalls(Epsilon):
    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        self.t += 1
        return self.pick(self.t, rng)


class CountsDisplays(Epsilon):
    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return self.pick(self.t + 1, rng)

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        super().displayed(vectors, action)
        self.t += 1


class TakesRound(Epsilon):
    def choose(self, vectors: np.ndarray, rng: np.random.Generator, round: int) -> int:
        return self.pick(round, rng)


class Asked(CountsDisplays):
    """Does something of its own when asked."""

    def __init__(self, setting: Setting, *, habit: str) -> None:
        super().__init__(setting)
        self.habit, self.own, self.legacy = habit, np.random.default_rng(1), random.Random(1)
        self.log: list[np.ndarray] = []
        self.recent: deque[float] = deque(maxlen=3)
        self.inner: dict[str, Any] = {"model": CountsDisplays(setting)}
        self.cache: dict[bytes, float] = {}
        self.total, self.last, self.nan = np.zeros(5), np.zeros(5), float("nan")

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        getattr(self, self.habit)(vectors[0], rng)
        return super().choose(vectors, rng)

    def appends(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.log.append(x)

    def forgets(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.recent.append(float(rng.random()))

    def sums(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.total += x

    def trains_its_model(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.inner["model"].t += 1

    def adds_attributes(self, x: np.ndarray, rng: np.random.Generator) -> None:
        setattr(self, f"x{len(vars(self))}", 1)

    def starts_late(self, x: np.ndarray, rng: np.random.Generator) -> None:
        if self.t >= 20:
            self.total += 1

    def notes_the_last(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.last = x.copy()

    def caches(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.cache.setdefault(x.tobytes(), float(x.sum()))

    def draws_its_own(self, x: np.ndarray, rng: np.random.Generator) -> None:
        self.last = self.own.random(3) + self.legacy.random()


def play(cls: type, sampler: Any = "rejection", *, layout: Any = "contexts", **parameters: Any) -> Any:
    rounds = random_rounds(layout, seed=8)
    policy = UserPolicy(cls=cls, parameters=parameters)
    return run(policy, setting_for(rounds), rounds, sampler=sampler, seed=1)


@pytest.mark.parametrize(
    ("habit", "named"),
    [
        ("appends", "log"),
        ("forgets", "recent"),
        ("sums", "total"),
        ("trains_its_model", "inner"),
        ("adds_attributes", r"x\d+"),
        ("starts_late", "total"),
    ],
)
def test_what_choose_changes_is_refused_by_name(habit: str, named: str) -> None:
    with pytest.raises(PolicyError, match=rf"^Asked\S*: choose changes {named} when asked.*Hint: .*displayed.*round"):
        play(Asked, habit=habit)


@pytest.mark.parametrize("habit", ["notes_the_last", "caches", "draws_its_own"])
def test_what_the_next_answer_does_not_depend_on_is_left_alone(habit: str) -> None:
    np.testing.assert_array_equal(play(Asked, habit=habit).displays, play(CountsDisplays).displays)


def test_the_round_is_the_number_of_displays_and_one_more() -> None:
    np.testing.assert_array_equal(play(TakesRound).displays, play(CountsDisplays).displays)
    for sampler in ("keep", "queue", "rejection"):
        of_rounds, of_displays = (
            play(type("Held", (cls,), {"contextual": False}), sampler, layout="none")
            for cls in (TakesRound, CountsDisplays)
        )
        np.testing.assert_array_equal(of_rounds.displays, of_displays.displays)


@pytest.mark.parametrize("sampler", ["keep", "queue"])
def test_a_policy_that_is_asked_once_a_round_may_count_its_calls(sampler: str) -> None:
    held = {"contextual": False}
    by_call, by_round = (play(type("Held", (cls,), held), sampler, layout="none") for cls in (CountsCalls, TakesRound))
    np.testing.assert_array_equal(by_call.displays, by_round.displays)


def test_frozen_it_is_asked_again_and_again() -> None:
    held = UserPolicy(cls=type("Held", (CountsCalls,), {"contextual": False}))
    rounds = random_rounds("none", seed=8)
    replay = run(held, setting_for(rounds), rounds, sampler="keep", seed=1)
    frozen = FrozenPolicy(held, replay.state, n_actions=4, displays=100, wanted="exploring")
    with pytest.raises(PolicyError, match=r"^Held\S*: choose changes t when asked"):
        frozen.probabilities(rounds.vectors, 100)


def test_the_check_is_rare_and_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = play(TakesRound)
    seen: list[int] = []
    monkeypatch.setattr(user, "_refuse_traces", lambda state, vectors, told: seen.append(state.again[0]))
    unchecked = play(TakesRound)
    np.testing.assert_array_equal(checked.displays, unchecked.displays)
    asked_again = len(random_rounds("contexts", seed=8)) - len(unchecked.displays)
    assert seen == [2**i for i in range(len(seen))]
    # Some displays are thinned out, and none of those is asked about.
    assert 2 * seen[-1] > 0.7 * asked_again


def test_what_cannot_be_copied_is_not_looked_at() -> None:
    class Uncopied(TakesRound):
        def __deepcopy__(self, memo: object) -> None:
            raise TypeError("no copies")

    np.testing.assert_array_equal(play(Uncopied).displays, play(TakesRound).displays)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: object) -> None:
        self.a = a


class Opaque:
    """Shows nothing, and copies of it are never equal."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (0.5, 0.25),
        (float("nan"), 0.0),
        ("a", "b"),
        (None, 0),
        ([1, [2, 3]], [1, [2, 4]]),
        ([1], [1, 1]),
        ((1, 2), (1, 3)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ({1, 2}, {1, 3}),
        ({1, 2}, {1}),
        (np.zeros(2), np.array([0.0, 1.0])),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.array([None, [1]], object), np.array([None, [2]], object)),
        (Slotted(1), Slotted(2)),
        (Slotted([1]), Slotted([2])),
    ],
)
def test_attributes_that_differ_are_named(one: Any, other: Any) -> None:
    def held(value: Any) -> Slotted:
        return Slotted([value, Opaque(), np.random.default_rng(0), float("nan"), np.array([np.nan])])

    assert changed_attributes(held(one), held(other)) == ["a"]
    for value in (one, other):
        assert changed_attributes(held(value), held(value)) == []


def test_attributes_that_only_look_different_are_not() -> None:
    def held() -> Slotted:
        holder = Slotted({"circle": [], Opaque(): {Opaque()}, "slots": Slotted(np.array([Opaque()]))})
        holder.a["circle"].append(holder.a)
        return holder

    one, other = held(), held()
    for stream, steps in itertools.product((np.random.default_rng, random.Random), (0, 3)):
        drawn = stream(0)
        for _ in range(steps):
            drawn.random()
        one.b, other.b = stream(0), drawn
        assert changed_attributes(one, other) == []
    one.b = 1
    del other.b
    assert changed_attributes(one, other) == ["b"]
