"""The kinds of events that a display's reward consists of: sales, refunds, costs, and outcomes that count as rewards.

A log keeps its events with their kinds, and what each display cost as a column; the sign of conversions tells sales
from refunds. For a replay, `with_rewards` counts all that is reward among the conversions, each event with its kind, so
that whatever reads conversions (replays, references, bootstraps) values it without knowing of kinds.
What depends on the kind asks `reward_kinds`: who is told, how long the events were followed, their delays.

Bounds of what a display earns, which users of a log set or cuts make, and the running sums of its events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import LogError, ParameterError, UnknownNameError, nearest
from evaluator.log.contract import Log
from evaluator.log.log_tables import (
    CONVERSION,
    COSTS,
    REFUNDS,
    REVENUE,
    SALES,
    EventKind,
    LogMeta,
    choose_kinds,
    kinds_of,
    mark_kind,
    merge_events,
    with_kind,
)
from evaluator.log.schema import COST, EVENTS, KIND, to_numpy
from evaluator.results.json_documents import AboveZero, Count, NotNegative
from evaluator.units import duration_ticks, parse_whole

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# Sums of money are rounded.
_ROUNDING = 1e-9
Floats = npt.NDArray[np.float64]


def events_of(log: Log, name: str) -> Log:
    """Return the log whose conversions are the events of a kind, followed as these were.

    The name is that of an outcome; ``sales`` and ``refunds``, the conversions of at least 0 and below; ``cost``, what
    each display cost, above 0; ``revenue``, all that counts as reward but for costs; or empty, for all conversions.
    """
    if any(one.name == name for one in log.meta.outcomes):
        return log.of_outcome(name)
    if name == REVENUE:
        return with_rewards(log, costs=False)
    # What is known of a display's sum bounds none of its parts: after a refund it may buy again.
    unknown: dict[str, float | None] = {"reward_min": None, "reward_max": None}
    if name == COST:
        spent = _costs(log)
        costs = spent.set_column(2, "value", pa.array(-to_numpy(spent["value"]))).cast(pa.schema(EVENTS))
        return log.with_conversions(costs).with_meta(observed_until=None, attribution_window=None, **unknown)
    sold = sales(log.conversions)
    if sold is None or name not in (SALES, REFUNDS):
        return log
    if name == REFUNDS:
        unknown["reward_max"] = 0.0
    return log.with_conversions(log.conversions.filter(pa.array(sold == (name == SALES)))).with_meta(**unknown)


def events_that_teach(log: Log, learn_from: str) -> Log:
    """Return the log whose conversions are the events that teach a policy which learns from an outcome, or from sales.

    ``click@1d`` are those within a day of their display, which need to be followed no longer than that.

    Raises
    ------
    UnknownNameError
        The log has no such events.
    ParameterError
        They are no rewards, or the time is none.
    """
    name, at, within = learn_from.partition("@")
    if name in (REFUNDS, COST):
        raise ParameterError(
            f"`learn_from={learn_from!r}`: {name} is a loss, and a policy learns from rewards.",
            remedy="tell it the objective, which takes losses off: `learn_from='objective'`.",
        )
    outcomes = [one.name for one in log.meta.outcomes]
    name = SALES if name == "sale" and name not in outcomes else name
    if "," in learn_from:
        raise ParameterError(
            f"`learn_from={learn_from!r}` names several, and a replay has one.", remedy="`compare` takes several."
        )
    if name not in (*outcomes, SALES):
        raise UnknownNameError(
            f"`learn_from={learn_from!r}`: log {log.meta.name!r} has no such events.",
            remedy=nearest(name, ["objective", REVENUE, SALES, *outcomes]),
        )
    found = events_of(log, name)
    if not at:
        return found
    try:
        longest = parse_whole(within) if log.meta.tick_seconds is None else None
        if longest is None:
            if log.meta.tick_seconds is None:
                raise ParameterError("This log counts rounds, not time.", remedy=f"write rounds: {name}@500.")
            longest = int(duration_ticks(within, log.meta.tick_seconds) * (1.0 + 1e-12))
    except ParameterError as error:
        raise ParameterError(f"`learn_from={learn_from!r}`: {error.what}", remedy=error.remedy) from None
    if not longest:
        raise ParameterError(f"`learn_from={learn_from!r}` is out of range.", remedy=f"give a time above 0: {name}@1d.")
    shown = np.empty(found.conversions.num_rows, np.int64)
    of, when = (to_numpy(found.conversions[column]) for column in ("display_id", "time"))
    for first, batch in log.batches(["time"]):
        low, high = np.searchsorted(of, [first, first + len(batch["time"])])
        shown[low:high] = batch["time"][of[low:high] - first]
    known = found.meta.attribution_window
    early = found.with_conversions(found.conversions.filter(pa.array(when - shown <= longest)))
    return early.with_meta(attribution_window=longest if known is None else min(longest, known))


def name_kind(log: Log, name: str) -> str:
    """Return the name of a kind of events that the log has: of an outcome, or of its money.

    Raises UnknownNameError where the log has no such events.
    """
    has = [SALES, REVENUE] + [REFUNDS] * (sales(log.conversions) is not None) + [COST] * has_costs(log)
    known = [*(one.name for one in log.meta.outcomes), *has]
    if name in (REFUNDS, COST) and name not in known:
        raise UnknownNameError(f"Log {log.meta.name!r} has no {name}.", remedy=nearest(name, known))
    if name not in known:
        how = "" if log.meta.outcomes else " A spec names outcomes as [outcomes.NAME], `Log.from_frames` by `outcomes`."
        what = f"There is no outcome {name!r} in log {log.meta.name!r}."
        raise UnknownNameError(what, remedy=nearest(name, known) + how)
    return name


def may_be_below_0(log: Log, name: str) -> bool:
    """Whether values of a kind of events may be below 0."""
    kinds = [one for one in log.meta.outcomes if one.name == name or (name == REVENUE and one.reward)]
    if any((one.value_min or 0.0) < 0.0 for one in kinds):
        return True
    return name in (REFUNDS, REVENUE) and sales(log.conversions) is not None


def event_kinds(log: Log) -> list[str]:
    """Return the names of the kinds of events that a log which was read has some of: conversions first, then outcomes.

    Conversions are sales and refunds where some have a value below 0, else one kind with an empty name, though there
    be none.
    """
    sold = sales(log.conversions)
    own = [""] if sold is None else [SALES] * bool(sold.any()) + [REFUNDS]
    return [*own, *(one.name for one in log.meta.outcomes if mark_kind(log.events, one.name).any())]


@dataclass(frozen=True, kw_only=True, eq=False)
class RewardKind(EventKind):
    """Events of one kind that count as rewards, and that come some time after their display.

    Which conversions are of the kind is in `rows`, shape (c,); None where all are.
    """

    rows: Mask | None

    @cached_property
    def at(self) -> slice | Ints:
        """Index of them among the conversions."""
        return slice(None) if self.rows is None else np.flatnonzero(self.rows)

    def marked(self, conversions: int) -> Mask:
        """Return which of all conversions are of the kind, shape (c,)."""
        return np.ones(conversions, np.bool_) if self.rows is None else self.rows


def has_costs(log: Log) -> bool:
    """Whether the log says what its displays cost."""
    return COST in log.schema.names


def counted_outcomes(meta: LogMeta) -> list[EventKind]:
    """Return the outcomes that count as rewards."""
    return [one for one in meta.outcomes if one.reward]


def rewards_alone(log: Log) -> Log:
    """Return the log without the events of outcomes that do not count as rewards."""
    counted = counted_outcomes(log.meta)
    if not counted:
        return log.without_outcomes()
    events = choose_kinds(log.events, [CONVERSION, *(one.name for one in counted)])
    return log.changed(events=events).with_meta(outcomes=tuple(counted)).as_sound_as(log)


def refuse_counted(log: Log, what: str) -> None:
    """Raise LogError if outcomes of a log count as rewards, for `what` knows of none but its conversions."""
    if counted := counted_outcomes(log.meta):
        raise LogError(
            f"Outcome {counted[0].name!r} of log {log.meta.name!r} counts as a reward, and {what} know of conversions "
            "alone.",
            remedy=f"leave it out of the log, or take `reward = true` out of [outcomes.{counted[0].name}].",
        )


def with_rewards(log: Log, *, costs: bool) -> Log:
    """Return a log whose conversions are all events that count as rewards, with costs of displays if `costs` is true.

    A cost is an event of the display's own time, below 0, before its other events. Memory: 25 bytes an event, for each
    display that costs something and, where some events do not count, for each that does. A log without costs and
    outcomes that count, or that has them already, is returned as it is.
    """
    counted = (CONVERSION, *[COSTS] * costs, *(one.name for one in counted_outcomes(log.meta)))
    if len(log.counted) > 1 or len(counted) == 1:
        return log
    events = merge_events(with_kind(_costs(log), COSTS), log.events) if costs else log.events
    return log.changed(events=events, counted=counted).as_sound_as(log)


def _costs(log: Log) -> pa.Table:
    display, time, value = [], [], []
    for first, batch in log.batches(["time", COST]):
        at = np.flatnonzero(batch[COST])
        display.append(first + at)
        time.append(batch["time"][at])
        value.append(-batch[COST][at])
    columns = zip(("display_id", "time", "value"), (display, time, value), strict=True)
    return pa.table({name: np.concatenate(parts) for name, parts in columns})


def counts_costs(conversions: pa.Table) -> bool:
    """Whether what displays cost counts as a reward, though they may cost nothing."""
    found = kinds_of(conversions)
    return found is not None and COSTS in found[0]


def cost_events(conversions: pa.Table) -> Mask | None:
    """Return which conversions are costs, shape (c,), or None if costs do not count."""
    return mark_kind(conversions, COSTS) if counts_costs(conversions) else None


def number_of_conversions(conversions: pa.Table) -> int:
    """Return how many events are conversions: sales or refunds."""
    return int(np.count_nonzero(mark_kind(conversions, CONVERSION)))


def sales(conversions: pa.Table) -> Mask | None:
    """Return which conversions are sales, of which delays are those of the log, shape (c,).

    None where all are. Values of 0 count as sales.
    """
    value = to_numpy(conversions["value"])
    if not len(value):
        return None
    if KIND in conversions.column_names:
        return np.asarray((value >= 0.0) & mark_kind(conversions, CONVERSION))
    return None if value.min() >= 0.0 else np.asarray(value >= 0.0)


def reward_kinds(log: Log) -> list[RewardKind]:
    """Return the kinds of the conversions that come after their display: sales, refunds, outcomes that count.

    Refunds are there where the log has any. Costs, which come with their display, are no such kind.
    """
    meta, sold = log.meta, sales(log.conversions)
    own = vars(meta.conversions)
    kinds = [RewardKind(**{**own, "name": SALES}, rows=sold)]
    if sold is not None:
        back = ~sold & mark_kind(log.conversions, CONVERSION)
        kinds += [RewardKind(**{**own, "name": REFUNDS}, rows=back)] if back.any() else []
    others = [one for one in counted_outcomes(meta) if one.name in log.counted]
    return [*kinds, *(RewardKind(**vars(one), rows=mark_kind(log.conversions, one.name)) for one in others)]


def refunds_at_once(log: Log) -> Log:
    """Return a log in which a display's conversions are one, at its first sale, worth their sum; others as they are."""
    sold = sales(log.conversions)
    if sold is None:
        return log
    of, time, value = (to_numpy(log.conversions[name]) for name in ("display_id", "time", "value"))
    first = np.flatnonzero(np.diff(of, prepend=-1))
    # The first sale of each display; of one with refunds alone, its first refund.
    order = np.lexsort((time, ~sold, of))
    table = {
        "display_id": pa.array(of[first]),
        "time": pa.array(time[order[first]]),
        "value": pa.array(np.add.reduceat(value, first)),
    }
    return log.with_conversions(pa.table(table))


