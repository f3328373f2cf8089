"""Bytes that are fetched ahead are those of the file, whatever is asked for, and no more of them are held than some."""

from __future__ import annotations

import io
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import SourceError
from evaluator.log import log_files
from evaluator.log.log_files import AT_ONCE, KEPT, ReadAhead, RemoteFile, open_parquet, opened, pieces

DATA = bytes(i * i % 251 for i in range(5000))
SPANS = st.lists(st.tuples(st.integers(0, 4990), st.integers(1, 300)), max_size=30)


class InMemory(RemoteFile):
    """A file that counts what is read of it."""

    name = "file"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def __str__(self) -> str:
        return "far://away/file"

    @property
    def size(self) -> int:
        return len(self.data)

    def state(self) -> object:
        return len(self.data)

    def read(self, start: int, end: int) -> bytes:
        self.reads.append((start, end))
        return self.data[start:end]


@given(SPANS, st.lists(st.tuples(st.integers(0, 4990), st.integers(1, 400)), max_size=40), st.integers(0, 200))
def test_what_is_fetched_ahead_is_what_is_there(
    spans: list[tuple[int, int]], asked: list[tuple[int, int]], gap: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "GAP", gap)
        patch.setattr(log_files, "PIECE", 500)
        ahead = ReadAhead(lambda start, end: DATA[start:end], [(at, at + n) for at, n in spans])
        for at, n in [*asked, *sorted(spans)]:
            found = ahead.get(at, at + n)
            assert found is None or found == DATA[at : at + n]
        ahead.close()


@given(SPANS)
def test_every_range_is_in_one_piece(spans: list[tuple[int, int]]) -> None:
    ranges = [(at, at + n) for at, n in spans]
    found = pieces(ranges)
    assert all(any(low <= a and b <= high for low, high in found) for a, b in ranges)
    assert found == sorted(found)


def test_few_pieces_are_held_and_each_is_fetched_once() -> None:
    fetched: list[int] = []
    one = threading.Lock()

    def read(start: int, end: int) -> bytes:
        with one:
            fetched.append(start)
        return bytes(end - start)

    step = 2 * log_files.GAP
    ahead = ReadAhead(read, [(i * step, i * step + 10) for i in range(50)])
    for i in range(50):
        assert ahead.get(i * step, i * step + 10) is not None
        assert len(fetched) <= i + 1 + AT_ONCE
        assert len(ahead._kept) <= KEPT
    assert sorted(fetched) == [i * step for i in range(50)]
    assert ahead.get(0, 10) is None  # forgotten
    assert ahead.get(5, 500 * step) is None  # in no piece, for which nothing is fetched
    ahead.close()


def test_what_fails_fails_again() -> None:
    """Not another piece in its place."""

    def read(start: int, end: int) -> bytes:
        raise SourceError("the store is gone.")

    ahead = ReadAhead(read, [(0, 10), (10_000_000, 10_000_010)])
    for _ in range(2):
        with pytest.raises(SourceError, match="gone"):
            ahead.get(0, 10)
    ahead.close()


def test_a_file_far_away_is_read_as_one_here() -> None:
    file = InMemory(DATA)
    with opened(file) as stream:
        assert stream.read(10) == DATA[:10]
        stream.seek(-7, io.SEEK_END)
        assert (stream.tell(), stream.read()) == (len(DATA) - 7, DATA[-7:])
        assert stream.read() == b""


def test_only_columns_that_are_read_travel() -> None:
    table = pa.table({"a": range(300_000), "wide": [bytes(str(i), "ascii") * 20 for i in range(300_000)]})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=50_000, compression="none", use_dictionary=False)
    file = InMemory(sink.getvalue())
    with open_parquet(file, ["a"]) as parquet:
        found = pa.Table.from_batches(parquet.iter_batches(1000, columns=["a"]))
    assert found.equals(table.select(["a"]))
    assert sum(end - start for start, end in file.reads) < len(file.data) / 4
    own = len(file.reads)
    with open_parquet(file, None) as parquet:
        assert parquet.read().equals(table)
    # The end, and then pieces, two neighbours of which are longer than one may be.
    assert len(file.reads) - own <= 2 + 2 * len(file.data) // log_files.PIECE + 1


def test_an_error_of_the_store_is_told_as_such() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(10_000)}), sink)
    file = InMemory(sink.getvalue())

    def gone(start: int, end: int) -> bytes:
        raise SourceError("the store does not answer.")

    with open_parquet(file) as parquet:
        file.read = gone  # type: ignore[method-assign]
        with pytest.raises(SourceError, match="does not answer"):
            parquet.read()
