"""The kinds of events that a display's reward consists of: sales, refunds, costs, and outcomes that count as rewards.

A log keeps its conversions, whose sign tells sales from refunds, what each display cost as a column, and the events of
outcomes in a table of their own. For a replay, `with_rewards` puts all that counts into the conversions, each event
with its kind, so that whatever reads conversions (replays, references, bootstraps) values it without knowing of kinds.
What depends on the kind asks `reward_kinds`: who is told, how long the events were followed, their delays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evaluator.errors import LogError
from evaluator.log.contract import Log
from evaluator.log.meta import REFUNDS, SALES, EventKind, LogMeta
from evaluator.log.schema import CONVERSIONS, COST, OUTCOME, to_numpy

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
# Column of conversions that says of which kind each is: an outcome's name, or one of these; a log that was read has
# none. It is a dictionary, which lists costs where these count, even of displays that cost nothing.
KIND = "kind"
_CONVERSION, _COST = "", "(cost)"
REVENUE, COSTS = "revenue", "cost"


def events_of(log: Log, name: str) -> Log:
    """Return the log whose conversions are the events of a kind, followed as these were.

    Parameters
    ----------
    log
        Log, as it was read.
    name
        Name of the kind: that of an outcome; ``sales`` and ``refunds``, the conversions of at least 0 and below;
        ``cost``, what each display cost, above 0; ``revenue``, or empty, for all conversions.
    """
    if any(one.name == name for one in log.meta.outcomes):
        return log.of_outcome(name)
    # What is known of a display's sum bounds none of its parts: after a refund it may buy again.
    unknown: dict[str, float | None] = {"reward_min": None, "reward_max": None}
    if name == COSTS:
        spent = _costs(log)
        columns = [spent["display_id"], spent["time"], pc.negate(spent["value"])]
        costs = pa.table(dict(zip(CONVERSIONS, columns, strict=True))).cast(pa.schema(CONVERSIONS))
        return log.with_conversions(costs).with_meta(observed_until=None, attribution_window=None, **unknown)
    sold = sales(log.conversions)
    if sold is None or name not in (SALES, REFUNDS):
        return log
    if name == REFUNDS:
        unknown["reward_max"] = 0.0
    return log.with_conversions(log.conversions.filter(pa.array(sold == (name == SALES)))).with_meta(**unknown)


def name_kind(log: Log, name: str) -> str:
    """Return the name of a kind of events that the log has: of an outcome, or of its money.

    Raises
    ------
    UnknownNameError
        The log has no such events.
    """
    has = [SALES, REVENUE] + [REFUNDS] * (sales(log.conversions) is not None) + [COSTS] * has_costs(log)
    return name if name in has else log.outcome_named(name).name


def may_be_below_0(log: Log, name: str) -> bool:
    """Whether values of a kind of events may be below 0."""
    if any(one.name == name for one in log.meta.outcomes):
        return log.outcome_named(name).reward
    return name not in (SALES, COSTS) and sales(log.conversions) is not None


def event_kinds(log: Log) -> list[str]:
    """Return the names of the kinds of events that a log which was read has some of: conversions first, then outcomes.

    Conversions are sales and refunds where some have a value below 0, else one kind with an empty name, though there
    be none.
    """
    sold = sales(log.conversions)
    seen = set(log.outcomes[OUTCOME].unique().to_pylist())
    own = [""] if sold is None else [SALES] * bool(sold.any()) + [REFUNDS]
    return [*own, *(one.name for one in log.meta.outcomes if one.name in seen)]


@dataclass(frozen=True, kw_only=True, eq=False)
class RewardKind(EventKind):
    """Events of one kind that count as rewards, and that come some time after their display.

    Parameters
    ----------
    rows
        Which conversions are of the kind, shape (c,); None where all are.
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


def refuse_counted(log: Log, what: str) -> None:
    """Raise LogError if outcomes of a log count as rewards, for `what` knows of none but its conversions."""
    if counted := counted_outcomes(log.meta):
        raise LogError(
            f"Outcome {counted[0].name!r} of log {log.meta.name!r} counts as a reward, and {what} know of conversions "
            "alone.",
            remedy=f"leave it out of the log, or take `reward = true` out of [outcomes.{counted[0].name}].",
        )


