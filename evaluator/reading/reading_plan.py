"""What is read of the tables of a spec, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy.typing as npt
import polars as pl

from evaluator.errors import UsageError
from evaluator.log.column import CROSS, LIKE_USERS, like_users, uncrossed
from evaluator.log.schema import OWN_COLUMNS
from evaluator.reading.cells import Kind, ZonesSeen, merged_kinds
from evaluator.reading.contexts import Features, choose_features
from evaluator.reading.event_rows import EventRules, event_columns, event_kinds
from evaluator.reading.frames import Chunks, column_names, number_columns
from evaluator.reading.options import ReadingOptions, share_of
from evaluator.reading.outcomes import asked_window
from evaluator.reading.per_action_columns import PerAction, target_actions, target_columns, vector_columns
from evaluator.reading.roles import DISPLAY, kinds_of
from evaluator.reading.row_breaches import SHOWN
from evaluator.reading.sorting import SortedChunks, Spool
from evaluator.reading.sources.files import SourceFile
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec
from evaluator.reading.spec_sections import ORDER, Time
from evaluator.reading.vw.decision_frames import FORMATS, has_times

# Rows read beyond a limit at first, to see where the displays of its last time end.
MARGIN = 10_000
_BY_ROUNDS = "The displays have no times: they are in the order of the file, and rounds count them."


@dataclass(frozen=True, kw_only=True)
class ReadingPlan:
    """What is read, and how.

    Parameters
    ----------
    spec, asked
        Spec of the dataset, and options of the reading.
    events
        Kinds of events, the rewards first.
    features
        Context columns, and their encoding.
    files, others, of_sets
        Tables of the displays, of each kind of events that has its own, by the spec's name of the kind, and of the
        calendar or the candidates.
    per_action
        Columns that say something for each action; None without.
    kept
        Columns that the log keeps as they are, by the name that it gives them.
    by_rounds
        Whether displays have no times, so that rounds count them.
    passed_over
        Number of lines of each file of displays that are no row and no fault, by what they are, once it was read.
    zones
        Record of the times that say their zone, and of those that do not, of all tables.
    """

    spec: FileSpec
    asked: ReadingOptions
    events: Sequence[EventRules]
    features: Features
    files: list[TablePart]
    others: Mapping[str, list[TablePart]]
    of_sets: list[TablePart]
    per_action: PerAction | None
    kept: dict[str, str]
    by_rounds: bool = False
    passed_over: dict[str, Counter[str]] = field(default_factory=dict)
    zones: ZonesSeen = field(default_factory=ZonesSeen)

    @property
    def limit(self) -> int | None:
        """Number of displays that the log holds, the first ones; None for all."""
        return self.asked.limit

    @property
    def sort(self) -> bool:
        """Whether displays are sorted by time."""
        return self.spec.source.sort if self.asked.sort is None else self.asked.sort

    @property
    def listed(self) -> bool:
        """Whether rows that break a rule are left out and listed."""
        return self.asked.on_error == "quarantine"

    @property
    def most_left_out(self) -> float:
        """Largest share of the rows that may be left out."""
        return share_of(self.asked.quarantine_at_most)

    @property
    def notes(self) -> list[str]:
        """What the log must say of where its rows are from."""
        parts = [*self.files, *(part for of in self.others.values() for part in of), *self.of_sets]
        found = list(dict.fromkeys(part.note for part in parts if part.note is not None))
        found += [
            f"Column {column!r} is missing on all rows of {len(names)} of {len(self.files)} files, which lack it: "
            f"{', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}."
            for column, names in self._lacking.items()
        ]
        return [*found, _BY_ROUNDS] if self.by_rounds else found

    def passed_over_note(self) -> str:
        """Return a sentence about the lines that were passed over; it is empty if there were none."""
        counts: Counter[str] = sum(self.passed_over.values(), Counter())
        if not counts:
            return ""
        said = "; ".join(f"{n:,} {what}" for what, n in counts.most_common())
        return f"Passed over were {counts.total():,} lines: {said}."

    @cached_property
    def numbers(self) -> Mapping[str, Kind]:
        """Kind of each kept column that holds numbers, by its name in the source."""
        own = self._kinds
        # What has another role, too, is kept as text, but for numbers of the context.
        kept = [c for c in self.kept.values() if c not in self._joined]
        free = [c for c in kept if c not in own or self.features.kinds.get(c) == "number"]
        return number_columns(self.files, self.spec.source, free)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Kind of each column that is read of the displays, by name."""
        kinds: dict[str, Kind] = {**dict.fromkeys(self.kept.values(), "category"), **self.numbers, **self._kinds}
        return {column: kind for column, kind in kinds.items() if column not in self._joined}

    @cached_property
    def _joined(self) -> set[str]:
        """Columns that displays get of tables of their own."""
        if self.spec.target is None or self.per_action is None:
            return set()
        named = self.spec.target.named
        return {column for name, column in self.per_action.actions.items() if named[name.partition(":")[2]].source}

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        kinds = _display_kinds(self.spec, self.features)
        if self.per_action is not None:
            kinds = merged_kinds(kinds, self.per_action.kinds())
        for rules in self.events:
            kinds = kinds if rules.table in self.others else merged_kinds(kinds, event_columns(rules, self.spec.time))
        return kinds

    def chunks(self, new_spool: Callable[[], Spool]) -> Callable[[], Iterable[pl.DataFrame]]:
        """Return what gives the rows of all files, in the order of the log but for ties, as often as it is called."""
        spec = self.spec

        def read(limit: int | None) -> Iterable[pl.DataFrame]:
            # Sorting needs every row before the first n are known.
            first = None if self.sort else limit
            found = self._chunks(first)
            return SortedChunks(found, spec.display.time, limit, new_spool) if self.sort else found

        # Which displays of one time are the first n is known when all of them are.
        whole = self.limit is not None and spec.time.ties == "shuffle"
        all_rows = read(None if whole else self.limit)

        def chunks() -> Iterable[pl.DataFrame]:
            if self.limit is None or not whole:
                return all_rows
            return _whole_ties((lambda limit: all_rows) if self.sort else read, spec.display.time, self.limit)

        return chunks

    def _chunks(self, limit: int | None) -> Chunks:
        spec = self.spec
        return Chunks(
            self.files, spec.source, self.kinds, limit, spec.time, spec.display.eligible_separator, self.passed_over,
            self.zones, frozenset(self._lacking), self.hashed,
        )  # fmt: skip

    @cached_property
    def hashed(self) -> dict[str, Callable[[pl.Series], npt.NDArray[Any]]]:
        """What tells where values are hashed to, by the features that are nothing else, which are read as that."""
        if self.features.encoding != "hash":
            return {}
        others = replace(self, features=replace(self.features, kinds={}))
        joined = {c for rules in self.events if (of := rules.columns.source) is not None for c in self.spec.joined(of)}
        taken = {*others.kinds, *joined}
        return {c: partial(self.features.slots, c) for c in self.features.columns("category") if c not in taken}

    @cached_property
    def _lacking(self) -> dict[str, list[str]]:
        """Files that lack a column which others have, by its name: categories and groups, which may be missing."""
        roles = {c for c, kind in self.features.kinds.items() if kind == "category"} | set(self.kept.values())
        free = {c for c in roles if self._kinds.get(c, "category") == "category" and c != self.spec.display.action}
        tables = [file for file in self.files if not file.is_lines]
        if not free or len(tables) < 2:
            return {}
        offered = [set(column_names(file, self.spec.source)) for file in tables]
        found = {c: [file.name for file, of in zip(tables, offered, strict=True) if c not in of] for c in sorted(free)}
        return {c: names for c, names in found.items() if 0 < len(names) < len(tables)}


