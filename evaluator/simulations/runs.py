"""Many runs of many policies in threads, summed as they finish.

Run r of every policy lives in the same world: the same contexts and the same luck in each round. Differences between
policies are therefore much better known than each regret. No result depends on the number of threads: a run draws from
streams of its own, and sums are taken in the order of the runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.datasets.flights import Part, flight_parts
from evaluator.delays.cdf import DelayCDF
from evaluator.delays.given import given_cdf, told_cdf
from evaluator.errors import ParameterError
from evaluator.kernels.ahead import LoopCall, compile_ahead
from evaluator.policies.base import Need, Setting
from evaluator.policies.choosing_among import has_random_ties, refuse_choosing_among
from evaluator.policies.running import blamed, loop_for
from evaluator.replays.rounds.eligible_actions import stated_actions
from evaluator.simulations import live_loop as loop
from evaluator.simulations.lower_bound import lower_bound
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.problem import BernoulliProblem, LinearProblem, Problem
from evaluator.simulations.result import RegretCurve, Simulation
from evaluator.simulations.ring import empty_ring
from evaluator.streams import Stream, random_stream
from evaluator.threads import in_threads
from evaluator.units import NO_WINDOW, ROUND

CHECKPOINTS = 200

Floats = npt.NDArray[np.float64]


def simulate(
    problem: Problem,
    policies: Sequence[Any],
    options: SimulateOptions | None = None,
    *,
    advance: Callable[[int], None] = lambda runs: None,
) -> Simulation:
    """Let every policy play the problem.

    Parameters
    ----------
    problem
        Problem to play in, whose truth is known.
    policies
        Descriptions of the policies, no two alike.
    options
        Options of the runs: their number, horizon, window and so on; None for those of `SimulateOptions`.
    advance
        Function called with the number of runs that were finished since the last call, of all policies together.

    Returns
    -------
    Simulation
        Curves of all policies. Memory is that of the checkpoints and of the runs in progress.

    Raises
    ------
    ParameterError
        The options, the problem and the policies do not fit.
    PolicyError
        A policy of the user's own raised an error.
    """
    options = options or SimulateOptions()
    horizon = options.horizon or problem.horizon
    window = options.window_rounds(problem.window)
    _check(problem, policies)
    cdf = _told(problem, options, min(horizon, window or NO_WINDOW))
    parts = _parts(problem, horizon)
    playable = None if parts is None else len({action for part in parts for action in part.eligible})
    shared = Setting(
        n_actions=problem.n_actions, window=window or NO_WINDOW, horizon=horizon, delay_cdf=cdf, playable=playable
    )
    if shared.among:
        _refuse_without_answer(problem, policies)
    settings = [_setting(problem, policy, shared) for policy in policies]
    for policy, setting in zip(policies, settings, strict=True):
        policy.start(setting)  # what it refuses, it refuses before the first run
    world = _world(problem, shared)
    told_zeros = tuple(policy.spec for policy in policies if policy.takes_zeros and problem.zeros == "told")

    def of(p: int) -> loop.LiveWorld:
        return world._replace(shown=settings[p].dimension, zeros=policies[p].spec in told_zeros)

    def one(task: tuple[int, int]) -> loop.RunOutcome:
        run, p = task
        return _run(policies[p], settings[p], of(p), calendars[p], options.seed, run)

    calendars = [_calendar(parts, policy, setting) for policy, setting in zip(policies, settings, strict=True)]
    compile_ahead(
        LoopCall(policy.name, _loop(policy), _arguments(policy, settings[p], of(p), calendars[p], options.seed, 0))
        for p, policy in enumerate(policies)
    )

    totals = [_Totals() for _ in policies]
    tasks = [(run, p) for run in range(options.runs) for p in range(len(policies))]
    first = 0.0
    for (_, p), played in zip(tasks, in_threads(one, tasks, options.jobs), strict=True):
        final = float(played.regret[-1])
        first = final if p == 0 else first
        totals[p].add(played, final - first)
        advance(1)
    bounds = _bounds(problem, world, among=shared.among)
    needs_cdf = any(Need.DELAY_CDF in policy.needs for policy in policies)
    return Simulation(
        scenario=problem.name,
        n_actions=problem.n_actions,
        horizon=horizon,
        window=window,
        runs=options.runs,
        seed=options.seed,
        tau_window=tuple(world.within[: len(problem.laws)].tolist()),
        laws=tuple(law.source for law in problem.laws),
        told=cdf.source if cdf is not None and needs_cdf else "",
        told_zeros=told_zeros,
        flights=() if parts is None else problem.flights,
        rounds=world.checkpoints,
        curves=tuple(total.curve(policy.spec) for total, policy in zip(totals, policies, strict=True)),
        lower_bound=bounds[0],
        observed_lower_bound=bounds[1],
    )


def world_stream(seed: int, run: int) -> np.random.Generator:
    """Return the stream of contexts and luck of a run: the same for every policy."""
    return random_stream(Stream.LIVE_WORLD, seed, run)


def live_policy_stream(seed: int, run: int) -> np.random.Generator:
    """Return the stream that a policy draws from."""
    return random_stream(Stream.LIVE_POLICY, seed, run)


def _check(problem: Problem, policies: Sequence[Any]) -> None:
    specs = [policy.spec for policy in policies]
    if not specs:
        raise ParameterError("No policy to simulate.", hint="name policies: -p delayed-klucb -p ucb1.")
    for policy in policies:
        if specs.count(policy.spec) > 1:
            raise ParameterError(f"{policy.spec} is there twice.", hint="name each policy once.")
        if policy.name == "logging":
            raise ParameterError("logging follows a log, and a live run has none.", hint="take random instead.")
        if policy.reads == "target":
            raise ParameterError(
                f"{policy.name} reads probabilities from a log, and a live run has none.", hint="take random instead."
            )
        if policy.contextual and isinstance(problem, BernoulliProblem):
            raise ParameterError(
                f"{policy.name} needs contexts, and scenario {problem.name!r} has none.",
                hint="take a linear scenario, or a policy without contexts such as delayed-klucb; "
                "a class of your own says contextual = False.",
            )


def _told(problem: Problem, options: SimulateOptions, reach: int) -> DelayCDF | None:
    """Return the delay CDF for policies that need one, with few steps."""
    if options.delays != "known":
        cdf = given_cdf(options.delays, reach=reach, ticks_per_round=lambda tick: _one_round(options.delays, tick))
    elif len(problem.laws) == 1:
        cdf = problem.laws[0].delay_cdf(reach)
    else:
        return None
    return told_cdf(cdf, reach)


def _one_round(file: str, tick: str) -> float:
    if tick != ROUND:
        raise ParameterError(
            f"`delays='{file}'` counts in units of {tick}, and a scenario counts rounds.",
            hint="fit the delays of a log of rounds, such as a synthetic one, or name a law: geometric:500.",
        )
    return 1.0


def _setting(problem: Problem, policy: Any, shared: Setting) -> Setting:
    if Need.DELAY_CDF in policy.needs and shared.delay_cdf is None:
        raise ParameterError(
            f"{policy.name} needs one delay CDF, and scenario {problem.name!r} has one an action.",
            hint="say what it is to believe: `delays='pareto:0.7'`.",
        )
    if isinstance(problem, LinearProblem) and policy.contextual:
        return replace(shared, dimension=problem.dimension, rows=problem.n_actions)
    return shared


def _world(problem: Problem, setting: Setting) -> loop.LiveWorld:
    k, laws = problem.n_actions, problem.laws
    row = np.arange(k) if len(laws) > 1 else np.zeros(k, np.int64)
    ever = np.array([law.reach for law in laws])
    within = ever if setting.window == NO_WINDOW else np.array([float(law(setting.window)) for law in laws])
    tau = np.stack([law.table(min(setting.window, setting.horizon - 1)) for law in laws])
    reach = max(int(np.searchsorted(steps, steps[-1])) for steps in tau)
    n = min(CHECKPOINTS, setting.horizon)
    return loop.LiveWorld(
        means=np.array(problem.means if isinstance(problem, BernoulliProblem) else np.zeros(k), np.float64),
        tau=np.ascontiguousarray(tau[:, : reach + 1]),
        row=row,
        ever=ever[row],
        within=within[row],
        dimension=problem.dimension,
        shown=0,
        zeros=False,
        horizon=setting.horizon,
        # The last is the horizon, exactly.
        checkpoints=-(-np.arange(1, n + 1) * setting.horizon // n),
    )


def _parts(problem: Problem, horizon: int) -> list[Part] | None:
    """Return the parts of a run with the same eligible actions; None where all actions always are."""
    parts = [part for part in flight_parts(problem.flights, problem.n_actions) if part.start < horizon]
    return None if all(len(part.eligible) == problem.n_actions for part in parts) else parts


def _calendar(parts: list[Part] | None, policy: Any, setting: Setting) -> loop.Calendar | None:
    """Return the parts as the loop reads them for a policy."""
    if parts is None:
        return None
    sets = np.zeros((len(parts), setting.n_actions), np.bool_)
    for i, part in enumerate(parts):
        sets[i, list(part.eligible)] = True
    _, eligible = stated_actions(sets, np.zeros((1, max(setting.rows, 1), setting.dimension)))
    return loop.Calendar(
        start=np.array([part.start for part in parts], np.int64),
        there=sets,
        eligible=eligible,
        random_ties=has_random_ties(policy),
    )


def _refuse_without_answer(problem: Problem, policies: Sequence[Any]) -> None:
    for policy in policies:
        refuse_choosing_among(policy, f"the actions of scenario {problem.name!r} come and go", live=True)


def _bounds(problem: Problem, world: loop.LiveWorld, *, among: bool) -> tuple[Floats | None, Floats | None]:
    """Return the lower bounds of both regrets; the theorems are about arms that stay, and a law that shows some."""
    if not isinstance(problem, BernoulliProblem) or len(problem.laws) > 1 or world.within[0] == 0 or among:
        return None, None
    ever, within = world.ever[0], world.within[0]
    observed = lower_bound(problem.means, float(within)) * np.log(world.checkpoints)
    return observed * ever / within, observed


def _run(
    policy: Any, setting: Setting, world: loop.LiveWorld, calendar: loop.Calendar | None, seed: int, run: int
) -> loop.RunOutcome:
    with blamed(policy, setting.n_actions):
        played: loop.RunOutcome = _loop(policy)(*_arguments(policy, setting, world, calendar, seed, run))
    return played


def _loop(policy: Any) -> Any:
    return loop_for(policy, loop.play, loop.play_uncached, loop.play_interpreted)


def _arguments(
    policy: Any, setting: Setting, world: loop.LiveWorld, calendar: loop.Calendar | None, seed: int, run: int
) -> tuple[Any, ...]:
    ring = empty_ring(world.tau.shape[1] - 1, world.shown)
    return policy.start(setting), live_policy_stream(seed, run), world_stream(seed, run), world, ring, calendar


class _Totals:
    """Means and squared deviations of a policy's runs, run by run (Welford)."""

    def __init__(self) -> None:
        self._n = 0
        self._mean: Floats = np.zeros(0)
        self._squares: Floats = np.zeros(0)
        self._counts = np.zeros(len(loop.COUNTS), np.int64)

    def add(self, played: loop.RunOutcome, difference: float) -> None:
        """Add a run, and its difference to the first policy's."""
        x = np.concatenate([played.regret, played.observed, [difference]])
        if self._n == 0:
            self._mean, self._squares = np.zeros(x.shape), np.zeros(x.shape)
        self._n += 1
        off = x - self._mean
        self._mean = self._mean + off / self._n
        self._squares = self._squares + off * (x - self._mean)
        self._counts = self._counts + played.counts

    def curve(self, policy: str) -> RegretCurve:
        """Return means and standard errors, nan for a single run."""
        c = len(self._mean) // 2
        variance = self._squares / (self._n - 1) if self._n > 1 else np.full(self._mean.shape, np.nan)
        error = np.sqrt(variance / self._n)
        return RegretCurve(
            policy=policy,
            regret=self._mean[:c],
            regret_se=error[:c],
            observed=self._mean[c:-1],
            observed_se=error[c:-1],
            difference=float(self._mean[-1]),
            difference_se=float(error[-1]),
            conversions=dict(zip(loop.COUNTS, self._counts.tolist(), strict=True)),
        )
