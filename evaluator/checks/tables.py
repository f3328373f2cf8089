"""What the checks need of the displays, counted in one pass; memory does not grow with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.additive import AdditiveFit, action_hours, fit_additive
from evaluator.checks.coordinates import CommonVectors, Coordinates, hashes
from evaluator.checks.counters import EqualRowPairs, NearPairs, TieSums
from evaluator.checks.timeline import FollowUp, Timeline
from evaluator.engine.kernels.solving import squared_length
from evaluator.log import Log
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import sizes
from evaluator.log.schema import ELIGIBLE, Columns, to_numpy
from evaluator.replays.rounds.propensity import Propensities
from evaluator.replays.rounds.survey import Survey, displays_until

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# Of two actions both probabilities are known: displays are also judged by that of the second, between these bounds.
RELIABILITY = np.arange(1, 10) / 10
# Propensities from here on leave nothing to chance.
CERTAIN = 0.999


class GroupFamily(NamedTuple):
    """Groups that are disjoint and make up the log."""

    # What the displays are told apart by: nothing, the period, a time that comes again, a coordinate of the context, or
    # the propensity.
    kind: Literal["all", "period", "rhythm", "context", "propensity"]
    # What its groups differ by, in words: ``hour of the day``. No two families of a kind share one.
    name: str


class DisplayGroup(NamedTuple):
    """Displays that are judged together: their name in words, and their family."""

    name: str
    family: GroupFamily


class VectorMoments:
    """Number of rows, their sum, shape (d,), and the sum of their outer products, shape (d, d)."""

    def __init__(self, d: int) -> None:
        self.n = 0
        self.total, self.square = np.zeros(d), np.zeros((d, d))

    def add(self, rows: Floats) -> None:
        """Add rows, shape (n, d)."""
        self.n += len(rows)
        self.total += rows.sum(axis=0)
        self.square += rows.T @ rows

    def statistic(self) -> tuple[float, float]:
        """Return n mean' covariance^-1 mean, chi-square if the mean is 0, and its degrees of freedom."""
        mean = self.total / self.n
        covariance = self.square / self.n - np.outer(mean, mean)
        statistic, df = squared_length(mean, covariance)
        return self.n * statistic, float(df)


@dataclass(frozen=True, eq=False)
class CheckInput:
    """What the pass starts from, of one kind of events that count as rewards."""

    survey: Survey  # Survey of the log whose conversions are the events of the kind
    # Timeline of the log, and how far it saw of these events.
    timeline: Timeline
    follow_up: FollowUp
    # Coordinates of the contexts, and propensities of the log.
    coordinates: Coordinates
    propensities: Propensities
    kind: str = ""  # Name of the kind: of an outcome; empty for conversions
    # Number of displays, the first ones, that were followed for long enough for every kind; None for those that were
    # for this one.
    followed: int | None = None
    # Log in whose conversions all events are that count as rewards; None where that is the log of the survey.
    rewards: Log | None = None

    @cached_property
    def earned(self) -> tuple[Ints, Floats]:
        """Display and value of each event that counts as a reward, in the order of the displays, shape (c,) each."""
        table = (self.rewards or self.survey.log).conversions
        return to_numpy(table["display_id"]), to_numpy(table["value"]).astype(np.float64)

    @property
    def constant(self) -> Floats | None:
        """The propensity of each action, shape (K,), nan where unknown; None where it changes between displays."""
        p = self.propensities
        if p.kind == "uniform" and not p.tilted and not has_eligibility(self.survey.log):
            return np.full(len(self.survey.shown), 1.0 / len(self.survey.shown))
        shown = ~np.isnan(p.smallest)
        same = np.isclose(p.smallest[shown], p.largest[shown], rtol=1e-6, atol=0.0).all()
        return p.smallest if same else None

    @property
    def has_context(self) -> bool:
        """Whether displays have a context, by which propensities can be modelled; vectors of actions are none."""
        return "context" in self.survey.log.schema.names

    @property
    def shares(self) -> Floats:
        """Share of the displays of each action, shape (K,)."""
        return self.survey.shown / len(self.survey.log)

    @property
    def usable(self) -> int:
        """Displays followed for the attribution window, which replay uses: the first so many; all without a window."""
        return followed_displays(self.survey) if self.followed is None else self.followed


def followed_displays(survey: Survey) -> int:
    """Return how many displays were followed for the attribution window: the first so many; all without a window."""
    meta = survey.log.meta
    if meta.observed_until is None or meta.attribution_window is None:
        return len(survey.log)
    return survey.displays_until(meta.observed_until - meta.attribution_window)


