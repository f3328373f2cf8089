"""What the runs of a simulation need: settings, world and calendar of each policy, and the streams of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.laws import given_cdf, told_cdf
from evaluator.engine.kernels.compiling import compile_ahead
from evaluator.engine.pushes import PushTimes
from evaluator.errors import ParameterError
from evaluator.options.deployment import Deployment, Exploration
from evaluator.policies.base import Need, Setting
from evaluator.policies.columns import ColumnsPolicy
from evaluator.policies.running import refuse_choosing_among
from evaluator.replays.rounds.stream import EligibleActions, stated_actions
from evaluator.replays.schedule import pushes_in_rounds, rounds_from
from evaluator.streams import Stream, random_stream
from evaluator.units import NO_WINDOW, ROUND
from evaluator.worlds.live_parts import FreshVectors, LiveExploration, LiveWorld, Regrets
from evaluator.worlds.live_rounds import live_call, play_live
from evaluator.worlds.scenarios.problem import BernoulliProblem, LinearProblem, Problem
from evaluator.worlds.scenarios.scenario import Part, flight_parts

CHECKPOINTS = 200
# Numbers of the contexts of one round.
LARGEST = 10**6
Floats = npt.NDArray[np.float64]


class RunOutcome(NamedTuple):
    """What a run leaves: both regrets at the checkpoints, shape (C,); conversions by fate, in the order of `COUNTS`.

    And the eventual rewards that its rounds were expected to earn, together.
    """

    regret: Floats
    observed: Floats
    counts: npt.NDArray[np.int64]
    earned: float


@dataclass(frozen=True)
class ScenarioRuns:
    """All that a run depends on, but for its number.

    `settings` is what each policy is told before its first round, and `shared` what all are told, before what each
    reads; `world` is that of the runs, as it is before any policy. Vectors that each round draws anew have length
    `dimension`, 0 where it draws none. `parts` are those of a run with the same eligible actions, None where all always
    are, and `eligible` the same as the loop reads them for each policy. `told_zeros` names the policies that are told
    of zeros. Those that learn do so at `pushes`, or where that is None at the end of each round, and explore in the
    first rounds, None for none.
    """

    policies: Sequence[Any]
    settings: tuple[Setting, ...]
    shared: Setting
    world: LiveWorld
    dimension: int
    truth: Regrets
    parts: list[Part] | None
    eligible: tuple[EligibleActions | None, ...]
    told_zeros: tuple[str, ...]
    seed: int
    pushes: PushTimes | None
    explores: LiveExploration | None

    def world_of(self, p: int) -> LiveWorld:
        """Return the world as the policy with a number lives in it."""
        return self.world._replace(zeros=self.policies[p].spec in self.told_zeros)

    def compile(self) -> list[str]:
        """Compile what the runs need and the cache does not hold; return for which policies."""
        return compile_ahead(live_call(*self._run(p), **self._parts(p, 0)) for p in range(len(self.policies)))

    def play(self, run: int, p: int) -> RunOutcome:
        """Let the policy with a number play a run."""
        parts = self._parts(p, run)
        play_live(*self._run(p), **parts)
        regrets: Regrets = parts["regrets"]
        return RunOutcome(regrets.regret, regrets.observed, regrets.counts, float(regrets.sums[2]))

    def _run(self, p: int) -> tuple[Any, Setting, LiveWorld, int]:
        return self.policies[p], self.settings[p], self.world_of(p), self.shared.horizon

    def _parts(self, p: int, run: int) -> dict[str, Any]:
        (laws, size), k = self.world.tau.shape, self.shared.n_actions
        shown = self.settings[p].dimension > 0
        return {
            "own": random_stream(Stream.LIVE_POLICY, self.seed, run),
            "luck": random_stream(Stream.LIVE_WORLD, self.seed, run),  # the same for every policy
            "fresh": FreshVectors(np.zeros((k, self.dimension)), np.zeros(k), shown) if self.dimension else None,
            "eligible": self.eligible[p],
            "starts": None if self.parts is None else np.array([part.start for part in self.parts], np.int64),
            "regrets": self.truth.begun(laws, size),
            "pushes": self.pushes if self.policies[p].learns else None,
            "explores": self.explores if self.policies[p].learns else None,
        }


def prepare_runs(
    problem: Problem,
    policies: Sequence[Any],
    *,
    horizon: int,
    window: int | None,
    delays: str,
    deployment: Deployment,
    seed: int,
) -> ScenarioRuns:
    """Return what the runs of policies in a problem need; ParameterError says what does not fit.

    `window` is in rounds, None where nothing is cut off; `delays` names the CDF that policies are told: ``known`` for
    the problem's, else a law in rounds or a file. Policies learn and explore as the `deployment` says.
    """
    for name in deployment.times:
        raise ParameterError(
            f"{deployment.named(name)}: a scenario counts rounds, not time.", remedy=f"count rounds: `{name}=500`."
        )
    schedule, exploration = deployment.schedule, deployment.exploration
    _check(problem, policies)
    cdf = _told(problem, delays, min(horizon, window or NO_WINDOW))
    parts = _parts(problem, horizon)
    playable = None if parts is None else len({action for part in parts for action in part.eligible})
    shared = Setting(
        n_actions=problem.n_actions, window=window or NO_WINDOW, horizon=horizon, delay_cdf=cdf, playable=playable
    )
    for policy in policies if shared.among else ():
        refuse_choosing_among(policy, f"the actions of scenario {problem.name!r} come and go", live=True)
    pushes = None if schedule is None else pushes_in_rounds(schedule, None, horizon)
    explores = None if exploration is None else _explores(problem, exploration)
    waits = (0 if pushes is None else pushes.waits(horizon)) + (0 if explores is None else explores.rounds)
    settings = tuple(replace(_setting(problem, policy, shared), waits=waits * policy.learns) for policy in policies)
    for policy, setting in zip(policies, settings, strict=True):
        policy.start(setting)  # what it refuses, it refuses before the first run
    told_zeros = tuple(policy.spec for policy in policies if policy.takes_zeros and problem.zeros == "told")
    eligible = tuple(_eligible(parts, setting) for setting in settings)
    world = _world(problem, shared)
    truth = _truth(problem, shared, parts)
    return ScenarioRuns(
        policies, settings, shared, world, problem.dimension, truth, parts, eligible, told_zeros, seed, pushes, explores
    )


def _explores(problem: Problem, exploration: Exploration) -> LiveExploration:
    rounds = rounds_from(exploration.span, None, None)
    if not exploration.as_logger:
        return LiveExploration(rounds)
    k = problem.n_actions
    chances = np.ones((1, k)) if problem.logger is None else np.array([problem.logger], np.float64)
    return LiveExploration(rounds, chances, getattr(problem, "temperature", None) or 0.0)


def _check(problem: Problem, policies: Sequence[Any]) -> None:
    times = Counter(policy.spec for policy in policies)
    if not times:
        raise ParameterError("No policy to simulate.", remedy="name policies: -p delayed-klucb -p ucb1.")
    if isinstance(problem, LinearProblem) and problem.n_actions * problem.dimension > LARGEST:
        raise ParameterError(
            f"Scenario {problem.name!r} draws {problem.n_actions:,} actions of {problem.dimension:,} numbers each in "
            "every round, more than a simulation takes.",
            remedy=f"take fewer actions or dimensions: {LARGEST:,} numbers a round at most.",
        )
    for policy in policies:
        if times[policy.spec] > 1:
            raise ParameterError(f"{policy.spec} is there twice.", remedy="name each policy once.")
        if policy.name == "logging":
            raise ParameterError(
                "logging follows a log, and a live run has none.",
                remedy="take random instead; what the scenario's own logger earns is known, `World.truth('logging')`.",
            )
        if isinstance(policy, ColumnsPolicy):
            raise ParameterError(
                f"{policy.name} reads a column of a log, and a live run has none.", remedy="take random instead."
            )
        if policy.contextual and isinstance(problem, BernoulliProblem):
            raise ParameterError(
                f"{policy.name} needs contexts, and scenario {problem.name!r} has none.",
                remedy="take a linear scenario, or a policy without contexts such as delayed-klucb; "
                "a class of your own says contextual = False.",
            )


def _told(problem: Problem, delays: str, reach: int) -> DelayCDF | None:
    """Return the delay CDF for policies that need one, with few steps."""
    if delays != "known":
        cdf = given_cdf(delays, reach=reach, ticks_per_round=lambda tick: _one_round(delays, tick))
    elif len(problem.laws) == 1:
        cdf = problem.laws[0].delay_cdf(reach)
    else:
        return None
    return told_cdf(cdf, reach)


def _one_round(file: str, tick: str) -> float:
    if tick != ROUND:
        raise ParameterError(
            f"`delays='{file}'` counts in units of {tick}, and a scenario counts rounds.",
            remedy="fit the delays of a log of rounds, such as a synthetic one, or name a law: geometric:500.",
        )
    return 1.0


def _setting(problem: Problem, policy: Any, shared: Setting) -> Setting:
    if Need.DELAY_CDF in policy.needs and shared.delay_cdf is None:
        raise ParameterError(
            f"{policy.name} needs one delay CDF, and scenario {problem.name!r} has one an action.",
            remedy="say what it is to believe: `delays='pareto:0.7'`.",
        )
    if isinstance(problem, LinearProblem) and policy.contextual:
        return replace(shared, dimension=problem.dimension, rows=problem.n_actions)
    return shared


def _world(problem: Problem, setting: Setting) -> LiveWorld:
    k, laws = problem.n_actions, problem.laws
    tau = np.stack([law.table(min(setting.window, setting.horizon - 1)) for law in laws])
    reach = max(int(np.searchsorted(steps, steps[-1])) for steps in tau)
    return LiveWorld(
        vectors=np.zeros((1, 1, 0)),
        rates=np.array([problem.means if isinstance(problem, BernoulliProblem) else np.zeros(k)], np.float64),
        values=np.ones(1),
        tau=np.ascontiguousarray(tau[:, : reach + 1]),
        reach=reach,
        law=_law_of_actions(problem),
        pooled=False,
    )


def _law_of_actions(problem: Problem) -> npt.NDArray[np.int64]:
    k = problem.n_actions
    return np.arange(k) if len(problem.laws) > 1 else np.zeros(k, np.int64)


def _truth(problem: Problem, setting: Setting, parts: list[Part] | None) -> Regrets:
    laws, of_action = problem.laws, _law_of_actions(problem)
    ever = np.array([law.reach for law in laws])
    within = ever if setting.window == NO_WINDOW else np.array([float(law(setting.window)) for law in laws])
    n = min(CHECKPOINTS, setting.horizon)
    return Regrets(
        ever=ever[of_action],
        within=within[of_action],
        there=None if parts is None else _there(parts, problem.n_actions),
        # The last is the horizon, exactly.
        checkpoints=-(-np.arange(1, n + 1) * setting.horizon // n),
    )


def _parts(problem: Problem, horizon: int) -> list[Part] | None:
    """Return the parts of a run with the same eligible actions; None where all actions always are."""
    parts = [part for part in flight_parts(problem.flights, problem.n_actions) if part.start < horizon]
    return None if all(len(part.eligible) == problem.n_actions for part in parts) else parts


def _there(parts: list[Part], n_actions: int) -> npt.NDArray[np.bool_]:
    """Return which actions are eligible in each part, shape (parts, K)."""
    there = np.zeros((len(parts), n_actions), np.bool_)
    for i, part in enumerate(parts):
        there[i, list(part.eligible)] = True
    return there


def _eligible(parts: list[Part] | None, setting: Setting) -> EligibleActions | None:
    """Return the eligible actions of each part as the loop reads them for a policy with this setting."""
    if parts is None:
        return None
    vectors = np.zeros((1, max(setting.rows, 1), setting.dimension))
    return stated_actions(_there(parts, setting.n_actions), vectors)[1]
