"""Tables of their own for conversions and other events: joined some at a time, as if both tables were in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluator.datasets import convert, read
from evaluator.errors import EvaluatorError
from evaluator.reading import adapter, join_by_id, sorting
from evaluator.reading import frames as scan
from evaluator.reading.cells import Kind, ZonesSeen, merged_kinds
from evaluator.reading.event_rows import EventRules, event_columns, event_rows
from evaluator.reading.frames import Chunks
from evaluator.reading.join_by_id import BloomFilter
from evaluator.reading.row_breaches import FILE, LINE, Breaches, side_by_side
from evaluator.reading.row_rules import TimeGuesses, check_cells
from evaluator.reading.sorting import Spool
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec_sections import Time
from tests.reading.sources import dataset, write_rows, write_spec


class WholeTable:
    """The slow twin of `SecondTable`: the whole table in one frame, every id of it in every question."""

    notes = ()

    def __init__(
        self,
        rules: EventRules,
        time: Time,
        files: list[TablePart],
        zones: ZonesSeen,
        *,
        listed: bool,
        new_spool: Callable[[], Spool],
    ) -> None:
        source = rules.columns.source
        assert source is not None
        self.rules, self.time, self.column = rules, time, source.display
        self.kinds: dict[str, Kind] = merged_kinds(event_columns(rules, time), {source.display: "text"})
        self.breaches = Breaches(files, listed=listed)
        self.table = Chunks(files, source, self.kinds, time=time, zones=zones).collect()
        self.rows = self.table.height

    def display_ids(self) -> WholeTable:
        self.ids: list[str] = []
        return self

    def wanted(self, displays: pl.DataFrame) -> pl.DataFrame:
        self.ids.extend(displays["id"].drop_nulls())
        return displays.filter(displays["id"].is_in(self.table[self.column].drop_nulls().implode()))

    def named(self, displays: pl.DataFrame, asked: WholeTable) -> pl.DataFrame:
        return displays

    def converted(self, displays: pl.DataFrame, *, limited: bool) -> tuple[pl.DataFrame, int]:
        rows = self.breaches.check(self.table)
        clock = self.rules.columns.time
        check_cells(rows, self.table, self.kinds, TimeGuesses(self.time, [] if clock is None else [clock]))
        first = displays.drop("hash").unique("id", keep="first", maintain_order=True)
        ids = self.table[self.column].alias("id").to_frame()
        shown = ids.join(first, on="id", how="left", maintain_order="left").drop("id")
        shown = shown.hstack(self.table.select(FILE, LINE))
        lost = shown["display"].is_null()
        if not limited:
            remedy = f"check {self.rules.table}.source.display" + side_by_side("displays", self.ids)
            rows.add(self.column, lost, f"{self.rules.word} without display", remedy)
        found = event_rows(self.table, shown, self.rules, rows)
        rows.close()
        return found.filter(pl.col("display").is_not_null()), int(lost.sum())


@contextmanager
def little_by_little(rows: int) -> Iterator[None]:
    """Have so many rows, and hashes, in memory at a time; hardly any display is told from those that are named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "CHUNK_ROWS", rows)
        patch.setattr(sorting, "RANGE_ROWS", rows)
        patch.setattr(join_by_id, "SORTED_HASHES", rows)
        patch.setattr(join_by_id, "JOINED_ROWS", rows)
        patch.setattr(join_by_id, "BITS", 16)
        yield


def outcome(how: Callable[[], Any]) -> Any:
    """All there is to see of a reading: its tables and metadata, or its error."""
    try:
        done = how()
    except EvaluatorError as error:
        return type(error), str(error)
    log = done.log
    tables = [t.to_pydict() for t in (log.displays, log.conversions, log.outcomes, log.actions, done.quarantine)]
    return [str(tables), log.meta]