class Tables:
    """Counts of one pass, from the surveys of a log that it starts from; nothing is counted yet."""

    def __init__(self, logged: CheckInput) -> None:
        self.logged = logged
        k, timeline, coordinates = logged.survey.log.n_actions, logged.timeline, logged.coordinates
        conversions, c = len(logged.survey.display), len(coordinates)
        # Groups of displays, G of them: all displays first, then the periods, hours of the day, days of the week, then
        # the bins of each coordinate.
        self.groups = tuple(_groups(logged))
        # Number of displays of each group and action, shape (G, K).
        self.counts = np.zeros((len(self.groups), k))
        # Sums of p^-1, p^-2 and p^-3 over the displays of each group and action, shape (3, G, K); only group 0 (all
        # displays) where propensities are constant.
        self.inverse = np.zeros((3, len(self.groups) if logged.constant is None else 1, k))
        # Number of displays of each period and action that rates are compared on, shape (P, K).
        self.mature = np.zeros((timeline.periods, k))
        # Number of the same displays of the actions shown most, by hour of the day too.
        self.action_hours = action_hours(logged.survey.shown, timeline.periods, timeline.hours_of_day)
        # Number of displays of the actions shown most, by period and group of each rhythm of the timeline.
        self.rhythms = tuple(
            action_hours(logged.survey.shown, timeline.periods, len(names)) for _, names in timeline.rhythms
        )
        # Action of each conversion's display, and 1 / p of that display, shape (c,).
        self.action, self.weight = np.zeros(conversions, np.int64), np.zeros(conversions)
        # Bin of each coordinate of that display, shape (C, c).
        self.bins = np.zeros((c, conversions), np.uint8)
        # Moments of the shown action's vector, against what the propensities make expected (1 / p times it minus the
        # sum over the actions), and against the mean over the actions by their shares; None without action sets.
        contrasts = coordinates.column == "action_set" and not logged.propensities.tilted
        self.claimed = VectorMoments(c) if contrasts else None
        self.ignored = VectorMoments(c) if contrasts else None
        # X'X and X'Y of rewards Y on coordinates X, a constant 1 first, shapes (C + 1, C + 1) and (C + 1,).
        self.gram, self.moment = np.zeros((c + 1, c + 1)), np.zeros(c + 1)
        # Moments of (w - 1) X, where w is the action's share of all displays over its propensity.
        self.drawn = VectorMoments(c + 1)
        # Number of displays of each action among those that replay uses, shape (K,).
        self.usable = np.zeros(k, np.int64)
        # Number in the log (row 0) and time in ticks (row 1) of the first and of the last display of each action, shape
        # (2, K); -1 for actions never shown.
        self.first, self.last = np.full((2, k), -1, np.int64), np.full((2, k), -1, np.int64)
        # Most displays of other actions between two of each action, shape (K,).
        self.pause = np.zeros(k, np.int64)
        # Number of displays with a propensity of `CERTAIN` or more; largest 1 / p of any display.
        self.certain, self.largest_weight = 0, 0.0
        # Displays that share a time, by the bins of the coordinates, then by whether a judged display converts.
        self.ties = TieSums(k, c + 1)
        # Pairs of equal displays; displays that follow another one of their vector within seconds.
        self.copies, self.repeats = EqualRowPairs(in_batches=True), NearPairs(logged.survey.log.meta.tick_seconds)
        # Vectors that many displays share, with what their displays did.
        self.vectors = CommonVectors(coordinates.frequent)

    @cached_property
    def outside(self) -> Ints:
        """Displays earlier than the first of each action, and later than its last, shape (2, K); 0 if never shown."""
        seen, log = self.first[0] >= 0, self.logged.survey.log
        out = np.zeros((2, len(seen)), np.int64)
        if self.ties.tied:  # by time: within one, displays may be sorted by action
            out[0, seen], upto = displays_until(log, self.first[1, seen] - 1, self.last[1, seen])
        else:
            out[0, seen], upto = self.first[0, seen], self.last[0, seen] + 1
        out[1, seen] = len(log) - upto
        return out

    @cached_property
    def additive(self) -> AdditiveFit | None:
        """Judged displays that convert, fitted by period, hour of the day and action; None without two of each."""
        logged, table = self.logged, self.action_hours
        counted = logged.follow_up.counted(logged.survey.display)
        display, at = np.unique(logged.survey.display[counted], return_index=True)
        hour = logged.timeline.hour_of(logged.survey.shown_at[counted][at])
        seen = table.count(logged.timeline.period_of(display), hour, self.action[counted][at])
        return fit_additive(table.shown[:, :, :-1], seen[:, :, :-1])

    @cached_property
    def families(self) -> dict[GroupFamily, list[int]]:
        """The rows of each family of groups, in order."""
        found: dict[GroupFamily, list[int]] = {}
        for i, group in enumerate(self.groups):
            found.setdefault(group.family, []).append(i)
        return found

    def families_by(self, kind: str) -> list[tuple[str, list[int]]]:
        """Return the names of the families of a kind, and their rows."""
        return [(family.name, rows) for family, rows in self.families.items() if family.kind == kind]