def with_rewards(log: Log, *, costs: bool) -> Log:
    """Return a log in whose conversions all events are that count as rewards.

    A cost is an event of the display's own time, below 0. Memory: 26 bytes an event, and for each display that costs
    something. A log without costs and outcomes that count, or that has them already, is returned as it is.

    Parameters
    ----------
    log
        Log, as it was read.
    costs
        Whether what displays cost counts.
    """
    counted = counted_outcomes(log.meta)
    if KIND in log.conversions.column_names or not (costs or counted):
        return log
    names = [one.name for one in counted]
    # A display's cost comes first: before a conversion of the same time.
    parts = [(_costs(log), _COST)] if costs else []
    parts += [(log.conversions, _CONVERSION)]
    parts += [(log.outcomes.filter(pc.equal(log.outcomes[OUTCOME], name)), name) for name in names]
    kinds = [_CONVERSION, *[_COST] * costs, *names]
    code = np.repeat(np.array([kinds.index(name) for _, name in parts], np.int8), [len(rows) for rows, _ in parts])
    columns = {name: np.concatenate([to_numpy(rows[name]) for rows, _ in parts]) for name in CONVERSIONS}
    order = np.lexsort([columns["time"], columns["display_id"]])
    table = {name: pa.array(columns[name][order], kind) for name, kind in CONVERSIONS.items()}
    kind = pa.DictionaryArray.from_arrays(pa.array(code[order]), pa.array(kinds))
    return log.with_conversions(pa.table({**table, KIND: kind})).as_sound_as(log)


def _costs(log: Log) -> pa.Table:
    display, time, value = [], [], []
    for first, batch in log.batches(["time", COST]):
        at = np.flatnonzero(batch[COST])
        display.append(first + at)
        time.append(batch["time"][at])
        value.append(-batch[COST][at])
    columns = zip(("display_id", "time", "value"), (display, time, value), strict=True)
    return pa.table({name: np.concatenate(parts) for name, parts in columns})


def _codes(conversions: pa.Table) -> tuple[list[str], npt.NDArray[np.int8]] | None:
    """Return the names of kinds, and the number of each conversion's, shape (c,); None in a log that was read."""
    if KIND not in conversions.column_names:
        return None
    found = conversions[KIND].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0)
    return found.dictionary.to_pylist(), found.indices.to_numpy()


def counts_costs(conversions: pa.Table) -> bool:
    """Whether what displays cost counts as a reward, though they may cost nothing."""
    found = _codes(conversions)
    return found is not None and _COST in found[0]


def cost_events(conversions: pa.Table) -> Mask | None:
    """Return which conversions are costs, shape (c,), or None if costs do not count."""
    found = _codes(conversions)
    return None if found is None or _COST not in found[0] else np.asarray(found[1] == found[0].index(_COST))


def number_of_conversions(conversions: pa.Table) -> int:
    """Return how many events are conversions: sales or refunds."""
    found = _codes(conversions)
    return conversions.num_rows if found is None else int(np.count_nonzero(found[1] == 0))


def sales(conversions: pa.Table) -> Mask | None:
    """Return which conversions are sales, of which delays are those of the log, shape (c,).

    None where all are. Values of 0 count as sales.
    """
    value, found = to_numpy(conversions["value"]), _codes(conversions)
    if found is not None:
        return np.asarray((value >= 0.0) & (found[1] == 0)) if len(value) else None
    return None if not len(value) or value.min() >= 0.0 else np.asarray(value >= 0.0)


def reward_kinds(log: Log) -> list[RewardKind]:
    """Return the kinds of the conversions that come after their display: sales, refunds, outcomes that count.

    Refunds are there where the log has any. Costs, which come with their display, are no such kind.
    """
    meta, sold, found = log.meta, sales(log.conversions), _codes(log.conversions)
    own = vars(meta.conversions)
    kinds = [RewardKind(**{**own, "name": SALES}, rows=sold)]
    if sold is not None:
        back = ~sold if found is None else ~sold & (found[1] == 0)
        kinds += [RewardKind(**{**own, "name": REFUNDS}, rows=back)] if back.any() else []
    if found is None:
        return kinds
    for one in counted_outcomes(meta):
        kinds.append(RewardKind(**vars(one), rows=np.asarray(found[1] == found[0].index(one.name))))
    return kinds


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
