"""The Python twin of the command line.

A function imports what it alone needs when it is called, so that a replay does not load comparisons, checks and audits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from evaluator.arguments import PolicyLike, as_description, as_descriptions, from_nothing, refuse_unknown
from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.comparisons.options import CompareOptions
from evaluator.datasets import load as load
from evaluator.delays.study.options import DelayOptions
from evaluator.log import Log
from evaluator.log.column import LIKE_USERS, source_columns
from evaluator.options.declaration import shows, under_own_names
from evaluator.options.keywords import (
    AuditKeywords,
    CheckKeywords,
    CompareKeywords,
    DelayKeywords,
    ReplayKeywords,
    SimulateKeywords,
)
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from evaluator.simulations.options import SimulateOptions
from evaluator.threads import one_blas_thread

if TYPE_CHECKING:
    from evaluator.audits.result import Audit
    from evaluator.checks.run import CheckReport
    from evaluator.comparisons.log_places import LogPlace
    from evaluator.comparisons.result import Comparison
    from evaluator.delays.study.result import DelayStudy
    from evaluator.simulations.result import Simulation
    from evaluator.worlds.scenarios.problem import Problem
    from evaluator.worlds.world import World


# A log, or what `load` takes.
LogLike: TypeAlias = Log | str | Path


@shows(ReplayOptions)
@one_blas_thread()
def replay(
    log: LogLike, policy: PolicyLike, *, executor: Executor | None = None, **options: Unpack[ReplayKeywords]
) -> ReplayResult:
    """Replay a policy on a log with delayed, censored feedback.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    policy
        A spec (``"otflinucb:alpha=0.1"``), a `Policy`, a class with the methods of `evaluator.policies.user`, or an
        instance of one, which is copied and never changed. A `LearnedPolicy` goes on from what it learned: a copy of
        it, so that it stays as it is.
    executor
        Executor whose workers replay the resampled logs of a bootstrap, the same to the bit, as `compare` takes it;
        None for threads of this process.
    **options
        See below.

    Returns
    -------
    ReplayResult
        Value, regret against the best fixed action and uplift over the logger, each with an anytime-valid interval.

    Raises
    ------
    DataError, UsageError, PolicyError
        A log that cannot be read, options that do not fit it, or a policy that cannot be made; see the options.

    Examples
    --------
    >>> result = replay(load("synthetic", limit=20_000), "delayed-klucb", window="500", seed=1)
    >>> result.generated == result.delivered + result.expired + result.pending
    True
    """
    refuse_unknown("replay", options, ReplayOptions)
    if executor is None:
        return execute(plan(log, policy, **options))
    from evaluator.comparisons.variant_runs import execute_in_jobs, refuse_nothing_to_spread

    chosen = ReplayOptions(**under_own_names(ReplayOptions, options))
    refuse_nothing_to_spread(chosen)
    with _opened(log, chosen.keeps, executor) as (logged, place):
        asked = plan_replay(logged, as_description(policy), chosen)
        return execute_in_jobs(asked, logged, executor=executor, place=place)


@shows(CompareOptions, ReplayOptions, leave_out=["baseline", "window", "learn_every"])
@one_blas_thread()
def compare(
    log: LogLike | None = None,
    policies: PolicyLike | Sequence[PolicyLike] = (),
    *,
    baseline: PolicyLike | None = None,
    executor: Executor | None = None,
    **options: Unpack[CompareKeywords],
) -> Comparison:
    """Replay several policies, each with several windows, in one scan of a log, and compare them at one horizon.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes. None takes the study's log, or without a study the bundled synthetic one.
    policies
        Policies, each as `replay` takes it.
    baseline
        The policy whose first variant the others are compared with; None takes the logging policy, in a line of its own
        where it is not among the policies.
    executor
        Executor whose workers compute, such as ``distributed.Client(address).get_executor()``, the same to the bit;
        None for threads of this process. Workers open the log themselves: one that is no converted folder is written
        to a temporary one. Results then hold no learned policies.
    **options
        See below.

    Returns
    -------
    Comparison
        One result a policy and window, the same as `replay` gives for it alone; differences, ranking and curves.

    Raises
    ------
    DataError, UsageError, PolicyError
        As of `replay`, or a study file that cannot be read.
    WorkerError
        Workers of the executor are gone, or refused: they have another version, or read another log.

    Examples
    --------
    >>> found = compare(load("synthetic", limit=20_000), ["ucb1", "delayed-ucb:epsilon=0.5"], windows=[50, "500"])
    >>> [(r.plan["policy"], r.plan["window_rounds"]) for r in found.results]
    [('ucb1', 50), ('ucb1', 500), ('delayed-ucb:epsilon=0.5', 50), ('delayed-ucb:epsilon=0.5', 500), ('logging', 50)]
    >>> found.ranking.conclusion
    'Of the expected values, none of 10 differences is told from 0 at 95 %, all tests at once (bootstrap).'
    """
    from evaluator.comparisons.conditions import pairs_to_expect
    from evaluator.comparisons.expected import may_decide
    from evaluator.comparisons.run import execute_comparison, find_baseline, plan_comparison, with_logging
    from evaluator.comparisons.study_file import read_study
    from evaluator.comparisons.variant_runs import VariantRuns, study_on

    refuse_unknown("compare", options, CompareOptions, ReplayOptions)
    given = under_own_names(CompareOptions, under_own_names(ReplayOptions, options))
    names = ("windows", "schedules", "learn_from", "study", "ship_if", "look", "bootstrap")
    own = CompareOptions(**{name: given.pop(name, None) for name in names})
    cut_offs, schedules, rule, look = own.asked_windows, own.schedules, own.rule, own.asked_look
    descriptions = as_descriptions(policies)
    reading: dict[str, Any] = {}
    said: dict[str, Any] = {}
    if own.study is not None:
        asked = read_study(own.study)
        log = asked.dataset if log is None else log
        reading = asked.reading
        descriptions = descriptions or as_descriptions(asked.policies)
        cut_offs = asked.windows if cut_offs is None else cut_offs
        schedules = asked.schedules if schedules is None else schedules
        baseline = asked.baseline if baseline is None else baseline
        rule = asked.rule if rule is None else rule
        look = asked.look if look is None else look
        said = asked.options
    draws = said.pop("bootstrap", None) if own.bootstrap is None else own.bootstrap
    chosen = ReplayOptions(**{**said, **given, **own.replaying, "bootstrap": draws or 0})
    keep = [*chosen.keeps, LIKE_USERS] if may_decide(descriptions, draws) else chosen.keeps
    spec = None if baseline is None else as_description(baseline).spec
    with _opened("synthetic" if log is None else log, keep, executor, reading) as (logged, place):
        descriptions = with_logging(logged, descriptions, spec)
        plans = plan_comparison(logged, descriptions, cut_offs or (None,), chosen, schedules=schedules)
        first, workers = find_baseline(plans, spec), None
        if executor is not None and place is not None:
            workers = study_on(executor, place, descriptions, cut_offs or (None,), chosen, schedules=schedules)
        pairs = pairs_to_expect(plans, first) if draws is None else ()
        runs = VariantRuns(plans, workers=workers, pairs=pairs)
        return execute_comparison(plans, baseline=first, rule=rule, look=look, log=logged, runs=runs)


@shows(AuditOptions)
@one_blas_thread()
def audit(
    log: LogLike,
    policies: PolicyLike | Sequence[PolicyLike],
    *,
    executor: Executor | None = None,
    **options: Unpack[AuditKeywords],
) -> Audit:
    """Say what replays of these policies can tell on a log like this one, by twins of it whose truth is known.

    A truth is fitted to the log; logs like it are drawn, every policy is replayed on each as `compare` would, and
    played live on the same truth.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    policies
        One policy as `replay` takes it, or a list of them.
    executor
        Executor whose workers draw and replay the twins and play live, the same to the bit, as `compare` takes it; None
        for threads of this process.
    **options
        See below.

    Returns
    -------
    Audit
        Bias against the live value and how large a one would be seen, coverage of the intervals, spread, and for each
        pair of policies the smallest difference that `compare` shows on 80 % of such logs: alone, in the ranking of
        all, and as expected values.

    Raises
    ------
    DataError, UsageError, PolicyError
        As of `replay`; or the log has too few displays or conversions to fit a truth to.

    Examples
    --------
    >>> found = audit(load("synthetic", limit=5_000), ["linucb", "random"], window=200, twins=20)
    >>> found.policies[0].biased, found.pairs[0].told_apart
    (False, False)
    """
    from evaluator.audits.run import run_audit

    refuse_unknown("audit", options, AuditOptions)
    with _opened(log, [LIKE_USERS], executor) as (logged, place):
        found, asked = from_nothing(policies, "audit"), AuditOptions(**under_own_names(AuditOptions, options))
        return run_audit(logged, found, asked, executor=executor, place=place)


@shows(SimulateOptions)
@one_blas_thread()
def simulate(
    scenario: str | Path | Problem | World,
    policies: PolicyLike | Sequence[PolicyLike],
    *,
    executor: Executor | None = None,
    **options: Unpack[SimulateKeywords],
) -> Simulation:
    """Let policies play live in a scenario whose truth is known.

    Parameters
    ----------
    scenario
        Name of a bundled scenario, path of a ``spec.toml`` with a ``[scenario]``, a `World` of one, or a
        `evaluator.simulations.BernoulliProblem` or `LinearProblem`.
    policies
        One policy as `replay` takes it, or a list of them.
    executor
        Executor whose workers play the runs of a scenario that has a name, the same to the bit, as `compare` takes it;
        None for threads of this process.
    **options
        See below.

    Returns
    -------
    Simulation
        Mean regret with standard errors at the checkpoints, eventual and observed, beside the lower bounds.

    Raises
    ------
    DataError, UsageError, PolicyError
        Options that do not fit the scenario, or one that cannot be read (`World.from_toml`), or that counts no rounds.

    Examples
    --------
    >>> found = simulate("vernade2017-high", ["delayed-klucb", "random"], runs=10, horizon=2000)
    >>> informed, blind = (curve.regret[-1] for curve in found.curves)
    >>> bool(informed < blind), found.curve_table.num_rows
    (True, 400)
    """
    from evaluator.simulations.runs import simulate as play
    from evaluator.worlds.world import World, in_rounds

    refuse_unknown("simulate", options, SimulateOptions)
    world = World.from_toml(str(scenario)) if isinstance(scenario, str | Path) else scenario
    problem = in_rounds(world) if isinstance(world, World) else world
    named = str(scenario) if isinstance(scenario, str | Path) else None
    asked = SimulateOptions(**options)
    return play(problem, from_nothing(policies, "simulate"), asked, executor=executor, scenario=named)


@shows(DelayOptions)
@one_blas_thread()
def study_delays(
    log: LogLike, *, by: str | None = "action", executor: Executor | None = None, **options: Unpack[DelayKeywords]
) -> DelayStudy:
    """Study how late the conversions of a log come, corrected for those it could not see yet.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    by
        ``action``, or a column of the source (of a `Log`: one that it keeps, see `load`) whose values are groups; None
        for no groups.
    executor
        Executor whose workers fit laws, draw bootstraps and permutations, and look for the tail, the same to the bit,
        as `compare` takes it; None for threads of this process.
    **options
        See below.

    Returns
    -------
    DelayStudy
        Nonparametric CDF with bands, laws, windows, groups, tail index, drift and, with ``joint=True``, the conversion
        rate corrected on context.

    Raises
    ------
    DataError, ParameterError, UnknownNameError
        The log has no conversions; the options do not fit.

    Examples
    --------
    >>> study = study_delays(load("synthetic", limit=2_000), windows=[100, 500], families=["geometric"])
    >>> [round(window.share.tau, 2) for window in study.windows]
    [0.64, 0.99]
    """
    from evaluator.delays.study.delay_jobs import DelayWorkers
    from evaluator.delays.study.run import study_log

    refuse_unknown("study_delays", options, DelayOptions)
    keep = [] if by == "action" else source_columns(by)
    with _opened(log, keep, executor) as (logged, place):
        asked = DelayOptions(**under_own_names(DelayOptions, options))
        return study_log(logged, asked, by=by, workers=DelayWorkers(executor=executor, place=place))


@shows(CheckOptions)
@one_blas_thread()
def check(log: LogLike, **options: Unpack[CheckKeywords]) -> CheckReport:
    """Check whether a log is fit for replay, by testing on it what a replay rests on.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    **options
        See below.

    Returns
    -------
    CheckReport
        One finding a check: verdict, numbers, what they mean for a replay, what to do. `fit` is False if any failed.

    Raises
    ------
    DataError, ParameterError
        The log cannot be read; the options do not fit it.

    Examples
    --------
    >>> report = check(load("synthetic", limit=20_000))
    >>> report.fit, report["uniformity"].verdict, report["overlap"].numbers["never_shown"]
    (True, 'pass', 0)
    """
    from evaluator.checks.run import check_log

    refuse_unknown("check", options, CheckOptions)
    asked = CheckOptions(**options)
    return check_log(_as_log(log, [*source_columns(asked.cluster_by), LIKE_USERS]), asked)


@shows(ReplayOptions)
@one_blas_thread()
def plan(log: LogLike, policy: PolicyLike, **options: Unpack[ReplayKeywords]) -> ReplayPlan:
    """Return every choice a replay would make, without replaying: the twin of ``evaluate replay --dry-run``.

    Parameters
    ----------
    log, policy
        The log and the policy, as `replay` takes them.
    **options
        See below.

    Returns
    -------
    ReplayPlan
        Sampler, propensities, clock, rounds, window, and what they rest on; `to_dict` makes it JSON.

    Raises
    ------
    DataError, UsageError, PolicyError
        As of `replay`.

    Examples
    --------
    >>> plan(load("synthetic", limit=2_000), "ucb1", window=100).to_dict()["sampler"]
    'keep'
    """
    refuse_unknown("plan", options, ReplayOptions)
    chosen = ReplayOptions(**under_own_names(ReplayOptions, options))
    return plan_replay(_as_log(log, chosen.keeps), as_description(policy), chosen)


def _as_log(log: LogLike, keep: Sequence[str], reading: Mapping[str, Any] = MappingProxyType({})) -> Log:
    """Return a log that keeps the contract; one made by hand is validated, once; one that is read keeps some columns.

    DataError where it breaks the contract, UsageError for a frame, which says how that becomes a log.
    """
    return log.checked() if isinstance(log, Log) else load(log, **{**reading, "keep": list(keep)})


@contextmanager
def _opened(
    log: LogLike, keep: Sequence[str], executor: Executor | None, reading: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[tuple[Log, LogPlace | None]]:
    """Give a log as `_as_log`, and the place at which the workers of an executor find it; None without an executor."""
    own_log = _as_log(log, keep, reading)
    if executor is None:
        yield own_log, None
        return
    from evaluator.comparisons.log_places import at_a_place

    named = None if isinstance(log, Log) else str(log)
    with at_a_place(own_log, named, {**reading, **({"keep": list(keep)} if keep else {})}) as (logged, place):
        yield logged, place
