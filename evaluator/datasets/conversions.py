"""Which display carries which conversion, or other event, when, and with what value."""

from __future__ import annotations

import polars as pl

from evaluator.datasets.cells import Kind
from evaluator.datasets.event_kinds import EventKind
from evaluator.datasets.row_breaches import CheckedRows
from evaluator.datasets.row_rules import BEYOND, beyond_clocks
from evaluator.datasets.time_section import Time
from evaluator.units import MOST_VALUE

KEY = "__key"


def event_columns(kind: EventKind, time: Time) -> dict[str, Kind]:
    """Return the columns that hold the events, and the kind of each; `time` is ``[time]`` of the spec."""
    c = kind.columns
    kinds: dict[str, Kind] = dict.fromkeys(c.key, "text")
    kinds |= {column: "flag" for column in (c.indicator, c.click) if column}
    kinds |= {c.attributed: "flag"} if c.attributed and kind.attributed_only else {}
    kinds |= {c.value: "float"} if isinstance(c.value, str) else {}
    kinds |= {c.delay: "int"} if c.delay else {}
    return kinds | time.kinds_of(c.time)


def event_rows(table: pl.DataFrame, shown: pl.DataFrame, kind: EventKind, rows: CheckedRows) -> pl.DataFrame:
    """Return the rows that hold an event and keep the row rules; the others are reported to `rows`.

    Parameters
    ----------
    table
        Chunk of the source with the columns of the events.
    shown
        Displays of the rows of `table`, row for row: ``display`` (number of the display, null if none) and ``shown``
        (its time in ticks).
    kind
        Kind of the events.
    rows
        Chunk under check, which takes note of rows in breach; the same rows as `table`.

    Returns
    -------
    polars.DataFrame
        The columns of `shown`, ``time`` int64 (ticks), ``value`` float64, ``click`` and ``attributed`` bool, and `KEY`
        struct where the spec has a key.
    """
    c, word = kind.columns, kind.word
    a = "a" if word == "conversion" else "an"
    clock = c.time or c.delay
    if c.indicator is not None:
        flag = table[c.indicator]
        rows.add(c.indicator, rows.sound & ~flag.is_in([0, 1]).fill_null(False), "not 0 or 1",
                 "write 1 on rows that converted and 0 elsewhere")  # fmt: skip
        happened = (flag == 1).fill_null(False)
    else:
        happened = table[str(clock)].is_not_null()
    time = shown["shown"] if c.immediate else table[str(clock)]
    if clock is not None:
        rows.add(clock, happened & rows.sound & beyond_clocks(time), *BEYOND)
    if c.delay is not None:
        time = time + shown["shown"]
    sound = happened & rows.sound
    if clock is not None:
        rows.add(clock, sound & time.is_null() & shown["shown"].is_not_null(), f"{a} {word} without a time",
                 "fill it, or quarantine the row")  # fmt: skip
        rows.add(clock, sound & (time < shown["shown"]), f"{word} earlier than its display",
                 "check the time columns and their unit")  # fmt: skip
    for column in c.key:
        rows.add(column, sound & table[column].is_null(), f"{a} {word} without a key", f"check {kind.table}.key")
    if isinstance(c.value, str):
        value = table[c.value].cast(pl.Float64)
        rows.add(c.value, sound & ~value.is_finite().fill_null(False), "value not finite", "fill the cell")
        rows.add(c.value, sound & (value.is_finite() & (value.abs() > MOST_VALUE)).fill_null(False),
                 f"value beyond {MOST_VALUE:g}", "repair the cell, or count in a larger unit")  # fmt: skip
        if kind.outcome:
            rows.add(c.value, sound & (value < 0).fill_null(False), "value below 0",
                     "count what takes events back as an outcome of its own, above 0")  # fmt: skip
    else:
        value = pl.repeat(c.value, table.height, dtype=pl.Float64, eager=True)
    kept = happened & rows.sound
    table = table.filter(kept)

    def is_one(column: str | None) -> pl.Series:
        used = column is not None and column in table.columns
        ones = pl.repeat(True, table.height, dtype=pl.Boolean, eager=True)
        return (table[str(column)] == 1).fill_null(False) if used else ones

    out = shown.with_columns(time.alias("time"), value.alias("value")).filter(kept)
    out = out.with_columns(is_one(c.click).alias("click"), is_one(c.attributed).alias("attributed"))
    if c.key:
        out = out.with_columns(table.select(pl.struct(pl.col(k).cast(pl.String) for k in c.key).alias(KEY)))
    return out


