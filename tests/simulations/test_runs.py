"""Runs share worlds, not streams; threads and company change nothing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evaluator.delays.laws import geometric
from evaluator.engine import log_replay as engine
from evaluator.errors import ParameterError, PolicyError
from evaluator.policies import resolve
from evaluator.policies.base import Setting
from evaluator.policies.user import UserPolicy
from evaluator.simulations import BernoulliProblem, LinearProblem, Problem, Simulation, simulate
from evaluator.simulations.options import SimulateOptions
from evaluator.streams import Stream, random_stream
from evaluator.worlds.scenario_runs import CHECKPOINTS
from tests.simulations.problems import LINEAR_WORLDS, WORLDS, bernoulli, linear


def run(problem: Problem, *specs: str, **options: Any) -> Simulation:
    return simulate(problem, [resolve(spec) for spec in specs], SimulateOptions(**options))


class Recorder:
    """Plays the arms in turn, each `stretch` times, and tells a list what it saw."""

    def __init__(self, setting: Setting, *, stretch: int, seen: list) -> None:
        self.k, self.stretch, self.seen, self.t = setting.n_actions, stretch, seen, 0

    def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
        return self.t // self.stretch % self.k

    def displayed(self, vectors: np.ndarray, action: int) -> None:
        self.t += 1
        self.seen.append(("shown", self.t, action, vectors.copy()))

    def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None:
        self.seen.append(("converted", self.t - delay, action, delay))


class BlindRecorder(Recorder):
    contextual = False


@pytest.mark.parametrize(
    ("problem", "kind"), [(bernoulli(horizon=400, window=30), BlindRecorder), (linear(), Recorder)]
)
def test_policies_that_choose_alike_see_alike(problem: Problem, kind: type) -> None:
    seen: list[list] = [[], []]
    policies = [UserPolicy(cls=kind, parameters={"stretch": s, "seen": seen[i]}) for i, s in enumerate((1, 7))]
    simulate(problem, policies, SimulateOptions(runs=1, seed=3))
    outcomes: list[dict] = [defaultdict(tuple), defaultdict(tuple)]
    for found, told in zip(outcomes, seen, strict=True):
        for what, t, action, more in told:
            if what == "converted":
                found[t] = (action, more)
    shown = [{t: (action, v) for what, t, action, v in told if what == "shown"} for told in seen]
    same = [t for t in shown[0] if shown[0][t][0] == shown[1][t][0]]
    assert len(same) > 20
    for t in shown[0]:
        np.testing.assert_array_equal(shown[0][t][1], shown[1][t][1])
    assert sum(bool(outcomes[0][t]) for t in same) > 5
    for t in same:
        assert outcomes[0][t] == outcomes[1][t]


@pytest.mark.parametrize("problem", [*WORLDS.values(), *LINEAR_WORLDS.values()])
def test_every_conversion_has_one_fate(problem: Problem) -> None:
    counts = run(problem, "random", runs=5).curves[0].conversions
    assert counts["generated"] == sum(counts.values()) - counts["generated"] > 0


def test_threads_change_nothing() -> None:
    specs = ("thompson", "delayed-klucb", "random")
    one, more = (run(WORLDS["geometric, window"], *specs, runs=30, jobs=jobs) for jobs in (1, 3))
    assert one.curve_table.equals(more.curve_table)
    assert one.to_dict() == more.to_dict()


def test_company_changes_nothing() -> None:
    alone = run(bernoulli(), "thompson", runs=5).curve_table
    together = run(bernoulli(), "ucb1", "thompson", runs=5)
    assert together.curve_table.slice(len(together.rounds)).equals(alone)


def test_the_difference_is_paired() -> None:
    problem = bernoulli(horizon=100)
    single = [[run(problem, spec, runs=r + 1).curves[0].regret[-1] for r in range(6)] for spec in ("ucb1", "thompson")]
    # Means of 1, 2, ... runs give back each run.
    runs = [np.diff(np.array(means) * np.arange(1, 7), prepend=0.0) for means in single]
    gap = runs[1] - runs[0]
    first, second = run(problem, "ucb1", "thompson", runs=6).curves
    assert (first.difference, first.difference_se) == (0.0, 0.0)
    assert second.difference == pytest.approx(gap.mean())
    assert second.difference_se == pytest.approx(gap.std(ddof=1) / math.sqrt(6))


def test_a_python_policy_is_the_same_run() -> None:
    class Twin:
        contextual = False

        def __init__(self, setting: Setting) -> None:
            self.k = setting.n_actions

        def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
            return int(rng.random() * self.k)

        def displayed(self, vectors: np.ndarray, action: int) -> None: ...
        def converted(self, vector: np.ndarray, action: int, delay: int, value: float) -> None: ...

    problem = WORLDS["an arm a law"]
    compiled = run(problem, "random", runs=3).curves[0]
    plain = simulate(problem, [UserPolicy(cls=Twin)], SimulateOptions(runs=3)).curves[0]
    np.testing.assert_array_equal(plain.regret, compiled.regret)
    np.testing.assert_array_equal(plain.observed, compiled.observed)
    assert plain.conversions == compiled.conversions


def test_streams_never_meet() -> None:
    streams = [
        np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,))),
        *(random_stream(of, 5, r) for of in (Stream.LIVE_WORLD, Stream.LIVE_POLICY) for r in range(3)),
        *(make(5, r) for make in (engine.sampler_stream, engine.policy_stream) for r in range(3)),
    ]
    assert len({rng.random() for rng in streams}) == len(streams)


def test_other_seed_other_runs() -> None:
    one, two = (run(bernoulli(), "random", runs=2, seed=seed).curves[0].regret for seed in (0, 1))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("horizon", [1, 7, 199, 200, 201, 1003])
def test_checkpoints_end_at_the_horizon(horizon: int) -> None:
    found = run(bernoulli(), "random", runs=1, horizon=horizon)
    assert found.rounds[-1] == horizon
    assert len(found.rounds) == min(horizon, CHECKPOINTS)
    assert (np.diff(found.rounds) > 0).all()
    assert found.rounds[0] >= 1
    assert np.isnan(found.curves[0].regret_se).all()
    assert found.to_dict()["policies"][0]["regret"][-1]["standard_error"] is None


def test_the_scenario_recommends_and_the_options_decide() -> None:
    problem = bernoulli(horizon=50, window=9)
    assert (run(problem, "random", runs=1).horizon, run(problem, "random", runs=1).window) == (50, 9)
    other = run(problem, "random", runs=1, horizon=60, window="none")
    assert (other.horizon, other.window) == (60, None)


@pytest.mark.parametrize(
    ("problem", "specs", "options", "said"),
    [
        (bernoulli(), ("linucb",), {}, "needs contexts"),
        (bernoulli(), ("logging",), {}, "a live run has none"),
        (bernoulli(), ("columns",), {}, "a live run has none"),
        (bernoulli(), (), {}, "No policy"),
        (bernoulli(), ("ucb1", "ucb1"), {}, "twice"),
        (bernoulli(), ("fixed:action=3",), {}, "take 0 to 2"),
        (linear(), ("waitlinucb",), {}, "window"),
        (WORLDS["an arm a law"], ("delayed-ucb",), {}, "one delay CDF"),
        (
            LinearProblem(name="x", n_actions=500_001, dimension=2, laws=(geometric(3),)),
            ("ucb1",),
            {},
            "500,001 actions of 2 numbers each",
        ),
        (bernoulli(), ("ucb1",), {"delays": "gamma:3"}, "Expected a delay distribution"),
        (bernoulli(), ("ucb1",), {"runs": 0}, "`runs=0`"),
        (bernoulli(), ("ucb1",), {"horizon": 0}, "`horizon=0`"),
        (bernoulli(), ("ucb1",), {"seed": -1}, "`seed=-1`"),
        (bernoulli(), ("ucb1",), {"jobs": 1.5}, "`jobs=1.5`"),
        (bernoulli(), ("ucb1",), {"window": 0}, "`window=0`"),
        (bernoulli(), ("ucb1",), {"window": "7d"}, "`window='7d'`"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_first_run(
    problem: Problem, specs: tuple[str, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        run(problem, *specs, **options)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BernoulliProblem(name="x", means=(0.5,), laws=(geometric(3),)),
        lambda: BernoulliProblem(name="x", means=(0.5, 1.5), laws=(geometric(3),)),
        lambda: BernoulliProblem(name="x", means=(0.5, 0.1, 0.2), laws=(geometric(3), geometric(3))),
        lambda: LinearProblem(name="x", n_actions=1, dimension=5, laws=(geometric(3),)),
        lambda: LinearProblem(name="x", n_actions=2, dimension=0, laws=(geometric(3),)),
        lambda: LinearProblem(name="x", n_actions=2, dimension=1, laws=()),
    ],
)
def test_impossible_problems(wrong: Callable[[], object]) -> None:
    with pytest.raises(ParameterError):
        wrong()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_policy_that_raises_is_named(jobs: int) -> None:
    class Raises(BlindRecorder):
        def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
            raise KeyError("no arm")

    policy = UserPolicy(cls=Raises, parameters={"stretch": 1, "seen": []})
    with pytest.raises(PolicyError, match=r"Raises\S* raised KeyError in choose, round \d+"):
        simulate(bernoulli(), [policy], SimulateOptions(runs=4, jobs=jobs))


def test_an_impossible_action_is_refused() -> None:
    class Impossible(BlindRecorder):
        def choose(self, vectors: np.ndarray, rng: np.random.Generator) -> int:
            return 99

    with pytest.raises(PolicyError, match="returned 99"):
        simulate(
            bernoulli(), [UserPolicy(cls=Impossible, parameters={"stretch": 1, "seen": []})], SimulateOptions(runs=1)
        )
