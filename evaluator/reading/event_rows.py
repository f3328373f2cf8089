"""Events of a spec: their kinds (conversions, which are rewards, and other outcomes) and how their rows are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import polars as pl

from evaluator.errors import ParameterError, SpecError, UsageError
from evaluator.log.log_tables import EventKind
from evaluator.reading.cells import Cell, Cells, Kind, ZonedCells, first_of_each, parse
from evaluator.reading.options import Deduplicate
from evaluator.reading.roles import BEYOND, EVENT, kinds_of
from evaluator.reading.row_breaches import CheckedRows
from evaluator.reading.spec import Conversion, FileSpec
from evaluator.reading.spec_sections import Time
from evaluator.units import ROUND, SECONDS, duration_ticks

REWARDS = "conversion"
# Errors name a cell of a file, where there is one, before a date of the spec.
_LAST = (((2**63, ""),), 0)
KEY = "__key"


@dataclass(frozen=True, kw_only=True)
class EventRules:
    """Rules that make rows of a spec's tables events of a kind that count.

    The `kind` is as the log has it, and how long it was followed is known once its events are read; `observed_until`
    (ticks), `attribution_window` and `min_delay` (ticks) are as the spec says; `deduplicate` and `attributed_only` are
    the spec's rules, or those of the call.
    """

    kind: EventKind
    columns: Conversion
    observed_until: int | Literal["end", "complete"]
    attribution_window: str | int | None
    deduplicate: Deduplicate
    attributed_only: bool
    min_delay: int

    @property
    def table(self) -> str:
        """Name of the spec's table that gives them: ``conversion``, or ``outcomes.NAME``."""
        return f"outcomes.{self.kind.name}" if self.kind.name else REWARDS

    @property
    def log_table(self) -> str:
        """Name of the table that says how long they were followed: ``log``, or their own."""
        return self.table if self.kind.name else "log"

    @property
    def by_user(self) -> bool:
        """Whether events are joined to displays by user and time."""
        return self.columns.source is not None and self.columns.source.user is not None

    @property
    def word(self) -> str:
        """What messages call one of them."""
        return self.columns.word

    @property
    def clock(self) -> str:
        """Column that says when one came, or that it did."""
        return str(self.columns.time or self.columns.delay or self.columns.indicator)


def event_kinds(spec: FileSpec, deduplicate: Deduplicate | None, attributed_only: bool | None) -> list[EventRules]:
    """Return the kinds of events of a spec, the rewards first, whose rules the call may replace.

    Raises UsageError if the call asks for a rule of which the spec lacks the columns, and SpecError if the spec says
    until when events were followed, and it is no time.
    """
    c = spec.conversion
    rule = deduplicate or c.deduplicate
    if rule != "all" and not c.key:
        raise UsageError(f"deduplicate={rule!r}, but {spec.name} has no key.", remedy="set conversion.key in the spec.")
    only = c.attributed_only if attributed_only is None else attributed_only
    if only and c.attributed is None:
        raise UsageError(
            f"attributed_only, but {spec.name} has no attribution.", remedy="set conversion.attributed in the spec."
        )
    kind = EventKind(name="", value_max=spec.log.reward_max, reward=True, told=True, value_min=spec.log.reward_min)
    rewards = EventRules(
        kind=kind, columns=c, observed_until=_until(spec, "log", spec.log.observed_until, c),
        attribution_window=spec.log.attribution_window, deduplicate=rule, attributed_only=only,
        min_delay=_min_delay(spec, "conversion", c),
    )  # fmt: skip
    return [rewards, *(_outcome(spec, name) for name in spec.outcomes)]


