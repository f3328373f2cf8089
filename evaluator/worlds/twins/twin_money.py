"""What twins earn and cost where a log has refunds, costs, or outcomes that count: by action, as the log's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.by_group import group_cdfs
from evaluator.errors import DataError
from evaluator.log import Log
from evaluator.log.meta import EventKind, LogMeta
from evaluator.log.reward_kinds import RewardKind, has_costs, sales
from evaluator.log.schema import COST, to_numpy
from evaluator.replays.rounds.survey import Survey
from evaluator.worlds.twins.rates import rates_by_action
from evaluator.worlds.twins.twin_delays import DelayLaws
from evaluator.worlds.twins.twin_refunds import (
    ActionPools,
    SoldDisplays,
    TwinRefunds,
    fit_refunds,
    own_or_all,
    pools_of,
)

# Sales of an action from which its values are drawn; of fewer, values are those of all.
_FEWEST = 10

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class LogCosts:
    """What the displays of a log cost, read once it is asked for: an audit of revenue never does.

    Memory, once read: 8 bytes a display.

    Parameters
    ----------
    log
        Log whose displays have costs.
    """

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def pools(self) -> ActionPools:
        """Costs of displays, by action."""
        k = self._log.n_actions
        cost, action = (np.concatenate([of[name] for _, of in self._log.batches([name])]) for name in (COST, "action"))
        return pools_of(*own_or_all(cost.astype(np.float64, copy=False), action, k, fewest=1), k)


@dataclass(frozen=True, eq=False)
class TwinOutcome:
    """Events of an outcome that counts as a reward: they come of a display by its action, whether it sold or not.

    Parameters
    ----------
    kind
        What a twin says of the outcome, with its attribution window in ticks of the twins; its follow-up is of a twin.
    rate
        Chance that a display of each action has an event within the window, shape (K,).
    values
        Values of the displays that have one, all their events together, by action.
    laws
        Laws of the delay of the first of these events, by action.
    beyond
        Ticks for which the log was followed for these events after its last display; None where to their end.
    """

    kind: EventKind
    rate: Floats
    values: ActionPools
    laws: DelayLaws
    beyond: int | None

    @property
    def brought(self) -> Floats:
        """What a display of each action is expected to bring, shape (K,)."""
        found: Floats = self.rate * self.values.means
        return found

    @property
    def said(self) -> str:
        """Sentence that says what the events are."""
        return (
            f"{self.kind.name} comes of {self.rate.min():.3g} to {self.rate.max():.3g} of the displays by action, "
            "whether they sold or not, and by delays and values of its own"
        )


@dataclass(frozen=True, eq=False)
class TwinMoney:
    """What sales bring, give back and cost, and what outcomes bring.

    Parameters
    ----------
    sold
        Values of sales that do not come back, by action.
    refunds
        Refunds; None where the log has none.
    costing
        Costs of displays; None where the log has none.
    outcomes
        Outcomes that count as rewards.
    """

    sold: ActionPools
    refunds: TwinRefunds | None
    costing: LogCosts | None
    outcomes: tuple[TwinOutcome, ...] = ()

    @property
    def costs(self) -> ActionPools | None:
        """Costs of displays, by action; None where the log has none."""
        return None if self.costing is None else self.costing.pools

    @cached_property
    def worth(self) -> Floats:
        """Expected value of a sale of each action, before its refund, shape (K,)."""
        if self.refunds is None:
            return self.sold.means
        rate = self.refunds.rate
        found: Floats = (1.0 - rate) * self.sold.means + rate * self.refunds.sold.means
        return found

    @property
    def owed(self) -> Floats:
        """What a sale of each action is expected to give back, shape (K,)."""
        return np.zeros(len(self.worth)) if self.refunds is None else self.refunds.owed

    @property
    def squares(self) -> Floats:
        """Expected square of what is left of a sale of each action, shape (K,)."""
        kept = self.sold._replace(flat=self.sold.flat**2).means
        if self.refunds is None:
            return kept
        left = self.refunds.sold._replace(flat=(self.refunds.sold.flat - self.refunds.taken) ** 2).means
        found: Floats = (1.0 - self.refunds.rate) * kept + self.refunds.rate * left
        return found

    @property
    def said(self) -> tuple[str, ...]:
        """Sentences that say what twins have."""
        return (
            "sales are worth what one of the log's was of the same action",
            *([] if self.refunds is None else [self.refunds.said]),
            *([] if self.costing is None else ["displays cost what one of the log's did of the same action"]),
            *(one.said for one in self.outcomes),
        )

    def bounds(self, meta: LogMeta) -> LogMeta:
        """Return metadata whose bounds hold what a sale may bring, and what may be left of it."""
        most, least = meta.reward_max, meta.reward_min
        pools = [self.sold.flat] + ([] if self.refunds is None else [self.refunds.sold.flat])
        if most is not None:
            most = max(most, *(float(pool.max(initial=0.0)) for pool in pools))
        if least is not None and self.refunds is not None:
            least = min(least, float((self.refunds.sold.flat - self.refunds.taken).min(initial=0.0)))
        return replace(meta, reward_max=most, reward_min=least)


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

    Parameters
    ----------
    survey
        The log with its refunds and outcomes, and its costs if these are among its conversions.
    laws
        Delay laws of the sales.
    longest
        Attribution window in ticks of the twins; None where there is none.
    in_time
        Whether twins have times; else they count displays.
    """
    log, k = survey.log, survey.log.n_actions
    costs = LogCosts(log) if has_costs(log) else None
    shown, left_out = _sold_displays(survey, longest, in_time=in_time)
    refunded = bool((shown.lag >= 0).any())
    others = [kind for kind in survey.kinds if not kind.of_conversions]
    if costs is None and not refunded and not others:
        return None
    refunds = fit_refunds(shown, laws, longest, left_out, k) if refunded else None
    kept = shown.lag < 0
    sold = own_or_all(shown.sold[kept], shown.action[kept], k, fewest=_FEWEST)
    outcomes = tuple(_fit_outcome(survey, kind, in_time=in_time) for kind in others)
    return TwinMoney(pools_of(*sold, k), refunds, costs, outcomes)