def plan_reading(
    spec: FileSpec,
    files: Sequence[TablePart],
    others: Mapping[str, Sequence[TablePart]],
    of_sets: Sequence[TablePart],
    asked: ReadingOptions,
) -> ReadingPlan:
    """Return the plan of reading some tables; errors say which part of the spec or which option does not fit them."""
    by_rounds = spec.display.time == ORDER or _has_no_times(spec, files)
    if asked.sort and spec.display.time == ORDER:
        raise UsageError("`sort`, but the displays have no times.", remedy="name their column, display.time.")
    if by_rounds:
        spec = spec.model_copy(update={"time": Time(unit="round", ties="file")})
    events = event_kinds(spec, asked.deduplicate, asked.attributed_only)
    asked_window(asked.attribution_window, spec.tick)
    if asked.limit is not None and (by_user := [rules for rules in events if rules.by_user]):
        raise UsageError(
            f"`limit={asked.limit}`, but [{by_user[0].table}.source] joins by user and time: which display is the last "
            "one before an event is known when all are read.",
            remedy="leave `limit` out.",
        )
    features, per_action = choose_features(spec, asked.features), None
    if spec.target is not None or spec.action_set is not None:
        per_action = PerAction(target_columns(spec, files), target_actions(spec), vector_columns(spec, files))
    keep = [*asked.keep, *spec.deployment.columns]
    return ReadingPlan(
        spec=spec,
        asked=asked,
        events=events,
        features=features,
        files=list(files),
        others={table: list(of) for table, of in others.items()},
        of_sets=list(of_sets),
        per_action=per_action,
        kept=columns_to_keep(spec, _uncrossed(keep, files[0], spec), lambda: _users(files[0], spec))
        | ({} if per_action is None else dict(per_action.actions)),
        by_rounds=by_rounds,
    )


