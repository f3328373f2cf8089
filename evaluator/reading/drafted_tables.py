"""Which rows of the files of a draft are displays, which are conversions, and how these find their displays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from evaluator.errors import SourceError
from evaluator.log.log_tables import NO_OUTCOMES
from evaluator.reading.column_profile import Look
from evaluator.reading.draft_lines import CHECK, GUESSED, Line
from evaluator.reading.file_sample import FileSample
from evaluator.reading.where import written_name, written_text

# A kind of events that can name a table of the spec.
_NAME = re.compile(r"[A-Za-z0-9_-]+")
# Kinds of events that are quoted.
_QUOTED = 4
# Actions that were eligible may be shown in no row of a sample.
_MOSTLY = 0.5


class Kinds(NamedTuple):
    """Kinds of the events that rows are: the column that says which, those that show something, and outcomes.

    The likeliest display, and the likeliest conversion, is first.
    """

    column: Look
    shows: list[str]
    outcomes: list[str]

    @property
    def values(self) -> list[str]:
        """All kinds."""
        return sorted(self.column.text.drop_nulls().unique().to_list())

    @property
    def why(self) -> str:
        """What makes rows events of several kinds."""
        named = ", ".join(self.values[:_QUOTED]) + (", ..." if len(self.values) > _QUOTED else "")
        return f"rows are events of {len(self.values)} kinds ({self.column.name!r}: {named})"


class Join(NamedTuple):
    """How conversions find their displays: by ``id`` or by ``user``, and the columns of displays and of conversions.

    It is empty where there is no way, or where conversions stand in rows of displays.
    """

    by: str = ""
    displays: str = ""
    conversions: str = ""


class Tables:
    """The tables of displays and of conversions, each in a file, or both in one.

    One file holds both where its rows are events of several kinds, where rows of displays list their conversions, or
    where a row is a display and its conversion; the last has no table of `conversions`. `doubts` are lines of what
    could not be told of either table, by section of the spec. `choose` decides on a key: its name, the question, guess,
    choices, the reason.
    """

    def __init__(self, sample: FileSample, second: FileSample | None, choose: Callable[..., Any]) -> None:
        self.doubts: dict[str, list[Line]] = {"source": [], "conversion.source": []}
        self.in_one_file = second is None
        self._choose = choose
        # The table that holds the conversions, the kinds of its events, and the one that conversions are.
        self._events: tuple[FileSample, Kinds, str] | None = None
        self.displays = self._of_kind(_of_elements(sample), "source")
        if second is not None:
            self.conversions: FileSample | None = self._of_kind(second, "conversion.source")
        elif self.displays.conditions:
            rows = self._of_kind(sample, "conversion.source")
            self.conversions = rows if rows.conditions else None
        else:
            self.conversions = self._listed()
        self.shown = looks_of(self.displays)
        self.told = self.shown if self.conversions is None else looks_of(self.conversions)

    def _of_kind(self, sample: FileSample, key: str) -> FileSample:
        """Return the rows that are displays, or conversions, of a table of events of several kinds; else all."""
        if (kinds := _kinds_of_events(looks_of(sample).values())) is None:
            return sample
        own, part = (kinds.shows, "display") if key == "source" else (kinds.outcomes, "conversion")
        words, guess = f"Which kind of events is a {part}?", own[0] if own else None
        kind, said = self._choose(f"{key}.where", words, guess, kinds.values, kinds.why, sure=len(own) == 1)
        if kind is None:
            where = f"{written_name(kinds.column.name)} = {written_text(kinds.values[0])}"
            comment = f"{CHECK}{kinds.why}, not {part}s alone: which kind is one?"
            self.doubts[key] = [Line("where", where, comment, live=False)]
            return sample
        if key != "source":
            self._events = sample, kinds, kind
        return sample.where(kinds.column.name, kind, said)

    def _listed(self) -> FileSample | None:
        """Return a row of each element of a list of conversions that a row of a display holds; None without one."""
        ids = {name for name, look in looks_of(self.displays).items() if look.may_be_id}
        for name in self.displays.lists if ids and "explode" not in self.displays.source else ():
            rows, looks = _elements(self.displays, name, f"{GUESSED}each element has a time of its own")
            kinds = _kinds_of_events(looks.values())
            says = any(look.says_outcome for look in looks.values()) or (kinds is not None and kinds.outcomes)
            if says and any(look.is_time and look.filled.any() for look in looks.values()):
                rows = replace(rows, columns={n: v for n, v in rows.columns.items() if n in looks or n in ids})
                return self._of_kind(rows, "conversion.source")
        return None

    def lists_of(self, own: Look) -> Iterator[str]:
        """Yield the lists in rows of displays whose elements are mostly values of another column."""
        for name in self.displays.lists if "explode" not in self.displays.source else ():
            found = _elements(self.displays, name, "")[1].get(name)
            if found is not None and float(found.text.is_in(own.text.implode()).mean() or 0) > _MOSTLY:  # type: ignore[arg-type]
                yield name

    def join_by_id(self, ids: list[Look]) -> Join | None:
        """Return how conversions find their displays by id, also where they list the ids of several; None if not."""
        for own in ids:
            if told := self._holding(own, self.told):
                return Join("id", own.name, told)
        if self.conversions is not None and not self.in_one_file:
            for own, name in ((own, name) for own in ids for name in self.conversions.lists):
                rows, looks = _elements(self.conversions, name, f"{GUESSED}it lists ids of displays")
                if name in looks and looks[name].text.is_in(own.text.implode()).any():
                    self.conversions, self.told = rows, looks_of(rows)
                    return Join("id", own.name, name)
        return None

    def join_by_user(self, looks: Iterable[Look]) -> Join | None:
        """Return how conversions that have times find their displays by user and time; None if not."""
        users = {name: look for name, look in self.told.items() if look.says_user}
        timed = any(look.is_time and not look.says_delay for look in self.told.values())
        for own in looks if timed else ():
            # A user who bought may have seen nothing.
            if own.says_user and (told := own.name if own.name in users else self._holding(own, users)):
                return Join("user", own.name, told)
        return None

    def _holding(self, own: Look, told: Mapping[str, Look]) -> str:
        """Return the column of conversions that holds values of a column of displays; empty if none does."""
        ids = own.text.implode()
        shares = {name: float(look.text.is_in(ids).mean() or 0) for name, look in told.items()}  # type: ignore[arg-type]
        # Of two files, the first rows of one may know nothing of those of the other.
        if own.name in told and (shares[own.name] or not self.in_one_file):
            return own.name
        best = max(shares, key=lambda name: shares[name], default="")
        return best if shares.get(best) else ""

    def other_kinds(self, join: Join) -> Iterator[tuple[str, FileSample]]:
        """Yield the outcomes that are no conversions, whose displays are found as those of conversions are."""
        if self._events is None or not join.by:
            return
        sample, kinds, taken = self._events
        shown = self.shown[join.displays].text.implode()
        for kind in kinds.outcomes:
            rows = sample.where(kinds.column.name, kind, f"{GUESSED}events of another kind; no policy sees them")
            lost = join.by == "id" and not rows.columns[join.conversions].cast(pl.String).is_in(shown).all()
            if kind != taken and _NAME.fullmatch(kind) and kind not in NO_OUTCOMES and not lost:
                yield kind, rows


def looks_of(sample: FileSample) -> dict[str, Look]:
    """Return what the columns of a table look like."""
    return {name: Look(name, cells) for name, cells in sample.columns.items()}


def _kinds_of_events(looks: Iterable[Look]) -> Kinds | None:
    """Return the kinds of the events that rows are; None where no column says of a kind."""
    found = ((look, look.event_kinds) for look in looks)
    return next((Kinds(look, *kinds) for look, kinds in found if kinds is not None), None)


def _elements(sample: FileSample, column: str, comment: str) -> tuple[FileSample, dict[str, Look]]:
    """Return a row of each element of a list, and what the elements, or their fields, look like; none if it is none."""
    try:
        rows = sample.exploded(column, comment)
    except SourceError:
        return sample, {}
    return rows, {n: look for n, look in looks_of(rows).items() if n == column or n.startswith(f"{column}.")}


def _of_elements(sample: FileSample) -> FileSample:
    """Return a row of each element of a list of displays, where no other column can be the action; else all rows."""
    if all(look.action_rank is None for look in looks_of(sample).values()):
        for name in sample.lists:
            said = f"{CHECK}each element is taken for a display of its own; is it a place of a slate?"
            rows, looks = _elements(sample, name, said)
            if any(look.action_rank is not None for look in looks.values()):
                return rows
    return sample
