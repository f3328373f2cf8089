"""The Python twin of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.comparisons.result import Comparison, execute_comparison, find_baseline, plan_comparison
from evaluator.comparisons.study_file import read_study
from evaluator.log import Log
from evaluator.log.clusters import source_columns
from evaluator.policies.base import Policy
from evaluator.policies.registry import as_policy, resolve
from evaluator.policies.user import UserPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan, plan_replay
from evaluator.replays.result import ReplayResult
from evaluator.replays.run import execute
from evaluator.simulations.options import SimulateOptions
from evaluator.simulations.problem import Problem
from evaluator.simulations.result import Simulation

if TYPE_CHECKING:
    from evaluator.audits.result import Audit
    from evaluator.checks.run import CheckReport
    from evaluator.delays.study.result import DelayStudy


def load(dataset: str = "synthetic", **options: Any) -> Log:
    """Load a log: a bundled dataset's name, a ``spec.toml``, or a converted folder.

    Parameters
    ----------
    dataset
        See `evaluator.datasets.load`, which also lists the options.

    Returns
    -------
    Log
        Validated.

    Raises
    ------
    DataError
        The source breaks the log contract; names file, row, column, value and the repair.

    Examples
    --------
    >>> load("synthetic", limit=1000)
    Log('synthetic', displays=1000, conversions=871, actions=10, tick='round')
    """
    from evaluator import datasets

    return datasets.load(dataset, **options)


def replay(log: Log | str, policy: Any, **options: Any) -> ReplayResult:
    """Replay a policy on a log with delayed, censored feedback.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    policy
        A spec (``"otflinucb:alpha=0.1"``), a `Policy`, a class with the methods of `evaluator.policies.user`, or an
        instance of one, which is copied and never changed.
    options
        Fields of `evaluator.replays.options.ReplayOptions`: window, horizon, clock, sampler...

    Returns
    -------
    ReplayResult
        Value, regret against the best fixed action and uplift over the logger, each with an anytime-valid interval.

    Raises
    ------
    DataError, UsageError, PolicyError
        See the options.

    Examples
    --------
    >>> result = replay(load("synthetic", limit=20_000), "delayed-klucb", window="500", seed=1)
    >>> result.generated == result.delivered + result.expired + result.pending
    True
    """
    return execute(plan(log, policy, **options))


def compare(
    log: Log | str | None = None,
    policies: Sequence[Any] = (),
    *,
    windows: Sequence[str | int | None] | None = None,
    baseline: Any = None,
    study: str | Path | None = None,
    **options: Any,
) -> Comparison:
    """Replay several policies, each with several windows, in one scan of a log, and compare them at one horizon.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes; by default the study's, else the bundled synthetic one.
    policies
        Each as `replay` takes it.
    windows
        Cut-offs, each in rounds or as a duration; None for none, which is the default.
    baseline
        One of the policies: its first variant is what the others are compared with. By default the first of all.
    study
        A TOML file that says what to compare (`evaluator.comparisons.study_file`). What is given beside it wins.
    options
        Fields of `evaluator.replays.options.ReplayOptions` but for the window, shared by all; `jobs` threads.

    Returns
    -------
    Comparison
        One result a policy and window, the same as `replay` gives for it alone; differences, ranking and curves.

    Raises
    ------
    DataError, UsageError, PolicyError
        See the options.

    Examples
    --------
    >>> found = compare(load("synthetic", limit=20_000), ["ucb1", "delayed-ucb:epsilon=0.5"], windows=[50, "500"])
    >>> [(r.plan["policy"], r.plan["window_rounds"]) for r in found.results]
    [('ucb1', 50), ('ucb1', 500), ('delayed-ucb:epsilon=0.5', 50), ('delayed-ucb:epsilon=0.5', 500)]
    >>> found.ranking.conclusion.partition(". ")[0]
    'In these runs, none of 6 differences is told from 0 at 95 %, all tests at once'
    """
    reading: dict[str, Any] = {}
    if study is not None:
        asked = read_study(study)
        log = asked.dataset if log is None else log
        reading = asked.reading
        policies = policies or asked.policies
        windows = asked.windows if windows is None else windows
        baseline = asked.baseline if baseline is None else baseline
        options = {**asked.options, **options}
    chosen = ReplayOptions(**options)
    reading |= {"keep": chosen.keeps} if chosen.keeps else {}
    log = log.checked() if isinstance(log, Log) else load(log or "synthetic", **reading)
    descriptions = [as_description(policy) for policy in policies]
    plans = plan_comparison(log, descriptions, windows or (None,), chosen)
    spec = None if baseline is None else as_description(baseline).spec
    return execute_comparison(plans, baseline=find_baseline(plans, spec))


def audit(log: Log | str, policies: Any, **options: Any) -> Audit:
    """Say what replays of these policies can tell on a log like this one, by twins of it whose truth is known.

    A truth is fitted to the log; logs like it are drawn, every policy is replayed on each as `compare` would, and
    played live on the same truth.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    policies
        One as `replay` takes it, or a list of them.
    options
        Fields of `evaluator.audits.options.AuditOptions`: twins, displays, and those of a replay.

    Returns
    -------
    Audit
        Bias against the live value and how large a one would be seen, coverage of the intervals, spread, and for each
        pair of policies the smallest difference that `compare` shows on 80 % of such logs: alone, in the ranking of
        all, and as expected values.

    Raises
    ------
    DataError, UsageError, PolicyError
        As `replay`; and the log has too few displays or conversions to fit a truth to.

    Examples
    --------
    >>> found = audit(load("synthetic", limit=5_000), ["linucb", "random"], window=200, twins=20)
    >>> found.policies[0].biased, found.pairs[0].told_apart
    (False, False)
    """
    from evaluator.audits.options import AuditOptions
    from evaluator.audits.run import run_audit

    log = _as_log(log)
    several = policies if isinstance(policies, list | tuple) else [policies]
    return run_audit(log, [as_description(policy) for policy in several], AuditOptions(**options))


def simulate(scenario: str | Problem, policies: Any, **options: Any) -> Simulation:
    """Let policies play live in a scenario whose truth is known.

    Parameters
    ----------
    scenario
        Name of a bundled scenario, path of a ``spec.toml`` with a ``[scenario]``, or a
        `evaluator.simulations.BernoulliProblem` or `LinearProblem`.
    policies
        One as `replay` takes it, or a list of them.
    options
        Fields of `evaluator.simulations.options.SimulateOptions`: runs, horizon, window, delays, seed, jobs.

    Returns
    -------
    Simulation
        Mean regret with standard errors at the checkpoints, eventual and observed, beside the lower bounds.

    Raises
    ------
    DataError, UsageError, PolicyError
        See the options and `evaluator.simulations.scenarios.load_problem`.

    Examples
    --------
    >>> found = simulate("vernade2017-high", ["delayed-klucb", "random"], runs=10, horizon=2000)
    >>> informed, blind = (curve.regret[-1] for curve in found.curves)
    >>> bool(informed < blind), found.curve_table.num_rows
    (True, 400)
    """
    from evaluator.simulations.runs import simulate as play
    from evaluator.simulations.scenarios import load_problem

    problem = load_problem(scenario) if isinstance(scenario, str) else scenario
    several = policies if isinstance(policies, list | tuple) else [policies]
    return play(problem, [as_description(policy) for policy in several], SimulateOptions(**options))


def study_delays(log: Log | str, *, by: str | None = "action", **options: Any) -> DelayStudy:
    """Study how late the conversions of a log come, corrected for those it could not see yet.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    by
        ``action``, or a column of the source (of a `Log`: one that it keeps, see `load`) whose values are groups; None
        for none.
    options
        Fields of `evaluator.delays.study.options.DelayOptions`: windows, families, groups, joint...

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
    from evaluator.delays.study.options import DelayOptions
    from evaluator.delays.study.run import study_log

    log = load(log, keep=[] if by in (None, "action") else [by]) if isinstance(log, str) else log.checked()
    return study_log(log, DelayOptions(**options), by=by)


