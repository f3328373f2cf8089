"""Actions that come and go: who plays among the eligible, what regret is against, and what it does at an arrival."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaluator import load, replay
from evaluator.delays.laws import fixed, geometric, pareto, parse_law
from evaluator.engine import loop
from evaluator.engine.kernels.argmax import LOWEST_FIRST, goes_first, tie_key
from evaluator.errors import ParameterError, PolicyError, SpecError
from evaluator.log.eligible import unpack
from evaluator.log.schema import to_numpy
from evaluator.policies import dispatch, resolve
from evaluator.policies.base import NO_WINDOW, Setting
from evaluator.policies.running import has_random_ties
from evaluator.policies.user import UserPolicy
from evaluator.simulations import LinearProblem, Problem, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.worlds.scenarios.problem import generate
from evaluator.worlds.scenarios.scenario import BernoulliScenario, Flight, flight_parts
from evaluator.worlds.world import load_problem
from tests.simulations.problems import bernoulli, linear
from tests.simulations.slow import eligible_rounds
from tests.statistical.test_against_twins import agree_with
from tests.twins import twin_of
from tests.twins.history import lowest_best

SIGMAS = 4
FLIGHTS = (Flight(0, 20, 60), Flight(0, 90), Flight(2, 0, 45), Flight(2, 40, 70))
PROBLEMS = {
    "window": bernoulli(geometric(12), window=20, flights=FLIGHTS),
    "an arm a law": bernoulli(pareto(1.0), fixed(30), pareto(0.3), window=40, flights=FLIGHTS),
    "vectors": replace(linear(window=20), flights=(*FLIGHTS, Flight(3, 5, 6))),
}
T = np.arange(1, 13)


class TwinAmong:
    """A policy's twin, whose best score among the eligible wins; a key for equals is drawn where they are random."""

    def __init__(self, policy: Any, setting: Setting) -> None:
        self._twin = twin_of(policy.name)(setting, **policy.parameters)
        self._draws = has_random_ties(policy)
        self.displayed, self.converted = self._twin.displayed, self._twin.converted

    def choose(
        self, vectors: npt.NDArray[np.float64], rng: np.random.Generator, eligible: npt.NDArray[np.int64]
    ) -> int:
        self._twin.begin(rng)
        if self._draws:
            rng.random()
        scores = np.full(self._twin.setting.n_actions, -np.inf)
        scores[eligible] = self._twin.scores(vectors)[eligible]
        return lowest_best(scores)


class InterpretedAmong:
    """A policy's own scores, ranked in plain Python."""

    def __init__(self, policy: Any, setting: Setting) -> None:
        self._state, self._draws = policy.start(setting), has_random_ties(policy)

    def choose(
        self, vectors: npt.NDArray[np.float64], rng: np.random.Generator, eligible: npt.NDArray[np.int64]
    ) -> int:
        dispatch.begin_among(self._state, rng)
        key = tie_key(rng) if self._draws else LOWEST_FIRST
        score = {int(a): dispatch.score_among(self._state, own_vector(vectors, a), int(a)) for a in eligible}
        best = [a for a in score if score[a] == max(score.values())]
        return next(a for a in best if all(a == b or goes_first(a, b, key) for b in best))

    def displayed(self, vectors: npt.NDArray[np.float64], action: int) -> None:
        dispatch.shown(self._state, own_vector(vectors, action), action)

    def converted(self, vector: npt.NDArray[np.float64], action: int, delay: int, value: float) -> None:
        dispatch.told(self._state, vector, action, delay, value)


def own_vector(vectors: npt.NDArray[np.float64], action: int) -> npt.NDArray[np.float64]:
    return vectors[action : action + 1] if len(vectors) > 1 else vectors


def setting_of(problem: Problem, policy: Any, told: str) -> Setting:
    vectors = isinstance(problem, LinearProblem) and policy.contextual
    return Setting(
        n_actions=problem.n_actions,
        dimension=problem.dimension if vectors else 0,
        rows=problem.n_actions if vectors else 0,
        window=problem.window or NO_WINDOW,
        horizon=problem.horizon,
        delay_cdf=parse_law(told).closed,
        playable=problem.n_actions,
    )


