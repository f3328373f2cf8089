"""One pass over the displays: rows checked, reduced to what the log needs, set aside; events gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.reading.candidate_sets import SET, SET_PROPENSITY, SetSource
from evaluator.reading.contexts import ContextCodes
from evaluator.reading.event_rows import REWARDS, EventRules, event_rows
from evaluator.reading.join_by_id import DisplayIds, SeenIds, hashed, joined
from evaluator.reading.labels import KEPT, Labels
from evaluator.reading.per_action_columns import PolicyActions
from evaluator.reading.reading_plan import ReadingPlan
from evaluator.reading.roles import DISPLAY, PROPENSITY, WEIGHT
from evaluator.reading.row_breaches import FILE, LINE, Breaches, CheckedRows
from evaluator.reading.row_rules import (
    LeftOut,
    TimeGuesses,
    TimeOrder,
    check_cells,
    check_displays,
    says_converted,
)
from evaluator.reading.sorting import Spool, TieShuffler
from evaluator.reading.vw.decision_frames import FORMATS
from evaluator.threads import behind

TIME, ACTION = "time", "action"


class Intake:
    """What is known of the displays seen so far. Memory: what spools take, and 8 bytes an event if shuffled.

    Parameters
    ----------
    plan
        What is read, and how.
    new_spool
        Function that makes a temporary file, in which displays, events, hashes of ids, and many of one time wait.
    display_ids
        Object that is shown all displays for each kind of events that is not in the displays' own table, by the spec's
        name of the kind.
    sets
        Reader of the displays' eligible actions; None where every action always is.
    tables
        Actions that policies take and that lie in tables of their own, by the column that displays get of them.
    repeated
        Rows whose display was listed before, by their increasing numbers ``row``, and where it was: `FILE`, `LINE`.

    Attributes
    ----------
    spool
        Temporary file that gets the sound displays: `TIME`, `ACTION` (code of its label), `PROPENSITY`, `WEIGHT` and
        `COST` where logged, what `sets` makes of theirs, context codes, the probabilities and vectors of the actions,
        and the columns that the log keeps: the code of its label in each column of `keep`, and the `numbers`.
    keep, labels
        Labels found so far of each column of words that the log keeps, by the log's name of it, and of the actions.
    ids
        Hashes of the ids of the displays seen so far; None where displays have none.
    rows, last_time
        Number of rows read so far, those in breach among them, and latest time of a sound display, in ticks.
    left_out
        Displays that stay and that were left out so far, by whether they converted.
    shown, offered
        Number of displays of each label so far, and whether it was eligible at one, shape (labels,).
    ties
        What shuffles the displays of one time, and hands the sound displays on to `spool`.
    """

    def __init__(
        self,
        plan: ReadingPlan,
        new_spool: Callable[[], Spool],
        display_ids: Mapping[str, DisplayIds],
        *,
        sets: SetSource | None,
        tables: Mapping[str, PolicyActions],
        repeated: pl.DataFrame,
    ) -> None:
        self.plan, self.display_ids, self.sets, self._tables, self._repeated = plan, display_ids, sets, tables, repeated
        self.breaches = Breaches(plan.files, listed=plan.listed)
        self.order = TimeOrder(plan.files, plan.spec.display.time, plan.zones)
        self.codes, self.labels = ContextCodes(plan.features, plan.hashed), Labels()
        self.keep = {name: Labels() for name, column in plan.kept.items() if column not in plan.numbers}
        self.numbers = tuple(name for name, column in plan.kept.items() if column in plan.numbers)
        self.spool, self.ids, self.left_out = (
            new_spool(),
            None if plan.spec.display.id is None else SeenIds(new_spool),
            LeftOut(),
        )
        self.rows, self.last_time = 0, int(np.iinfo(np.int64).min)
        self.shown, self.offered = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        self.ties = TieShuffler(
            self._write, TIME, shuffle=plan.spec.time.ties == "shuffle", new_spool=new_spool, limit=plan.limit
        )
        own = [rules.columns.time for rules in plan.events if rules.table not in display_ids]
        self._times = TimeGuesses(plan.spec.time, [c for c in (plan.spec.display.time, *own) if c is not None])
        self._sound, self._weighted = 0, False
        # Of each kind the rows that hold an event; their displays by number, or among those asked for where shuffled.
        self._found = [new_spool() for _ in plan.events]
        self._no_rows: list[pl.DataFrame] = []
        self._asked = 0

    @property
    def sound(self) -> int:
        """Number of displays that the log may hold."""
        return self.ties.displays

    @property
    def weighs_alike(self) -> bool:
        """Whether displays have weights only because their format may have some: all are 1."""
        return self.plan.spec.source.format in FORMATS and not self._weighted

    def found(self) -> list[Iterator[pl.DataFrame]]:
        """Return the rows that hold an event, kind by kind, some at a time, with the number of their display.

        Those of a kind vanish once they are read.
        """
        numbers = self.ties.numbers() if self.ties.shuffles else None
        kinds = zip(self._no_rows, self._found, strict=False)
        return [self._numbered(no_rows, spool, numbers) for no_rows, spool in kinds]

    def _numbered(
        self, no_rows: pl.DataFrame, spool: Spool, numbers: npt.NDArray[np.int64] | None
    ) -> Iterator[pl.DataFrame]:
        for found in chain([no_rows], spool.frames()):
            if numbers is not None:
                found = found.with_columns(pl.Series("display", numbers[found["display"].to_numpy()]))
            if self.plan.limit is not None:
                beyond = pl.col("display") >= self.plan.limit
                found = found.filter(~(beyond & pl.col("sound")) if "sound" in found.columns else ~beyond)
            yield found
        spool.discard()

    def discard(self) -> None:
        """Free what displays and events take."""
        for spool in (self.spool, *self._found):
            spool.discard()

    def see(self, chunks: Iterable[pl.DataFrame], advance: Callable[[int], None]) -> None:
        """Take in all chunks; `advance` is told the rows of each."""
        with behind(self._set_aside) as set_aside:
            for chunk in chunks:
                if (found := self._checked(chunk)) is not None:
                    set_aside(found)
                advance(chunk.height)
        self.ties.close()

    def _checked(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame]] | None:
        """Return the sound rows of a chunk, and by kind those that hold an event, with the place of their display.

        None where the run will be refused anyway, when all breaches are known.
        """
        plan, spec = self.plan, self.plan.spec
        if self._tables and spec.display.id is not None:
            named = frame[spec.display.id]
            frame = frame.with_columns(table.of(named).alias(column) for column, table in self._tables.items())
        rows = self.breaches.check(frame)
        check_cells(rows, frame, plan.kinds, self._times)
        low, high = np.searchsorted(self._repeated["row"].to_numpy(), [self.rows, self.rows + frame.height])
        again = self._repeated.slice(low, high - low).with_columns(pl.col("row") - self.rows)
        check_displays(rows, frame, spec, self.codes.features, again)
        if plan.per_action is not None:
            plan.per_action.check(rows, frame)
        frame = frame if self.sets is None else self.sets.check(rows, frame)
        self.rows += frame.height
        hashes: dict[tuple[str, ...], pl.DataFrame] = {}
        if spec.display.id is not None and self.ids is not None:
            self.ids.add(hashes.setdefault((spec.display.id,), hashed(frame[spec.display.id])))
        own = {
            rules.table: self._own(frame, rows, rules) for rules in plan.events if rules.table not in self.display_ids
        }
        sound = rows.close()
        if self.breaches.listed and REWARDS in own:
            self.left_out.see(sound, says_converted(frame, spec.conversion))
        if self.breaches.rows and not self.breaches.listed:
            return None
        number = self._sound + np.cumsum(sound) - 1
        self._sound += int(sound.sum())
        place = pl.DataFrame({"display": number, "shown": frame[spec.display.time], "sound": sound})
        found = []
        for rules in plan.events:
            if rules.table in self.display_ids and (source := rules.columns.source) is not None:
                by = tuple(spec.joined(source))
                hashes[by] = hashes[by] if by in hashes else hashed(joined(frame, by))
                found.append(self.display_ids[rules.table].wanted(hashes[by].hstack(place)))
                continue
            at = own[rules.table]["display"].to_numpy()
            # A row may have broken a rule of a later kind.
            found.append(own[rules.table].with_columns(pl.Series("display", number[at])).filter(pl.Series(sound[at])))
        return frame if sound.all() else frame.filter(pl.Series(sound)), found

    def _own(self, frame: pl.DataFrame, rows: CheckedRows, rules: EventRules) -> pl.DataFrame:
        place = pl.int_range(frame.height, dtype=pl.Int64, eager=True)
        shown = frame.select(display=place, shown=self.plan.spec.display.time, **{FILE: FILE, LINE: LINE})
        return event_rows(frame, shown, rules, rows)

    def _set_aside(self, read: tuple[pl.DataFrame, list[pl.DataFrame]]) -> None:
        frame, found = read
        asked = np.zeros(0, np.int64)
        if self.ties.shuffles:
            places = [of_kind["display"].to_numpy() for of_kind in found]
            asked = np.sort(np.concatenate(places))
            found = [
                of_kind.with_columns(pl.Series("display", self._asked + np.searchsorted(asked, place)))
                for of_kind, place in zip(found, places, strict=True)
            ]
            self._asked += len(asked)
        self._no_rows = self._no_rows or [of_kind.clear() for of_kind in found]
        for spool, of_kind in zip(self._found, found, strict=True):
            if of_kind.height:
                spool.add(of_kind)
        plan, display = self.plan, self.plan.spec.display
        self.order.see(frame)
        times = frame[display.time]
        self.last_time = int(times.to_numpy().max(initial=self.last_time))
        action = self.labels.codes(frame[display.action])
        columns: dict[str, pl.Series | npt.NDArray[np.generic]] = {TIME: times, ACTION: action}
        if SET_PROPENSITY in frame.columns:
            columns[PROPENSITY] = frame[SET_PROPENSITY]
        for role in DISPLAY.values():
            for name in role.columns(display) if role.number is not None else ():
                columns[str(role.number)] = frame[name].cast(pl.Float64)
        if self.sets is not None:
            columns[SET] = self.sets.codes(frame, self.labels)
        if WEIGHT in columns:
            self._weighted = self._weighted or bool((columns[WEIGHT] != 1.0).any())
        for name, labels in self.keep.items():
            columns[KEPT + name] = labels.codes(frame[plan.kept[name]])
        for name in self.numbers:
            columns[KEPT + name] = frame[plan.kept[name]].fill_nan(None)
        if plan.per_action is not None:
            columns |= plan.per_action.codes(frame)
        reduced = pl.DataFrame({**columns, **self.codes.of(frame)})
        self.ties.add(reduced, asked)

    def _write(self, frame: pl.DataFrame) -> None:
        shown = np.bincount(frame[ACTION].to_numpy(), minlength=len(self.labels.names))
        shown[: len(self.shown)] += self.shown
        self.shown = shown
        if self.sets is not None:
            offered = shown > 0
            offered[: len(self.offered)] |= self.offered
            offered[self.sets.offered(frame[SET])] = True
            self.offered = offered
        self.spool.add(frame)
