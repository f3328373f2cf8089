"""Whether displays hang together by cluster, such as those of one user, and how much wider intervals are to be."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.estimates.standard_errors import clusters_text, effective, too_few
from evaluator.log.column import Column, source_columns
from evaluator.log.schema import to_numpy

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAME = "dependence of displays"
# Intervals that are to be so many times as wide are worth a warning.
WIDER = 1.1
# Above so many pairs of a cluster and an action, single actions are not looked at: 128 MB a table.
_MOST_CELLS = 2**24
# Actions of fewer displays say nothing of their spread.
_FEWEST_SHOWN = 100


class DesignEffects(NamedTuple):
    """Design effects: variances by clusters over those of as many independent displays.

    Parameters
    ----------
    correlation
        Correlation of the rewards of two displays of one cluster, mean over all such pairs.
    size
        Number of displays in the cluster of a typical display: sum n² / sum n.
    mean, p_value
        Design effect of the mean reward, and the p-value of "1 or less".
    actions, contrasts
        Design effect of the values of single actions, and of their differences to the mean reward, all actions
        together; nan where not looked at.
    """

    correlation: float
    size: float
    mean: float
    p_value: float
    actions: float
    contrasts: float


def dependence(t: Tables, clusters: Column | None, level: float) -> CheckResult:
    """Say how much wider intervals of expected and weighted values are to be, by the clusters that are named."""
    if clusters is None:
        return not_applicable(
            NAME, "No column is named by which displays hang together, such as the user: `cluster_by`."
        )
    worth = effective(clusters.code)
    if too_few(worth):
        return not_applicable(NAME, f"{clusters.by} is worth {clusters_text(worth)} of equal size: too few to tell.")
    action = np.concatenate([batch["action"] for _, batch in t.logged.survey.log.batches(["action"])])
    value = to_numpy(t.logged.survey.log.conversions["value"]).astype(np.float64)
    reward = np.bincount(t.logged.survey.display, value, len(action)).astype(np.float64)
    if np.ptp(reward) == 0.0:
        return not_applicable(NAME, "All displays earn the same.")
    found = design_effects(reward, action, clusters)
    wide = {name: math.sqrt(max(getattr(found, name), 1.0)) for name in ("mean", "actions", "contrasts")
            if not math.isnan(getattr(found, name))}  # fmt: skip
    warns = found.p_value <= level and max(wide.values()) >= WIDER
    numbers = {**found._asdict(), "clusters": clusters.count, "worth": worth, "unnamed": clusters.unnamed}
    said = (
        f"Two displays of one {_of(clusters)} have rewards with a correlation of {found.correlation:.3g}, and "
        f"{found.size:,.0f} displays hang together: "
    )
    single = "" if len(wide) == 1 else (
        f", of single actions {wide['actions']:.2g}, of their differences {wide['contrasts']:.2g} times"
    )  # fmt: skip
    return CheckResult(
        name=NAME, verdict="warn" if warns else "pass", number=f"design effect {found.mean:.3g} by {clusters.by}",
        statistic=found.mean, p_value=found.p_value, effect=wide["mean"], numbers=numbers,
        what=f"{said}the interval of the mean reward is to be {wide['mean']:.2g} times as wide as for independent "
        f"displays{single}. Intervals of expected and weighted values take displays as independent unless told."
        if warns else
        f"No sign that displays hang together by {clusters.by} so that intervals would be {WIDER:.2g} times as wide.",
        remedy=f"Give replay and compare `cluster_by='{clusters.by}'`." if warns else "",
    )  # fmt: skip


def _of(clusters: Column) -> str:
    return clusters.by if source_columns(clusters.by) else "part of the clock"


def design_effects(reward: Floats, action: npt.NDArray[np.integer], clusters: Column) -> DesignEffects:
    """Return how much clusters add to variances, and a test of whether they do.

    With residuals e_i around the mean and S_g their sums by cluster, the design effect is G / (G - 1) sum S_g² / sum
    e_i², G the `effective` number: 1 + (m - 1) rho for clusters of m displays with intra-cluster correlation rho (Kish.
    Survey Sampling, 1965). Tested is the sum of e_i e_j over the pairs of displays of a cluster, by a Pearson law of
    type III with the mean, variance and skewness that it has where rewards are in random order. O(n).

    Parameters
    ----------
    reward, action
        Reward and action of each display, shape (n,).
    clusters
        Cluster of each of the same displays.

    Examples
    --------
    >>> code = np.arange(4000) // 4
    >>> same = design_effects((code % 2).astype(float), code % 3, Column("user", code.astype(np.int32), 1000, 0))
    >>> round(same.correlation, 2), round(same.mean, 2), same.p_value < 1e-6
    (1.0, 4.0, True)
    """
    code, n = clusters.code, len(reward)
    sizes = np.bincount(code, minlength=clusters.count).astype(np.float64)
    e = reward - reward.mean()
    spread, sums = float((e**2).sum()), np.bincount(code, e, clusters.count)
    squares = float((sizes**2).sum())
    grown = 1.0 / (1.0 - squares / n**2)
    pairs = squares - n
    together = float((sums**2).sum()) - spread
    size = squares / n
    actions, contrasts = _of_actions(reward, action.astype(np.int64), clusters, grown)
    return DesignEffects(
        correlation=together / (spread / n * pairs) + 1.0 / (n - 1) if pairs else 0.0,
        size=size,
        mean=grown * (together + spread) / spread,
        p_value=_p_value(together, e, sizes) if pairs else 1.0,
        actions=actions,
        contrasts=contrasts,
    )


def _p_value(together: float, e: Floats, sizes: Floats) -> float:
    """Return P(the sum over pairs is so large) where nothing hangs together."""
    from scipy.special import gammaincc

    n = len(e)
    variance, third = float((e**2).mean()), float((e**3).mean())
    pairs, squares = float((sizes * (sizes - 1)).sum()), float((sizes**2).sum())
    # The residuals' mean is 0, which takes one of the G large terms away.
    free = 1.0 - (2.0 * float((sizes**3).sum()) / n - (squares / n) ** 2) / max(squares, 1.0)
    second = 2.0 * variance**2 * pairs * free
    triples = float((sizes * (sizes - 1) * (sizes - 2)).sum())
    skewness = (8.0 * variance**3 * triples * free + 4.0 * third**2 * pairs) / second**1.5
    z = (together + variance * pairs / (n - 1)) / math.sqrt(second)
    shape = 4.0 / max(skewness, 1e-6) ** 2
    return float(gammaincc(shape, max(shape + z * math.sqrt(shape), 0.0)))


def _of_actions(reward: Floats, action: Ints, clusters: Column, grown: float) -> tuple[float, float]:
    """Return the design effects of the actions' values and of their differences to the mean reward.

    A value's influence of display i is e_i / share where its action is shown, and a difference's that less the
    residual around the mean of all.
    """
    k, n, g = int(action.max()) + 1, len(reward), clusters.count
    if g * k > _MOST_CELLS:
        return math.nan, math.nan
    shown = np.bincount(action, minlength=k).astype(np.float64)
    means = np.bincount(action, reward, k) / np.maximum(shown, 1.0)
    e = reward - means[action]
    cells = np.bincount(clusters.code.astype(np.int64) * k + action, e, g * k).reshape(g, k)
    around = np.bincount(clusters.code, reward - reward.mean(), g)
    squares, total = np.bincount(action, e**2, k), float(((reward - reward.mean()) ** 2).sum())
    kept = (shown >= _FEWEST_SHOWN) & (squares > 0.0)
    if not kept.any():
        return math.nan, math.nan
    share = shown[kept] / n
    of_values = (cells[:, kept] ** 2).sum(axis=0) / share**2
    alone = squares[kept] / share**2
    apart = ((cells[:, kept] / share - around[:, None]) ** 2).sum(axis=0)
    independent = alone - 2.0 * squares[kept] / share + total
    if kept.sum() < 2:
        return grown * float(of_values.sum() / alone.sum()), math.nan
    return grown * float(of_values.sum() / alone.sum()), grown * float(apart.sum() / independent.sum())


DEPENDENCE = Check(
    name=NAME,
    finds="users or days whose displays hang together, and how much wider intervals are to be (`--cluster-by`)",
    run=dependence,
)
