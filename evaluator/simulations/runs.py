"""Many runs of many policies in threads, summed as they finish.

Run r of every policy lives in the same world: the same contexts and the same luck in each round. Differences between
policies are therefore much better known than each regret. No result depends on the number of threads: a run draws from
streams of its own, and sums are taken in the order of the runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr

from evaluator.arguments import as_description, loaded_by
from evaluator.errors import ParameterError, UsageError, WorkerError
from evaluator.jobs.run_jobs import Job, as_text, run_jobs
from evaluator.jobs.workers import OpenedLast, in_folder, software, tell, this_folder, this_worker
from evaluator.outputs.kept_folder import KeptJobs
from evaluator.own_code import CodeOfPolicy, codes_of, refuse_other_code
from evaluator.policies.base import Need
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.result import RegretCurve, Simulation
from evaluator.worlds.live_parts import COUNTS, Regrets
from evaluator.worlds.scenario_runs import RunOutcome, ScenarioRuns, prepare_runs
from evaluator.worlds.scenarios.problem import BernoulliProblem, Problem
from evaluator.worlds.world import load_problem

Floats = npt.NDArray[np.float64]
# Rounds of a job: about a second of work.
WORK = 1_000_000
# Runs of a job, at most.
_MOST = 256
# Number of a run, and of its policy.
Task = tuple[int, int]


def simulate(
    problem: Problem,
    policies: Sequence[Any],
    options: SimulateOptions | None = None,
    *,
    advance: Callable[[int], None] = lambda runs: None,
    kept: KeptJobs | None = None,
    executor: Executor | None = None,
    scenario: str | None = None,
) -> Simulation:
    """Let every policy play the problem; memory is that of the checkpoints and of the runs in progress.

    `advance` is called with the number of runs that were finished since the last call, of all policies together; runs
    are looked for and kept in the folder `kept`. An executor's workers play, and load the problem by the name of its
    scenario. Raises ParameterError where options, problem and policies do not fit, and PolicyError of a policy of the
    user's own.
    """
    options = options or SimulateOptions()
    stage = runs_in(problem, policies, options)
    horizon, window = stage.shared.horizon, options.window_rounds(problem.window)
    schedule = options.deployed(problem.deployment).schedule
    truth, cdf = stage.truth, stage.shared.delay_cdf
    if executor is None:
        stage.compile()

    totals = [_Totals() for _ in policies]
    tasks = [(run, p) for run in range(options.runs) for p in range(len(policies))]
    first = 0.0
    played_runs = outcomes(stage, tasks, options, kept=kept, executor=executor, scenario=scenario, advance=advance)
    for (_, p), played in zip(tasks, played_runs, strict=True):
        final = float(played.regret[-1])
        first = final if p == 0 else first
        totals[p].add(played, final - first)
    bounds = _bounds(problem, truth, among=stage.shared.among)
    needs_cdf = any(Need.DELAY_CDF in policy.needs for policy in policies)
    return Simulation(
        scenario=problem.name,
        n_actions=problem.n_actions,
        horizon=horizon,
        window=window,
        runs=options.runs,
        seed=options.seed,
        tau_window=tuple(truth.within[: len(problem.laws)].tolist()),
        laws=tuple(law.source for law in problem.laws),
        told=cdf.source if cdf is not None and needs_cdf else "",
        told_zeros=stage.told_zeros,
        learns="" if schedule is None else schedule.words,
        explores=0 if stage.explores is None else stage.explores.rounds,
        explores_as_logger=stage.explores is not None and stage.explores.chances is not None,
        flights=() if stage.parts is None else problem.flights,
        rounds=truth.checkpoints,
        curves=tuple(total.curve(policy.spec) for total, policy in zip(totals, policies, strict=True)),
        lower_bound=bounds[0],
        observed_lower_bound=bounds[1],
    )


def _bounds(problem: Problem, truth: Regrets, *, among: bool) -> tuple[Floats | None, Floats | None]:
    """Return the lower bounds of both regrets; the theorems are about arms that stay, and a law that shows some."""
    if not isinstance(problem, BernoulliProblem) or len(problem.laws) > 1 or truth.within[0] == 0 or among:
        return None, None
    ever, within = truth.ever[0], truth.within[0]
    observed = lower_bound(problem.means, float(within)) * np.log(truth.checkpoints)
    return observed * ever / within, observed


def lower_bound(means: Sequence[float], tau_window: float = 1.0) -> float:
    """Return C such that the observed regret L(T) of any uniformly efficient policy is at least C log T for large T.

    C = sum over suboptimal k of tau_m (theta* - theta_k) / d(tau_m theta_k, tau_m theta*), d the Kullback-Leibler
    divergence of Bernoulli laws, theta the conversion rates of the arms, shape (K,), and tau_m the share of conversions
    that come within the window (Vernade, Cappe, Perchet 2017, Theorem 3; with 1, the uncensored model, Theorem 4). The
    bound on the eventual regret R(T) is C / tau_m, since each pull then costs the whole gap. It is asymptotic: at small
    T it may exceed a good policy's regret. ParameterError for a rate outside [0, 1], or tau_m outside (0, 1].

    >>> round(lower_bound([0.5, 0.4, 0.3]), 2)
    7.4
    """
    theta = np.asarray(means, np.float64)
    if not (theta.size and (theta >= 0).all() and (theta <= 1).all() and 0 < tau_window <= 1):
        raise ParameterError(f"Rates {list(means)}, tau {tau_window:g}.", remedy="rates in [0, 1], tau in (0, 1].")
    best = tau_window * theta.max()
    worse = tau_window * theta[theta < theta.max()]
    divergence = rel_entr(worse, best) + rel_entr(1.0 - worse, 1.0 - best)
    return float(((best - worse) / divergence).sum())


class _Totals:
    """Means and squared deviations of a policy's runs, run by run (Welford)."""

    def __init__(self) -> None:
        self._n = 0
        self._mean: Floats = np.zeros(0)
        self._squares: Floats = np.zeros(0)
        self._counts = np.zeros(len(COUNTS), np.int64)

    def add(self, played: RunOutcome, difference: float) -> None:
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
            conversions=dict(zip(COUNTS, self._counts.tolist(), strict=True)),
        )


