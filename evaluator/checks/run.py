"""All checks of a log: what `evaluate check` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluator.checks.coordinates import cut_contexts
from evaluator.checks.finding import Finding, Verdict
from evaluator.checks.follow_up import asked_of_timeline, follow_up
from evaluator.checks.options import CheckOptions
from evaluator.checks.registry import CHECKS, number_tested
from evaluator.checks.tables import CheckInput, count
from evaluator.checks.timeline import read_timeline
from evaluator.errors import UnknownNameError, nearest
from evaluator.log import Log
from evaluator.log.clusters import read_clusters, read_users
from evaluator.log.refunds_at_once import refunds_at_once
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.propensity import resolve_propensities
from evaluator.replays.rounds.survey import survey
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_values import json_values
from evaluator.results.tabular import NUMBER, TEXT, arrow_table

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "evaluate.check/1"


@dataclass(frozen=True, eq=False)
class CheckReport(ShownInNotebooks):
    """Whether a log is fit for replay.

    Parameters
    ----------
    dataset, displays, conversions, actions
        Name of the log, and its numbers of displays, conversions and actions.
    propensity
        Kind of the propensities as they were read: logged, uniform, estimated or absent.
    assumption
        Clause that says what an estimate that uses these propensities rests on.
    left_out
        Sentence on the rows that were left out of the log, empty where none were.
    options
        Options of the checks, as they were asked for.
    findings
        One finding a check, in the order of `evaluator.checks.registry.CHECKS`.
    """

    dataset: str
    displays: int
    conversions: int
    actions: int
    propensity: str
    assumption: str
    left_out: str
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
        # How displays of one cluster hang together says how wide intervals are to be, not whether the log is fit.
        tested = {check.name for check in CHECKS if check.tested and "clusters" not in check.needs}
        return tuple(f for f in self.findings if f.verdict != "not applicable" and f.name in tested)

    @property
    def finding_table(self) -> pa.Table:
        """`findings`, one row a check: its name, verdict, numbers, what they mean and what to do."""
        words = dict.fromkeys(("name", "verdict", "number", "means", "do", "shows"), TEXT)
        numbers = dict.fromkeys(("statistic", "p_value", "effect"), NUMBER)
        return arrow_table({**words, **numbers}, (vars(finding) for finding in self.findings))

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
            "actions": self.actions, "propensity": self.propensity, "assumption": self.assumption,
            "left_out": self.left_out, "fit": self.fit,
            "checks": [asdict(f) for f in self.findings], "options": asdict(self.options),
        })  # fmt: skip

    def __repr__(self) -> str:
        bad = ", ".join(f"{f.name}: {f.verdict}" for f in self.findings if f.verdict in ("warn", "fail"))
        return f"CheckReport({self.dataset}: {'fit' if self.fit else 'not fit'} for replay{'; ' if bad else ''}{bad})"


def check_log(log: Log, options: CheckOptions) -> CheckReport:
    """Return whether a log is fit for replay (`evaluator.check`).

    Refunds are taken off the sale at once: tests of delays are of sales, tests of rewards of what is left of them.
    Cost: about seven passes of few columns, one of them with the contexts; memory grows with the conversions only.
    """
    log = refunds_at_once(log)
    users = read_users(log, options.cluster_by)
    level = options.false_alarms / number_tested(clustered=options.cluster_by is not None, users=users is not None)
    clusters = users
    if users is None or users.by != options.cluster_by:
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
        left_out=log.meta.left_out,
        options=options,
        findings=tuple(
            check.find(tables, level=level, seed=options.seed, clusters=clusters, users=users) for check in CHECKS
        ),
    )
