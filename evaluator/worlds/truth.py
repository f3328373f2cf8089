"""The truth of a log's twins: everything a twin is drawn from, fitted to the log once.

Delays are fitted as a replay corrects young displays: right-truncated where a display was not followed to its end, by
action where the log can tell the actions apart (`evaluator.delays.product_limit`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.product_limit import GroupCDFs, group_cdfs
from evaluator.errors import DataError
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import unpack
from evaluator.log.log_tables import REFUNDS, EventKind
from evaluator.log.reward_kinds import RewardKind, has_costs, rewards_alone, sales
from evaluator.log.schema import ELIGIBLE, TARGET, is_uneven, to_numpy
from evaluator.log.vectors_of_displays import display_vectors, readable_vectors
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import Basis, plan_replay, read_basis
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.values.rewards import logged_rewards
from evaluator.units import ROUND
from evaluator.worlds.arrivals import DisplayTimes, HourFactors, converted_and_shown, fit_hours, read_traffic
from evaluator.worlds.disk_column import taken
from evaluator.worlds.event_laws import DelayLaws, EventLaw, LogCosts, TwinMoney, own_or_all, pools_of
from evaluator.worlds.logger import (
    TwinSets,
    all_vectors,
    best_order_value,
    fit_logger_among,
    fit_twin_logger,
    read_twin_sets,
)
from evaluator.worlds.rates import Rates, rates_by_action, rates_by_context, rates_by_vector

# Contexts that rounds are drawn from, evenly spaced over the log, and entries of a table of them by action.
POOL, POOL_CELLS = 100_000, 20_000_000
# Displays that rates are fitted to, evenly spaced in longer logs.
FITTED = 1_000_000
# With fewer conversions or displays there is nothing to fit a truth to.
FEWEST_CONVERSIONS, FEWEST_DISPLAYS = 20, 200

Floats = npt.NDArray[np.float64]
# Refunds of an action from which its own are drawn; of fewer, its sales come back by the share of all. Of as few sales
# or events of its own, the values of all stand for them.
_FEWEST = 10
_NEVER = np.iinfo(np.int64).max
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class LogTruth:
    """A world in time, or in rounds, as plain parts: what twins of a log are drawn from, and live runs play.

    Contexts are drawn from a pool of P entries, displays of the log it was fitted to; ticks are those of the twins,
    which count rounds, one display each, where there is no `traffic`.
    """

    # Traffic.
    displays: int  # of a twin
    traffic: DisplayTimes | None  # arrival times; None where twins count rounds
    hours: HourFactors  # factors of all rates by the hour of the day
    beyond: int | None  # ticks that the log was followed after its last display; None where all were to the end
    longest: int | None  # attribution window in ticks; None for none
    window: str | None = None  # of a duration, in rounds at the mean rate where twins count rounds
    # Contexts.
    vectors: str | None  # kind of vectors that the log has: action_set, context, features or None
    pool: npt.NDArray[np.floating] | None  # (P, K, d), or (P, d) of contexts; None without these two
    targets: Mapping[str, pa.Array] = field(default_factory=dict)  # columns of audited policies, at each entry, by name
    # Eligible sets of each entry; None where all actions always are eligible.
    sets: TwinSets | None = None
    # Logging policy: its probabilities of the actions at each entry, (P, K) or (1, K).
    logger: Floats
    # Event laws: conversions by the chance of each action at each entry, (P, K), and by delay laws of the actions.
    rates: Floats
    values: Floats  # (V,) of a conversion, equally likely; with `money` those of a sale of any action, before refunds
    laws: DelayLaws
    cdf: DelayCDF  # of all actions together; in a truth made for one law (`evaluator.worlds.live_policy`) of that one
    money: TwinMoney | None = None  # values by action, refunds, other kinds, costs; None where the log has none of them
    # The log's table of actions, metadata of the twins, and sentences that say what the truth is.
    actions: pa.Table
    meta: LogMeta
    said: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the log."""
        return self.meta.name

    @property
    def moving(self) -> bool:
        """Whether eligible actions move with time, so that entries do."""
        return self.sets is not None and self.sets.moving

    @property
    def entries(self) -> int:
        """Number of entries of the pool, P."""
        return len(self.rates)

    @property
    def mean_value(self) -> float:
        """Expected value of a conversion."""
        return float(self.values.mean())

    @property
    def value_of_larger(self) -> float:
        """Value of the conversions that a larger difference would be made of: E[v²] / E[v]."""
        if self.money is None:
            return float((self.values**2).mean() / self.mean_value)
        sold = (self.rates * self.logger).mean(axis=0)
        left = float(sold @ (self.money.worth - self.money.owed))
        return float(sold @ self.money.squares) / (left if left > 0.0 else float(sold @ self.money.worth))

    def best_value(self, counted: Floats, cost: Floats) -> float:
        """Return the expected reward of the best fixed action; of the best order where not all are always eligible.

        `counted` is what counts of a conversion of each action, as a share of their mean value, and `cost` what a
        display of it costs on average (0 where costs do not count), shape (K,) each.
        """
        if self.sets is None:
            return float((self.rates.mean(axis=0) * self.mean_value * counted - cost).max())
        factor = np.ones(self.entries)
        if self.moving and self.traffic is not None:
            shown = np.arange(self.entries) * self.traffic.displays // self.entries
            factor = self.hours.factor(self.traffic.times.take(shown))
        return best_order_value(self.rates, self.sets.truths, counted * self.mean_value, cost, factor)

    @property
    def logging_values(self) -> Floats:
        """Expected value of the logging policy's conversions of each action, each worth the mean, shape (K,)."""
        return np.asarray((self.rates * self.logger).mean(axis=0) * self.mean_value)