@dataclass(frozen=True)
class PlayedScenario:
    """What a worker has to know of a simulation, as plain values.

    `scenario` is its name as `evaluator.simulate` takes it, `policies` the words by which a worker loads each policy,
    with the hashes of their code. Relative names are looked up in `folder`, the working folder of the command. `key` is
    the hash of all that fixes the runs.
    """

    scenario: str
    policies: tuple[str, ...]
    options: SimulateOptions
    folder: str
    codes: tuple[CodeOfPolicy, ...] = ()
    key: str = ""


@dataclass(frozen=True)
class RunsJob(Job):
    """Some runs of a simulation."""

    played: PlayedScenario
    tasks: tuple[Task, ...]
    classes = (RunOutcome,)

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"Run {self.tasks[0][0] + 1:,} to {self.tasks[-1][0] + 1:,} of {self.played.scenario}"

    @property
    def key(self) -> str:
        """Hash of all that fixes the runs."""
        return hashlib.sha256(json.dumps([self.played.key, self.tasks]).encode()).hexdigest()

    @property
    def items(self) -> tuple[Task, ...]:
        """The runs."""
        return self.tasks

    def open(self) -> ScenarioRuns:
        """Load the scenario and the policies."""
        return _opened(self.played)

    def compute(self, opened: ScenarioRuns, item: Task) -> RunOutcome:
        """Play a run."""
        return opened.play(*item)


def runs_in(problem: Problem, policies: Sequence[Any], options: SimulateOptions) -> ScenarioRuns:
    """Return the runs of policies in a problem; errors as of `evaluator.worlds.scenario_runs.prepare_runs`."""
    return prepare_runs(
        problem,
        policies,
        horizon=options.horizon or problem.horizon,
        window=options.window_rounds(problem.window),
        delays=options.delays,
        deployment=options.deployed(problem.deployment),
        seed=options.seed,
    )


def outcomes(
    stage: ScenarioRuns,
    tasks: Sequence[Task],
    options: SimulateOptions,
    *,
    kept: KeptJobs | None = None,
    executor: Executor | None = None,
    scenario: str | None = None,
    advance: Callable[[int], None] = lambda runs: None,
) -> Iterator[RunOutcome]:
    """Yield what each run leaves, in the order of the runs; `stage` holds all that they depend on but their number.

    Runs that are `kept` in a folder are looked for there. An executor's workers load the `scenario` by its name;
    without one, threads of this process play.
    """
    words: tuple[str, ...] = ()
    if executor is not None:
        if scenario is None:
            raise UsageError(
                "Workers load scenarios by their names, and a problem made here has none.",
                remedy="write it into a spec.toml with [scenario], and name that.",
            )
        words = tuple(loaded_by(policy) for policy in stage.policies)
    played = PlayedScenario(scenario or "", words, options, this_folder())
    if kept is not None or executor is not None:
        codes = codes_of(stage.policies)
        played = replace(played, codes=codes, key=runs_key(stage, codes))
    size = min(max(WORK // stage.shared.horizon, 1), _MOST)
    runs = [RunsJob(played, tuple(tasks[at : at + size])) for at in range(0, len(tasks), size)]
    found = run_jobs(
        runs, stage, threads=options.jobs, kept=kept, executor=executor, advance=lambda _, items: advance(items)
    )
    for _, left in found:
        yield from left


def runs_key(stage: ScenarioRuns, codes: Sequence[CodeOfPolicy]) -> str:
    """Return the hash of all that fixes the runs of some policies: what each is told, its world, its code, the seed."""
    worlds, parts = tuple(map(stage.world_of, range(len(stage.policies)))), tuple(stage.parts or ())
    said = [
        as_text((stage.settings, worlds, stage.truth, stage.eligible, parts)),
        [[of.spec, repr(of.parameters), code.run] for of, code in zip(stage.policies, codes, strict=True)],
        [stage.dimension, stage.seed],
        *([] if stage.explores is None else [as_text(stage.explores)]),
        *([] if stage.pushes is None else [stage.pushes.after.tolist(), stage.pushes.cut.tolist()]),
        software(),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _open(played: PlayedScenario) -> ScenarioRuns:
    in_folder(played.folder)
    policies = [as_description(words) for words in played.policies]
    refuse_other_code(policies, played.codes)
    stage = runs_in(load_problem(played.scenario), policies, played.options)
    if runs_key(stage, played.codes) != played.key:
        raise WorkerError(
            f"Worker {this_worker()} is refused: its scenario {played.scenario} is another, or a policy is.",
            remedy="files that the command names must be the same there, and so must installed packages.",
        )
    names = stage.compile()
    what = f"compiled {', '.join(dict.fromkeys(names))}" if names else "found everything compiled"
    tell(f"{what} before its first run")
    return stage


_opened = OpenedLast(_open)