def count(logged: CheckInput, advance: Callable[[int], None] = lambda displays: None) -> Tables:
    """Return the tables of a log; one pass over times, actions, propensities and contexts."""
    tables = Tables(logged)
    log, propensities, coordinates = logged.survey.log, logged.propensities, logged.coordinates
    sets = [ELIGIBLE] if ELIGIBLE in log.schema.names else []
    columns = tuple(dict.fromkeys(("time", "action", *propensities.reads, *coordinates.reads, *sets)))
    paid, reward = logged.earned
    for first, batch in log.batches(columns, coded=True):
        n = len(batch["action"])
        low, high = np.searchsorted(paid, [first, first + n])
        rewards = np.bincount(paid[low:high] - first, reward[low:high], minlength=n).astype(np.float64)
        low, high = np.searchsorted(logged.survey.display, [first, first + n])
        _add(tables, first, batch, rewards, slice(int(low), int(high)))
        advance(n)
    tables.ties.finish()
    return tables


def count_events(logged: CheckInput) -> Tables:
    """Return the tables of a kind of events, with what `evaluator.checks.result.Check.by_kind` needs and no more.

    Cost: a pass over times and actions.
    """
    tables = Tables(logged)
    for first, batch in logged.survey.log.batches(("time", "action")):
        action = batch["action"].astype(np.int64)
        low, high = np.searchsorted(logged.survey.display, [first, first + len(action)])
        _add_events(tables, first, batch["time"], action, slice(int(low), int(high)))
    return tables


def _add_events(t: Tables, first: int, time: Ints, action: Ints, of: slice) -> int:
    """Count judged displays by period and hour, note the actions of displays with events; return how many judged."""
    logged, k = t.logged, t.mature.shape[1]
    judged = max(min(logged.follow_up.mature - first, len(action)), 0)
    period = logged.timeline.period_of(np.arange(first, first + judged))
    t.mature += np.bincount(period * k + action[:judged], minlength=t.mature.size).reshape(t.mature.shape)
    t.action_hours.shown += t.action_hours.count(period, logged.timeline.hour_of(time[:judged]), action[:judged])
    t.action[of] = action[logged.survey.display[of] - first]
    return judged


def _groups(logged: CheckInput) -> Iterator[DisplayGroup]:
    timeline, coordinates = logged.timeline, logged.coordinates
    yield DisplayGroup("all displays", GroupFamily("all", "all displays"))
    periods = GroupFamily("period", timeline.period.split()[0])
    yield from (DisplayGroup(timeline.name(d), periods) for d in range(timeline.periods))
    for what, names in timeline.rhythms:
        yield from (DisplayGroup(name, GroupFamily("rhythm", what)) for name in names)
    for j, edges in enumerate(coordinates.edges):
        of = GroupFamily("context", coordinates.name(j))
        yield from (DisplayGroup(coordinates.bin_name(j, b), of) for b in range(len(edges) + 1))
    if _both_known(logged):
        bounds = [0.0, *RELIABILITY, 1.0]
        of = GroupFamily("propensity", f"p({logged.survey.log.labels[1]})")
        for low, high in pairwise(bounds):
            yield DisplayGroup(f"{low:.1f} <= {of.name} < {high:.1f}", of)


def _both_known(logged: CheckInput) -> bool:
    """Whether the propensities of both of two actions are known, and change from display to display."""
    k = logged.survey.log.n_actions
    return k == 2 and logged.constant is None and not logged.propensities.tilted


