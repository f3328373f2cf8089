"""The files of a log, on disk or in a store: opened, read ahead, told from others, read as Parquet."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.errors import EvaluatorError, SourceError
from evaluator.input_files import NotRegularError, open_regular, refuse_irregular
from evaluator.log.schema import is_sets

# Ranges nearer than this are fetched as one, with what lies between: a question costs as much as so many bytes.
GAP = 1 << 20
# Bytes of a piece, where ranges are not longer.
PIECE = 4 << 20
# Pieces fetched at a time, and pieces kept that were asked for: columns of a row group are read one after the other.
AT_ONCE, KEPT = 4, 4

Ranges = Iterable[tuple[int, int]]


class RemoteFile(ABC):
    """A file in an object store as it was listed; reading any other version of it is an error."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in its folder."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of bytes."""

    @abstractmethod
    def state(self) -> object:
        """Return what tells it from one that was put in its place; None where it is not there."""

    @abstractmethod
    def read(self, start: int, end: int) -> bytes:
        """Return its bytes from one place to before another; threads may call it at once.

        Raises SourceError where the store does not give them, or the file is another one now.
        """


# A file of a log.
LogFile = Path | RemoteFile


def file_state(file: LogFile) -> object:
    """Return what tells a file from one that was put in its place: of a path inode, size and time; None for no file."""
    if isinstance(file, RemoteFile):
        return file.state()
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def file_states(files: Sequence[LogFile]) -> tuple[object, ...]:
    """Return the state of each of some files."""
    return tuple(map(file_state, files))


def size_of(file: LogFile) -> int:
    """Return the number of bytes of a file; raises OSError as `opened`."""
    return file.size if isinstance(file, RemoteFile) else file.stat().st_size


@contextmanager
def opened(file: LogFile) -> Iterator[io.BufferedReader[Any]]:
    """Open a file to read its bytes, whatever lies there, without waiting for another process.

    Raises OSError where there is no such file, or it cannot be opened.
    """
    if isinstance(file, RemoteFile):
        with RemoteReader(file) as raw, io.BufferedReader(raw, 1 << 20) as stream:
            yield stream
        return
    with open_regular(file) as stream:
        yield stream


class RemoteReader(io.RawIOBase):
    """The bytes of a remote file as a stream; what is expected to be asked for next is fetched meanwhile."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file, self._at, self._size = file, 0, file.size
        self._ahead: ReadAhead | None = None
        # What the store said where it did not give bytes: libraries that read have words of their own for it.
        self.failure: EvaluatorError | None = None

    def expect(self, ranges: Ranges) -> None:
        """Fetch ahead what will be read next: ranges of bytes, in whatever order."""
        self._ahead = ReadAhead(self._file.read, ranges)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with the next bytes, and return how many there are."""
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        try:
            known = None if self._ahead is None else self._ahead.get(self._at, end)
            buffer[: end - self._at] = self._file.read(self._at, end) if known is None else known
        except EvaluatorError as error:
            self.failure = error
            raise
        found, self._at = end - self._at, end
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._at = max(offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence], 0)
        return self._at

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that any place can be gone to."""
        return True

    def close(self) -> None:
        """Forget what was fetched."""
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None
        super().close()