@pytest.mark.parametrize("spec", ["ucb1:ties=lowest", "thompson", "delayed-klucb:ties=lowest"])
@pytest.mark.parametrize("world", PROBLEMS)
def test_a_twin_in_plain_numpy_plays_the_same_rounds(spec: str, world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if spec != "thompson":  # one is compiled, the others read the same source
        monkeypatch.setattr(loop, "replay", loop.replay_interpreted)
    policy, problem = resolve(spec), PROBLEMS[world]
    setting = setting_of(problem, policy, "geometric:12")
    agree_with([TwinAmong(policy, setting) for _ in range(2)], policy, problem, setting, "geometric:12")


@pytest.mark.parametrize(
    ("spec", "world"),
    [
        ("random", "window"), ("fixed:action=2", "window"), ("klucb", "window"), ("discarding-ucb", "an arm a law"),
        ("patient-bandits", "window"), ("linucb", "vectors"), ("lints", "vectors"),
        ("otflinucb:bonus=exact", "vectors"),
    ],
)  # fmt: skip
def test_every_policy_shows_its_best_score_among_the_eligible(
    spec: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spec != "linucb":
        monkeypatch.setattr(loop, "replay", loop.replay_interpreted)
    policy, problem = resolve(spec), PROBLEMS[world]
    setting = setting_of(problem, policy, "geometric:12")
    agree_with([InterpretedAmong(policy, setting) for _ in range(2)], policy, problem, setting, "geometric:12")


def final(problem: Problem, spec: str, **options: Any) -> Any:
    return simulate(problem, [resolve(spec)], SimulateOptions(**{"runs": 2, **options})).curves[0]


def test_regret_is_against_the_best_eligible_arm_of_the_round() -> None:
    # The best arm is there in rounds 4 to 8 and from 11 on; its gap to what is always there is 0.75.
    flights = (Flight(1, 3, 8), Flight(1, 10))
    problem = bernoulli(fixed(2), means=(0.25, 1.0), window=3, horizon=12, flights=flights)
    there = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1])
    found = final(problem, "fixed:action=0")
    np.testing.assert_allclose(found.regret, 0.75 * np.cumsum(there))
    # What a round costs is seen two rounds later.
    np.testing.assert_allclose(found.observed, 0.75 * np.concatenate([[0, 0], np.cumsum(there)[:-2]]))
    # It is the best fixed order: the late arm where it is there, else the other.
    np.testing.assert_array_equal(final(problem, "fixed:action=1").regret, 0.0)


def test_actions_that_never_come_or_always_stay_change_nothing() -> None:
    plain = bernoulli(geometric(12))
    stays = bernoulli(geometric(12), flights=(Flight(0), Flight(2, 0, 90), Flight(2, 80)))
    later = bernoulli(geometric(12), flights=(Flight(1, 0, 150),))
    assert final(stays, "ucb1", horizon=150).regret.tolist() == final(plain, "ucb1", horizon=150).regret.tolist()
    assert simulate(later, [resolve("qpm-d")], SimulateOptions(runs=1, window=20)).flights == ()
    # An arm that comes after the horizon counts for no width.
    seen: list[Setting] = []
    never = bernoulli(geometric(12), flights=(Flight(1, 150),))
    simulate(never, [UserPolicy(cls=Keeps, parameters={"seen": seen})], SimulateOptions(runs=1))
    assert {told.arms for told in seen} == {2}


class Keeps:
    """Shows the last eligible action, and keeps what it was told."""

    contextual = False

    def __init__(self, setting: Setting, *, seen: list) -> None:
        self.seen = seen
        seen.append(setting)

    def choose(self, vectors: Any, rng: Any, eligible: npt.NDArray[np.int64]) -> int:
        assert (np.diff(eligible) > 0).all()
        return int(eligible[-1])

    def displayed(self, vectors: Any, action: int) -> None:
        assert len(vectors) == 1

    def converted(self, vector: Any, action: int, delay: int, value: float) -> None: ...


class Blind(Keeps):
    def choose(self, vectors: Any, rng: Any) -> int:  # type: ignore[override]
        return 0


class Wrong(Keeps):
    def choose(self, vectors: Any, rng: Any, eligible: npt.NDArray[np.int64]) -> int:
        return 0


def test_those_without_an_answer_refuse_as_in_a_replay() -> None:
    problem = PROBLEMS["window"]
    for name in ("qpm-d", "odaaf", "improved-ucb"):
        said = r"and the actions of scenario 'small' come and go\. Hint: take one that can: random, fixed, ucb1"
        with pytest.raises(ParameterError, match=rf"{name} cannot choose among some of its actions, {said}"):
            simulate(problem, [resolve(name)])
    with pytest.raises(ParameterError, match=r"Blind cannot choose among.*choose\(self, vectors, rng, eligible\)"):
        simulate(problem, [UserPolicy(cls=Blind, parameters={"seen": []})])
    with pytest.raises(
        PolicyError, match=r"Wrong.* returned 0 from choose, round 1, where the eligible actions are 1, 2"
    ):
        simulate(problem, [UserPolicy(cls=Wrong, parameters={"seen": []})], SimulateOptions(runs=1))