def check(log: Log | str, **options: Any) -> CheckReport:
    """Check whether a log is fit for replay, by testing on it what a replay rests on.

    Parameters
    ----------
    log
        A `Log`, or what `load` takes.
    options
        Fields of `evaluator.checks.run.CheckOptions`: propensity, false_alarms, seed, cluster_by.

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
    from evaluator.checks.run import CheckOptions, check_log

    asked = CheckOptions(**options)
    return check_log(_as_log(log, source_columns(asked.cluster_by)), asked)


def plan(log: Log | str, policy: Any, **options: Any) -> ReplayPlan:
    """Return every choice a replay would make, without replaying: the twin of ``--dry-run``."""
    chosen = ReplayOptions(**options)
    return plan_replay(_as_log(log, chosen.keeps), as_description(policy), chosen)


def _as_log(log: Log | str, keep: Sequence[str] = ()) -> Log:
    """Return a log that keeps the contract; one made by hand is validated, once; one that is read keeps some columns.

    Raises
    ------
    DataError
        It does not; names table, column, rows, values and the repair.
    """
    if isinstance(log, str):
        return load(log, **({"keep": list(keep)} if keep else {}))
    return log.checked()


def as_description(policy: Any) -> Any:
    """Return the description of a spec, a policy, a class or an instance."""
    if isinstance(policy, str):
        return resolve(policy)
    if isinstance(policy, Policy | UserPolicy):
        return policy
    if isinstance(policy, type):
        return as_policy(policy, {})
    return UserPolicy(cls=type(policy), instance=policy)
