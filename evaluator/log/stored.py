"""A log whose displays stay on disk or in an object store, in one file or in several, and are read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import SourceError
from evaluator.log.contract import Log
from evaluator.log.eligible import any_eligible, chosen_sets, sizes, to_codes
from evaluator.log.log_files import LogFile, damaged, file_state, file_states, one_batch, open_parquet, part_batches
from evaluator.log.log_tables import CONVERSION, LogMeta
from evaluator.log.schema import (
    ACTION_SET,
    BATCH,
    ELIGIBLE,
    POSITION,
    WEIGHT,
    Columns,
    chosen_lists,
    fixed_size_lists,
    is_uneven,
    per_action,
    read,
    take_rows,
    take_values,
    to_numpy,
)
from evaluator.log.times import summed

_PARTS = ("paths", "selection", "events", "actions", "meta", "counted", "facts")
# Columns of which something is known.
_KNOWN = ("action", "time", "propensity")
# Rows read at a time however few of them are kept.
_MOST_READ = 8 * BATCH


@dataclass(frozen=True)
class Selection:
    """Which displays of a file, or of files that follow each other, belong to the log.

    Of the first `rows` the log has `kept` displays, without the first `passed` that would belong to it. `new_action` is
    the log's action for each action of the file, -1 where it is left out; None where all are kept as they are.
    `propensity`, shape (K,), replaces that of the displays (uniform by design over fewer actions, or constant and made
    to sum to 1); None leaves it, but for displays with sets of their own and uniform propensities, which follow the
    sets. `file` is the state of each file when the log was opened (`evaluator.log.log_files.file_state`), in which the
    rows are so; None where nobody looked. `begins` holds what `StoredLog.begins` returns, once somebody has looked.
    """

    rows: int
    kept: int
    new_action: npt.NDArray[np.int32] | None = None
    propensity: npt.NDArray[np.float64] | None = None
    passed: int = 0
    file: tuple[object, ...] | None = None
    begins: list[npt.NDArray[np.int64]] = field(init=False, default_factory=list, repr=False, compare=False)

    @property
    def old_actions(self) -> npt.NDArray[np.int64]:
        """Action of the file for each action of the log, shape (K,)."""
        assert self.new_action is not None
        kept = np.flatnonzero(self.new_action >= 0)
        return kept[np.argsort(self.new_action[kept])]

    @property
    def drops(self) -> bool:
        """Whether displays between those of the log are left out: then its traffic is larger than the log."""
        return self.kept + self.passed < self.rows


@dataclass(frozen=True)
class RowFacts:
    """What a pass over the rows of a log's files found once these had been validated.

    Displays of each action of the files, shape (K,), and times of the first and the last one in ticks. `verified` names
    the columns that were read to their end since the log was opened, and are as known.
    """

    shown: tuple[int, ...]
    first_time: int
    last_time: int
    verified: set[str] = field(init=False, default_factory=set, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts by name."""
        return {"shown": self.shown, "first_time": self.first_time, "last_time": self.last_time}


