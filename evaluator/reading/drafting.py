"""Draft a ``spec.toml`` from the first rows of its files: guess the roles of the columns, and say what is a guess."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from evaluator.errors import UsageError, nearest
from evaluator.reading import drafted_columns
from evaluator.reading.column_profile import CONVERSIONS, Look, rank_of
from evaluator.reading.draft_lines import NO_ANSWER, Ask, Draft, Line, Question, most_of
from evaluator.reading.file_sample import FileSample, refuse_bundled, sample_file
from evaluator.reading.spec_file import parse_spec

GUESSED, CHECK = "guessed: ", "please check: "


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
    second = None if conversions is None else sample_file(conversions)
    sample = sample_file(file)
    drafter = _Drafter(sample, second, ask)
    refuse_bundled(drafter.looks, sample.source, str(file))
    sections = drafter.sections()
    tables = [drafter.sample, *([] if second is None else [second])]
    found = Draft(
        Path(file),
        None if conversions is None else Path(conversions),
        {name: tuple(lines) for name, lines in sections.items()},
        tuple((sample.rows, sample.whole) for sample in tables),
        tuple(drafter.missing),
    )
    if not found.missing:
        parse_spec(tomllib.loads(found.toml()), where="the draft")
    return found


class _Drafter:
    """The guesses about two tables, in the order in which they rest on each other."""

    def __init__(self, sample: FileSample, second: FileSample | None, ask: Ask | None) -> None:
        self.sample, self.second = sample, second
        self.missing: list[str] = []
        self._ask = ask
        self.looks = self._shown = {name: Look(name, cells) for name, cells in sample.columns.items()}
        self._told = self._shown if second is None else {name: Look(name, v) for name, v in second.columns.items()}
        self._roles: set[str] = set()
        self._action_look: Look | None = None
        self._worth: Look | None = None
        self._none: dict[str, list[str | int]] = {}
        self._made_up = "header" in sample.guesses

    def sections(self) -> dict[str, list[Line]]:
        """Return the lines of the spec by section."""
        events = self._events()
        display, time = self._display()
        join = self._join(display)
        conversion, clock = self._conversion(time, join[1])
        told_at = None if clock is None or clock.says_delay else clock
        times = drafted_columns.written_times(time, told_at, self._choose)
        self.missing += [] if times is None else times.missing
        converted = self._converted(clock, join, conversion)
        found = {
            "source": [*self._source(self.sample, self._shown, time), *events],
            "time": times.lines if times else [Line("unit", "s", CHECK + "no column of times was found", live=False)],
            "display": display,
            "conversion": conversion,
        }
        if self.second is not None:
            own = [Line("display", join[1], "" if join[1] == join[0] else GUESSED + "it holds the display's ids")]
            own = own if join[1] else []
            if (events_told := drafted_columns.event_lines(self._told.values(), "conversions")) is not None:
                own += events_told[1]
            found["conversion.source"] = [*self._source(self.second, self._told, None), *own]
        found["log"] = self._log(times, time, clock, join, conversion)
        if (users := drafted_columns.user_column(v for v in self._shown.values() if not self._taken(v))) is not None:
            self._roles.add(users.name)
            said = f"{GUESSED}{users.distinct:,} users; intervals over whole users: --cluster-by user"
            found["keep"] = [Line("user", users.name, said)]
        free = [look for look in self._shown.values() if not self._taken(look)]
        told = set() if self.second is None else set(self._told)
        outcomes, context = drafted_columns.context_lines(free, converted, told, self._action_look)
        context += [Line("", comment=f"left out: {name!r}: lists or objects") for name in self.sample.unusable]
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

    def _events(self) -> list[Line]:
        """Return what is asked of rows that are events of several kinds."""
        if (found := drafted_columns.event_lines(self._shown.values(), "displays")) is None:
            return []
        look, lines, several = found
        self._roles.add(look.name)
        self.missing += ["source.files"] if several else []
        return lines

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
            Line(key, value, GUESSED + sample.guesses[key] if key in sample.guesses else "")
            for key, value in sample.source.items()
            if key != "files"
        ]
        if none := {name: words for name, words in self._none.items() if name in table}:
            lines.append(Line("none", none, GUESSED + "these mean 'missing' there"))
        if time is not None and (later := drafted_columns.first_unsorted(time)) is not None:
            lines.append(Line("sort", True, GUESSED + f"row {later:,} is earlier than the row above it"))
        return lines

    def _display(self) -> tuple[list[Line], Look | None]:
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
        lines += self._weight()
        ids = [
            look for look in table.values() if look.is_id and look.distinct == len(look.text) and not self._taken(look)
        ]
        ids = [look for look in ids if look.words & {"id", "uuid", "guid", "key"}]
        ids = [look for look in ids if not look.is_user or (self.second is not None and look.name in self._told)]
        ids.sort(key=lambda look: (look.name not in self._told, not look.words & {"display", "impression", "event"}))
        if ids:
            self._roles.add(ids[0].name)
            lines.insert(0, Line("id", ids[0].name, GUESSED + "another one on every row"))
        elif self.second is not None:
            same = [name for name in table if name in self._told and not self._taken(table[name])]
            if same:
                self._roles.add(same[0])
                repeats = table[same[0]].distinct < len(table[same[0]].text)
                why = "both tables have it" + (", but it repeats among the displays" if repeats else "")
                lines.insert(0, Line("id", same[0], CHECK + why))
            else:
                self.missing.append("display.id")
                lines.insert(0, Line("id", "", CHECK + "which column do both tables share?", live=False))
        if (shared := drafted_columns.repeated_request(v for v in table.values() if not self._taken(v))) is not None:
            self._roles.add(shared.name)
            said = "several rows share it: is each a display of its own, a place of a slate, or a further conversion?"
            lines.append(Line("", comment=f"{CHECK}{shared.name!r}: {said}"))
        return lines, time

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

    def _weight(self) -> list[Line]:
        found = [v.name for v in self._shown.values() if v.says_weight and not self._taken(v) and v.numbers is not None]
        if not found:
            return []
        self._roles.add(found[0])
        words = "Does this column hold one over the probability with which the display got into the log?"
        name, said = self._choose("display.weight", words, None, found, "by its name alone")
        doubt = CHECK + "only if it is one over the probability with which the display got into the log"
        return [Line("weight", name or found[0], said if name else doubt, live=name is not None)]

    def _join(self, display: list[Line]) -> tuple[str, str]:
        """Return the columns of both tables that hold the display's id; a name is empty where no column holds it."""
        own = next((str(line.value) for line in display if line.key == "id" and line.live), "")
        if self.second is None or not own:
            return own, ""
        if own in self._told:
            return own, own
        ids = self._shown[own].text
        shares = {name: float(look.text.is_in(ids.implode()).mean() or 0) for name, look in self._told.items()}  # type: ignore[arg-type]
        best = max(shares, key=lambda name: shares[name])
        if not shares[best]:
            self.missing.append("conversion.source.display")
            return own, ""
        return own, best

    def _conversion(self, shown: Look | None, of_display: str) -> tuple[list[Line], Look | None]:
        table = self._told
        free = [v for v in table.values() if not (table is self._shown and self._taken(v))]
        times = [v for v in free if v.is_time and not v.says_delay and (
            v.says_outcome or v.present.null_count() or self.second is not None)]  # fmt: skip
        ranks = {v.name: rank_of(sorted(v.words), CONVERSIONS) or 0 for v in free}
        times.sort(key=lambda v: (not v.filled.any(), not v.says_outcome, ranks[v.name], not v.says_time))
        delays = [v for v in free if v.says_delay and (v.numbers is not None or not v.filled.any())]
        flags = [v for v in free if v.is_flag and v.says_outcome and v.filled.all() and self.second is None]
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
        lines = []
        if clock.is_flag:
            immediate = "no column says when it converted: the reward counts as come at once"
            lines += [Line("indicator", name, said), Line("immediate", True, GUESSED + immediate)]
        else:
            lines.append(Line("delay" if clock.says_delay else "time", name, said))
            lines += [
                Line("indicator", self._role(table, flag.name).name, GUESSED + "not every row with a time converted")
                for flag in flags[:1]
                if drafted_columns.narrows(flag, clock)
            ]
        lines += self._value(table, clock)
        lines += self._repeats(table, clock, of_display)
        return lines, clock

    def _value(self, table: dict[str, Look], clock: Look) -> list[Line]:
        free = [v for v in table.values() if v is not clock and not (table is self._shown and self._taken(v))]
        worth = drafted_columns.worth_of(free, table.values())
        if not worth.found and worth.unread is not None:
            example = next(iter(worth.unread.text.drop_nulls()))
            said = f"{CHECK}cells such as {example} are no numbers; without it, each conversion is worth 1"
            return [Line("value", worth.unread.name, said, live=False)]
        if not worth.found:
            return []
        found = worth.found
        why = "numbers; the least is {:g}, the largest {:g}".format(*found[0].ends)
        why += f"; {', '.join(repr(v.name) for v in found[1:])} too" if found[1:] else ""
        choices = [name for name, v in table.items() if v.numbers is not None]
        words = "Which column holds what a conversion is worth (none: each is worth 1)?"
        guess, sure = None if worth.mixed else found[0].name, len(found) == 1 and not worth.mixed
        name, said = self._choose("conversion.value", words, guess, choices, worth.mixed or why, sure=sure)
        if name is None and self._ask is None:
            self.missing.append("conversion.value")
            return [Line("value", found[0].name, said, live=False)]
        self._worth = None if name is None else self._role(table, name)
        return [] if name is None else [Line("value", name, said)]

    def _repeats(self, table: dict[str, Look], clock: Look, of_display: str) -> list[Line]:
        """Return the key of conversions that several rows share, commented unless it is said which of them counts."""
        found = drafted_columns.repeated_order(table.values(), clock, of_display)
        if found is None:
            return []
        look, why = found
        words = f"Rows repeat {look.name!r}. If it is one conversion, which display gets it?"
        rules = ("last_click", "first_click", "share")
        rule, said = self._choose("conversion.deduplicate", words, None, rules, why)
        live = rule is not None
        self._roles.update({look.name} if live and table is self._shown else ())
        return [
            Line("key", [look.name], said, live=live),
            Line("deduplicate", rule or "last_click", "" if live else "or first_click, share", live=live),
        ]

    def _converted(self, clock: Look | None, join: tuple[str, str], conversion: list[Line]) -> pl.Series | None:
        """Return which of the displays that were looked at converted."""
        if self.second is not None:
            return self._shown[join[0]].text.is_in(self._told[join[1]].text.implode()) if join[1] else None
        if clock is None:
            return None
        flag = next((str(line.value) for line in conversion if line.key == "indicator"), None)
        if flag is None:
            return clock.present.is_not_null()
        numbers = self._shown[flag].numbers
        return None if numbers is None else (numbers == 1).fill_null(False)

    def _log(
        self, times: drafted_columns.WrittenTimes | None, shown: Look | None, clock: Look | None, join: tuple[str, str],
        conversion: list[Line],
    ) -> list[Line]:  # fmt: skip
        if clock is not None and any(line.key == "immediate" for line in conversion):
            return [Line("observed_until", "complete", GUESSED + "rewards come at once: no display waits for one")]
        longest = ""
        if times is not None and shown is not None and clock is not None and (self.second is None or join[1]):
            ids = None if self.second is None else (self._shown[join[0]].text, self._told[join[1]].text)
            longest = drafted_columns.longest_delay(times, shown, clock, ids)
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
        if worth is not None or self.second is not None:
            seen = "" if worth is None else f"; the largest value seen is {worth.ends[1]:g}"
            why = f"the most that a display can earn, all its conversions together{seen}"
            most, said = self._choose("log.reward_max", f"What is {why} (none: unknown)?", None, None, why)
            lines.append(Line("reward_max", most_of(most), said, live=most is not None))
        return lines
