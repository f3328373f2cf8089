"""What clusters of displays mean for a replay, in sentences, and which of them are too few."""

from __future__ import annotations

from evaluator.errors import ParameterError
from evaluator.estimates.standard_errors import clusters_text, effective, few_clusters, too_few
from evaluator.findings.codes import (
    CLUSTERS_CHANGE_NOTHING,
    FEW_CLUSTERS,
    INDEPENDENT_CLUSTERS,
    INDEPENDENT_DISPLAYS,
    NO_WEAR_OUT,
    UNNAMED_CLUSTERS,
)
from evaluator.findings.finding import Finding
from evaluator.log.column import Codes, Column
from evaluator.replays.plan import ReplayPlan

UNWORN = NO_WEAR_OUT.found("a display's outcome does not depend on the user's earlier displays")
INDEPENDENT = "displays are independent and identically distributed over the log's time"


def state_independence(clusters: Column | None) -> Finding:
    """Return what intervals assume about the dependence of displays, and which of them allow for it."""
    if clusters is None:
        return INDEPENDENT_DISPLAYS.found(INDEPENDENT)
    return INDEPENDENT_CLUSTERS.found(
        f"displays of different clusters ({clusters.count:,} by {clusters.by}) are independent and identically "
        "distributed; within one they may hang together: intervals of expected and weighted values are for new "
        "clusters, those of realised values, of regret and of uplift for the clusters of this log",
        about=clusters.by,
        clusters=clusters.count,
    )


def check_clusters(clusters: Column | None, used: int) -> None:
    """Refuse clusters whose spread nobody could know.

    Raises
    ------
    ParameterError
        The first `used` displays are worth fewer clusters of equal size than intervals need; names both.
    """
    if clusters is None:
        return
    code = clusters.code[:used]
    worth = effective(code)
    if too_few(worth):
        raise ParameterError(
            f"`cluster_by='{clusters.by}'` makes {clusters.count:,} clusters, which are worth {clusters_text(worth)} "
            "of equal size: too few to know how much they vary.",
            remedy="take a longer log, or smaller clusters if displays of different ones are independent: every:1h.",
        )


def warn_of_few_clusters(plan: ReplayPlan, code: Codes | None, what: str) -> list[Finding]:
    """Return why the displays of these clusters give no interval, where they do not."""
    worth = None if code is None else effective(code)
    return [few_clusters_warning(what, worth, str(plan.options.cluster_by))] if too_few(worth) else []


def few_clusters_warning(what: str, worth: float | None, by: str) -> Finding:
    """Return the warning that something has no interval, for its displays are worth too few clusters."""
    return FEW_CLUSTERS.found(few_clusters(what, worth, by), about=by, clusters=worth)


def describe_clusters(plan: ReplayPlan) -> list[Finding]:
    """Return what to read before the numbers of a replay whose displays hang together."""
    clusters, options = plan.clusters, plan.options
    if clusters is None:
        return []
    findings = []
    if not (options.bootstrap or plan.recorded or len(plan.held_out)):
        findings.append(
            CLUSTERS_CHANGE_NOTHING.found(
                f"`cluster_by='{clusters.by}'` changes no number here: realised values are for the clusters of this "
                "log.",
                "For new ones ask for the expected value (`bootstrap=200`), or the final policy's (`final`).",
                about=clusters.by,
            )
        )
    if clusters.unnamed:
        findings.append(
            UNNAMED_CLUSTERS.found(
                f"{clusters.unnamed:,} of {len(clusters.code):,} displays have no value in {clusters.by}: each is "
                "taken as a cluster of its own.",
                about=clusters.by,
                displays=clusters.unnamed,
            )
        )
    return findings
