"""Draft a ``spec.toml`` from the first rows of its files: guess the roles of the columns, and say what is a guess."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from evaluator.errors import SourceError, UsageError, nearest
from evaluator.log.log_tables import NO_OUTCOMES
from evaluator.reading import drafted_columns
from evaluator.reading.column_profile import (
    CHECK,
    CONVERSIONS,
    GUESSED,
    NO_ANSWER,
    Ask,
    Draft,
    Line,
    Look,
    Question,
    most_of,
    rank_of,
)
from evaluator.reading.file_sample import FileSample, refuse_bundled, sample_file
from evaluator.reading.roles import DISPLAY
from evaluator.reading.spec import parse_spec
from evaluator.reading.spec_sections import written_name, written_text

# A kind of events that can name a table of the spec.
_NAME = re.compile(r"[A-Za-z0-9_-]+")
# Kinds of events that are quoted.
_QUOTED = 4
# Actions that were eligible may be shown in no row of a sample.
_MOSTLY = 0.5


def draft(file: str | Path, *, conversions: str | Path | None = None, ask: Ask | None = None) -> Draft:
    """Draft the spec of a log from its files.

    The first 10,000 rows are looked at. What no rows can tell (the attribution window, until when the log was followed,
    whether the logger drew its actions evenly, the largest reward) is asked, or left open and said so.

    Parameters
    ----------
    file
        File, glob or folder of the displays: CSV, TSV, JSON lines, Parquet or Arrow IPC.
    conversions
        File, glob or folder of a second table, of conversions; None where the displays' table holds them.
    ask
        Function that answers a `Question`; None takes the guesses, and says so in the draft.

    Returns
    -------
    Draft
        The spec; `Draft.toml` is its text.

    Raises
    ------
    SourceError
        A file is missing, or no table.
    UsageError
        An answer names no column.
    """
    sample = sample_file(file)
    second = None if conversions is None else sample_file(conversions)
    refuse_bundled(looks_of(sample), sample.source, str(file))
    drafter = _Drafter((sample, second), ask)
    sections = drafter.sections()
    found = Draft(
        Path(file),
        Path(file if conversions is None else conversions),
        {name: tuple(lines) for name, lines in sections.items()},
        tuple((table.rows, table.whole) for table in (sample, second) if table is not None),
        tuple(drafter.missing),
    )
    if not found.missing:
        parse_spec(tomllib.loads(found.toml()), where="the draft")
    return found


class _Drafter:
    """The guesses about two tables, in the order in which they rest on each other."""

    def __init__(self, tables: tuple[FileSample, FileSample | None], ask: Ask | None) -> None:
        self.missing: list[str] = []
        self._ask, self._made_up = ask, "header" in tables[0].guesses
        self._tables = Tables(*tables, self._choose)
        self._shown = self._tables.shown
        # Whether conversions have rows of their own.
        self._apart = self._tables.conversions is not None
        self._roles = set(self._tables.displays.conditions)
        self._action_look: Look | None = None
        self._worth: Look | None = None
        self._none: dict[str, list[str | int]] = {}

    @property
    def _told(self) -> dict[str, Look]:
        return self._tables.told

    def sections(self) -> dict[str, list[Line]]:
        """Return the lines of the spec by section."""
        display, time, join = self._display()
        conversion, clock = self._conversion(join)
        told_at = None if clock is None or clock.says_delay else clock
        times = drafted_columns.written_times(time, told_at, self._choose)
        self.missing += [] if times is None else times.missing
        seen = None
        if times is not None and time is not None and clock is not None and not clock.is_flag:
            seen = self._delays(times, time, clock, join)
        converted = self._converted(clock, join, conversion, seen)
        found = {
            "source": [*self._source(self._tables.displays, self._shown, time), *self._tables.doubts["source"]],
            "time": times.lines if times else [Line("unit", "s", CHECK + "no column of times was found", live=False)],
            "display": display,
            "conversion": conversion,
        }
        if (conversions := self._tables.conversions) is not None:
            own, doubts = self._source(conversions, self._told, None), self._tables.doubts["conversion.source"]
            found["conversion.source"] = [*own, *self._joined(join), *doubts]
            if clock is not None and not clock.says_delay:
                for kind, rows in self._tables.other_kinds(join):
                    found[f"outcomes.{kind}"] = [Line("time", clock.name)]
                    found[f"outcomes.{kind}.source"] = [*self._source(rows, self._told, None), *self._joined(join)]
        longest = "" if seen is None or times is None else drafted_columns.longest_delay(times, seen)
        found["log"] = self._log(longest, clock, conversion)
        free = [look for look in self._shown.values() if not self._taken(look) or look.name == join.displays != ""]
        if (users := drafted_columns.user_column(free)) is not None:
            self._roles.add(users.name)
            said = f"{GUESSED}{users.distinct:,} users; intervals over whole users: --cluster-by user"
            found["keep"] = [Line("user", users.name, said)]
            if self._action_look is not None and (kept := drafted_columns.kept_action(users, self._action_look)):
                said = f"{CHECK}{kept}; does what you deploy keep the action of a user, too?"
                found["deployment"] = [Line("keep_for", "user", said, live=False)]
        free = [look for look in self._shown.values() if not self._taken(look)]
        told = set() if self._tables.in_one_file else set(self._told)
        outcomes, context = drafted_columns.context_lines(free, converted, told, self._action_look)
        exploded = {of.source.get("explode") for of in (self._tables.displays, conversions) if of is not None}
        unusable = [name for name in self._tables.displays.unusable if name not in exploded]
        context += [Line("", comment=f"left out: {name!r}: lists or objects") for name in unusable]
        found["context.columns"] = context
        if outcomes:
            found["leakage"] = [Line("columns", outcomes, GUESSED + "these look like outcomes; no policy may see them")]
        return found

    def _choose(
        self, key: str, words: str, guess: str | None, choices: Iterable[str] | None, why: str, *, sure: bool = False
    ) -> tuple[str | None, str]:
        """Return the answer, or None, and the comment that says where the answer comes from."""
        if self._ask is None:
            return guess, (GUESSED if sure and not self._made_up else CHECK) + why
        possible = None if choices is None else (*choices, NO_ANSWER)
        question = Question(key=key, words=words, guess=guess or NO_ANSWER, choices=possible, why=why)
        answer = self._ask(question).strip()
        if possible is not None and answer not in possible:
            raise UsageError(f"{key}: {answer!r} is no answer.", remedy=nearest(answer, possible))
        return (None if answer in ("", NO_ANSWER) else answer), ""

    def _role(self, table: dict[str, Look], name: str) -> Look:
        """Return a column that has a role, and remember what means none in it."""
        look = table[name]
        if table is self._shown:
            self._roles.add(name)
        if look.none:
            self._none[name] = look.none
        return look

    def _source(self, sample: FileSample, table: dict[str, Look], time: Look | None) -> list[Line]:
        lines = [
            Line(key, value, sample.guesses.get(key, "")) for key, value in sample.source.items() if key != "files"
        ]
        if none := {name: words for name, words in self._none.items() if name in table}:
            lines.append(Line("none", none, GUESSED + "these mean 'missing' there"))
        if time is not None and (later := drafted_columns.first_unsorted(time)) is not None:
            lines.append(Line("sort", True, GUESSED + f"row {later:,} is earlier than the row above it"))
        return lines

    def _display(self) -> tuple[list[Line], Look | None, Join]:
        table = self._shown
        times = [look for look in table.values() if look.is_time and not look.present.null_count()]
        # Days beside seconds are the coarser stamp of the same.
        times.sort(key=lambda v: (v.says_outcome, not v.says_time, not v.moments, v.distinct * 20 < len(v.text)))
        guess = times[0].name if times else None
        sure = guess is not None and times[0].says_time and [t.says_outcome for t in times].count(False) == 1
        why = "times of every row" if len(times) < 2 else f"times, as {', '.join(repr(t.name) for t in times[1:])} too"
        name, said = self._choose("display.time", "Which column says when it was shown?", guess, table, why, sure=sure)
        lines, time = [], None
        if name is None:
            self.missing.append("display.time")
            said = 'which column says when it was shown? Without any, the order of rows is the time: unit = "round"'
            lines.append(Line("time", "", CHECK + said, live=False))
        else:
            time = self._role(table, name)
            lines.append(Line("time", name, said))
        lines += self._action()
        lines += self._propensity()
        lines += self._others()
        own, join = self._join()
        lines = [*own, *lines]
        if (shared := drafted_columns.repeated_request(v for v in table.values() if not self._taken(v))) is not None:
            self._roles.add(shared.name)
            said = "several rows share it: is each a display of its own, a place of a slate, or a further conversion?"
            lines.append(Line("", comment=f"{CHECK}{shared.name!r}: {said}"))
        return lines, time, join

    def _taken(self, look: Look) -> bool:
        return look.name in self._roles

    def _action(self) -> list[Line]:
        free = [look for look in self._shown.values() if look.may_be_action and not self._taken(look)]
        named = [look for look in free if look.action_rank is not None and not look.may_say_propensity]
        named.sort(key=lambda look: look.action_rank or 0)
        other = [
            look for look in free if not (look.says_outcome or look.is_time or look.is_flag or look.is_user)
            and (look.numbers is None or (look.is_whole and not look.may_say_propensity))
        ]  # fmt: skip
        look = next(iter([*named, *other]), None)
        why = "" if look is None else f"{look.distinct:,} values"
        why += "" if named else ", but no name says that it is the action"
        guess = None if look is None else look.name
        words = "Which column says what was shown?"
        holder = drafted_columns.holder_of(look, free)
        if holder is not None:
            self._roles.add(holder.name)
            why += f"; rows are of {holder.distinct:,} values of {holder.name!r}, whose actions are no choices "
            why += "of one another: draft from the rows of one"
        sure = len(named) == 1 and holder is None
        name, said = self._choose("display.action", words, guess, self._shown, why, sure=sure)
        if name is None:
            self.missing.append("display.action")
            return [Line("action", "", CHECK + "which column says what was shown?", live=False)]
        self._action_look = self._role(self._shown, name)
        return [Line("action", name, said)]

    def _propensity(self) -> list[Line]:
        free = [v for v in self._shown.values() if v.is_probability and not self._taken(v)]
        actions = 0 if self._action_look is None else self._action_look.distinct
        fits = {v.name: 0.5 * actions < v.mean_inverse < 2 * actions for v in free}
        found = [v for v in free if v.says_propensity]
        # Any other probability, split or weight is one only if its numbers agree.
        maybe = [v for v in free if v.may_say_propensity and not (v.says_propensity or v.says_outcome)]
        found += [v for v in maybe if fits[v.name]]
        choices = [v.name for v in free]
        why, sure = "no column of probabilities is named so", False
        if found:
            why = f"in (0, 1]; the mean of 1/p, which is to be the number of actions, {actions}, is "
            why += f"{found[0].mean_inverse:.3g}"
            sure = len(found) == 1 and found[0].says_propensity and fits[found[0].name]
        words = "Which column holds the probability with which it was shown (uniform: all actions alike, by design)?"
        guess = found[0].name if found else None
        name, said = self._choose("display.propensity", words, guess, (*choices, "uniform"), why, sure=sure)
        if name == "uniform" and name not in choices:
            return [Line("propensity_kind", "uniform", said)]
        if name is None:
            doubt = CHECK + "only if the logger showed all actions alike, by design; else propensities are unknown"
            return [Line("propensity_kind", "uniform", doubt if self._ask is None else "", live=False)]
        self._role(self._shown, name)
        return [Line("propensity", name, said)]

    def _others(self) -> list[Line]:
        """Return roles that names, or lists of actions, suggest, commented unless it is said that columns have them."""
        lines = []
        for role in (role for role in DISPLAY.values() if role.number is not None and role.key != "propensity"):
            found = [look for look in self._shown.values() if look.fits(role) and not self._taken(look)]
            if found:
                names, words = [look.name for look in found], f"Does this column hold {role.what}?"
                name, said = self._choose(f"display.{role.key}", words, None, names, "by its name alone")
                self._roles.update(names[:1] if name is not None or not found[0].says_outcome else ())
                doubt = said if name else f"{CHECK}only if it is {role.what}"
                lines.append(Line(role.key, name or names[0], doubt, live=name is not None))
        for name in () if self._action_look is None else self._tables.lists_of(self._action_look):
            lines.append(Line("eligible", name, f"{CHECK}only if it {DISPLAY['eligible'].what}", live=False))
        return lines

    def _join(self) -> tuple[list[Line], Join]:
        """Return the lines of the columns by which displays are found, and how conversions find theirs."""
        free = [look for look in self._shown.values() if not self._taken(look)]
        ids = [look for look in free if look.may_be_id]
        ids = [look for look in ids if not look.is_user or (self._apart and look.name in self._told)]
        ids.sort(key=lambda look: (look.name not in self._told, not look.words & {"display", "impression", "event"}))
        found = self._tables.join_by_id(ids) or self._tables.join_by_user(free) if self._apart else None
        if found is not None and found.by == "id":
            ids = [look for look in ids if look.name == found.displays]
        lines = [Line("id", look.name, GUESSED + "another one on every row") for look in ids[:1]]
        if found is not None and found.by == "user":
            many = f"{self._shown[found.displays].distinct:,} users; conversions are of the last display of theirs"
            lines.append(Line("user", found.displays, GUESSED + many))
        elif self._apart and not ids:
            same = [look for look in free if look.name in self._told and (look.is_id or not self._tables.in_one_file)]
            if same:
                repeats = same[0].distinct < len(same[0].text)
                why = "both tables have it" + (", but it repeats among the displays" if repeats else "")
                lines, found = [Line("id", same[0].name, CHECK + why)], Join("id", same[0].name, same[0].name)
            else:
                self.missing.append("display.id")
                lines = [Line("id", "", CHECK + "which column do both tables share?", live=False)]
        elif self._apart and found is None:
            self.missing.append("conversion.source.display")
        self._roles.update(str(line.value) for line in lines if line.live)
        return lines, found or Join("")

    def _joined(self, join: Join) -> list[Line]:
        """Return the lines that say how conversions find their displays."""
        if not join.by:
            return []
        why = {"id": "it holds the display's ids", "user": "it holds the users of the displays"}[join.by]
        key = "display" if join.by == "id" else "user"
        lines = [Line(key, join.conversions, "" if join.conversions == join.displays else GUESSED + why)]
        if join.by == "user" and self._action_look is not None and self._action_look.name in self._told:
            said = CHECK + "only if conversions are of a display that showed the action they name"
            lines.append(Line("action", self._action_look.name, said, live=False))
        return lines

    def _conversion(self, join: Join) -> tuple[list[Line], Look | None]:
        table = self._told
        free = [v for v in table.values() if not (table is self._shown and self._taken(v))]
        times = [v for v in free if v.is_time and not v.says_delay and (
            v.says_outcome or v.present.null_count() or self._apart)]  # fmt: skip
        ranks = {v.name: rank_of(sorted(v.words), CONVERSIONS) or 0 for v in free}
        times.sort(key=lambda v: (not v.filled.any(), not v.says_outcome, ranks[v.name], not v.says_time))
        delays = [v for v in free if v.says_delay and (v.numbers is not None or not v.filled.any())]
        flags = [v for v in free if v.is_flag and v.says_outcome and v.filled.all() and not self._apart]
        flags.sort(key=lambda v: (v.distinct < 2, ranks[v.name]))
        look = next(iter([*times, *delays, *flags]), None)
        why = (
            "no column looks like times of conversions"
            if look is None
            else drafted_columns.clock_why(look, times, delays)
        )
        sure = len(times) == 1 and look is times[0] and look.filled.any()
        name, said = self._choose(
            "conversion.time", "Which column says when (or after how long, or whether) it converted?",
            None if look is None else look.name, table, why, sure=sure,
        )  # fmt: skip
        if name is None:
            self.missing.append("conversion.time")
            return [Line("time", "", CHECK + "which column says when it converted?", live=False)], None
        clock = self._role(table, name)
        lines, came = [], clock.present.is_not_null()
        if clock.is_flag:
            came = clock.text == "1"
            immediate = "no column says when it converted: the reward counts as come at once"
            lines += [Line("indicator", name, said), Line("immediate", True, GUESSED + immediate)]
        else:
            lines.append(Line("delay" if clock.says_delay else "time", name, said))
            if flags and drafted_columns.narrows(flags[0], clock):
                flag = self._role(table, flags[0].name)
                came = flag.text == "1"
                lines.append(Line("indicator", flag.name, GUESSED + "not every row with a time converted"))
        lines += self._value(table, clock, came)
        lines += self._repeats(table, clock, join)
        return lines, clock

    def _value(self, table: dict[str, Look], clock: Look, came: pl.Series) -> list[Line]:
        """Return what conversions are worth; those rows hold one that `came`."""
        free = [v for v in table.values() if v is not clock and not (table is self._shown and self._taken(v))]
        worth, alike = drafted_columns.worth_of(free, table.values()), "without it, each conversion is worth 1"
        if not worth.found and worth.unread is not None:
            example = next(iter(worth.unread.text.drop_nulls()))
            said = f"{CHECK}cells such as {example} are no numbers; {alike}"
            return [Line("value", worth.unread.name, said, live=False)]
        if not worth.found:
            return []
        found = worth.found
        lost, many = int((came & found[0].text.is_null()).sum()), int(came.sum())
        gaps = f"missing on {lost:,} of {many:,} conversions" if lost else ""
        if gaps and self._ask is None and not worth.mixed:
            return [Line("value", found[0].name, f"{CHECK}{gaps}; {alike}", live=False)]
        why = "numbers; the least is {:g}, the largest {:g}".format(*found[0].ends)
        why += f"; {', '.join(repr(v.name) for v in found[1:])} too" if found[1:] else ""
        choices = [name for name, v in table.items() if v.numbers is not None]
        words = "Which column holds what a conversion is worth (none: each is worth 1)?"
        guess, sure = None if worth.mixed or gaps else found[0].name, len(found) == 1 and not worth.mixed
        name, said = self._choose("conversion.value", words, guess, choices, worth.mixed or gaps or why, sure=sure)
        if name is None and self._ask is None:
            self.missing.append("conversion.value")
            return [Line("value", found[0].name, said, live=False)]
        self._worth = None if name is None else self._role(table, name)
        return [] if name is None else [Line("value", name, said)]

    def _repeats(self, table: dict[str, Look], clock: Look, join: Join) -> list[Line]:
        """Return the key of conversions that several rows share, commented unless it is said which of them counts.

        One that lists its displays is given to one of them, and needs a key.
        """
        source = None if self._tables.conversions is None else self._tables.conversions.source
        listed = source is not None and source.get("explode") == join.conversions != ""
        found = drafted_columns.repeated_order(table.values(), clock, join.conversions)
        if found is None:
            self.missing += ["conversion.key"] if listed else []
            return [Line("key", [""], CHECK + "which column tells conversions apart?", live=False)] if listed else []
        look, why = found
        words = f"Rows repeat {look.name!r}. If it is one conversion, which display gets it?"
        rules = ("last_click", "first_click", "share")
        rule, said = self._choose("conversion.deduplicate", words, None, rules, why)
        live = rule is not None or listed
        self._roles.update({look.name} if live and table is self._shown else ())
        return [
            Line("key", [look.name], said, live=live),
            Line("deduplicate", rule or "last_click", "" if live else "or first_click, share", live=live),
        ]

    def _delays(self, times: drafted_columns.WrittenTimes, shown: Look, clock: Look, join: Join) -> pl.DataFrame | None:
        """Return the rows of the displays that converted, and the delays of the conversions; None if none is found."""
        if not self._apart:
            return drafted_columns.delays_seen(times, shown, clock, None)
        if not join.by:
            return None
        ids = self._shown[join.displays].text, self._told[join.conversions].text
        return drafted_columns.delays_seen(times, shown, clock, ids, by_user=join.by == "user")

    def _converted(
        self, clock: Look | None, join: Join, conversion: list[Line], seen: pl.DataFrame | None
    ) -> pl.Series | None:
        """Return which of the displays that were looked at converted."""
        if join.by == "id":
            return self._shown[join.displays].text.is_in(self._told[join.conversions].text.implode())
        if self._apart:
            rows = pl.Series(range(len(next(iter(self._shown.values())).text)))
            return None if seen is None else rows.is_in(seen["row"].implode())
        if clock is None:
            return None
        flag = next((str(line.value) for line in conversion if line.key == "indicator"), None)
        if flag is None:
            return clock.present.is_not_null()
        numbers = self._shown[flag].numbers
        return None if numbers is None else (numbers == 1).fill_null(False)

    def _log(self, longest: str, clock: Look | None, conversion: list[Line]) -> list[Line]:
        if clock is not None and any(line.key == "immediate" for line in conversion):
            return [Line("observed_until", "complete", GUESSED + "rewards come at once: no display waits for one")]
        why = f"longest delay that the log records{longest}"
        words = "How long after a display does the log record a conversion, such as 30d (none: no cut-off)?"
        window, said = self._choose("log.attribution_window", words, None, None, why)
        ticks = int(window) if window is not None and window.isdecimal() else window
        lines = [Line("attribution_window", ticks or "30d", said, live=window is not None)]
        words = "Until when was it followed: end (its last event) or complete (every display to the end of its window)?"
        why = "its last event; 'complete' if every display was followed to the end of its window"
        until, said = self._choose("log.observed_until", words, "end", ("end", "complete"), why)
        lines.append(Line("observed_until", until or "end", said))
        worth = self._worth
        if worth is not None or self._apart:
            seen = "" if worth is None else f"; the largest value seen is {worth.ends[1]:g}"
            why = f"the most that a display can earn, all its conversions together{seen}"
            most, said = self._choose("log.reward_max", f"What is {why} (none: unknown)?", None, None, why)
            lines.append(Line("reward_max", most_of(most), said, live=most is not None))
        return lines


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
