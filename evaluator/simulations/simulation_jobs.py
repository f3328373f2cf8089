"""The runs of a simulation as jobs: played in threads or by the workers of an executor, or kept from before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from evaluator.arguments import as_description, loaded_by
from evaluator.errors import UsageError, WorkerError
from evaluator.jobs.run_jobs import Job, as_text, run_jobs
from evaluator.jobs.workers import OpenedLast, in_folder, software, tell, this_folder, this_worker
from evaluator.outputs.kept_folder import KeptJobs
from evaluator.own_code import CodeOfPolicy, codes_of, refuse_other_code
from evaluator.simulations.options import SimulateOptions
from evaluator.worlds.scenario_runs import RunOutcome, ScenarioRuns, prepare_runs
from evaluator.worlds.scenarios.problem import Problem
from evaluator.worlds.world import load_problem

# Rounds of a job: about a second of work.
WORK = 1_000_000
# Runs of a job, at most.
_MOST = 256

# Number of a run, and of its policy.
Task = tuple[int, int]


@dataclass(frozen=True)
class PlayedScenario:
    """What a worker has to know of a simulation, as plain values.

    Parameters
    ----------
    scenario
        Name of the scenario, as `evaluator.simulate` takes it.
    policies
        Words by which a worker loads each policy.
    options
        Options of the simulation.
    folder
        Working folder of the command, in which relative names are looked up.
    codes
        Hashes of each policy's code.
    key
        Hash of all that fixes its runs.
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
    """Yield what each run leaves, in the order of the runs.

    Parameters
    ----------
    stage
        Settings, world and calendars of the policies.
    tasks
        Runs to play.
    options
        Options of the simulation.
    kept
        Folder in which runs are kept as they are finished, and looked for; None for none.
    executor, scenario
        Executor whose workers play, and name by which they load the scenario; None for threads of this process.
    advance
        Function called with the number of runs that were finished since the last call.
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
    said = [
        as_text((stage.settings, tuple(map(stage.world_of, range(len(stage.policies)))), stage.truth, stage.sets)),
        [[of.spec, repr(of.parameters), code.run] for of, code in zip(stage.policies, codes, strict=True)],
        [stage.dimension, stage.seed],
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