def fit_log(
    log: Log, policy: Any, options: ReplayOptions, *, displays: int | None, targets: Sequence[str] = ()
) -> LogTruth:
    """Return a truth whose twins look like a log; parameters and errors as of `fit_truth`."""
    # What is left out of the replays is no less true.
    whole = read_basis(rewards_alone(log), replace(options, delays_from=None))
    return fit_truth(whole, policy, options, displays=displays, targets=targets)


def fit_truth(
    basis: Basis, policy: Any, options: ReplayOptions, *, displays: int | None, targets: Sequence[str] = ()
) -> LogTruth:
    """Return a truth whose twins look like a log, which was read for replays of all its displays (`basis`).

    The `policy`, one of those replayed, says how the log is read, and the truth does not depend on it; `options` are
    those of the audited replays, `displays` the number of displays of a twin (None: as many as the log has), and
    `targets` the columns of displays with policies that are audited. Raises DataError where there are too few displays
    or conversions.
    """
    whole = basis.survey
    revenue = replace(options, objective="revenue", delays_from=None)
    sold = sales_alone(whole.log)
    basis = basis if sold is whole.log else read_basis(sold, revenue)
    survey = basis.survey
    log = survey.log
    if basis.propensities.tilted:
        raise DataError(
            f"The displays of log {log.meta.name!r} are no even sample of the traffic (display weights, or chosen "
            "actions under propensities that depend on the context), so no truth can be fitted to them.",
            remedy="audit a log of all displays and actions.",
        )
    if len(log) < FEWEST_DISPLAYS:
        raise DataError(
            f"Log {log.meta.name!r} has {len(log):,} displays, too few to fit a truth to.",
            remedy=f"an audit needs {FEWEST_DISPLAYS} displays and {FEWEST_CONVERSIONS} conversions.",
        )
    judged = replace(revenue, reward="eventual", immature="drop")
    plan = plan_replay(basis, policy, judged)
    rewards = logged_rewards(plan, rounds=0)
    paid = rewards.value > 0 if (rewards.value >= 0).all() else np.ones(len(rewards.at), np.bool_)
    at, value = rewards.at[paid], rewards.value[paid]
    if len(at) < FEWEST_CONVERSIONS:
        raise DataError(
            f"Log {log.meta.name!r} has {len(at):,} conversions on displays old enough to be judged.",
            remedy=f"an audit needs {FEWEST_CONVERSIONS} to fit a truth to.",
        )
    values, worth = _values(value)
    n = len(log) if displays is None else displays
    # Displays of one coarse stamp would come at once, as a burst does, and delays be whole stamps.
    in_time = log.meta.tick_seconds is not None and np.isfinite(survey.rate) and survey.ends is None
    traffic = read_traffic(log, n) if in_time else None
    longest = log.meta.attribution_window
    if longest is not None and traffic is None:
        longest = in_displays(survey, longest)
    laws = fit_delay_laws(plan, longest, in_time=in_time)
    money = fit_money(whole, laws, longest, in_time=in_time)
    meta = whole.log.meta if money is None else money.bounds(whole.log.meta)
    vectors = display_vectors(log)
    varied = vectors is not None or basis.sets is not None or bool(targets)
    entries = pool_entries(len(log), log.n_actions) if varied else np.zeros(1, np.int64)
    sets = None if basis.sets is None else read_twin_sets(log, basis.sets, entries, survey.shown)
    pool = _pool(log, entries, vectors) if vectors else None
    beyond = (
        None if log.meta.observed_until is None else followed_after(survey, log.meta.observed_until, in_time=in_time)
    )
    seen = _chance_to_show(plan, laws, traffic, beyond)
    rates = _rates(plan, vectors, pool, at)
    hours = fit_hours(plan, at, traffic)
    if sets is None:
        logger = fit_twin_logger(log, basis.propensities, survey.shown, entries)
    else:
        logger = fit_logger_among(log, basis.propensities, entries, sets.truths)
    table = np.minimum(rates.table / seen, 1.0)
    window = None
    if traffic is None and plan.window.ticks is not None:
        window = str(max(round(plan.window.ticks * survey.rate * plan.clock.share), 1))
    kept = survey.kept  # twins hold no display of other actions: they are a sample of the traffic
    vectors = vectors or readable_vectors(log)
    return LogTruth(
        vectors=vectors,
        pool=pool,
        rates=table if len(table) == len(entries) else np.repeat(table, len(entries), axis=0),
        logger=logger.table,
        values=values,
        laws=laws,
        cdf=laws.cdfs[0],
        hours=hours,
        displays=n,
        traffic=traffic,
        beyond=beyond,
        longest=longest,
        actions=log.actions,
        meta=replace(
            meta, tick=log.meta.tick if in_time else ROUND, observed_until=None, attribution_window=None,
            fingerprint="", counts={}, sampling_rate=min(log.meta.sampling_rate * kept, 1.0),
        ),
        said=(
            rates.said,
            *_of_young(seen),
            *hours.said,
            *([worth] if money is None else money.said),
            laws.said,
            logger.said,
            *([] if sets is None else [sets.said]),
            *(f"{'columns' if name == TARGET else name} does at a display of a twin what it does at one of the log's, "
              "with its contexts; rates do not depend on it otherwise" for name in targets),
            f"contexts drawn from {len(entries):,} of the log's {len(log):,} displays" if pool is not None
            else "no contexts",
            f"{n:,} displays, one a round" + (" (time stamps are coarse)" if survey.ends is not None else "")
            if traffic is None else f"{n:,} displays {traffic.said}",
            *([f"twins are {log.meta.sampling_rate * kept:.3g} of their traffic, as the log is"]
              if log.meta.sampling_rate * kept < 1.0 else []),
            "but for that, no rate or delay drifts, and displays are independent" if hours.said
            else "no rate or delay drifts, and displays are independent",
        ),
        window=window,
        sets=sets,
        money=money,
        targets={name: log.take(entries, [name])[name].combine_chunks() for name in targets},
    )  # fmt: skip


