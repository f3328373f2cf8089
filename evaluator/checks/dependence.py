"""Whether displays hang together: how much wider intervals of clusters are, and whether users wear out.

Wear-out: a replay takes each display's outcome as its own, whatever the same user saw before.
A replay picks single displays out of users' histories, and a policy that shows one action again and again meets each
user as if for the first time. So outcomes are compared within users. With m = g_u r_t h_t s_at exp(beta x): a factor of
the user, of the period, of the hour of the day, of the action in parts of the log, and of x, the root of the number of
earlier displays (it serves wear-out that is quick and levels off as well as wear-out that goes on and on). The
likelihood of counts with means m tells beta from the rest whatever users' rates are and however these go with how often
they come (Hausman, Hall, Griliches 1984); the test is that of the score, by users (Wooldridge 1999):

    S_u = sum over the user's displays of (y - m) x',   z = sum S_u / sqrt(sum S_u²),

with m fitted at beta = 0 and x' what the other factors leave of x. Two numbers of earlier displays are tested: of all
actions, and of the display's own action. For the latter, where the logger may have known the user, the user's factor is
one of user and action: users whom it showed what they like are no finding.

Only falls are told. Users who are shown nothing any more once they converted, and conversions that go to the last
display, let rates rise along users' displays without any effect of displays upon each other.

References
----------
Hausman, Hall, Griliches. Econometric models for count data with an application to the patents-R&D relationship.
Econometrica 52(4), 1984.
Wooldridge. Distribution-free estimation of some nonlinear panel data models. Journal of Econometrics 90(1), 1999.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.result import MOST_SHOWN, POWER_Z, Check, CheckResult, judged, not_applicable
from evaluator.checks.significance import p_words
from evaluator.checks.tables import Flags, Floats, Ints, Tables
from evaluator.estimates.simultaneous import holm
from evaluator.estimates.standard_errors import clusters_text, effective, too_few
from evaluator.log.column import Column, source_columns
from evaluator.log.schema import to_numpy
from evaluator.options.deployment import ALL_BUT_NOISE
from evaluator.replays.rounds.propensity import NONE_GIVEN

if TYPE_CHECKING:
    from evaluator.replays.kept_units import Units

# Intervals that are to be so many times as wide are worth a warning.
WIDER = 1.1
# Above so many pairs of a cluster and an action, single actions are not looked at: 128 MB a table.
_MOST_CELLS = 2**24
# Actions of fewer displays say nothing of their spread.
_FEWEST_SHOWN = 100
FEWEST_CONVERSIONS = 50
# Conversions that each part of the log needs in which an action has a factor of its own.
_A_PART = 25
_STEPS, _CLOSE = 60, 1e-6
# Of a change so large nothing is left to say but that it is large.
_LARGEST = 5.0
# Number of earlier displays of which it is said what would have been found.
_SAID = 4
# More units of one action than chance gives, as a share, from which the logger kept it in part.
_KEPT_SOMEHOW = 0.05
_WHAT = ("of anything", "of the same action")


class DesignEffects(NamedTuple):
    """Design effects: variances by clusters over those of as many independent displays."""

    # Correlation of the rewards of two displays of one cluster, mean over all such pairs.
    correlation: float
    # Number of displays in the cluster of a typical display: sum n² / sum n.
    size: float
    # Design effect of the mean reward, and the p-value of "1 or less".
    mean: float
    p_value: float
    # Design effect of the values of single actions, and of their differences to the mean reward, all actions together;
    # nan where not looked at.
    actions: float
    contrasts: float


def dependence(t: Tables, clusters: Column | None, level: float) -> CheckResult:
    """Say how much wider intervals of expected and weighted values are to be, by the clusters that are named."""
    if clusters is None:
        return not_applicable("No column is named by which displays hang together, such as the user: `cluster_by`.")
    worth = effective(clusters.code)
    if too_few(worth):
        return not_applicable(f"{clusters.by} is worth {clusters_text(worth)} of equal size: too few to tell.")
    action = np.concatenate([batch["action"] for _, batch in t.logged.survey.log.batches(["action"])])
    value = to_numpy(t.logged.survey.log.conversions["value"]).astype(np.float64)
    reward = np.bincount(t.logged.survey.display, value, len(action)).astype(np.float64)
    if np.ptp(reward) == 0.0:
        return not_applicable("All displays earn the same.")
    found = design_effects(reward, action, clusters)
    wide = {name: math.sqrt(max(getattr(found, name), 1.0)) for name in ("mean", "actions", "contrasts")
            if not math.isnan(getattr(found, name))}  # fmt: skip
    warns = found.p_value <= level and max(wide.values()) >= WIDER
    numbers = {**found._asdict(), "clusters": clusters.count, "worth": worth, "unnamed": clusters.unnamed}
    cluster = clusters.by if source_columns(clusters.by) else "part of the clock"
    said = (
        f"Two displays of one {cluster} have rewards with a correlation of {found.correlation:.3g}, and "
        f"{found.size:,.0f} displays hang together: "
    )
    single = "" if len(wide) == 1 else (
        f", of single actions {wide['actions']:.2g}, of their differences {wide['contrasts']:.2g} times"
    )  # fmt: skip
    return CheckResult(
        verdict="warn" if warns else "pass", number=f"design effect {found.mean:.3g} by {clusters.by}",
        statistic=found.mean, p_value=found.p_value, effect=wide["mean"], numbers=numbers,
        what=f"{said}the interval of the mean reward is to be {wide['mean']:.2g} times as wide as for independent "
        f"displays{single}. Intervals of expected and weighted values take displays as independent unless told."
        if warns else
        f"No sign that displays hang together by {clusters.by} so that intervals would be {WIDER:.2g} times as wide.",
        remedy=f"Give replay and compare `cluster_by='{clusters.by}'`." if warns else "",
    )  # fmt: skip


def design_effects(reward: Floats, action: npt.NDArray[np.integer], clusters: Column) -> DesignEffects:
    """Return how much clusters add to variances, and a test of whether they do.

    With residuals e_i around the mean and S_g their sums by cluster, the design effect is G / (G - 1) sum S_g² / sum
    e_i², G the `effective` number: 1 + (m - 1) rho for clusters of m displays with intra-cluster correlation rho (Kish.
    Survey Sampling, 1965). The test is of the sum of e_i e_j over the pairs of displays of a cluster, by a Pearson law
    of type III with the mean, variance and skewness that it has where rewards are in random order. O(n). Rewards,
    actions and clusters are of the same displays, shape (n,).

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


