"""The truth of a log's twins: everything a twin is drawn from, fitted to the log once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import DataError
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import unpack
from evaluator.log.reward_kinds import rewards_alone
from evaluator.log.schema import ELIGIBLE, TARGET, is_uneven
from evaluator.log.vectors_of_displays import display_vectors, readable_vectors
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import Basis, plan_replay, read_basis
from evaluator.replays.values.rewards import logged_rewards
from evaluator.units import ROUND
from evaluator.worlds.arrivals import DisplayTimes, HourFactors, converted_and_shown, fit_hours, read_traffic
from evaluator.worlds.disk_column import taken
from evaluator.worlds.event_laws import DelayLaws, TwinMoney
from evaluator.worlds.fitted_events import (
    fit_delay_laws,
    fit_money,
    followed_after,
    in_displays,
    sales_alone,
    shares_within_window,
)
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
    cdf: DelayCDF  # of all actions together; in a truth made for one law (`evaluator.worlds.estimand`) of that one
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