def _values(value: Floats) -> tuple[Floats, str]:
    if (value == value[0]).all():
        return value[:1], f"each conversion is worth {value[0]:g}"
    return value, (
        f"conversions are worth what one of the log's {len(value):,} was, whatever the action; those of one display "
        "are one"
    )


def _of_young(seen: Floats) -> list[str]:
    """Say by what the rates were divided, which count what was seen only."""
    if (seen >= 1.0).all():
        return []
    low, high = f"{seen.min():.3g}", f"{seen.max():.3g}"
    return [
        "what was seen of young displays is divided by its chance to show, "
        + (low if low == high else f"from {low} to {high} by action")
    ]


def _chance_to_show(plan: ReplayPlan, laws: DelayLaws, traffic: DisplayTimes | None, beyond: int | None) -> Floats:
    """Return the mean chance that a conversion of each action counts among the rewards that rates are fitted to, (K,).

    0 for none: an action whose conversions all come too late has no rate.
    """
    if plan.rewards_end_with_window:
        chance = shares_within_window(plan)
    elif plan.maturity.known:
        chance = np.ones(plan.log.n_actions)
    else:
        last, after = len(plan.log) - 1 if traffic is None else traffic.last_of_log, beyond or 0

        def ages(first: int, end: int) -> npt.NDArray[np.int64]:
            time = np.arange(first, end) if traffic is None else traffic.times.read(first, end)
            return np.maximum(last + after - time, 0)

        chance = laws.seen(len(plan.log), ages)
    return np.where(chance > 0, chance, 1.0)