def _outcome(spec: FileSpec, name: str) -> EventRules:
    of = spec.outcomes[name]
    least, most = of.value_min, of.value_max
    if of.source is None and not isinstance(of.value, str):
        # A row of the displays' own table holds one event at the most.
        most = of.value if most is None and of.value > 0 else most
        least = of.value if least is None and of.value < 0 else least
    if of.reward:  # a reward is bounded on both sides, so that its intervals hold
        least, most = least or 0.0, most or 0.0
    told = of.reward if of.told is None else of.told
    table, until = (
        ("log", spec.log.observed_until) if of.observed_until is None else (f"outcomes.{name}", of.observed_until)
    )
    return EventRules(
        kind=EventKind(name=name, value_max=most, reward=of.reward, told=told, value_min=least),
        columns=of,
        observed_until=_until(spec, table, until, of),
        attribution_window=spec.log.attribution_window if of.attribution_window is None else of.attribution_window,
        deduplicate=of.deduplicate,
        attributed_only=of.attributed_only,
        min_delay=_min_delay(spec, f"outcomes.{name}", of),
    )


def _min_delay(spec: FileSpec, table: str, columns: Conversion) -> int:
    return spec_delay(columns.min_delay, spec.tick, name=spec.name, key=f"{table}.min_delay") or 0


def _until(spec: FileSpec, table: str, given: int | str, columns: Conversion) -> int | Literal["end", "complete"]:
    """Return until when events were followed: in ticks, where it is a time."""
    if given == "end":
        # What comes with its display needs no more time.
        return "complete" if columns.immediate and spec.log.attribution_window is None else "end"
    if given == "complete":
        return "complete"
    if isinstance(given, int):
        return given
    ticks = ticks_of_date(spec, given)
    if ticks is None:
        raise no_such_time(spec, f"{table}.observed_until", given, "end", "complete")
    return ticks


def spec_delay(given: str | int | None, tick: str, *, name: str, key: str = "attribution_window") -> int | None:
    """Return a delay that a `key` of a spec gives, in ticks.

    Raises SpecError for a duration where the log counts rounds, or for one that is no number of whole ticks.
    """
    if given is None:
        return None
    if isinstance(given, str) and given.strip().isdecimal():
        given = int(given)
    if isinstance(given, int):
        if not 0 <= given < 2**63:
            raise SpecError(f"{name}: {key} = {given} is no delay.", remedy="give ticks, from 0 on.")
        return given
    if tick == ROUND:
        raise SpecError(f"{name}: {key} = {given!r}, but times are rounds.", remedy="give it as a number of rounds.")
    try:
        ticks = duration_ticks(given, SECONDS[tick])
    except ParameterError as error:
        raise SpecError(f"{name}: {key} = {given!r} is no duration.", remedy=error.remedy) from None
    if 0 < ticks < 1:
        raise SpecError(f"{name}: {key} = {given!r} is less than a tick of the log ({tick}).", remedy="give more.")
    if abs(ticks - round(ticks)) > 1e-9 * ticks:
        raise SpecError(
            f"{name}: {key} = {given!r} is {ticks:g} ticks of the log ({tick}), which counts whole ones.",
            remedy=f"give {math.floor(ticks):,} or {math.ceil(ticks):,}{tick}.",
        )
    return round(ticks)


def ticks_of_date(spec: FileSpec, text: str) -> int | None:
    """Return a date of a spec in microseconds, read as a cell of ``display.time``; None if the text is no date.

    >>> from evaluator.reading.spec import parse_spec
    >>> data = {"name": "shop", "title": "A shop", "licence": "of the shop", "source": {"files": "log.csv"},
    ...         "time": {"unit": "datetime"}, "display": {"time": "t", "action": "ad"}, "conversion": {"time": "sold"}}
    >>> ticks_of_date(parse_spec(data, where="here"), "2024-01-31 12:00")
    1706702400000000
    """
    if spec.time.unit != "datetime":
        return None
    found = _read(spec, text).values[0]
    return None if found is None else int(found)