def _fit_outcome(survey: Survey, kind: RewardKind, *, in_time: bool) -> TwinOutcome:
    """Return the events of an outcome, as they come of the displays that were followed for its window.

    Rates are drawn towards their mean as those of conversions are; delays are fitted as those of conversions are, to
    all displays, right-truncated where these were not followed for the window.
    """
    log, k, window, until = survey.log, survey.log.n_actions, kind.attribution_window, kind.observed_until
    longest = window if window is None or in_time else in_displays(survey, window)
    events = np.flatnonzero(kind.marked(len(survey.display)))
    delay, limit = _delays(survey, events, longest, in_time=in_time)
    display, of = np.unique(survey.display[events], return_inverse=True)
    first, watched = np.full(len(display), np.iinfo(np.int64).max), np.zeros(len(display), np.int64)
    np.minimum.at(first, of, delay)
    np.maximum.at(watched, of, limit)
    action = to_numpy(log.take(display, ["action"])["action"]).astype(np.int64)
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
    if len(display):
        found = group_cdfs(first, np.maximum(watched, first), action, n_groups=k)
        laws = DelayLaws(found.grid, found.table[:, 1:], found.row, kind.name)
    else:
        laws = DelayLaws(np.zeros(1, np.int64), np.ones((1, 1)), np.zeros(k, np.int64), kind.name)
    return TwinOutcome(
        kind=EventKind(
            name=kind.name, attribution_window=longest, value_max=kind.value_max, reward=True, told=kind.told,
            value_min=kind.value_min,
        ),
        rate=rates_by_action(came, shown).table[0] if came.any() else np.zeros(k),
        values=pools_of(*own_or_all(value, action, k, fewest=_FEWEST), k),
        laws=laws,
        beyond=None if until is None else followed_after(survey, until, in_time=in_time),
    )  # fmt: skip


def in_displays(survey: Survey, ticks: float) -> int:
    """Return how many displays of the traffic of twins come in so many ticks of the log."""
    rate = survey.rate * survey.kept
    return round(ticks * rate) if np.isfinite(rate) else 0