def chance_of_one(t: Tables, units: Units) -> float:
    """Return which share of units of more than one display would show one action if the logger chose anew at each."""
    from evaluator.replays.kept_units import by_unit

    log, found = t.logged.survey.log, t.logged.propensities
    plain = {"propensity", "action", "display_id"}.issuperset(found.reads)
    return units.chance(by_unit(found, log, units) if plain else NONE_GIVEN)


def kept_actions(t: Tables, units: Units | None) -> CheckResult:
    """Say whether the logger kept the action of its users."""
    if units is None:
        return not_applicable("No column of users is known: keep it in the log under a name such as user.")
    name, asked = units.asked.column, units.asked.text
    if not units.several:
        return _untested(f"no {name} has more than one display", {"units": len(units.first)})
    chance = chance_of_one(t, units)
    numbers = {"share": units.share, "chance": chance, "several": units.several, "units": len(units.first)}
    found = f"{units.share:.1%} of {units.several:,} with more than one display, {chance:.1%} by chance"
    shows = f"{units.alike:,} of {units.several:,} units by {asked} with more than one display show one action"
    if units.kept:
        what = (
            f"The logger kept its action by {asked}: {shows}. Checks of what it chose look at first displays; a "
            f"deployment that keeps it too is replayed with `keep_for='{asked}'`."
        )
        return CheckResult(verdict="pass", number=found, effect=units.share, numbers=numbers, what=what)
    some = units.share - chance > _KEPT_SOMEHOW and chance < ALL_BUT_NOISE
    return CheckResult(
        verdict="warn" if some else "pass",
        number=found,
        effect=units.share,
        numbers=numbers,
        what=f"The logger kept its action by {name} in part: {shows}, and {chance:.1%} would if it chose anew at each. "
        "Displays of one unit are then no independent choices, and the propensity of a later one is not what it was."
        if some else f"The logger chose anew at each display of a {name}: a kept action cannot be replayed.",
        remedy=f"Say for how long it kept its action, in the spec: keep_for = '{name}@1d' under [deployment]; or log "
        "the propensity of each display given what was kept." if some else "",
    )  # fmt: skip


KEPT_ACTIONS = Check(
    name="kept actions",
    finds="a logger that kept the action of its users, for good, for a while, or in part",
    run=kept_actions,
    tested=False,
)
DEPENDENCE = Check(
    name="dependence of displays",
    finds="users or days whose displays hang together, and how much wider intervals are to be (`--cluster-by`)",
    run=dependence,
)


class _Seen(NamedTuple):
    """Judged displays of users who converted, of whom alone the user's own factor lets a test tell anything."""

    # User and action of each, numbered from 0, shape (m,).
    user: Ints
    action: Ints
    converted: Floats  # Whether it converted, as a number, shape (m,)
    # Period and hour of the day of each, shape (m,).
    period: Ints
    hour: Ints
    # Number of the user's earlier displays, and of those of the same action, shape (m,).
    before: Ints
    same: Ints