class ReadAhead:
    """Pieces that hold some ranges of a file, fetched in the order of their places, a few before they are asked for.

    `read` gives the bytes from one place to before another, in any thread; the ranges are those that will be asked for.
    Memory: `AT_ONCE` + `KEPT` pieces.
    """

    def __init__(self, read: Callable[[int, int], bytes], ranges: Ranges) -> None:
        self._read = read
        self._pieces = pieces(ranges)
        self._taken = 0
        self._coming: deque[Future[bytes]] = deque()
        self._kept: dict[int, bytes] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._one = Lock()
        self._fetch()

    def get(self, start: int, end: int) -> memoryview | None:
        """Return the bytes from one place to before another; None where no piece has them, or has them any more."""
        number = bisect_right(self._pieces, start, key=itemgetter(0)) - 1
        if number < 0 or end > self._pieces[number][1]:
            return None
        with self._one:
            while self._taken <= number:
                self._kept[self._taken] = self._coming[0].result()
                self._coming.popleft()
                self._kept.pop(self._taken - KEPT, None)
                self._taken += 1
                self._fetch()
            if number not in self._kept:
                return None
            first = start - self._pieces[number][0]
            return memoryview(self._kept[number])[first : first + end - start]

    def close(self) -> None:
        """Fetch no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fetch(self) -> None:
        while len(self._coming) < AT_ONCE and (number := self._taken + len(self._coming)) < len(self._pieces):
            self._coming.append(self._pool.submit(self._read, *self._pieces[number]))


def pieces(ranges: Ranges) -> list[tuple[int, int]]:
    """Return the pieces that hold some ranges, in the order of their places.

    >>> pieces([(5_000_000, 5_000_100), (0, 10), (20, 30)])
    [(0, 30), (5000000, 5000100)]
    """
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + GAP and end - found[-1][0] <= PIECE:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def damaged(path: LogFile, reason: object) -> SourceError:
    """Return the error of a file that is not as it was written."""
    if isinstance(reason, RecursionError):
        line = "nested too deeply"
    elif isinstance(reason, OSError) and reason.errno is not None and not isinstance(reason, NotRegularError):
        line = os.strerror(reason.errno)
    else:
        line = next(iter(str(reason).splitlines()), type(reason).__name__)
    return SourceError(f"{path}: missing or damaged ({line}).", remedy="convert the dataset again.")


@contextmanager
def open_parquet(path: LogFile, reads: Collection[str] | None = ()) -> Iterator[pq.ParquetFile]:
    """Open a file that refuses to return a page whose checksum is not that of its bytes, where pages have one.

    One file is read as such: the name of its folder never becomes a hive partition. `reads` names the columns whose
    rows will be read from the first to the last, None for all: those of a remote file are fetched ahead. Raises
    SourceError where the file is missing, or what was read of it inside the block is damaged.
    """
    try:
        if isinstance(path, RemoteFile):
            with (
                RemoteReader(path) as reader,
                _as_the_store_says(reader),
                pq.ParquetFile(reader, page_checksum_verification=True) as file,
            ):
                reader.expect(_places(file.metadata, reads))
                yield file
            return
        refuse_irregular(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except EvaluatorError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None


@contextmanager
def _as_the_store_says(reader: RemoteReader) -> Iterator[None]:
    """Raise the store's own error if it gave no bytes, whatever error the reading library made of it."""
    try:
        yield
    except Exception:
        if reader.failure is not None:
            raise reader.failure from None
        raise


def _places(about: pq.FileMetaData, columns: Collection[str] | None) -> Iterator[tuple[int, int]]:
    """Yield from where to where the rows of some columns lie in a file."""
    for group in range(about.num_row_groups):
        for number in range(about.num_columns):
            chunk = about.row_group(group).column(number)
            path = chunk.path_in_schema
            if columns is None or any(path == name or path.startswith(f"{name}.") for name in columns):
                # 0 stands for no dictionary.
                start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
                yield start, start + chunk.total_compressed_size


def read_whole(path: LogFile) -> pa.Table:
    """Return all rows of a file; errors as `open_parquet`."""
    with open_parquet(path, None) as file:
        table = file.read()
        table.validate(full=True)  # text that is none
        return table


def part_batches(paths: Sequence[LogFile], size: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows of Parquet files, one file after the other, `size` rows at a time.

    Batches are those of one file with all rows: one goes on in the next file where its own ends before. Such a batch is
    a copy, so that files of whole multiples of `size` rows cost nothing. With sets of actions, whose dictionary differs
    from file to file, a batch ends with its file, as it does with its row group in any case. Raises SourceError where a
    file is missing, or a page that is read is damaged.
    """
    waiting: list[pa.RecordBatch] = []
    held = 0
    for path in paths:
        with open_parquet(path, columns) as file:
            as_they_are = len(paths) == 1 or any(is_sets(file.schema_arrow.field(name).type) for name in columns)
            for batch in file.iter_batches(size, columns=list(columns)):
                if as_they_are:
                    yield batch
                    continue
                while batch.num_rows:
                    piece = batch.slice(0, size - held)
                    batch = batch.slice(piece.num_rows)
                    waiting.append(piece)
                    held += piece.num_rows
                    if held == size:
                        yield one_batch(waiting)
                        waiting, held = [], 0
    if held:
        yield one_batch(waiting)


def one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches of the same columns as one, a copy where there are several."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)