class BatchedLog(Log):
    """A log whose displays come batch by batch, from wherever they lie, and are in memory only where asked for."""

    def _selected(self, columns: Sequence[str], size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (number of its first display, batch of some columns), empty batches left out."""
        raise NotImplementedError

    def _holding(self, wanted: npt.NDArray[np.int64], columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches as `_selected` does that have all displays with these rising numbers. Cost: one scan."""
        return self._selected(columns, BATCH)

    @cached_property
    def displays(self) -> pa.Table:
        """All displays, in memory."""
        return pa.Table.from_batches([b for _, b in self._selected(self.schema.names, BATCH)], self.schema)

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column of `displays` as a NumPy array; fixed-size lists become further axes."""
        return np.concatenate([batch[name] for _, batch in self.batches([name])])

    def batches(
        self, columns: Sequence[str], size: int = BATCH, *, coded: bool = False
    ) -> Iterator[tuple[int, Columns]]:
        """Yield the displays in order: (number of the first one, columns as NumPy arrays of about `size` rows)."""
        for first, batch in self._selected(columns, size):
            yield first, {name: read(batch.column(name), coded=coded) for name in columns}

    def arrays(self, column: str) -> Iterator[tuple[int, pa.Array]]:
        """Yield a column of the displays in order, as Arrow."""
        for first, batch in self._selected([column], BATCH):
            yield first, batch.column(column)

    def take(self, displays: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return some columns of the displays with these numbers, in the order asked for; `_holding` says the cost."""
        order = np.argsort(displays, kind="stable")
        wanted = displays[order]
        found = []
        for first, batch in self._holding(wanted, columns):
            low, high = np.searchsorted(wanted, [first, first + batch.num_rows])
            if low < high:
                found += take_rows(batch, wanted[low:high] - first).to_batches()
        schema = pa.schema([self.schema.field(name) for name in columns])
        rows = pa.Table.from_batches(found, schema)
        if (displays[1:] >= displays[:-1]).all():
            return rows
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return take_rows(rows, back)


class StoredLog(BatchedLog):
    """A log whose displays are rows of a Parquet file, or of several that follow each other in time, at these paths.

    How many there are changes nothing that is read of it, nor does it where they lie. Events, actions and metadata are
    as in `Log`, in memory; displays are numbered after the selection. Whatever reads the rows verifies their `facts`,
    where these are known.
    """

    paths: tuple[LogFile, ...]
    selection: Selection
    facts: RowFacts | None

    def __init__(
        self,
        paths: Sequence[LogFile],
        selection: Selection,
        *,
        events: pa.Table,
        actions: pa.Table,
        meta: LogMeta,
        counted: tuple[str, ...] = (CONVERSION,),
        facts: RowFacts | None = None,
    ) -> None:
        if selection.file is None:
            selection = replace(selection, file=file_states(paths))
        parts = (tuple(paths), selection, events, actions, meta, counted, facts)
        for name, value in zip(_PARTS, parts, strict=True):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return self.selection.kept

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of `displays`."""
        schema = self._written
        if self.selection.new_action is None:
            return schema
        for name in per_action(schema):
            at = schema.get_field_index(name)
            if not is_uneven(schema.field(name).type):
                inner = schema.field(name).type.value_type
                schema = schema.set(at, pa.field(name, pa.list_(inner, self.n_actions)))
        if self.selection.drops and POSITION not in schema.names:
            schema = schema.append(pa.field(POSITION, pa.int64()))
        return schema

    @cached_property
    def _written(self) -> pa.Schema:
        """Schema of the files."""
        with open_parquet(self.paths[0]) as file:
            return file.schema_arrow.remove_metadata()

    def after(self, first: int) -> Log:
        """Return the log without its first displays and their conversions, the others numbered anew from 0."""
        chosen = self.selection
        rest = replace(chosen, kept=max(chosen.kept - first, 0), passed=chosen.passed + first)
        return self.changed(selection=rest, events=self._events_after(first)).as_sound_as(self)

    def _first(self, displays: int) -> Log:
        chosen = self.selection
        # What drops displays numbers them by their rows.
        rows = chosen.rows if chosen.drops else chosen.passed + displays
        return self.changed(selection=replace(chosen, kept=displays, rows=rows))

    def changed(self, **parts: object) -> StoredLog:
        """Return a copy with other paths, selection, tables in memory or metadata, by name, not validated."""
        return StoredLog(**{**{name: getattr(self, name) for name in _PARTS}, **parts})

    def _selected(self, columns: Sequence[str], size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (number of its first display, batch), empty batches left out.

        Raises SourceError where a file is another than the one that was opened: the log's conversions, in memory, are
        not those of these rows.
        """
        chosen = self.selection
        self._refuse_changed()
        first = -chosen.passed
        for batch in self._looked_at(columns, size) if chosen.new_action is None else self._kept_of(columns, size):
            yield from self._own(first, batch, columns)
            first += batch.num_rows
            if first >= chosen.kept:
                break
        pa.default_memory_pool().release_unused()  # which may be a fifth of what the process takes

    def _refuse_changed(self) -> None:
        assert self.selection.file is not None
        for path, state in zip(self.paths, self.selection.file, strict=True):
            if file_state(path) != state:
                raise SourceError(f"{path}: it changed since the log was opened.", remedy="load the log again.")

    def _own(self, first: int, batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield what the log has of the next kept displays, with its first number; those before the log have none."""
        passed = min(max(-first, 0), batch.num_rows)
        first, batch = first + passed, batch.slice(passed)
        batch = batch.slice(0, max(self.selection.kept - first, 0))
        if batch.num_rows:
            own = {name: batch.column(name) for name in columns if name != "display_id"}
            if "display_id" in columns:
                own["display_id"] = pa.array(np.arange(first, first + batch.num_rows))
            yield first, pa.RecordBatch.from_arrays([own[name] for name in columns], list(columns))

    def _holding(self, wanted: npt.NDArray[np.int64], columns: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches as `_selected` does, of the row groups alone that have some of the displays.

        Cost: besides, where actions were chosen, a scan of the actions for the first who asks.
        """
        needed, numbered = self._needed(columns)
        if numbered and not {WEIGHT, ELIGIBLE}.isdisjoint(needed):  # a place in the traffic is a sum over all before it
            yield from self._selected(columns, BATCH)
            return
        self._refuse_changed()
        rows, displays = self.begins
        groups, before = np.unique(np.searchsorted(displays, wanted, side="right") - 1), 0
        most = len(groups) > len(rows) // 2
        for path in self.paths:
            with open_parquet(path, needed if most else ()) as file:
                after = before + file.num_row_groups
                for group in groups[(groups >= before) & (groups < after)].tolist():
                    row, first = int(rows[group]), int(displays[group])
                    for batch in file.iter_batches(BATCH, row_groups=[group - before], columns=needed):
                        batch = batch.slice(0, max(self.selection.rows - row, 0))
                        batch = _placed(batch, np.arange(row, row + batch.num_rows)) if numbered else batch
                        row += batch.num_rows
                        batch = self._kept(batch)
                        yield from self._own(first, batch, columns)
                        first += batch.num_rows
                before = after

    @property
    def begins(self) -> npt.NDArray[np.int64]:
        """Rows before each row group of the files, and the log's displays before it, shape (2, groups)."""
        chosen = self.selection
        if not chosen.begins:
            sizes = []
            for path in self.paths:
                with open_parquet(path) as file:
                    sizes += [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            rows = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
            kept, seen = rows.copy(), 0
            if chosen.new_action is not None:
                kept[:] = 0
                for batch in self._looked_at(["action"], BATCH):
                    at = seen + np.flatnonzero(chosen.new_action[to_numpy(batch.column("action"))] >= 0)
                    kept += np.searchsorted(at, rows)
                    seen += batch.num_rows
            chosen.begins.append(np.stack([rows, kept - chosen.passed]))
        return chosen.begins[0]

    def _kept_of(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Yield the displays of the chosen actions, about `size` at a time: what is left of several times as many rows.

        Rows are read `BATCH` at a time and thinned at once: the others are never in memory together.
        """
        chosen = self.selection
        assert chosen.new_action is not None
        rows = min(int(size * chosen.rows / max(chosen.kept + chosen.passed, 1)) + 1, max(size, _MOST_READ))
        waiting: list[pa.RecordBatch] = []
        seen = 0
        for batch in self._looked_at(columns, min(rows, BATCH)):
            if ELIGIBLE in batch.schema.names:  # whose dictionaries are costly to join
                yield self._kept(batch)
                continue
            while batch.num_rows:
                piece = batch.slice(0, rows - seen)
                batch = batch.slice(piece.num_rows)
                seen += piece.num_rows
                waiting.append(self._kept(piece))
                if seen == rows:
                    yield one_batch(waiting)
                    waiting, seen = [], 0
        if waiting:
            yield one_batch(waiting)

    def _looked_at(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are looked at: their actions, and what else is asked for.

        Raises SourceError where a page that is read is damaged, or the files end before.
        """
        needed, numbered = self._needed(columns)
        wanted, seen, traffic = self.selection.rows, 0, 0.0
        batches = part_batches(self.paths, size, needed)
        known = self.facts is None or self.facts.verified.issuperset(name for name in needed if name in _KNOWN)
        for batch in batches if known or self.facts is None else self._verified(batches, self.facts):
            batch = batch.slice(0, wanted - seen)
            if numbered and batch.num_rows:
                place = np.arange(seen, seen + batch.num_rows)
                if not {WEIGHT, ELIGIBLE}.isdisjoint(needed):
                    total = summed(traffic, self._as_traffic(batch))
                    traffic, place = float(total[-1]), np.rint(total).astype(np.int64) - 1
                batch = _placed(batch, place)
            seen += batch.num_rows
            yield batch
            if seen >= wanted:
                return
        if seen < wanted:
            raise damaged(self.paths[-1], f"{seen:,} rows where {wanted:,} were written")

    def _verified(self, batches: Iterator[pa.RecordBatch], facts: RowFacts) -> Iterator[pa.RecordBatch]:
        """Yield all rows of the files; raise SourceError where actions, times or propensities are not as known."""
        shown, rows, before = np.zeros(len(facts.shown), np.int64), 0, facts.first_time
        total = sum(facts.shown)
        for batch in batches:
            rows += batch.num_rows
            asked = (name for name in _KNOWN if name in batch.schema.names and name not in facts.verified)
            columns = {name: to_numpy(batch.column(name)) for name in asked}
            columns = {name: column for name, column in columns.items() if len(column)}
            sound, last = True, rows == total
            if (action := columns.get("action")) is not None:
                sound = bool(action.min() >= 0 and action.max() < len(shown)) and action.dtype.kind == "i"
                shown += np.bincount(action, minlength=len(shown)) if sound else 0
                sound = sound and not (last and tuple(shown.tolist()) != facts.shown)
            if (time := columns.get("time")) is not None:
                starts = time[0] == before if rows == batch.num_rows else time[0] >= before
                sound = sound and bool(starts and (time[1:] >= time[:-1]).all())
                before = int(time[-1])
                sound = sound and not (last and before != facts.last_time)
            if self.meta.propensity != "absent" and (p := columns.get("propensity")) is not None:
                sound = sound and bool(((p > 0.0) & (p <= 1.0)).all())
            if not sound:
                raise damaged(self.paths[0], "its rows are not those of which meta.json has the facts")
            if last:
                facts.verified.update(columns)
            yield batch

    def _needed(self, columns: Sequence[str]) -> tuple[list[str], bool]:
        """Return the columns of the files that are read for some of the log, and whether places are counted meanwhile.

        These are of displays that are kept, counted where those that are left out are still seen.
        """
        chosen = self.selection.new_action is not None
        needed = dict.fromkeys([*["action"] * chosen, *(c for c in columns if c != "display_id")])
        if ("propensity" in needed and self._by_set) or (ACTION_SET in needed and ELIGIBLE in self.schema.names):
            needed[ELIGIBLE] = None
        present = self._written.names
        numbered = POSITION in needed and POSITION not in present
        if numbered:
            del needed[POSITION]
            needed |= dict.fromkeys([name for name in (WEIGHT, ELIGIBLE) if name in present])
        return list(needed) or ["action"], numbered

    def _as_traffic(self, batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
        """Return how many displays of the traffic each one stands for, shape (n,).

        None where no chosen action is eligible: live, no policy would have been asked there.
        """
        has = batch.schema.names
        of = to_numpy(batch.column(WEIGHT)) if WEIGHT in has else np.ones(batch.num_rows)
        if ELIGIBLE not in has:
            return of
        return np.where(any_eligible(to_codes(batch.column(ELIGIBLE)), self.selection.old_actions), of, 0.0)

    @cached_property
    def _by_set(self) -> bool:
        """Whether the propensity of a chosen action is one over how many of them its display's set has."""
        chosen = self.selection.new_action is not None
        return chosen and self.meta.propensity == "uniform" and ELIGIBLE in self.schema.names

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the displays of the chosen actions."""
        if self.selection.new_action is None:
            return batch
        action = self.selection.new_action[to_numpy(batch.column("action"))]
        kept = np.flatnonzero(action >= 0)
        columns = {name: take_values(batch.column(name), kept) for name in batch.schema.names if name != "action"}
        columns["action"] = pa.array(action[kept])
        if "propensity" in columns and self.selection.propensity is not None:
            columns["propensity"] = pa.array(self.selection.propensity[action[kept]])
        old = self.selection.old_actions
        for name in per_action(batch.schema):
            if is_uneven(columns[name].type):
                columns[name] = chosen_lists(columns[name], to_numpy(columns[ELIGIBLE]), old)
            else:
                columns[name] = fixed_size_lists(to_numpy(columns[name])[:, old])
        if ELIGIBLE in columns:
            columns[ELIGIBLE] = chosen_sets(columns[ELIGIBLE], old)
            if "propensity" in columns and self._by_set:
                columns["propensity"] = pa.array(1.0 / sizes(to_numpy(columns[ELIGIBLE])))
        return pa.RecordBatch.from_pydict(columns)


def _placed(batch: pa.RecordBatch, place: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Return displays with their places in the traffic, shape (n,)."""
    own = {name: batch.column(name) for name in batch.schema.names}
    return pa.RecordBatch.from_pydict({**own, POSITION: pa.array(place)})