def _uncrossed(keep: Sequence[str], file: TablePart, spec: FileSpec) -> list[str]:
    """Return the columns to keep, those that are crossed each by itself."""
    known: Collection[str] = ()
    if any(CROSS in name for name in keep):
        known = {*spec.keep, *([] if file.is_lines else column_names(file, spec.source))}
    return uncrossed(keep, known)


def _users(file: TablePart, spec: FileSpec) -> list[str]:
    """Return the columns of a part that name users and hold words or whole numbers.

    Lines that name their own columns offer none: what they hold is known of every line alone.
    """
    names = [] if file.is_lines else like_users(column_names(file, spec.source))
    if file.is_text:
        return names
    kinds = {name: pl.String() if name in file.partitions else file.type_of(name) for name in names}
    return [c for c, kind in kinds.items() if kind.is_integer() or isinstance(kind, pl.String | pl.Categorical)]


def _has_no_times(spec: FileSpec, files: Sequence[TablePart]) -> bool:
    """Return whether decisions that a spec expects to have dates have none, as the first one tells."""
    first = files[0]
    if not isinstance(first, SourceFile) or first.format not in FORMATS or spec.time.unit != "datetime":
        return False
    return spec.display.time == "time" and not has_times(first.path, spec.source.encoding, first.format)


def _display_kinds(spec: FileSpec, features: Features) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {c: "float" if kind == "number" else "category" for c, kind in features.kinds.items()}
    kinds = merged_kinds(kinds, spec.time.kinds_of(spec.display.time))
    return merged_kinds(kinds, kinds_of(DISPLAY.values(), spec.display))


def columns_to_keep(spec: FileSpec, keep: Sequence[str], users: Callable[[], Sequence[str]]) -> dict[str, str]:
    """Return the columns to keep, by the names that the log gives them: those of the spec, and others by their own.

    `LIKE_USERS` among them asks for the source's columns of `users`, if no other is kept. Raises UsageError if a column
    is an outcome, or would get a name that the log uses itself.
    """
    # What decides whether a display is kept may look at its outcome.
    outcomes: set[object] = {*spec.leakage.columns, spec.display.weight}
    for c in spec.events().values():
        outcomes |= {c.indicator, c.time, c.delay, c.value, c.click, c.attributed}
    found = spec.keep | {name: name for name in keep if name not in spec.keep and name != LIKE_USERS}
    if LIKE_USERS in keep and not like_users(found):
        own = spec.display
        taken = {*outcomes, *OWN_COLUMNS, own.time, own.action, own.id, own.eligible}
        found |= {name: name for name in users() if name not in taken}
    for name, column in found.items():
        if column in outcomes:
            raise UsageError(
                f"{column!r} is known only after the outcome: groups by it differ for that reason alone.",
                remedy="choose a column that is known before the display.",
            )
        if column == spec.display.eligible:
            raise UsageError(
                f"{column!r} lists the eligible actions: the log keeps them as such.", remedy="choose another column."
            )
        if name in OWN_COLUMNS:
            raise UsageError(
                f"Column {column!r} of the source cannot be kept as {name!r}: every log has a column of that name.",
                remedy=_another_name(spec, column),
            )
    return found


def _another_name(spec: FileSpec, column: str) -> str:
    if named := [name for name, of in spec.keep.items() if of == column and name not in OWN_COLUMNS]:
        return f"this dataset keeps it as {named[0]!r}."
    return f'give it another: keep = {{ own_{column} = "{column}" }} in the spec.'


def _whole_ties(read: Callable[[int | None], Iterable[pl.DataFrame]], time: str, limit: int) -> Iterator[pl.DataFrame]:
    """Yield the first `limit` rows and those after them that share the time of the last one.

    `read` gives so many of the first rows, or all for None.
    """
    left, last = limit, None
    for chunk in _as_needed(read, limit + MARGIN):
        taken = chunk.head(left)
        left -= taken.height
        if left == 0:
            last = taken[time][-1] if taken.height else last
            rest = chunk[time].slice(taken.height)
            # A time that cannot be read ties with none.
            other = rest.is_null() | (pl.Series([True]) if last is None else rest != last).fill_null(True)
            taken = chunk.head(taken.height + int(other.arg_max() or 0) if other.any() else chunk.height)
        if taken.height:
            yield taken
        if taken.height < chunk.height:
            return


def _as_needed(read: Callable[[int | None], Iterable[pl.DataFrame]], rows: int) -> Iterator[pl.DataFrame]:
    """Yield the first `rows` rows, which are read without the rest of a file; then, if asked for, the others."""
    seen = 0
    for chunk in read(rows):
        seen += chunk.height
        yield chunk
    if seen < rows:
        return
    for chunk in read(None):
        skipped = min(seen, chunk.height)
        seen -= skipped
        if skipped < chunk.height:
            yield chunk.slice(skipped)