@dataclass(frozen=True)
class CapLoss:
    """What a cap leaves out.

    Parameters
    ----------
    cap
        Largest reward of a display after the cap, in the log's own unit.
    displays
        Number of displays that earn more than the cap.
    left_out
        Sum of what they earn beyond the cap, in the log's own unit.
    share
        Share of what is earned in all, refunds taken off, that is left out.
    refunds
        Whether the log has refunds.
    """

    cap: AboveZero
    displays: Count
    left_out: NotNegative
    share: NotNegative
    refunds: bool = False


def with_bounds(log: Log, *, least: float | None = None, most: float | None = None) -> Log:
    """Return a log that states that no display can ever have earned less than `least`, or more than `most`.

    Raises ParameterError where a display does at some time; the message names the first.
    """
    display, lowest, highest = extremes(*_conversions(log))
    for name, bound, reward, sign, word, hint in (
        ("reward_max", most, highest, 1.0, "more", "at most, or count no more of it than that: `cap={:g}`."),
        ("reward_min", least, lowest, -1.0, "less", "at least, 0 or less: what its refunds can take back."),
    ):
        if bound is None:
            continue
        beyond = np.flatnonzero(sign * reward > sign * bound + _ROUNDING * abs(bound))
        if len(beyond):
            raise ParameterError(
                f"`{name}={bound:g}`: {len(beyond):,} displays of log {log.meta.name!r} earn {word} (display "
                f"{display[beyond[0]]}: {reward[beyond[0]]:g}).",
                remedy=f"name what a display can earn {hint.format(bound)}",
            )
        log = log.with_meta(**{name: bound})
    return log


