"""What a log says about itself, and its events as one table: display, time, kind and value, by display and time.

The column of kinds is a dictionary, a byte a row; a log whose only events are its conversions has no such column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.encoder import ContextEncoder
from evaluator.log.schema import EVENTS, KIND, KINDS, to_numpy
from evaluator.units import ROUND, SECONDS, Tick

Objective = Literal["profit", "revenue"]
PropensityKind = Literal["logged", "uniform", "estimated", "absent"]
# Kinds of conversions, told apart by their sign.
SALES, REFUNDS = "sales", "refunds"
# What reports and guardrails call all that is reward but for costs; and names that no outcome may have.
REVENUE = "revenue"
NO_OUTCOMES = (SALES, REFUNDS, REVENUE, "cost")
# Fields that bound what a display may earn.
BOUNDS = ("reward_min", "reward_max")
# In the note on rows that a quarantine left out.
LEFT_OUT = "broke a rule and were left out"
Mask = npt.NDArray[np.bool_]
# Names of two kinds that no outcome has: conversions, and what displays cost, which a replay may count as events.
CONVERSION, COSTS = "", "(cost)"
# Column of the kinds in tables of events that are no conversions, and in earlier versions of converted logs.
OUTCOME = "outcome"


@dataclass(frozen=True, kw_only=True)
class EventKind:
    """What a log says of a kind of events: sales, refunds, clicks, complaints, goods that came back damaged.

    Parameters
    ----------
    name
        Name of the kind; empty for the conversions, sales and refunds together.
    attribution_window
        Longest delay (ticks) after its display with which the log records such an event; None where there is no
        cut-off.
    observed_until
        Time (ticks) up to which such events were followed; None where every display was followed to its end.
    value_max
        Largest possible value of one display, all such events of it together; None where unknown (the largest seen is
        used, and said).
    reward
        Whether the events count into a display's reward. Only then may values be negative.
    told
        Whether policies are told of the events as they come; only of those that are rewards.
    value_min
        Smallest possible value of one display, 0 or less; None where unknown.
    """

    name: str
    attribution_window: int | None = None
    observed_until: int | None = None
    value_max: float | None = None
    reward: bool = False
    told: bool = False
    value_min: float | None = None

    @property
    def bound_keys(self) -> tuple[str, str]:
        """Names of the smallest and the largest value of one display, in specs, options and messages."""
        return ("value_min", "value_max") if self.name else ("reward_min", "reward_max")

    @property
    def of_conversions(self) -> bool:
        """Whether the events are conversions, or those of them that are sales or refunds."""
        return self.name in ("", SALES, REFUNDS)


@dataclass(frozen=True, kw_only=True)
class LogMeta:
    """What a log says about itself.

    Parameters
    ----------
    name
        Name of the dataset.
    tick
        Unit of every time in the log: one of ns, us, ms, s, min, h, d, or ``"round"``.
    observed_until
        Time (ticks) up to which conversions were followed; None where every display was followed to its end.
    attribution_window
        Longest delay (ticks) the log records; None where there is no cut-off.
    propensity
        Kind of the propensities: logged, uniform (by design), estimated, or absent.
    reward_max
        Largest possible reward of one display, None where unknown (the largest seen is used, and said).
    reward_min
        Smallest possible reward of one display: below 0 where a refund may be more than the sale. None
        where unknown (0 where no value is negative, else the smallest seen, and that is said).
    objective
        What replays of the log value unless they are told: profit, or revenue where costs are in another unit than the
        values; None for profit where the log has costs.
    sampling_rate
        Share of the traffic's displays that the log holds, taken evenly; what ``position`` and ``weight`` say comes on
        top.
    kept_share
        Share of the displays that were kept when actions were chosen and propensities, which depend on the context,
        stayed those of the full set; 1 where propensities are of the log's own actions.
    fingerprint
        Hash of what the log held when it was read, made or converted: rows, and all that is said here, whatever files
        hold it. Logs that earlier releases converted have the hash of their source; empty where nobody looked.
    counts
        Numbers of what the adapter did: rows read, dropped, de-duplicated... Printed with the result.
    notes
        Sentences that the reader of a result must know (unmeasured confounding, estimated propensities...).
    encoder
        Encoder that says how columns of the source became the contexts; None without, and where nobody noted it.
    outcomes
        Kinds of the events that the log holds beside its conversions.
    """

    name: str
    tick: Tick
    observed_until: int | None = None
    attribution_window: int | None = None
    propensity: PropensityKind = "absent"
    reward_max: float | None = None
    reward_min: float | None = None
    objective: Objective | None = None
    sampling_rate: float = 1.0
    kept_share: float = 1.0
    fingerprint: str = ""
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    encoder: ContextEncoder | None = None
    outcomes: tuple[EventKind, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what the log says of itself, by name; of outcomes that are no rewards, nothing of rewards."""
        about = asdict(self)
        for one in about["outcomes"]:
            if not one["reward"]:
                del one["reward"], one["told"], one["value_min"]
        return about

    @property
    def conversions(self) -> EventKind:
        """Kind of the conversions."""
        return EventKind(
            name="", attribution_window=self.attribution_window, observed_until=self.observed_until,
            value_max=self.reward_max, reward=True, told=True, value_min=self.reward_min,
        )  # fmt: skip

    @property
    def left_out(self) -> str:
        """Sentence on the rows that a quarantine left out: how many, why, and whether that depends on their outcome."""
        return next((note for note in self.notes if LEFT_OUT in note), "")

    @property
    def tick_seconds(self) -> float | None:
        """Seconds in a tick; None where the log counts rounds."""
        return None if self.tick == ROUND else SECONDS[self.tick]


