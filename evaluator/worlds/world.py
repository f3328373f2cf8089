"""A world: what displays and events are drawn from. Its truth is known: it draws logs, and policies live in it.

A world has traffic, contexts, eligible sets, a logger, and event laws by kind. Of a scenario that counts rounds a
`Problem` states them (``arrivals``, ``dimension``, ``flights``, ``logger``, ``means`` and ``laws``), and its live runs
are those of `evaluator.worlds.scenario_runs`. Every world in time is a `LogTruth` (``traffic``, ``pool``, ``sets``,
``logger``, ``rates``, ``laws`` and ``money``), and live runs are those of `evaluator.worlds.live_policy`: one fitted to
a log is made so, scenarios in time and promotions become one (`evaluator.worlds.true_rewards.known_truth`). The shop
and the Criteo twin are generated as files; `evaluator.worlds.shop` and `evaluator.worlds.criteo` state theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evaluator.arguments import PolicyLike, as_description
from evaluator.datasets import load
from evaluator.errors import ParameterError, UnknownNameError, UsageError
from evaluator.log import Log
from evaluator.options.shared import PropensityMode
from evaluator.policies.static import FixedAction, LoggingPolicy, RandomPolicy
from evaluator.reading.options import MakeOptions
from evaluator.reading.resolve import dataset_spec, spec_path
from evaluator.reading.spec import FileSpec, ScenarioSpec
from evaluator.threads import one_blas_thread
from evaluator.units import is_whole, rounds_of_window
from evaluator.worlds.scenarios.problem import BernoulliProblem, LinearProblem, Problem, problem_of
from evaluator.worlds.scenarios.promotions import Promotions
from evaluator.worlds.scenarios.scenario import PromotionsScenario

if TYPE_CHECKING:
    from evaluator.worlds.criteo.parameters import TwinParameters
    from evaluator.worlds.true_rewards import TrueReward, TrueRewards
    from evaluator.worlds.truth import LogTruth

Floats = npt.NDArray[np.float64]
# Over which eligible sets are averaged, each in memory.
_MOST_ROUNDS = 10_000_000


@dataclass(frozen=True, eq=False)
class LivePlay:
    """Live runs of one policy in a world.

    Parameters
    ----------
    policy, rounds
        Spec of the policy, and number of rounds of each run.
    rewards
        Mean expected reward per round of each run, shape (runs,), float64: of what was shown, whenever it comes.
    regret
        Regret after all rounds of each run, shape (runs,), float64: what the best choice was expected to earn more. In
        a scenario of rounds that is the best eligible action of each, else the best fixed action, or the best order of
        actions where not all are always eligible.
    """

    policy: str
    rounds: int
    rewards: Floats
    regret: Floats

    @property
    def reward(self) -> float:
        """Mean expected reward per round, over all runs."""
        return float(self.rewards.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of `reward`; nan of a single run."""
        return float(self.rewards.std(ddof=1) / len(self.rewards) ** 0.5) if len(self.rewards) > 1 else float("nan")

    def __repr__(self) -> str:
        return (
            f"LivePlay({self.policy!r}, rounds={self.rounds:,}, runs={len(self.rewards)}, reward={self.reward:.4g}, "
            f"regret={self.regret.mean():.4g})"
        )


@dataclass(frozen=True)
class GeneratedFiles:
    """A dataset that `evaluate datasets make` writes, with its truth: the shop, or the twin of a real file."""

    name: str
    dataset: str | Path  # what `evaluator.datasets.make` takes
    twin: TwinParameters | None = None  # None for the shop

    def draw(self, *, displays: int | None, seed: int | None) -> Log:
        """Return the log of its files, which are written and read; a number that is None is that of `make`."""
        from evaluator.datasets import make

        if self.twin is None and (displays is not None or seed is not None):
            raise UsageError("The shop is always the same.", remedy="leave `displays` and `seed` out.")
        asked = MakeOptions().to_dict()
        rows, number = asked["rows"] if displays is None else displays, asked["seed"] if seed is None else seed
        with TemporaryDirectory(prefix="evaluate-world-") as folder:
            made = make(self.dataset, Path(folder) / self.name, rows=rows, seed=number).path
            return load(made / "spec.toml") if self.twin is None else load(self.dataset, path=made)


