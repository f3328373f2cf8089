"""The fingerprint of a log follows everything in it, and nothing but that: no file, batch, chunk or type of cell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from evaluator.datasets import convert, load
from evaluator.log import Log, fingerprint
from evaluator.log.fingerprint import BlockHashes, content_hash
from evaluator.log.schema import fixed_size_lists, uneven_lists
from evaluator.reading import adapter, canonical
from evaluator.reading.canonical import open_canonical, write_canonical
from tests.logs import linear_log
from tests.reading.parted import write_parts
from tests.reading.sources import write_spec

LOG = linear_log(300, n_actions=3, dimension=2, mean_delay=10.0, seed=1)


def with_displays(log: Log, displays: pa.Table) -> Log:
    return Log(displays, log.conversions, log.actions, log.meta)


def changed(column: pa.ChunkedArray) -> pa.Array:
    """Return the column with its last entry like its first one, or with a sign turned."""
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        return pa.concat_arrays([array.slice(0, len(array) - 1), array.slice(0, 1)])
    if pa.types.is_string(array.type):
        return pa.array([*array.to_pylist()[:-1], "another"])
    values = array.to_numpy().copy()
    values[-1] += 1
    return pa.array(values)


def each_changed() -> list[pytest.param]:
    cases = []
    for part in ("displays", "events", "actions"):
        table = getattr(LOG, part)
        for i, name in enumerate(table.column_names):
            if (part, name) == ("displays", "display_id"):
                continue  # the number of the row, by which it is hashed anyway
            parts = {p: getattr(LOG, p) for p in ("displays", "events", "actions")}
            parts[part] = table.set_column(i, name, changed(table.column(i)))
            cases.append(pytest.param(Log(**parts, meta=LOG.meta), id=f"{part}.{name}"))
    return cases


@pytest.mark.parametrize("other", each_changed())
def test_one_cell_of_any_column_makes_it_another_log(other: Log) -> None:
    assert content_hash(other) != content_hash(LOG)


@pytest.mark.parametrize(
    "said",
    [{"reward_max": 2.0}, {"observed_until": 10_000}, {"notes": ("read this",)}, {"counts": {"rows_read": 1}}],
    ids=lambda said: next(iter(said)),
)
def test_what_it_says_of_itself_belongs_to_it(said: dict[str, object]) -> None:
    assert content_hash(LOG.with_meta(**said)) != content_hash(LOG)


def test_neither_chunks_nor_copies_matter() -> None:
    device = pa.array(np.array(["phone", "desk", None], object)[np.arange(300) % 3])
    log = with_displays(LOG, LOG.displays.append_column("device", device))
    cut = pa.concat_tables([log.displays.slice(0, 1), log.displays.slice(1, 150), log.displays.slice(151)])
    assert cut["device"].num_chunks == 3
    assert content_hash(with_displays(log, cut)) == content_hash(log)
    other = log.displays.set_column(log.displays.num_columns - 1, "device", pa.array(device.to_pylist()[::-1]))
    assert content_hash(with_displays(log, other)) != content_hash(log)


@pytest.mark.parametrize("cuts", [[1], [99, 100, 101], [150, 299], list(range(1, 300))], ids=len)
def test_blocks_do_not_depend_on_what_comes_together(monkeypatch: pytest.MonkeyPatch, cuts: list[int]) -> None:
    monkeypatch.setattr(fingerprint, "BLOCK", 100)
    hashes = BlockHashes()
    for first, end in itertools.pairwise([0, *cuts, 300]):
        hashes.add(LOG.displays.slice(first, end - first))
    whole = BlockHashes()
    whole.add(LOG.displays)
    assert hashes.found() == whole.found()
    assert len(set(hashes.found())) == 3


def test_rows_that_change_places_or_signs_make_it_another() -> None:
    known = {content_hash(LOG)}
    vectors = LOG.column("action_set").copy()
    for change in (lambda x: x[[11, 12]], lambda x: -x[[12, 11]], lambda x: x[[11, 12]] * [[[-1.0, 1.0]]]):
        vectors[[12, 11]] = change(vectors)
        known.add(content_hash(with_displays(LOG, LOG.displays.set_column(4, "action_set", fixed_size_lists(vectors)))))
    assert len(known) == 4


WORDS = ["phone", "", None, "ünï", "phone", "a much longer word than the others"]
SAME: dict[str, list[pa.Array]] = {
    "words": [
        pa.array(WORDS),
        pa.array(WORDS, pa.large_string()),
        pa.array(WORDS).dictionary_encode(),
        pa.array(["before", *WORDS, "after"]).slice(1, 6),
        pa.DictionaryArray.from_arrays(pa.array([2, 1, None, 0, 3, 4], pa.int8()),
                                       ["ünï", "", "phone", "phone", "a much longer word than the others"]),
    ],
    "numbers": [pa.array([0.0, np.nan, None, 2.5]), pa.array([-0.0, -np.float64("nan"), None, 2.5])],
    "whole numbers": [pa.array([1, None, 3]), pa.array([9, 1, None, 3]).slice(1)],
    "sets": [
        pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int32()), pa.array([b"\x01", b"\x03"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 2, 1], pa.int32()), pa.array([b"\x03", b"\x03", b"\x01"])),
    ],
    "vectors": [
        fixed_size_lists(np.arange(12.0).reshape(2, 3, 2)),
        fixed_size_lists(np.arange(-6.0, 12.0).reshape(3, 3, 2)).slice(1),
    ],
    "uneven vectors": [
        uneven_lists(np.arange(6.0).reshape(3, 2), np.array([1, 2])),
        uneven_lists(np.arange(-2.0, 6.0).reshape(4, 2), np.array([1, 1, 2])).slice(1),
    ],
}  # fmt: skip


def hash_of(column: pa.Array) -> str:
    return fingerprint._table_hash(pa.table({"column": column}))


@pytest.mark.parametrize("columns", SAME.values(), ids=SAME)
def test_cells_that_are_equal_are_one(columns: list[pa.Array]) -> None:
    assert len({hash_of(column) for column in columns}) == 1
    cut = pa.chunked_array([columns[0].slice(0, 1), columns[0].slice(1)])
    assert fingerprint._table_hash(pa.table({"column": cut})) == hash_of(columns[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [(["ab", "c"], ["a", "bc"]), (["a", None], ["a", ""]), ([0, 1], [None, 1]), ([1, 2], [1.0, 2.0]),
     ([1.0, np.nan], [1.0, None]), (["1"], [1])],
)  # fmt: skip
def test_cells_that_differ_are_two(one: list[object], other: list[object]) -> None:
    assert hash_of(pa.array(one, from_pandas=False)) != hash_of(pa.array(other, from_pandas=False))


def test_it_is_the_same_on_every_machine_and_in_later_releases() -> None:
    rows = pa.table({"a": pa.array(range(-70_000, 70_000)), "b": ["x", "yz"] * 70_000, "c": [0.5, None] * 70_000})
    assert fingerprint._table_hash(rows) == "7c9532827f5c909e756cd28291015c22fec391887ed136cba65994a018babf52"


# --- Whatever files hold it.

N = 400


def frame() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    time = np.sort(rng.integers(0, 3_000, N))
    sold = np.where(rng.random(N) < 0.2, time + rng.integers(1, 90, N), -1)
    return pl.DataFrame(
        {"t": time, "ad": [f"ad {i}" for i in rng.integers(0, 3, N)], "sold": sold, "p": np.full(N, 1 / 3),
         "city": [["Rome", "Oslo", None][i] for i in rng.integers(0, 3, N)], "age": rng.integers(18, 80, N)}
    ).with_columns(pl.col("sold").replace(-1, None))  # fmt: skip


SECTIONS: dict[str, Any] = {
    "display": {"propensity": "p"},
    "context": {"columns": {"city": "category", "age": "number"}, "dimensions": 8},
}
KEEP = ["city"]


def read_from(folder: Path, files: str | list[str]) -> Path:
    return write_spec(folder, source={"files": files}, **SECTIONS)


def one_text(folder: Path) -> Path:
    frame().write_csv(folder / "log.csv")
    return read_from(folder, "log.csv")


def listed_texts(folder: Path) -> Path:
    for i in range(4):
        frame().slice(100 * i, 100).write_csv(folder / f"log-{i}.csv")
    return read_from(folder, "log-*.csv")


def one_parquet(folder: Path) -> Path:
    frame().write_parquet(folder / "log.parquet", row_group_size=70)
    return read_from(folder, "log.parquet")


def parquet_of_categories(folder: Path) -> Path:
    (folder / "logs").mkdir()
    for i, (first, end) in enumerate([(0, 17), (17, 250), (250, N)]):
        words = frame().slice(first, end - first).with_columns(pl.col("ad", "city").cast(pl.Categorical))
        words.write_parquet(folder / "logs" / f"{i}.parquet")
    return read_from(folder, "logs")


SOURCES = [one_text, listed_texts, one_parquet, parquet_of_categories]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    return load(one_text(tmp_path_factory.mktemp("known")), keep=KEEP).meta.fingerprint


@pytest.mark.parametrize("source", SOURCES, ids=lambda of: of.__name__)
def test_whatever_files_hold_it(tmp_path: Path, known: str, source: Callable[[Path], Path]) -> None:
    read = load(source(tmp_path), keep=KEEP)
    stored = convert(tmp_path / "spec.toml", tmp_path / "log", keep=KEEP).log
    again = convert(tmp_path / "log", tmp_path / "again").log
    for log in (read, stored, again):
        assert log.meta.fingerprint == content_hash(log) == known
    assert content_hash(Log(read.displays, read.conversions, read.actions, read.meta)) == known


@pytest.mark.parametrize("cuts", [[100, 300], [37, 38, 260]], ids=["of whole blocks", "anywhere"])
def test_parts_have_that_of_one_file(
    tmp_path: Path, known: str, monkeypatch: pytest.MonkeyPatch, cuts: list[int]
) -> None:
    monkeypatch.setattr(fingerprint, "BLOCK", 100)
    log = load(one_text(tmp_path), keep=KEEP)
    parts = open_canonical(write_parts(log, tmp_path / "parts", cuts))
    assert content_hash(parts) == content_hash(log) == parts.meta.fingerprint != known  # which has other blocks


def test_threads_write_that_of_one_pass(tmp_path: Path, known: str) -> None:
    parquet_of_categories(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "PART_ROWS", 64)
        patch.setattr(fingerprint, "BLOCK", 32)
        found = [convert(tmp_path / "spec.toml", tmp_path / f"{jobs}", jobs=jobs, keep=KEEP).log for jobs in (1, 2)]
    assert len(found[1].paths) == 7  # type: ignore[attr-defined]
    assert len({log.meta.fingerprint for log in found}) == 1


def test_a_log_of_an_earlier_release_is_read_to_know_it(tmp_path: Path, known: str) -> None:
    log = convert(one_text(tmp_path), tmp_path / "log", keep=KEEP).log
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "BLOCKS", b"of another kind")
        patch.setattr(canonical, "fingerprint_of", lambda *parts: "that of its source")
        old = convert(tmp_path / "spec.toml", tmp_path / "old", keep=KEEP).log
    assert old.meta.fingerprint == "that of its source"
    assert content_hash(old) == content_hash(log) == known


@pytest.mark.parametrize("chosen", [{"limit": 200}, {"actions": "top:2"}], ids=lambda chosen: next(iter(chosen)))
def test_what_is_taken_of_a_stored_log_counts(tmp_path: Path, chosen: dict[str, Any]) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_canonical(LOG, folder)
    whole, part = open_canonical(folder), open_canonical(folder, **chosen)
    assert content_hash(open_canonical(folder)) == content_hash(whole) == content_hash(LOG)
    assert content_hash(open_canonical(folder, **chosen)) == content_hash(part) != content_hash(whole)
    assert part.meta.fingerprint == whole.meta.fingerprint  # of which it is a part


def test_a_cell_in_the_middle_of_a_file_makes_it_another(tmp_path: Path, known: str) -> None:
    spec = one_text(tmp_path)
    text = (tmp_path / "log.csv").read_text().splitlines()
    text[N // 2] = text[N // 2].replace("ad ", "ad 1" if "ad 1" not in text[N // 2] else "ad 2", 1)
    (tmp_path / "log.csv").write_text("\n".join(text))
    assert load(spec, keep=KEEP).meta.fingerprint != known
