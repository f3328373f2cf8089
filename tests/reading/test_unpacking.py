"""What files may unpack to can be raised by the environment, and what is merely large is read, to the bit.

Bombs are in `tests/fuzz/test_bombs.py`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.errors import SourceError, UsageError
from evaluator.reading import frames, text
from evaluator.reading.frames import Chunks
from evaluator.reading.json_lines import text_lines
from evaluator.reading.sources import files
from evaluator.reading.sources.files import SUFFIXES, file_at
from evaluator.reading.spec_sections import Source
from tests.fuzz.bombs import as_parquet, coded, zipped

CELLS, LINE = "EVALUATE_UNPACKED_MB", "EVALUATE_LINE_MAX"


def read(path: Path, limit: int | None = None) -> pl.DataFrame:
    kind = SUFFIXES[Path(path.name.removesuffix(".gz")).suffix]
    return Chunks([file_at(path, kind)], Source(files=path.name), {"t": "int", "a": "category"}, limit).collect()


def test_a_limit_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"t": np.zeros(1, np.int64), "a": ["x"]})
    labels, line = tmp_path / "l.parquet", tmp_path / "l.csv.gz"
    labels.write_bytes(as_parquet(coded(table, rows=30_000, size=4_000)))
    line.write_bytes(gzip.compress(b"t,a\n0," + b"x" * 9_000_000 + b"\n1,y\n"))
    with pytest.raises(SourceError, match=CELLS):
        read(labels)
    with pytest.raises(SourceError, match=LINE):
        read(line)
    monkeypatch.setenv(CELLS, "200")
    monkeypatch.setenv(LINE, "10000000")
    assert read(labels)["a"].str.len_bytes().sum() == 120_000_000
    assert read(line)["a"].str.len_bytes().to_list() == [9_000_000, 1]
    monkeypatch.setenv(CELLS, "much")
    with pytest.raises(UsageError, match=f"{CELLS}='much' is no whole number"):
        read(labels)


def test_lines_are_limited_before_they_are_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.dsjson.gz"
    path.write_bytes(zipped(b"", b"x" * 99_999 + b"\n", 20))
    assert sum(len(line) for _, line in text_lines(path, "utf-8")) > 19_000_000
    monkeypatch.setenv(CELLS, "4")
    with pytest.raises(SourceError, match=r"the lines of \d+ rows unpack to"):
        list(text_lines(path, "utf-8"))


def test_a_file_that_is_large_may_hold_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times the size of the file is always allowed, and short cells do not count."""
    monkeypatch.setenv(CELLS, "1")
    draw = np.random.default_rng(1)
    rows = [f"{i},{'x' * 500}{draw.bytes(8).hex()}" for i in range(5_000)]
    (tmp_path / "l.csv.gz").write_bytes(gzip.compress("\n".join(["t,a", *rows]).encode()))
    assert read(tmp_path / "l.csv.gz").height == 5_000
    (tmp_path / "m.csv.gz").write_bytes(zipped(b"t,a\n", b"0,shop\n", 3))
    assert read(tmp_path / "m.csv.gz").height > 400_000


def test_large_row_groups_are_read_some_rows_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 250_000
    path = tmp_path / "l.parquet"
    pq.write_table(pa.table({"a": [f"ad {i % 7}" if i % 9 else None for i in range(n)], "t": np.arange(n)}), path)
    whole = read(path)
    taken: list[bool] = []
    by_arrow = files.file_rows

    def counted(*words: object, **named: bool) -> pl.LazyFrame:
        taken.append(named["coded"])
        return by_arrow(*words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "file_rows", counted)
    assert read(path).equals(whole)
    assert not taken
    monkeypatch.setattr(text, "CELL", 10_000)
    assert read(path).equals(whole)
    assert read(path, 17).equals(whole.head(17))
    assert taken == [True, True]


def test_dictionaries_beside_text_are_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CHUNK_ROWS", 1_000)
    n = 5_000
    table = pa.table({"a": pa.array([f"ad {i % 7}" if i % 9 else None for i in range(n)]), "t": np.arange(n)})
    pq.write_table(table, tmp_path / "l.parquet", row_group_size=1_700)
    as_codes = table.set_column(0, "a", table["a"].combine_chunks().dictionary_encode())
    pq.write_table(as_codes, tmp_path / "m.parquet", row_group_size=1_700)
    for limit in (None, 2_100):
        assert read(tmp_path / "m.parquet", limit).equals(read(tmp_path / "l.parquet", limit))


def test_damage_is_told_as_python_tells_it(tmp_path: Path) -> None:
    draw, whole = np.random.default_rng(0), gzip.compress(b"".join(b"%d\t%d\n" % (i, i * i % 97) for i in range(3_000)))
    cases = {
        "cut": whole[: len(whole) // 2],
        "tail": whole[:-3],
        "more": whole + b"garbage!",
        "half": whole + whole[:5],
    }
    for place in draw.integers(3, len(whole), 40).tolist():
        cases[f"bit of byte {place}"] = (
            whole[:place] + bytes([whole[place] ^ 1 << draw.integers(8)]) + whole[place + 1 :]
        )
    path, refused = tmp_path / "log.tsv.gz", 0
    for name, content in cases.items():
        path.write_bytes(content)
        said, found = None, None
        try:
            with gzip.open(path) as stream:
                stream.read()
        except Exception as error:  # of whatever kind
            said = f"{path}: truncated or damaged gzip ({error})."
        try:
            assert b"".join(text.unzipped_pieces(path)) == gzip.decompress(content)
        except SourceError as error:
            found = error.what
        assert found == said, name
        refused += said is not None
    assert refused > 30


@pytest.mark.parametrize("parts", [1, 3])
def test_members_one_after_another_are_one_text(tmp_path: Path, parts: int) -> None:
    rows = [b"t,ad\n", *(b"%d,a\n" % i for i in range(5_000))]
    members = [gzip.compress(b"".join(rows[i : i + 5_001 // parts + 1])) for i in range(0, 5_001, 5_001 // parts + 1)]
    (tmp_path / "log.csv.gz").write_bytes(b"".join(members) + bytes(7))
    assert b"".join(text.unzipped_pieces(tmp_path / "log.csv.gz")) == b"".join(rows)
