"""All checks of a log: what `evaluate check` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluator.checks.action_rates import action_rates
from evaluator.checks.coordinates import cut_contexts
from evaluator.checks.copies import duplicated_displays, shared_conversions
from evaluator.checks.dead_vectors import vectors_without_conversions
from evaluator.checks.delay_groups import delays_of_actions, delays_of_days
from evaluator.checks.dependence import dependence
from evaluator.checks.drift import delays_drift, rate_drift, share_drift
from evaluator.checks.finding import Finding, Verdict
from evaluator.checks.follow_up import asked_of_timeline, follow_up
from evaluator.checks.immature import immature_displays
from evaluator.checks.last_day import last_day
from evaluator.checks.logger_replay import replay_of_logger
from evaluator.checks.near_copies import near_copies
from evaluator.checks.order_within_ties import order_within_ties
from evaluator.checks.outages import outages
from evaluator.checks.overlap import overlap
from evaluator.checks.propensities import calibration, independence, uniformity
from evaluator.checks.reward_bounds import rewards
from evaluator.checks.rhythm import hours_and_weekdays
from evaluator.checks.steadiness import traffic
from evaluator.checks.tables import CheckInput, Tables, count
from evaluator.checks.timeline import read_timeline
from evaluator.checks.young_delays import young_delays
from evaluator.errors import ParameterError, UnknownNameError, nearest
from evaluator.in_notebooks import ShownInNotebooks
from evaluator.json_values import json_values
from evaluator.log import Log
from evaluator.log.clusters import read_clusters
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.propensity import MODES, PropensityMode, resolve_propensities
from evaluator.replays.rounds.survey import survey
from evaluator.units import refuse_not_whole

SCHEMA = "evaluate.check/1"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Options of a check.

    Parameters
    ----------
    propensity
        column, uniform, estimate, estimate:context; None for the log's own, or estimate where it has none.
    false_alarms
        Probability that a clean log gets any warning or failure that rests on a test, split evenly over those.
    seed
        Of the draws of the logging policy and of permutations.
    cluster_by
        What displays may hang together by: a column that the log keeps, such as the user, or ``every:1d``.
    """

    propensity: PropensityMode | None = None
    false_alarms: float = 0.04
    seed: int = 0
    cluster_by: str | None = None

    def __post_init__(self) -> None:
        """Check every option's range.

        Raises
        ------
        ParameterError
            Naming the option, the value and what it takes.
        """
        if self.propensity is not None and self.propensity not in MODES:
            raise ParameterError(
                f"--propensity {self.propensity!r} is not a choice.", hint=nearest(str(self.propensity), MODES)
            )
        if not 1e-4 <= self.false_alarms < 1.0:
            raise ParameterError(
                f"--false-alarms {self.false_alarms:g} is out of range.",
                hint="take a probability from 0.0001 on: 0.04.",
            )
        refuse_not_whole(self, seed=0)


# In the order of the report. Each takes the tables, its share of the false alarms, and the seed.
CHECKS: dict[str, Callable[[Tables, float, int], Finding]] = {
    "replay of the logger": replay_of_logger,
    "uniformity": lambda t, level, seed: uniformity(t, level),
    "calibration": lambda t, level, seed: calibration(t, level),
    "overlap": lambda t, level, seed: overlap(t),
    "independence": lambda t, level, seed: independence(t, level),
    "drift of action shares": lambda t, level, seed: share_drift(t, level),
    "hours and weekdays": lambda t, level, seed: hours_and_weekdays(t, level),
    "drift of conversion rates": lambda t, level, seed: rate_drift(t, level),
    "rates by action": action_rates,
    "drift of delays": delays_drift,
    "delays of each day": lambda t, level, seed: delays_of_days(t, level),
    "delays of each action": lambda t, level, seed: delays_of_actions(t, level),
    "order within ties": lambda t, level, seed: order_within_ties(t, level),
    "duplicated displays": lambda t, level, seed: duplicated_displays(t, level),
    "near copies": lambda t, level, seed: near_copies(t, level),
    "vectors without conversions": lambda t, level, seed: vectors_without_conversions(t, level),
    "shared conversions": lambda t, level, seed: shared_conversions(t, level),
    "immature displays": lambda t, level, seed: immature_displays(t),
    "last day": lambda t, level, seed: last_day(t, level),
    "delays of young displays": lambda t, level, seed: young_delays(t, level),
    "gaps in conversions": lambda t, level, seed: outages(t),
    "traffic": lambda t, level, seed: traffic(t.logged.timeline, t.logged.survey),
    "rewards": lambda t, level, seed: rewards(t),
}
# These compare numbers with stated thresholds. All other verdicts rest on a test, and share the false alarms evenly; of
# uniformity and calibration at most one applies. Where clusters are named, the dependence of displays is one more.
TESTED_CHECKS = CHECKS.keys() - {"overlap", "gaps in conversions", "traffic", "rewards"}
TESTED = len(TESTED_CHECKS) - 1