class _WearOut(NamedTuple):
    """What one number of earlier displays says: its p-value, the share of the rewards that is lost, and its error."""

    p: float  # P-value of "no fall"
    # Change of the log rate with the root of the number of earlier displays, and its standard error.
    slope: float
    error: float
    # Share by which these displays earn less than as the user's first; below 0 where they earn more.
    lost: float
    worth: float  # Number of users of equal weight that the test rests on


def wear_out(t: Tables, users: Column | None, level: float) -> CheckResult:
    """Test that users convert as often after earlier displays as at their first, within users."""
    if users is None:
        return not_applicable(
            "No column of users is known: name it (`cluster_by`), or keep it in the log under a name such as user."
        )
    by = {"users": users.by}
    if users.count == len(users.code):
        return _untested("each user has one display, so none has an earlier one", {**by, "earlier": 0})
    if t.logged.propensities.weights is not None:
        return _untested("displays have weights: which displays their users saw before is not known", by)
    seen = _read(t, users)
    # Where the logger cannot have known the user, only the user's own factor is needed.
    blind = t.logged.constant is not None and t.logged.propensities.kind in ("uniform", "logged")
    of_action = seen.user if blind else seen.user * (int(seen.action.max(initial=0)) + 1) + seen.action
    found = [_tested(seen, seen.user, seen.before), _tested(seen, of_action, seen.same)]
    known = [(one, what) for one, what in zip(found, _WHAT, strict=True) if one is not None]
    if not known:
        return _untested(
            f"fewer than {FEWEST_CONVERSIONS} conversions are of users who converted and were shown something more "
            "than once, or they are of too few users",
            by,
        )
    p = holm([one.p for one, _ in known])
    verdicts = [judged(float(one_p), one.lost, level) for one_p, (one, _) in zip(p, known, strict=True)]
    grave = {"fail": 0, "warn": 1, "pass": 2}
    at = min(range(len(known)), key=lambda i: (grave[verdicts[i]], p[i]))
    (worst, what), verdict = known[at], verdicts[at]
    wrong = verdict != "pass"
    both = known if not wrong else [one for one, of in zip(known, verdicts, strict=True) if of == verdict]
    change = f"{worst.lost:.1%} less" if worst.lost >= 0 else f"{-worst.lost:.1%} more"
    earns = " and ".join(f"{one.lost:.1%} less by earlier displays {what}" for one, what in both)
    return CheckResult(
        verdict=verdict,
        number=f"{change} by earlier displays {what}, p {p_words(float(p[at]))}",
        statistic=worst.slope / worst.error, p_value=float(p[at]), effect=worst.lost,
        numbers={**by, "displays": len(seen.user), "conversions": int(seen.converted.sum()),
                 **{f"{key}_{what.replace(' ', '_')}": value for one, what in known
                    for key, value in one._asdict().items()}},
        shows=_shown_by(*known[-1], level / len(known)),
        what=(f"By {users.by}, displays earn {earns} than as the user's first. A replay takes displays as "
               "independent of what the user saw before: a policy that repeats its favourite wears it out live, and "
               "looks too good here. (Users who come back because they converted, and conversions that go to the "
               "first click, look alike.)" if wrong else
               f"By {users.by}, rewards do not fall with earlier displays, as far as the log can tell."),
        remedy="Try the policy live on a share of the users; or let the number of earlier displays of each action be "
        "part "
        "of the context, of policies that are not to repeat themselves. `cluster_by` widens intervals and mends no "
        "such bias." if wrong else "",
    )  # fmt: skip


def _untested(why: str, numbers: dict[str, Any]) -> CheckResult:
    return CheckResult(verdict="not applicable", number="", what=f"{why[0].upper()}{why[1:]}.", numbers=numbers)


def _read(t: Tables, users: Column) -> _Seen:
    """Return the displays that are compared; earlier ones are counted over the whole log."""
    log, follow, timeline = t.logged.survey.log, t.logged.follow_up, t.logged.timeline
    converted = np.unique(t.logged.survey.display[follow.counted(t.logged.survey.display)])
    of_converted = np.zeros(users.count, np.bool_)
    of_converted[users.code[converted]] = True
    rows, action, hour = [], [], []
    for first, batch in log.batches(["time", "action"]):
        own = np.flatnonzero(of_converted[users.code[first : first + len(batch["action"])]])
        rows.append(own + first)
        action.append(batch["action"][own].astype(np.int64))
        hour.append(timeline.hour_of(batch["time"][own]))
    row, shown, at = np.concatenate(rows), np.concatenate(action), np.concatenate(hour)
    user = np.unique(users.code[row], return_inverse=True)[1].astype(np.int64)
    before, same = earlier(user), earlier(user * log.n_actions + shown)
    some = row < follow.mature
    shown = np.unique(shown[some], return_inverse=True)[1]
    return _Seen(
        user[some], shown, np.isin(row[some], converted).astype(np.float64), timeline.period_of(row[some]), at[some],
        before[some], same[some],
    )  # fmt: skip