def deduplicated(rows: pl.DataFrame, kind: EventKind) -> tuple[pl.DataFrame, dict[str, float]]:
    """Return the rows whose event counts, and what was counted on the way.

    ``last_click`` and ``first_click`` keep the last or first clicked display of each key, ``share`` gives each of its n
    clicked displays 1/n of the value, ``all`` keeps every row. A refund, a value below 0, is no copy of its key's sale:
    each of them, one for every time and value, goes where that sale went.
    """
    counts: dict[str, float] = {"conversion_rows": rows.height}
    refunds, sales = rows.filter(pl.col("value") < 0), rows.filter(pl.col("value") >= 0)
    if KEY in rows.columns:
        sizes = sales.group_by(KEY).len()
        first = sizes[KEY].struct.fields[0]
        counts["conversions_distinct"] = sizes.height
        counts["conversions_shared"] = int((sizes["len"] > 1).sum())
        if len(sizes[KEY].struct.fields) > 1:
            users = sizes.group_by(pl.col(KEY).struct.field(first)).len()
            counts["colliding_ids"] = int((users["len"] > 1).sum())
    kept = rows.filter("attributed") if kind.attributed_only else rows
    counts["conversion_rows_unattributed"] = rows.height - kept.height
    before = kept.height
    if kind.deduplicate != "all":
        own = kept.filter(pl.col("value") >= 0)
        clicked = own.filter("click")
        counts["conversions_without_click"] = (
            own.select(pl.col(KEY).n_unique()).item() - clicked.select(pl.col(KEY).n_unique()).item()
        )
        of_sales = _on_their_displays(clicked, [KEY], kind)
        kept = pl.concat([of_sales, _refunds(refunds, sales, of_sales, kind)]) if refunds.height else of_sales
    counts["conversion_rows_deduplicated"] = max(before - kept.height, 0)
    return kept, counts


def _on_their_displays(clicked: pl.DataFrame, event: list[str], kind: EventKind) -> pl.DataFrame:
    """Return the rows of the displays that get an event; columns `event` say which rows are one."""
    if kind.deduplicate == "share":
        return clicked.with_columns(pl.col("value") / pl.len().over(event))
    journeys = clicked.sort("shown", "display", maintain_order=True).group_by(event, maintain_order=True)
    return (journeys.last() if kind.deduplicate == "last_click" else journeys.first()).select(clicked.columns)


def _refunds(refunds: pl.DataFrame, sales: pl.DataFrame, kept: pl.DataFrame, kind: EventKind) -> pl.DataFrame:
    """Return each refund on the displays that got its sale; one without any sale in the log, by the rule of sales.

    Parameters
    ----------
    refunds, sales
        All rows of either.
    kept
        Rows of the sales that count: a refund of another sale of the log counts no more than that.
    kind
        Kind of the events, with the rule.
    """
    event = [KEY, "time", "value"]
    once = refunds.unique(event, keep="first", maintain_order=True).select(event)
    of_sale = kept.drop("time", "value").with_columns(pl.len().over(KEY).alias("displays"))
    moved = once.join(of_sale, on=KEY, maintain_order="left_right").with_columns(pl.col("value") / pl.col("displays"))
    alone = refunds.join(sales, on=KEY, how="anti", maintain_order="left").filter(pl.col("click"))
    if kind.attributed_only:
        alone = alone.filter("attributed")
    return pl.concat([moved.select(kept.columns), _on_their_displays(alone, event, kind)])