def zone_of_date(spec: FileSpec, text: str, where: str) -> ZonedCells:
    """Return whether a date of a spec says its zone, as of a cell of ``display.time``, as which it is read.

    Nothing where a column of offsets places those cells: none is the date's.
    """
    of = spec.display.time
    if spec.time.unit != "datetime" or spec.time.offset_of(of) is not None:
        return {}
    cells = _read(spec, text)
    return {(of, said): Cell(_LAST, f"{where}: {text!r}") for said, _ in first_of_each(cells.aware, cells.values)}


def _read(spec: FileSpec, text: str) -> Cells:
    of = spec.display.time
    return parse(pl.Series([text]), "datetime", [], spec.time.format_of(of), zone=spec.time.zone_of(of))


def no_such_time(spec: FileSpec, key: str, given: object, *others: str) -> SpecError:
    """Return the refusal of what a key names as a time, which may take other words too."""
    dates = spec.time.unit == "datetime"
    said = "a date as those of display.time" if dates else f"a whole number, in {spec.time.unit}"
    words = "".join(f"{word!r} or " for word in others)
    return SpecError(f"{spec.name}: `$.{key}`: got {given!r}.", remedy=f"write {words}{said}.")


def event_columns(rules: EventRules, time: Time) -> dict[str, Kind]:
    """Return the columns that hold the events, and the kind of each; `time` is ``[time]`` of the spec."""
    roles = (role for role in EVENT.values() if role.key != "attributed" or rules.attributed_only)
    return kinds_of(roles, rules.columns) | time.kinds_of(rules.columns.time)


def event_rows(table: pl.DataFrame, shown: pl.DataFrame, rules: EventRules, rows: CheckedRows) -> pl.DataFrame:
    """Return the rows that hold an event and keep the row rules; the others are reported to `rows`.

    `shown` has the display of each row of `table`: ``display`` (its number, null if none) and ``shown`` (its time in
    ticks). The result has these columns, ``time`` int64 (ticks), ``value`` float64, ``click`` and ``attributed`` bool,
    and `KEY` struct where the spec has a key.
    """
    c, word = rules.columns, rules.word
    a = "a" if word == "conversion" else "an"
    clock = c.time or c.delay
    if c.indicator is not None:
        flag = table[c.indicator]
        for rule in EVENT["indicator"].rules:
            rows.add(c.indicator, rows.sound & rule.breaks(flag), rule.problem, rule.repair)
        happened = (flag == 1).fill_null(False)
    else:
        happened = table[str(clock)].is_not_null()
    time = shown["shown"] if c.immediate else table[str(clock)]
    if clock is not None:
        rows.add(clock, happened & rows.sound & BEYOND.breaks(time), BEYOND.problem, BEYOND.repair)
    if c.delay is not None:
        time = time + shown["shown"]
    sound = happened & rows.sound
    if clock is not None:
        has_display = pl.Series([rules.by_user]) | shown["shown"].is_not_null()
        rows.add(clock, sound & time.is_null() & has_display, f"{a} {word} without a time",
                 "fill it, or quarantine the row")  # fmt: skip
        rows.add(clock, sound & (time < shown["shown"]), f"{word} earlier than its display",
                 "check the time columns and their unit")  # fmt: skip
    for column in c.key:
        rows.add(column, sound & table[column].is_null(), f"{a} {word} without a key", f"check {rules.table}.key")
    if isinstance(c.value, str):
        value = table[c.value].cast(pl.Float64)
        for rule in EVENT["value"].rules:
            rows.add(c.value, sound & rule.breaks(value), rule.problem, rule.repair)
        if not rules.kind.reward:
            rows.add(c.value, sound & (value < 0).fill_null(False), "value below 0",
                     "count what takes events back as an outcome of its own, above 0")  # fmt: skip
    else:
        value = pl.repeat(c.value, table.height, dtype=pl.Float64, eager=True)
    kept = happened & rows.sound

    def is_one(column: str | None) -> pl.Series:
        if column is not None and column in table.columns:
            return (table[column] == 1).fill_null(False)
        return pl.repeat(True, table.height, dtype=pl.Boolean, eager=True)

    out = shown.with_columns(
        time.alias("time"), value.alias("value"), is_one(c.click).alias("click"),
        is_one(c.attributed).alias("attributed"),
    ).filter(kept)  # fmt: skip
    if c.key:
        keys = table.select(list(c.key)).filter(kept)
        out = out.with_columns(keys.select(pl.struct(pl.col(k).cast(pl.String) for k in c.key).alias(KEY)))
    return out