def earlier(key: Ints) -> Ints:
    """Return how many earlier rows have the key of each row, shape (n,).

    >>> earlier(np.array([7, 3, 7, 7, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=key[order][:1] - 1))
    sizes = np.diff(np.append(first, len(key)))
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - np.repeat(first, sizes)
    return found


def _tested(seen: _Seen, group: Ints, count: Ints) -> _WearOut | None:
    """Return what a number of earlier displays says, each group of displays with a factor of its own."""
    group = np.unique(group, return_inverse=True)[1]
    tells = (np.bincount(group, seen.converted) > 0) & (np.bincount(group) > 1)
    own = tells[group]
    y, x = seen.converted[own], np.sqrt(count[own])
    if y.sum() < FEWEST_CONVERSIONS:
        return None
    factors = [group[own], seen.period[own], seen.hour[own], _parts(seen, own)]
    factors = [np.unique(factor, return_inverse=True)[1] for factor in factors]
    m = _fitted(y, factors)
    left = _left(x, m, factors)
    information = float((m * left**2).sum())
    score = np.bincount(seen.user[own], (y - m) * left)
    squares = score**2
    spread = float(squares.sum())
    if information <= 1e-9 * float((m * x**2).sum()) or spread <= 0.0:
        return None
    worth = spread**2 / float((squares**2).sum())
    # Of as many users' scores those are free that the common factors were not fitted to.
    users = int(np.count_nonzero(score))
    free = users - sum(int(factor.max()) for factor in factors[1:])
    if too_few(worth) or free < users / 2:
        return None
    from scipy.special import stdtr

    error = math.sqrt(spread * users / free) / information
    slope = float(score.sum()) / information
    bent = np.exp(np.clip(-slope * x, -_LARGEST, _LARGEST))
    lost = 1.0 - float(m.sum()) / float((m * bent).sum())
    return _WearOut(float(stdtr(worth - 1.0, slope / error)), slope, error, lost, worth)


def _parts(seen: _Seen, own: Flags) -> Ints:
    """Return the action of some displays and the part of the log they are in: as many as its conversions allow."""
    periods = int(seen.period.max(initial=0)) + 1
    action = seen.action[own]
    parts = np.clip(np.bincount(action, seen.converted[own]) // _A_PART, 1, periods).astype(np.int64)
    found: Ints = action * periods + seen.period[own] * parts[action] // periods
    return found


def _fitted(y: Floats, factors: list[Ints]) -> Floats:
    """Return the means of counts that are a product of factors, by proportional fitting: each total as it was seen."""
    m, totals = np.full(len(y), y.mean()), [np.bincount(factor, y) for factor in factors]
    for _ in range(_STEPS):
        off = 0.0
        for factor, total in zip(factors, totals, strict=True):
            have = np.bincount(factor, m)
            off = max(off, float(np.abs(have - total).sum()))
            m = m * (total / np.maximum(have, 1e-300))[factor]
        if off <= _CLOSE * y.sum():
            break
    return m


def _left(x: Floats, m: Floats, factors: list[Ints]) -> Floats:
    """Return what is left of a number beside all factors, by weights."""
    weights = [np.maximum(np.bincount(factor, m), 1e-300) for factor in factors]
    for _ in range(_STEPS):
        last = x
        for factor, weight in zip(factors, weights, strict=True):
            x = x - (np.bincount(factor, m * x) / weight)[factor]
        if float((m * (x - last) ** 2).sum()) <= _CLOSE**2 * float((m * x**2).sum()):
            break
    return x


def _shown_by(found: _WearOut, what: str, level: float) -> str:
    """Return the fall of rewards that such a log shows."""
    from scipy.special import stdtrit

    needed = (POWER_Z - float(stdtrit(found.worth - 1.0, level))) * found.error
    lost = -math.expm1(-needed * math.sqrt(_SAID))
    return "" if lost > MOST_SHOWN else f"rewards that are {lost:.0%} lower after {_SAID} earlier displays {what}"


WEAR_OUT = Check(
    name="wear-out",
    finds="rewards that fall with what the same user saw before, of anything or of the same action",
    run=wear_out,
)