@pytest.mark.parametrize(("spec", "newcomer"), [("thompson", 0.6), ("delayed-klucb", 0.1)])
def test_regret_rises_when_an_arm_arrives_and_comes_back(spec: str, newcomer: float) -> None:
    """Thompson has to find out that the newcomer is better; an optimist tries it at once, and pays where it is not."""
    flights = (Flight(2, 2000),)
    problem = bernoulli(fixed(20), means=(0.4, 0.2, newcomer), horizon=4000, window=20, flights=flights)
    runs = [simulate(problem, [resolve(spec)], SimulateOptions(runs=1, seed=seed)) for seed in range(16)]
    at = {int(t): i for i, t in enumerate(runs[0].rounds)}

    def pace(first: int, last: int) -> npt.NDArray[np.float64]:
        return np.array([(r.curves[0].regret[at[last]] - r.curves[0].regret[at[first]]) / (last - first) for r in runs])

    before, after, known = pace(1600, 2000), pace(2000, 2100), pace(3600, 4000)
    for change in (after - before, after - known):
        assert change.mean() > SIGMAS * change.std(ddof=1) / math.sqrt(len(change))
    # Once it is known, rounds cost less than a twentieth of the smallest gap.
    assert known.mean() < 0.2 / 20


def test_there_is_no_lower_bound_where_arms_come_and_go() -> None:
    found = simulate(PROBLEMS["window"], [resolve("random")], SimulateOptions(runs=1))
    assert found.lower_bound is None
    assert found.to_dict()["flights"][0] == {"action": 0, "from": 20, "until": 60}


def test_a_log_drawn_from_it_says_what_was_eligible_and_replays() -> None:
    scenario = BernoulliScenario.model_validate(
        {
            "kind": "bernoulli",
            "means": [0.1, 0.3, 0.2],
            "logger": [0.5, 0.3, 0.2],
            "flights": [{"action": f.action, "from": f.start, "until": f.until} for f in FLIGHTS],
        }
    )
    log = generate(scenario, displays=150)
    sets = unpack(log.displays["eligible"], 3)
    np.testing.assert_array_equal(sets, eligible_rounds(PROBLEMS["window"], 150))
    shown = log.column("action")
    assert sets[np.arange(150), shown].all()
    p = np.where(sets, [0.5, 0.3, 0.2], 0.0)
    np.testing.assert_allclose(
        to_numpy(log.displays["propensity"]), (p / p.sum(axis=1, keepdims=True))[range(150), shown]
    )
    found = replay(load("campaigns", limit=9_000), "thompson", window=500)
    assert found.rounds > 1_000
    assert "calendar" in " ".join(found.warnings)


@pytest.mark.parametrize(
    ("flights", "said"),
    [
        ((Flight(3),), "a flight of action 3: actions go from 0 to 2"),
        ((Flight(1, 20, 20),), "a flight of action 1 from 20 until 20: it ends before it begins"),
        (tuple(Flight(a, 0, 1500 + a) for a in range(3)), "no action is eligible after 1,502 rounds"),
        (tuple(Flight(a, 5) for a in range(3)), "no action is eligible after 0 rounds"),
    ],
)
def test_flights_that_cannot_be(flights: tuple[Flight, ...], said: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=said):
        bernoulli(geometric(12), flights=flights)
    with pytest.raises(ParameterError, match=said):
        LinearProblem(name="x", n_actions=3, dimension=2, laws=(geometric(3),), flights=flights)
    lines = [
        f"[[scenario.flights]]\naction = {a}\nfrom = {start}\n" + (f"until = {until}\n" if until else "")
        for a, start, until in flights
    ]
    file = tmp_path / "x.toml"
    file.write_text('name = "x"\ntitle = "x"\nlicence = "x"\n[scenario]\nkind = "bernoulli"\nmeans = [0.1, 0.2, 0.3]\n'
                    + "\n".join(lines))  # fmt: skip
    with pytest.raises(SpecError, match=said) as refused:
        load_problem(file)
    assert "\n" not in str(refused.value)


def test_flights_of_one_action_may_meet_and_overlap() -> None:
    flights = [Flight(1, 10, 20), Flight(1, 20, 30), Flight(1, 25, 40), Flight(2, 0, 10)]
    assert [(part.start, part.eligible) for part in flight_parts(flights, 3)] == [
        (0, (0, 2)), (10, (0, 1)), (40, (0,)),
    ]  # fmt: skip