def with_cap(log: Log, cap: float) -> tuple[Log, CapLoss]:
    """Return a log whose displays earn min(reward, cap), and what that leaves out.

    Conversions of a display count in the order of their times until the cap is reached, as a live system that caps
    would count them: at any time it has earned min(sum so far, cap). So a refund first takes back what is above the
    cap, and counts once the sum falls below it.
    """
    of, value = _conversions(log)
    first = np.flatnonzero(np.diff(of, prepend=-1))
    sums = np.cumsum(value)
    before = np.repeat(sums[first] - value[first], np.diff(np.append(first, len(value)))) if len(value) else sums
    # Of a display's running sum; differences of large sums would round values that no cap touches.
    so_far = sums - before
    touched = np.maximum.reduceat(so_far, first) > cap if len(value) else np.zeros(0, np.bool_)
    inside = np.repeat(touched, np.diff(np.append(first, len(value))))
    counted = np.minimum(so_far, cap)
    counted[1:] -= np.where(of[1:] == of[:-1], counted[:-1], 0.0)
    kept = np.where(inside, counted, value)
    if len(first):  # by rounding, parts may add up to more than the whole
        over, last = np.maximum(np.add.reduceat(kept, first) - cap, 0.0), np.append(first[1:], len(kept)) - 1
        kept[last] -= np.where(touched, 2.0 * over, 0.0)
    total, left = float(value.sum()), float(value.sum() - kept.sum())
    at = log.conversions.schema.get_field_index("value")
    capped = log.with_conversions(log.conversions.set_column(at, "value", pa.array(kept)))
    known = log.meta.reward_max
    found = CapLoss(cap, int(touched.sum()), left, left / total if total > 0 else 0.0, bool((value < 0.0).any()))
    return capped.with_meta(reward_max=cap if known is None else min(cap, known)), found