@dataclass(frozen=True, eq=False)
class CheckReport(ShownInNotebooks):
    """Whether a log is fit for replay.

    Parameters
    ----------
    dataset, displays, conversions, actions
        The log.
    propensity
        Kind of the propensities as they were read, and what an estimate that uses them rests on.
    assumption
        In words.
    options
        As asked.
    findings
        One a check, in the order of `CHECKS`, then that of the dependence of displays.
    """

    dataset: str
    displays: int
    conversions: int
    actions: int
    propensity: str
    assumption: str
    options: CheckOptions
    findings: tuple[Finding, ...]

    @property
    def fit(self) -> bool:
        """Whether no check failed."""
        return not self.having("fail")

    def having(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Return the findings with a verdict."""
        return tuple(f for f in self.findings if f.verdict == verdict)

    @property
    def tested(self) -> tuple[Finding, ...]:
        """Return the findings that rest on a test of this log."""
        return tuple(f for f in self.findings if f.verdict != "not applicable" and f.name in TESTED_CHECKS)

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of a check.

        Raises
        ------
        UnknownNameError
            No check has this name.
        """
        by_name = {f.name: f for f in self.findings}
        if name not in by_name:
            raise UnknownNameError(f"No check is called {name!r}.", hint=nearest(name, by_name))
        return by_name[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values: numbers that are not finite become None."""
        return json_values({
            "schema": SCHEMA, "dataset": self.dataset, "displays": self.displays, "conversions": self.conversions,
            "actions": self.actions, "propensity": self.propensity, "assumption": self.assumption, "fit": self.fit,
            "checks": [asdict(f) for f in self.findings], "options": asdict(self.options),
        })  # fmt: skip

    def __repr__(self) -> str:
        bad = ", ".join(f"{f.name}: {f.verdict}" for f in self.findings if f.verdict in ("warn", "fail"))
        return f"CheckReport({self.dataset}: {'fit' if self.fit else 'not fit'} for replay{'; ' if bad else ''}{bad})"


def check_log(log: Log, options: CheckOptions) -> CheckReport:
    """Return whether a log is fit for replay (`evaluator.check`).

    Cost: about seven passes of few columns, one of them with the contexts; memory grows with the conversions only.
    """
    level = options.false_alarms / (TESTED + (options.cluster_by is not None))
    clusters = None if options.cluster_by is None else read_clusters(log, options.cluster_by)
    surveyed = survey(log)
    mode = options.propensity
    if mode is None and log.meta.propensity == "absent":
        mode = "estimate"
    propensities = resolve_propensities(surveyed, mode)
    timeline = read_timeline(log, asked_of_timeline(surveyed))
    when = to_numpy(log.conversions["time"]).astype(np.int64, copy=False)
    follow = follow_up(surveyed, timeline, when, level=level)
    tables = count(CheckInput(surveyed, timeline, follow, cut_contexts(log), propensities))
    return CheckReport(
        dataset=log.meta.name,
        displays=len(log),
        conversions=log.conversions.num_rows,
        actions=log.n_actions,
        propensity=propensities.kind,
        assumption=propensities.assumption,
        options=options,
        findings=(
            *(check(tables, level, options.seed) for check in CHECKS.values()),
            dependence(tables, clusters, level),
        ),
    )