def _pool(log: Log, entries: npt.NDArray[np.int64], vectors: str) -> npt.NDArray[np.floating]:
    """Return the vectors of some displays, increasing, shape (P, p) or (P, K, d)."""
    if not is_uneven(log.schema.field(vectors).type):
        return taken(log, entries, vectors)
    column = log.take(entries, [vectors])[vectors]
    return all_vectors(column, unpack(log.take(entries, [ELIGIBLE])[ELIGIBLE], log.n_actions))


def pool_entries(n: int, k: int) -> npt.NDArray[np.int64]:
    """Return the displays that make up the pool, of n with K actions, increasing, shape (P,)."""
    p = min(n, POOL, max(POOL_CELLS // k, 1))
    return np.arange(p) * n // p


def _rates(
    plan: ReplayPlan, vectors: str | None, pool: npt.NDArray[np.floating] | None, converted: npt.NDArray[np.int64]
) -> Rates:
    """Return the rates, given the used displays that converted, increasing, shape (c,)."""
    log, used = plan.log, plan.rounds.used
    if pool is None or vectors is None:
        return rates_by_action(*(of.astype(np.float64) for of in converted_and_shown(plan, converted)))
    n = min(used, FITTED)
    some = np.arange(n) * used // n
    sold = np.isin(some, converted, assume_unique=True)
    action = taken(log, some, "action")
    if vectors == "context":
        # The contexts have no other name, so that they can be let go of.
        return rates_by_context(_pool(log, some, vectors), action, sold, pool, n_actions=log.n_actions)
    x = _pool(log, some, vectors)
    return rates_by_vector(x[np.arange(n), action].astype(np.float64), sold, pool.astype(np.float64))


def fit_delay_laws(plan: ReplayPlan, longest: int | None, *, in_time: bool) -> DelayLaws:
    """Return the delay laws of conversions within the attribution window.

    They are in ticks of the twins: those of the log, or displays where twins count rounds.
    """
    survey = plan.survey
    delay = survey.delay_ticks if in_time else survey.delay
    limit = survey.limit_ticks() if in_time else survey.limit
    if survey.kept != 1.0 and not in_time:
        delay = np.rint(delay * survey.kept).astype(np.int64)
        limit = None if limit is None else np.rint(limit * survey.kept).astype(np.int64)
    limit = np.full(len(delay), delay.max()) if limit is None else np.maximum(limit, delay)
    action = action_of_conversions(plan)
    if longest is not None and (delay <= longest).any():
        short = delay <= longest
        delay, limit, action = delay[short], np.minimum(limit[short], longest), action[short]
    found = group_cdfs(delay, limit, action, n_groups=plan.log.n_actions)
    own = int((found.weight > 0).sum())
    return _laws(
        found,
        f"delays of {own:,} actions by laws of their own, drawn to the common one by as much as the log cannot tell "
        f"them from it: {found.common.source}"
        if own
        else f"delays, the same for all actions: {found.common.source}",
    )


def _laws(found: GroupCDFs, said: str) -> DelayLaws:
    return DelayLaws(found.grid, found.table[:, 1:], found.row, said)


def shares_within_window(plan: ReplayPlan) -> Floats:
    """Return the share of each action's conversions that come within the policy's window, shape (K,)."""
    survey = plan.survey
    in_displays = plan.window.ticks is None
    delay = survey.delay if in_displays else survey.delay_ticks
    limit = survey.limit if in_displays else survey.limit_ticks()
    longest = int((plan.window.rounds + 0.5) / plan.clock.share) if plan.window.ticks is None else plan.window.ticks
    limit = np.full(len(delay), delay.max()) if limit is None else np.maximum(limit, delay)
    found = group_cdfs(delay, limit, action_of_conversions(plan), n_groups=plan.log.n_actions)
    return found(longest, np.arange(plan.log.n_actions))


def action_of_conversions(plan: ReplayPlan) -> Ints:
    """Return the action of each conversion's display, shape (c,)."""
    displays, of = np.unique(plan.survey.display, return_inverse=True)
    return _actions(plan.log, displays)[of]


def _actions(log: Log, displays: Ints) -> Ints:
    action: Ints = to_numpy(log.take(displays, ["action"])["action"]).astype(np.int64)
    return action


def sales_alone(log: Log) -> Log:
    """Return a log without refunds, costs and outcomes, and without bounds on what is left of a sale."""
    sold = sales(log.conversions)
    if sold is None:
        return log
    table = log.conversions.select(["display_id", "time", "value"]).filter(sold)
    sold_alone = log.with_conversions(table).with_meta(reward_max=None, reward_min=None)
    return sold_alone.without_outcomes() if log.meta.outcomes else sold_alone


def fit_money(survey: Survey, laws: DelayLaws, longest: int | None, *, in_time: bool) -> TwinMoney | None:
    """Return what twins earn and cost; None where the log has neither refunds nor costs, nor outcomes that count.

    The survey is of the log with all of these, `laws` are those of its sales, and `longest` is the attribution window
    in ticks of the twins, None where there is none. Twins have times if `in_time`, else they count displays.
    """
    log, k = survey.log, survey.log.n_actions
    costs = LogCosts(log) if has_costs(log) else None
    shown, left_out = _sold_displays(survey, longest, in_time=in_time)
    refunded = bool((shown.lag >= 0).any())
    others = [kind for kind in survey.kinds if not kind.of_conversions]
    if costs is None and not refunded and not others:
        return None
    refunds = _fit_refunds(shown, laws, longest, left_out, k) if refunded else None
    kept = shown.lag < 0
    sold = own_or_all(shown.sold[kept], shown.action[kept], k, fewest=_FEWEST)
    outcomes = tuple(_fit_outcome(survey, kind, in_time=in_time) for kind in others)
    return TwinMoney(pools_of(*sold, k), refunds, costs, outcomes)


class _SoldDisplays(NamedTuple):
    """The displays of a log that sold something, n of them; ticks are those of the twins.

    Their actions, the sums of their sales and of what refunds took back (at least 0), the ticks between the first sale
    and the first refund (-1 without a refund), and those for which each was followed after its first sale.
    """

    action: Ints
    sold: Floats
    taken: Floats
    lag: Ints
    watched: Ints


def _sold_displays(survey: Survey, longest: int | None, *, in_time: bool) -> tuple[_SoldDisplays, int]:
    """Return the displays that sold something, and how many have refunds and no sale."""
    own = [kind.marked(len(survey.display)) for kind in survey.kinds if kind.of_conversions]
    events = np.flatnonzero(np.any(own, axis=0))
    delay, limit = _delays(survey, events, longest, in_time=in_time)
    value = to_numpy(survey.log.conversions["value"])[events].astype(np.float64)
    displays, of = np.unique(survey.display[events], return_inverse=True)
    n, sale = len(displays), value >= 0.0
    sold_at, back_at, watched = np.full(n, _NEVER), np.full(n, _NEVER), np.zeros(n, np.int64)
    np.minimum.at(sold_at, of[sale], delay[sale])
    np.minimum.at(back_at, of[~sale], delay[~sale])
    np.maximum.at(watched, of, limit)
    sold = np.bincount(of, np.maximum(value, 0.0), n).astype(np.float64)
    taken = np.bincount(of, np.maximum(-value, 0.0), n).astype(np.float64)
    some, back = sold > 0.0, back_at < _NEVER
    lag = np.where(back, np.maximum(back_at - np.where(some, sold_at, 0), 0), -1)
    after = np.maximum(watched - np.where(some, sold_at, 0), np.maximum(lag, 0))
    found = _SoldDisplays(_actions(survey.log, displays)[some], sold[some], taken[some], lag[some], after[some])
    return found, int((back & ~some).sum())


def _fit_refunds(shown: _SoldDisplays, sales: DelayLaws, longest: int | None, left_out: int, k: int) -> EventLaw:
    """Return the refunds of twins with K actions, given the laws of sales and the displays with refunds left out.

    A sale's chance to come back is the number of refunds seen over that of sales, each counted with the chance that its
    refund would have been seen by now: by action, drawn towards the mean as rates of conversions are.
    """
    back = shown.lag >= 0
    action = shown.action[back]
    lag = shown.lag[back]
    found = group_cdfs(lag, np.maximum(shown.watched[back], lag), action, n_groups=k)
    chance = found(shown.watched, shown.action)
    sold: Floats = np.bincount(shown.action, weights=chance, minlength=k).astype(np.float64)
    returned: Floats = np.bincount(action, minlength=k).astype(np.float64)
    rates = rates_by_action(np.minimum(returned, sold), sold)
    value, taken = shown.sold[back], shown.taken[back]
    rare = np.flatnonzero(returned < _FEWEST)
    own = ~np.isin(action, rare)
    # Its own sales, or all, come back by the share that all refunds take.
    spare, of = own_or_all(shown.sold, shown.action, k, fewest=_FEWEST)
    few = np.isin(of, rare)
    taken = np.concatenate([taken[own], float(taken.sum() / value.sum()) * spare[few]])
    value = np.concatenate([value[own], spare[few]])
    of = np.concatenate([action[own], of[few]])
    said = (
        f"of sales, {returned.sum() / max(sold.sum(), 1e-300):.3g} come back, by action from {rates.table.min():.3g} "
        f"to {rates.table.max():.3g}; waits between a sale and its refund "
        + ("by laws that depend on the action" if (found.weight > 0).any() else "by one law for all actions")
    )
    if left_out:
        said += f" ({left_out:,} displays have refunds without a sale, which twins have not)"
    return EventLaw(
        kind=EventKind(name=REFUNDS, attribution_window=longest, reward=True, told=True),
        rate=rates.table[0],
        values=pools_of(-taken, of, k),
        laws=_laws(found, said),
        said=said,
        after=sales,
        worth=pools_of(value, of, k),
    )


def _fit_outcome(survey: Survey, kind: RewardKind, *, in_time: bool) -> EventLaw:
    """Return the events of an outcome, as they come of the displays that were followed for its window.

    All events of a display are one, as late as the first of them. Rates are drawn towards their mean as those of
    conversions are; delays are fitted to all displays.
    """
    log, k, window, until = survey.log, survey.log.n_actions, kind.attribution_window, kind.observed_until
    longest = window if window is None or in_time else in_displays(survey, window)
    events = np.flatnonzero(kind.marked(len(survey.display)))
    delay, limit = _delays(survey, events, longest, in_time=in_time)
    display, of = np.unique(survey.display[events], return_inverse=True)
    first, watched = np.full(len(display), _NEVER), np.zeros(len(display), np.int64)
    np.minimum.at(first, of, delay)
    np.maximum.at(watched, of, limit)
    action = _actions(log, display)
    value = np.bincount(of, to_numpy(log.conversions["value"])[events], len(display)).astype(np.float64)
    judged = len(log) if until is None or window is None else survey.displays_until(until - window)
    if judged == 0:
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {kind.name} for its attribution window, so no truth "
            "can be fitted to it.",
            remedy="audit a log that covers more time.",
        )
    shown = survey.shown_first(judged).astype(np.float64)
    came = np.bincount(action[display < judged], minlength=k).astype(np.float64)
    rate = rates_by_action(came, shown).table[0] if came.any() else np.zeros(k)
    return EventLaw(
        kind=EventKind(
            name=kind.name, attribution_window=longest, value_max=kind.value_max, reward=True, told=kind.told,
            value_min=kind.value_min,
        ),
        rate=rate,
        values=pools_of(*own_or_all(value, action, k, fewest=_FEWEST), k),
        laws=_laws(group_cdfs(first, np.maximum(watched, first), action, n_groups=k), kind.name)
        if len(display)
        else DelayLaws(np.zeros(1, np.int64), np.ones((1, 1)), np.zeros(k, np.int64), kind.name),
        said=f"{kind.name} comes of {rate.min():.3g} to {rate.max():.3g} of the displays by action, whether they sold "
        "or not, and by delays and values of its own",
        beyond=None if until is None else followed_after(survey, until, in_time=in_time),
    )  # fmt: skip


def _delays(survey: Survey, events: Ints, longest: int | None, *, in_time: bool) -> tuple[Ints, Ints]:
    """Return the delays of events, and the longest that would have been seen, in ticks of twins, shape (c,) each."""
    limits = survey.limit_ticks() if in_time else survey.limit
    scale = 1.0 if in_time else survey.kept
    delay, limit = (
        None if of is None else np.rint(of[events] * scale).astype(np.int64) if scale != 1.0 else of[events]
        for of in ((survey.delay_ticks if in_time else survey.delay), limits)
    )
    assert delay is not None
    if limit is None:
        limit = np.full(len(delay), int(delay.max(initial=0)))
    if longest is not None:
        limit = np.minimum(limit, longest) if limits is not None else np.full(len(delay), longest)
    return delay, limit


def in_displays(survey: Survey, ticks: float) -> int:
    """Return how many displays of the traffic of twins come in so many ticks of the log."""
    rate = survey.rate * survey.kept
    return round(ticks * rate) if np.isfinite(rate) else 0


def followed_after(survey: Survey, until: int | None, *, in_time: bool) -> int:
    """Return how long the log was followed after its last display, in ticks, or in displays where twins count rounds.

    It is below 0 where the log was not followed to its last display.
    """
    last = int(to_numpy(survey.log.take(np.array([len(survey.log) - 1]), ["time"])["time"])[0])
    if in_time:
        return (last if until is None else until) - last
    if until is None or until <= last:
        return survey.displays_until(until if until is not None else last) - len(survey.log)
    return in_displays(survey, until - last)