def _conversions(log: Log) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the display and the value of each conversion."""
    of = to_numpy(log.conversions["display_id"]).astype(np.int64, copy=False)
    return of, to_numpy(log.conversions["value"]).astype(np.float64, copy=False)


def running_sums(display: npt.NDArray[np.int64], value: Floats) -> Floats:
    """Return what the display of each conversion has earned with it and those before it, shape (c,).

    Displays and values are of the conversions, shape (c,), sorted by display, then time.

    >>> running_sums(np.array([0, 0, 3]), np.array([5.0, -2.0, 1.0])).tolist()
    [5.0, 3.0, 1.0]
    """
    sums = value.astype(np.float64)
    if not len(value):
        return sums
    first = np.flatnonzero(np.diff(display, prepend=display[0] - 1))
    # Display by display, as differences of one long sum would round; all second conversions at once, then all third.
    rank = np.arange(len(value)) - np.repeat(first, np.diff(np.append(first, len(value))))
    later = np.flatnonzero(rank)
    later = later[np.argsort(rank[later], kind="stable")]
    bounds = np.flatnonzero(np.diff(rank[later], prepend=0, append=np.iinfo(np.int64).max))
    for low, high in pairwise(bounds):
        sums[later[low:high]] += sums[later[low:high] - 1]
    return sums


def extremes(display: npt.NDArray[np.int64], value: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the distinct displays, and the smallest and largest sum that each has earned at some time.

    The smallest counts the time before its first conversion, and so is never above 0. Parameters as of `running_sums`.
    """
    sums = running_sums(display, value)
    first = np.flatnonzero(np.diff(display, prepend=-1))
    if not len(first):
        return display[first], np.zeros(0), np.zeros(0)
    least = np.minimum(np.minimum.reduceat(sums, first), 0.0)
    return display[first], least, np.maximum.reduceat(sums, first)
