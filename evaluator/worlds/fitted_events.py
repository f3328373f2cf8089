"""The event laws of twins, fitted to a log: delays, refunds, costs, and the outcomes that count as rewards.

Delays are fitted as a replay corrects young displays: right-truncated where a display was not followed to its end, by
action where the log can tell the actions apart (`evaluator.delays.product_limit`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.product_limit import GroupCDFs, group_cdfs
from evaluator.errors import DataError
from evaluator.log import Log
from evaluator.log.log_tables import REFUNDS, EventKind
from evaluator.log.reward_kinds import RewardKind, has_costs, sales
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.rounds.survey import Survey
from evaluator.worlds.event_laws import DelayLaws, EventLaw, LogCosts, TwinMoney, own_or_all, pools_of
from evaluator.worlds.rates import rates_by_action

# Refunds of an action from which its own are drawn; of fewer, its sales come back by the share of all. Of as few sales
# or events of its own, the values of all stand for them.
_FEWEST = 10
_NEVER = np.iinfo(np.int64).max

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