IDS = st.sampled_from([*"abcdefgh", ""])
DISPLAY = st.tuples(
    IDS,
    st.sampled_from([*map(str, range(8)), "2", "2", "x", ""]),
    st.sampled_from(["m", "n", ""]),
    st.sampled_from(["0.5", "0.5", "0.5", "0"]),
)
EVENT = st.tuples(
    IDS | st.just("nobody"),
    st.sampled_from([*map(str, range(7, 12)), "1", "soon", ""]),
    st.sampled_from(["1.5", "2", "-1.5", "nan", "2e15"]),
    st.sampled_from(["k", "l", ""]),
)
# Of most tables all but a cell or two is sound, as most real ones are.
SOUND = st.tuples(
    st.sampled_from("abcdefgh"), st.sampled_from("789"), st.sampled_from(["1.5", "2"]), st.sampled_from("kl")
)
LEAVE_OUT = {"on_error": "quarantine", "quarantine_at_most": 1.0}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(DISPLAY, max_size=14),
    st.booleans(),
    st.lists(SOUND | EVENT, max_size=14),
    st.none() | st.lists(SOUND | EVENT, max_size=9),
    st.sampled_from([{}, {"key": ["key"]}, {"key": ["key"], "deduplicate": "last_click"}]),
    st.fixed_dictionaries({}, optional={"limit": st.integers(1, 9), "attribution_window": st.just(5)}),
    st.sampled_from([{}, LEAVE_OUT, LEAVE_OUT]),
    st.integers(1, 6),
)
@example([("a", "0", "m", "0.5")] * 3 + [("a", "x", "m", "0.5"), ("a", "", "m", "0.5")], False, [], None, {}, {}, {}, 1)
def test_tables_joined_some_rows_at_a_time_are_joined_as_whole_ones(
    tmp_path_factory: pytest.TempPathFactory,
    displays: list[tuple[str, ...]],
    each_once: bool,
    sales: list[tuple[str, ...]],
    clicks: list[tuple[str, ...]] | None,
    rules: dict[str, Any],
    options: dict[str, Any],
    leave_out: dict[str, Any],
    at_once: int,
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    if each_once:
        displays = list({row[0]: row for row in displays}.values())
    write_rows(folder / "log.csv", ["id,t,ad,p", *map(",".join, displays)])
    tables = {}
    for name, rows in (("sales", sales), ("clicks", clicks)):
        if rows is not None:
            write_rows(folder / f"{name}.csv", ["of,when,worth,key", *map(",".join, rows)])
            tables[name] = {"time": "when", "value": "worth", "source": {"files": f"{name}.csv", "display": "of"}}
    spec = write_spec(
        folder,
        source={"sort": True},
        display={"id": "id", "propensity": "p"},
        conversion=tables["sales"] | rules,
        log={"observed_until": "complete"},
        **({"outcomes": {"click": tables["clicks"]}} if clicks is not None else {}),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "SecondTable", WholeTable)
        expected = outcome(lambda: read(spec, **options, **leave_out))
    with little_by_little(at_once):
        assert outcome(lambda: read(spec, **options, **leave_out)) == expected
        assert outcome(lambda: convert(spec, folder / "out", **options, **leave_out)) == expected


def test_a_join_holds_as_many_rows_as_it_may_and_forgets_who_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n, named, at_once = 20_000, 4_000, 1_000
    rng = np.random.default_rng(0)
    of = rng.choice(n, named, replace=False).tolist()
    write_rows(tmp_path / "sales.csv", ["of,when", *(f"d{i},{i + 1}" for i in of)])
    spec = dataset(
        tmp_path,
        ["id,t,ad", *(f"d{i},{i},{'ab'[i % 2]}" for i in rng.permutation(n).tolist())],
        source={"sort": True},
        display={"id": "id"},
        conversion={"time": "when", "source": {"files": "sales.csv", "display": "of"}},
    )
    sizes: list[int] = []
    whole = join_by_id._whole

    def counted(frames: Iterator[pl.DataFrame], empty: pl.DataFrame) -> pl.DataFrame:
        found = whole(frames, empty)
        sizes.append(found.height)
        return found

    monkeypatch.setattr(join_by_id, "_whole", counted)
    monkeypatch.setattr(join_by_id, "JOINED_ROWS", at_once)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 500)
    log = convert(spec, tmp_path / "out").log
    assert sorted(log.conversions["display_id"].to_pylist()) == sorted(of)
    joined = [a + b for a, b in zip(sizes[::2], sizes[1::2], strict=True)]
    # Every row with its display, and of the 16,000 other displays not one.
    assert sum(joined) == 2 * named
    # Ids fall into parts by chance: 4 standard errors above the mean of a binomial number of ids, two rows each.
    parts = 2 * named // at_once + 1
    assert len(joined) == parts
    assert max(joined) <= 2 * (named / parts + 4 * (named / parts * (1 - 1 / parts)) ** 0.5)


def test_ids_that_are_there_pass_and_others_as_seldom_as_bits_allow() -> None:
    n = 200_000
    ids, bits = BloomFilter(), 2**20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_by_id, "BITS", bits)
        ids = BloomFilter()
        hashes = join_by_id.hashed(pl.Series(range(2 * n)))["hash"]
        ids.add(hashes.head(n))
        assert ids.may_hold(hashes.head(n)).all()
        share = float(ids.may_hold(hashes.tail(n)).mean())
    # Two bits an id; each of them is set by another id unless all of these miss it.
    expected = (1 - (1 - 1 / bits) ** (2 * n)) ** 2
    assert abs(share - expected) < 4 * (expected * (1 - expected) / n) ** 0.5