def followed_after(survey: Survey, until: int | None, *, in_time: bool) -> int:
    """Return how long the log was followed after its last display; below 0 where it was not to its end.

    In ticks, or in displays where twins count rounds.
    """
    last = int(to_numpy(survey.log.take(np.array([len(survey.log) - 1]), ["time"])["time"])[0])
    if in_time:
        return (last if until is None else until) - last
    if until is None or until <= last:
        return survey.displays_until(until if until is not None else last) - len(survey.log)
    return in_displays(survey, until - last)


class MoneyEvents(NamedTuple):
    """Sales and refunds of a twin.

    Parameters
    ----------
    display, wait, value
        Display of each event, its delay in ticks and its value, below 0 for a refund, shape (c,).
    """

    display: Ints
    wait: Ints
    value: Floats


def draw_events(
    money: TwinMoney, action: Ints, sold: Ints, wait: Ints, worth: Floats, luck: Sequence[np.random.Generator]
) -> MoneyEvents:
    """Return what sales bring, and which come back and when.

    Parameters
    ----------
    money
        What is drawn from.
    action
        Action of each display, shape (n,).
    sold, wait
        Displays that sell, and the delays of their sales in ticks, shape (c,).
    worth
        Uniform number of each display, shape (n,), which says what its sale is worth.
    luck
        Streams of which sales come back, and of the waits for it.
    """
    n = len(action)
    of, worth = action[sold], worth[sold]
    value = money.sold.drawn(of, worth)
    refunds = money.refunds
    if refunds is None:
        return MoneyEvents(sold, wait, value)
    back = luck[0].random(n)[sold] < refunds.rate[of]
    value[back] = refunds.sold.drawn(of[back], worth[back])
    taken = ActionPools(refunds.taken, refunds.sold.first).drawn(of[back], worth[back])
    returned = wait[back] + refunds.lags.drawn(of[back], luck[1].random(n)[sold[back]])
    kept = np.ones(len(taken), np.bool_) if refunds.longest is None else returned <= refunds.longest
    display = np.concatenate([sold, sold[back][kept]])
    # A sale comes before its refund.
    order = np.argsort(display, kind="stable")
    return MoneyEvents(
        display[order],
        np.concatenate([wait, returned[kept]])[order],
        np.concatenate([value, -taken[kept]])[order],
    )


def draw_outcome(one: TwinOutcome, action: Ints, luck: Sequence[np.random.Generator]) -> MoneyEvents:
    """Return the events of an outcome of some displays, given three streams: whether one comes, how late, its value."""
    comes, late, worth = (of.random(len(action)) for of in luck)
    display = np.flatnonzero(comes < one.rate[action])
    of = action[display]
    return MoneyEvents(display, one.laws.drawn(of, late[display]), one.values.drawn(of, worth[display]))


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


def _sold_displays(survey: Survey, longest: int | None, *, in_time: bool) -> tuple[SoldDisplays, int]:
    """Return the displays that sold something, and how many have refunds and no sale."""
    log = survey.log
    own = [kind.marked(len(survey.display)) for kind in survey.kinds if kind.of_conversions]
    events = np.flatnonzero(np.any(own, axis=0))
    delay, limit = _delays(survey, events, longest, in_time=in_time)
    value = to_numpy(log.conversions["value"])[events].astype(np.float64)
    displays, of = np.unique(survey.display[events], return_inverse=True)
    n, never = len(displays), np.iinfo(np.int64).max
    sale, sold_at, back_at = value >= 0.0, np.full(n, never), np.full(n, never)
    np.minimum.at(sold_at, of[sale], delay[sale])
    np.minimum.at(back_at, of[~sale], delay[~sale])
    watched = np.zeros(n, np.int64)
    np.maximum.at(watched, of, limit)
    sold = np.bincount(of, np.maximum(value, 0.0), n).astype(np.float64)
    taken = np.bincount(of, np.maximum(-value, 0.0), n).astype(np.float64)
    action = to_numpy(log.take(displays, ["action"])["action"]).astype(np.int64)
    some, back = sold > 0.0, back_at < never
    lag = np.where(back, np.maximum(back_at - np.where(some, sold_at, 0), 0), -1)
    after = np.maximum(watched - np.where(some, sold_at, 0), np.maximum(lag, 0))
    found = SoldDisplays(action[some], sold[some], taken[some], sold_at[some], lag[some], after[some])
    return found, int((back & ~some).sum())