class World:
    """Traffic, contexts, eligible actions, a logging policy, and laws of what displays bring and when, all known.

    `World.from_toml` makes one from a scenario, `World.fit` one that looks like a log. Logs drawn from it are read,
    replayed, compared and audited like any other; `play` and `truth` say what is true of the same policies.

    Parameters
    ----------
    model
        What it is drawn from: a `evaluator.simulations.BernoulliProblem` or `LinearProblem`, or what `from_toml` and
        `fit` make. The shop and the Criteo twin, which are generated as files, have logs and a truth; no policy lives
        in them.

    Examples
    --------
    >>> world = World.from_toml("vernade2017-low")
    >>> world.log(1_000, seed=1)
    Log('vernade2017-low', displays=1000, conversions=67, actions=3, tick='round')
    >>> world.truth("fixed:action=0").value
    0.1
    """

    def __init__(self, model: Problem | Promotions | GeneratedFiles | LogTruth) -> None:
        if not isinstance(model, BernoulliProblem | LinearProblem | Promotions | GeneratedFiles):
            from evaluator.worlds.truth import LogTruth

            if not isinstance(model, LogTruth):
                raise ParameterError(
                    f"A {type(model).__name__} is no model of a world.",
                    remedy="`World.from_toml(scenario)`, `World.fit(log)`, or a problem of `evaluator.simulations`.",
                )
        self.model = model

    @classmethod
    def from_toml(cls, scenario: str | Path) -> World:
        """Return the world of a scenario.

        Parameters
        ----------
        scenario
            Name of a bundled scenario, or path of a ``spec.toml`` with a ``[scenario]``; or what `make` of
            `evaluator.datasets` generates: ``shop``, ``criteo_twin``, or a ``spec.toml`` with a ``[twin]``.

        Raises
        ------
        UnknownNameError
            There is no such scenario.
        SpecError, SourceError
            The spec, or a file of delays it names, is wrong.
        UsageError
            The dataset is a log in files, whose truth is not known.
        """
        if not isinstance(scenario, str | Path):
            raise UsageError(
                f"A {type(scenario).__name__} is no scenario.",
                remedy="name a bundled one or the path of a spec.toml; `World` takes a problem, `World.fit` a log.",
            )
        try:
            path, spec = spec_path(scenario), dataset_spec(scenario)
        except UnknownNameError:
            if scenario == "shop":
                return cls(GeneratedFiles("shop", "shop"))
            raise
        if scenario == "shop" and not isinstance(spec, ScenarioSpec):  # a folder that `make` wrote, maybe
            return cls(GeneratedFiles("shop", "shop"))
        if isinstance(spec, FileSpec) and spec.twin is not None:
            return cls(GeneratedFiles(spec.name, scenario, spec.twin))
        if not isinstance(spec, ScenarioSpec) or not isinstance(path, Path):
            raise UsageError(
                f"{str(scenario)!r} is a log, not a scenario: its truth is not known.",
                remedy="replay it, or name a dataset whose kind is `synthetic` in `evaluate datasets list`.",
            )
        if isinstance(spec.scenario, PromotionsScenario):
            return cls(Promotions(spec.name, spec.scenario, path.parent, spec.deployment.asked))
        return cls(replace(problem_of(spec.scenario, spec.name, path.parent), deployment=spec.deployment.asked))

    @classmethod
    @one_blas_thread()
    def fit(
        cls,
        log: Log | str | Path,
        *,
        displays: int | None = None,
        window: str | int | None = None,
        propensity: PropensityMode | None = None,
    ) -> World:
        """Return a world that looks like a log: the one that an audit of it plays in.

        Rates by context and action, delays, hours of the day, eligible actions, refunds, costs and the logging policy
        are fitted; displays are independent, and nothing drifts but what the log's calendar moves.

        Parameters
        ----------
        log
            A `Log`, or what `load` takes.
        displays
            Most displays of a log drawn from it; None takes as many as the log has.
        window, propensity
            Options of `replay` that say how the log is read.

        Raises
        ------
        DataError, PropensityError
            The log has too few displays or conversions, or is no even sample of the traffic; or as of `replay`.
        """
        from evaluator.replays.options import ReplayOptions
        from evaluator.worlds.truth import fit_log

        if displays is not None and not is_whole(displays, 1):
            raise ParameterError(f"displays={displays}.", remedy="give a number of displays, at least 1.")
        read = log if isinstance(log, Log) else load(log)
        return cls(
            fit_log(read, RandomPolicy(), ReplayOptions(window=window, propensity=propensity), displays=displays)
        )

    @property
    def name(self) -> str:
        """Name of the world, which its logs have."""
        return str(self.model.name)

    @one_blas_thread()
    def log(self, displays: int | None = None, seed: int | None = None) -> Log:
        """Return a log drawn from the world.

        Parameters
        ----------
        displays, seed
            Number of displays and seed; None takes the scenario's, and of a world fitted to a log as many as that had,
            or was fitted for, and 0. A fitted world draws the first twin that an audit with this seed draws; the shop
            has one log, and takes neither.

        Raises
        ------
        ParameterError
            A number is out of range, or a log does not fit in memory.
        """
        if isinstance(self.model, BernoulliProblem | LinearProblem | Promotions | GeneratedFiles):
            return self.model.draw(displays=displays, seed=seed)
        from evaluator.worlds.twin_log import draw_first_twin

        return draw_first_twin(self.model, displays=displays, seed=seed)

    @one_blas_thread()
    def play(
        self,
        policy: PolicyLike,
        rounds: int | None = None,
        seed: int = 0,
        *,
        runs: int = 1,
        window: str | int | None = None,
        delays: str | None = None,
        deployment: str | None = None,
        learn_every: str | int | None = None,
        learn_lag: str | int | None = None,
        explore_first: str | int | None = None,
    ) -> LivePlay:
        """Let one policy live in the world: it sees, round by round, only what had come by then.

        Parameters
        ----------
        policy
            One policy, as `replay` takes it.
        rounds
            Number of rounds of a run; None takes the scenario's, and in time as many as the log has displays, over the
            whole of which fewer rounds are spread.
        seed, runs
            Seed, and number of independent runs. In a scenario of rounds they are those of `simulate`, to the bit; in
            time, rounds come at the times of its own log, as in an audit.
        window
            Cut-off, as `simulate` takes it in a scenario of rounds, and `replay` in time or in a world fitted to a log;
            None takes the scenario's, or cuts nothing off.
        delays
            Delay CDF that a policy is told that needs one, as `simulate` and `replay` take it; None for the known one,
            or the log's.
        deployment, learn_every, learn_lag, explore_first
            Schedule by which what happened reaches the policy, and how the deployment explores before it chooses, as
            `replay` takes them; in rounds alone where the world counts them. None of them: as the scenario, or the log
            that the world was fitted to, says of its deployment. The policy learns from rewards, and no
            unit keeps its action.

        Raises
        ------
        ParameterError, PolicyError, UsageError
            The policy cannot be played, or options do not fit it; or no policy lives in this world.
        """
        if isinstance(self.model, GeneratedFiles):
            raise UsageError(
                f"{self.name!r} is generated as files: it has logs and a truth, and no policy lives in it.",
                remedy="replay its log, or let policies live in a world that looks like it: `World.fit(world.log())`.",
            )
        described = as_description(policy)
        if not is_whole(runs, 1) or not is_whole(seed, 0) or not (rounds is None or is_whole(rounds, 1)):
            raise ParameterError(
                f"rounds={rounds}, seed={seed}, runs={runs}.", remedy="rounds and runs are 1 or more, seed 0 or more."
            )
        from evaluator.options.deployment import NOBODY, OBJECTIVE, deployment_of
        from evaluator.replays.options import ReplayOptions

        asked = ReplayOptions(
            deployment=deployment, learn_every=learn_every, learn_lag=learn_lag, explore_first=explore_first,
            learn_from=OBJECTIVE, keep_for=NOBODY,
        )  # fmt: skip
        if not self._counts_rounds:
            from evaluator.worlds.live_policy import play_in

            truth = self._truth
            horizon = rounds or truth.displays
            rewards, best = play_in(
                truth, described, horizon, seed, runs=runs, window=window, delays=delays or "log",
                deployment=asked,
            )  # fmt: skip
            return LivePlay(described.spec, horizon, rewards, (best - rewards) * horizon)
        from evaluator.worlds.scenario_runs import prepare_runs

        problem = in_rounds(self)
        lived = prepare_runs(
            problem,
            [described],
            horizon=rounds or problem.horizon,
            window=rounds_of_window(window, problem.window),
            delays=delays or "known",
            deployment=deployment_of(vars(asked), problem.deployment, by="scenario"),
            seed=seed,
        )
        lived.compile()
        found = [lived.play(run, 0) for run in range(runs)]
        horizon = lived.shared.horizon
        return LivePlay(
            described.spec,
            horizon,
            np.array([one.earned for one in found]) / horizon,
            np.array([one.regret[-1] for one in found]),
        )

    def truth(self, policy: PolicyLike, rounds: int | None = None) -> TrueReward:
        """Return what a policy that does not learn is expected to earn a round, without playing it.

        Parameters
        ----------
        policy
            ``random``, ``fixed:action=...`` or ``logging``, the policy that the world's logs are written by.
        rounds
            Number of rounds, over which flights of a scenario of rounds are averaged; None takes the scenario's. In
            time, and in a world fitted to a log, the truth is that of all of its time, as `play` lives it; `log` draws
            the first displays.

        Returns
        -------
        TrueReward
            Its expected reward per round, by action and context where there are some.

        Raises
        ------
        ParameterError
            The policy learns: what it earns depends on its luck, `play` it. Or `rounds` is out of range, or given to a
            world whose displays come in time.
        """
        described = as_description(policy)
        if rounds is not None and not (is_whole(rounds, 1) and rounds <= _MOST_ROUNDS):
            raise ParameterError(f"rounds={rounds}.", remedy=f"rounds is 1 to {_MOST_ROUNDS:,}.")
        if rounds is not None and not self._counts_rounds:
            raise ParameterError(
                f"rounds={rounds}, but displays of {self.name!r} come in time.",
                remedy="leave it out: the truth is that of all of its time.",
            )
        if not isinstance(described, FixedAction | LoggingPolicy | RandomPolicy):
            raise ParameterError(
                f"{described.spec} learns, or reads a log: what it earns is not known without playing.",
                remedy="`play` it; random, fixed and logging have a truth.",
            )
        from evaluator.worlds.true_rewards import of_problem

        if self._counts_rounds:
            problem = in_rounds(self)
            return of_problem(problem, rounds or problem.horizon).of(described)
        return self._rewards.of(described)

    @property
    def _counts_rounds(self) -> bool:
        return isinstance(self.model, BernoulliProblem | LinearProblem) and self.model.arrivals is None

    @cached_property
    def _truth(self) -> LogTruth:
        """What is drawn from in time: fitted to a log, or that of the scenario."""
        assert not isinstance(self.model, GeneratedFiles)
        if isinstance(self.model, BernoulliProblem | LinearProblem | Promotions):
            from evaluator.worlds.true_rewards import known_truth

            return known_truth(self.model)
        return self.model

    @cached_property
    def _rewards(self) -> TrueRewards:
        from evaluator.worlds.true_rewards import of_criteo_twin, of_shop, of_truth

        if isinstance(self.model, GeneratedFiles):
            return of_shop() if self.model.twin is None else of_criteo_twin(self.model.twin, MakeOptions().rows)
        return of_truth(self._truth)

    def __repr__(self) -> str:
        return f"World({self.name!r})"


def in_rounds(world: World) -> Problem:
    """Return the problem of a scenario that counts rounds; UsageError for every other world."""
    model = world.model
    if isinstance(model, GeneratedFiles):
        raise UsageError(
            f"{world.name!r} is generated as files: no policy lives in it.",
            remedy="replay its log, or name a dataset whose kind is `synthetic` in `evaluate datasets list`.",
        )
    if not isinstance(model, BernoulliProblem | LinearProblem) or model.arrivals is not None:
        scenario = isinstance(model, BernoulliProblem | LinearProblem | Promotions)
        what = "has arrivals in time" if scenario else "is fitted to a log"
        raise UsageError(
            f"{world.name!r} {what}, and a simulation counts rounds.",
            remedy="replay a log of it, or let policies live in it (`World.play`); or give delays in rounds, and leave "
            "[scenario.arrivals] out.",
        )
    return model


def load_problem(scenario: str | Path) -> Problem:
    """Return the problem of a scenario that counts rounds; parameters and errors as of `World.from_toml`.

    Examples
    --------
    >>> load_problem("vernade2017-low").means
    (0.1, 0.05, 0.03)
    """
    return in_rounds(World.from_toml(scenario))