def _add(t: Tables, first: int, batch: Columns, rewards: Floats, of: slice) -> None:
    logged, k = t.logged, t.counts.shape[1]
    timeline, coordinates = logged.timeline, logged.coordinates
    action = batch["action"].astype(np.int64)
    n = len(action)
    constant = logged.constant
    p = logged.propensities.of(batch) if constant is None else constant[action]
    weight = 1.0 / p
    values = coordinates.values(batch)
    period = timeline.period_of(np.arange(first, first + n))
    cells = [(0, action), (1, period * k + action)]
    at = 1 + timeline.periods
    for table, of_rhythm in zip(t.rhythms, timeline.rhythms_of(batch["time"]), strict=True):
        cells.append((at, of_rhythm * k + action))
        at += table.shown.shape[1]
        table.shown += table.count(period, of_rhythm, action)
    columns = np.ascontiguousarray(values.T)
    placed = np.zeros((len(coordinates) + 1, n))
    for j in range(len(coordinates)):
        placed[j] = bins = coordinates.bins(j, columns[j])
        cells.append((at, bins * k + action))
        at += len(coordinates.edges[j]) + 1
    if _both_known(logged):
        cells.append((at, np.searchsorted(RELIABILITY, np.where(action == 1, p, 1.0 - p), side="right") * k + action))
    powers = [weight, weight**2, weight**3]
    for row, cell in cells:
        found = np.bincount(cell)
        t.counts[row:].reshape(-1)[: len(found)] += found
        if row < t.inverse.shape[1] and (constant is None or row == 0):
            for sums, power in zip(t.inverse, powers, strict=True):
                sums[row:].reshape(-1)[: len(found)] += np.bincount(cell, power)
    judged = _add_events(t, first, batch["time"], action, of)
    place = logged.survey.display[of] - first
    t.weight[of], t.bins[:, of] = weight[place], placed[:-1, place]
    placed[-1, place[place < judged]] = 1.0
    t.ties.add(batch["time"], action, placed)
    _add_ends(t, first, batch["time"], action)
    shown = logged.propensities.shown(batch) if logged.propensities.tilted else p
    # Where a single action is eligible, nothing is to be chosen, and nothing is lost.
    free = sizes(batch[ELIGIBLE]) > 1 if ELIGIBLE in batch else True
    t.certain += int(np.count_nonzero((shown >= CERTAIN) & free))
    t.largest_weight = max(t.largest_weight, float(weight.max()))
    _add_contrasts(t, batch, action, weight, constant)
    x = np.column_stack((np.ones(n), (values - coordinates.center) / np.maximum(coordinates.scale, 1e-12)))
    t.gram += x.T @ x
    t.moment += x.T @ rewards
    if constant is None:
        t.drawn.add((logged.shares[action] * weight - 1.0)[:, None] * x)
    key = np.zeros(n, np.uint64) if coordinates.column is None else hashes(batch[coordinates.column])
    t.repeats.add(batch["time"], key, action, shown)
    t.vectors.add(key, judged, placed[-1] > 0)
    if np.any(np.diff(batch["time"]) == 0):
        t.copies.add(batch["time"], key * np.uint64(2 * k + 1) + action.astype(np.uint64))
    else:
        t.copies.rows += n


def _add_ends(t: Tables, first: int, time: Ints, action: Ints) -> None:
    used = max(min(t.logged.usable - first, len(action)), 0)
    t.usable += np.bincount(action[:used], minlength=len(t.usable))
    k = len(t.usable)
    at = np.full((2, k), -1, np.int64)
    numbers = np.arange(len(action))
    # Of several assignments to one place the last one stays.
    at[0, action[::-1]], at[1, action] = numbers[::-1], numbers
    order = np.argsort(action.astype(np.uint16) if k <= 1 << 16 else action, kind="stable")
    begins = np.flatnonzero(np.diff(action[order], prepend=-1))
    whose = action[order[begins]]
    since, before = np.diff(order, prepend=0) - 1, t.last[0, whose]
    since[begins] = np.where(before >= 0, first + order[begins] - before - 1, 0)
    t.pause[whose] = np.maximum(t.pause[whose], np.maximum.reduceat(since, begins))
    new = (t.first[0] < 0) & (at[0] >= 0)
    t.first[:, new] = first + at[0, new], time[at[0, new]]
    seen = at[1] >= 0
    t.last[:, seen] = first + at[1, seen], time[at[1, seen]]


def _add_contrasts(t: Tables, batch: Columns, action: Ints, weight: Floats, constant: Floats | None) -> None:
    if t.claimed is None or t.ignored is None:
        return
    sets = batch["action_set"][:, :, t.logged.coordinates.kept].astype(np.float64)
    shown = sets[np.arange(len(action)), action]
    k = sets.shape[1]
    t.claimed.add(shown * (weight / k)[:, None] - sets.mean(axis=1))
    t.ignored.add(shown - np.einsum("nkd,k->nd", sets, t.logged.shares))