def kinds_of(events: pa.Table) -> tuple[list[str], npt.NDArray[np.int8]] | None:
    """Return the names of kinds, and the number of each event's, shape (n,); None where all are conversions."""
    if KIND not in events.column_names:
        return None
    found = events[KIND].combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], KINDS)
    return found.dictionary.to_pylist(), found.indices.fill_null(-1).to_numpy()


def mark_kind(events: pa.Table, name: str) -> Mask:
    """Return which events are of a kind, shape (n,)."""
    found = kinds_of(events)
    if found is None:
        return np.full(events.num_rows, name == CONVERSION)
    return np.asarray(found[1] == found[0].index(name)) if name in found[0] else np.zeros(events.num_rows, np.bool_)


def with_kind(events: pa.Table, name: str) -> pa.Table:
    """Return events that are all of one kind, with the column that says so."""
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(events.num_rows, np.int8)), pa.array([name], pa.string()))
    return events.select(list(EVENTS)).append_column(KIND, kind)


def merge_events(*parts: pa.Table) -> pa.Table:
    """Return the events of several tables as one; those of one display and time in the order of the tables.

    Memory: 25 bytes an event and, meanwhile, 24 more.
    """
    found = [kinds_of(part) or ([CONVERSION], np.zeros(part.num_rows, np.int8)) for part in parts]
    names = list(dict.fromkeys(name for own, _ in found for name in own))

    def whole(name: str) -> npt.NDArray[Any]:
        return np.concatenate([to_numpy(part[name]) for part in parts])

    order = np.lexsort([whole("time"), whole("display_id")])
    table = pa.table({name: pa.array(whole(name)[order], kind) for name, kind in EVENTS.items()})
    if names == [CONVERSION]:
        return table
    code = np.concatenate([np.array([names.index(name) for name in own], np.int8)[codes] for own, codes in found])
    return table.append_column(
        KIND, pa.DictionaryArray.from_arrays(pa.array(code[order]), pa.array(names, pa.string()))
    )


def choose_kinds(events: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the events of some kinds: without their kinds if it is one, without a copy where it is all of them."""
    found = kinds_of(events)
    if found is None:
        return events if CONVERSION in names else events.slice(0, 0)
    chosen = np.array([name in names for name in found[0]], np.bool_)
    rest = events.drop_columns([KIND]) if len(names) == 1 else events
    return rest if chosen.all() else rest.filter(pa.array(chosen[found[1]]))


def outcomes_of(events: pa.Table) -> pa.Table:
    """Return the events that are neither conversions nor costs, ``outcome`` (text) before their other columns."""
    names, code = kinds_of(events) or ([CONVERSION], np.zeros(events.num_rows, np.int8))
    chosen = np.array([name not in (CONVERSION, COSTS) for name in names], np.bool_)[code]
    named = pa.array(names, pa.string()).take(pa.array(code[chosen]))
    return events.filter(pa.array(chosen)).select(list(EVENTS)).add_column(0, OUTCOME, named)


def code_kinds(events: pa.Table, column: str = KIND) -> pa.Table:
    """Return events whose column of kinds, text or any dictionary, becomes the dictionary that logs have."""
    found = events[column]
    found = found if pa.types.is_dictionary(found.type) else found.dictionary_encode()
    found = pa.concat_arrays([*found.unify_dictionaries().chunks, pa.array([], found.type)])
    kinds = pa.DictionaryArray.from_arrays(found.indices.cast(pa.int8()), found.dictionary.cast(pa.string()))
    return events.select(list(EVENTS)).append_column(KIND, kinds)