def deduplicated(rows: pl.DataFrame, rules: EventRules) -> tuple[pl.DataFrame, dict[str, float]]:
    """Return the rows whose event counts, and the numbers of conversions, shared ones and dropped rows.

    ``last_click`` and ``first_click`` keep the last or first clicked display of each key, ``share`` gives each of its n
    clicked displays 1/n of the value, ``all`` keeps every row. A refund, a value below 0, is no copy of its key's sale:
    each of them, one for every time and value, goes where that sale went.
    """
    counts: dict[str, float] = {"conversion_rows": rows.height}
    if KEY in rows.columns:
        refunds = rows.filter(pl.col("value") < 0)
        sales = rows.filter(pl.col("value") >= 0) if refunds.height else rows
        sizes = sales.group_by(KEY).len()
        first = sizes[KEY].struct.fields[0]
        counts["conversions_distinct"] = sizes.height
        counts["conversions_shared"] = int((sizes["len"] > 1).sum())
        if len(sizes[KEY].struct.fields) > 1:
            users = sizes.group_by(pl.col(KEY).struct.field(first)).len()
            counts["colliding_ids"] = int((users["len"] > 1).sum())
    kept = rows.filter("attributed") if rules.attributed_only else rows
    counts["conversion_rows_unattributed"] = rows.height - kept.height
    before = kept.height
    if rules.deduplicate != "all":
        own = kept.filter(pl.col("value") >= 0) if refunds.height else kept
        clicked = own.filter("click")
        counts["conversions_without_click"] = (
            own.select(pl.col(KEY).n_unique()).item() - clicked.select(pl.col(KEY).n_unique()).item()
        )
        of_sales = _on_their_displays(clicked, [KEY], rules)
        kept = pl.concat([of_sales, _refunds(refunds, sales, of_sales, rules)]) if refunds.height else of_sales
    counts["conversion_rows_deduplicated"] = max(before - kept.height, 0)
    return kept, counts


def _on_their_displays(clicked: pl.DataFrame, event: list[str], rules: EventRules) -> pl.DataFrame:
    """Return the rows of the displays that get an event; columns `event` say which rows are one."""
    if rules.deduplicate == "share":
        return clicked.with_columns(pl.col("value") / pl.len().over(event))
    journeys = clicked.sort("shown", "display", maintain_order=True).group_by(event, maintain_order=True)
    return (journeys.last() if rules.deduplicate == "last_click" else journeys.first()).select(clicked.columns)


def _refunds(refunds: pl.DataFrame, sales: pl.DataFrame, kept: pl.DataFrame, rules: EventRules) -> pl.DataFrame:
    """Return each refund on the displays that got its sale; one without any sale in the log, by the rule of sales.

    A refund of another sale of the log counts no more than that sale, which is among `kept` or not.
    """
    event = [KEY, "time", "value"]
    once = refunds.unique(event, keep="first", maintain_order=True).select(event)
    of_sale = kept.drop("time", "value").with_columns(pl.len().over(KEY).alias("displays"))
    moved = once.join(of_sale, on=KEY, maintain_order="left_right").with_columns(pl.col("value") / pl.col("displays"))
    alone = refunds.join(sales, on=KEY, how="anti", maintain_order="left").filter(pl.col("click"))
    if rules.attributed_only:
        alone = alone.filter("attributed")
    return pl.concat([moved.select(kept.columns), _on_their_displays(alone, event, rules)])
