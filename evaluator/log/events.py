"""Events of a log as one table: display, time, kind and value, sorted by display and time.

The column of kinds is a dictionary, a byte a row; a log whose only events are its conversions has no such column.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.log.schema import EVENTS, KIND, KINDS, to_numpy

Mask = npt.NDArray[np.bool_]
# Names of two kinds that no outcome has: conversions, and what displays cost, which a replay may count as events.
CONVERSION, COSTS = "", "(cost)"
# Column of the kinds in tables of events that are no conversions, and in earlier versions of converted logs.
OUTCOME = "outcome"


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

    Memory: 25 bytes an event and, meanwhile, 8 more.
    """
    found = [kinds_of(part) or ([CONVERSION], np.zeros(part.num_rows, np.int8)) for part in parts]
    names = list(dict.fromkeys(name for own, _ in found for name in own))
    columns = {name: np.concatenate([to_numpy(part[name]) for part in parts]) for name in EVENTS}
    order = np.lexsort([columns["time"], columns["display_id"]])
    table = pa.table({name: pa.array(columns[name][order], kind) for name, kind in EVENTS.items()})
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
