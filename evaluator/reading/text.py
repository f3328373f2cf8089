"""Text files as they were saved: compressed or not, in any encoding that Python knows.

What a file may unpack to where it is read at once is bounded: a small file that unpacks to much is refused before it
does.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from zlib_ng import zlib_ng
from zlib_ng.gzip_ng import GzipNGFile

from evaluator.errors import SourceError, UsageError
from evaluator.escape import shortened

if TYPE_CHECKING:
    import polars as pl
    import pyarrow.parquet as pq


UTF8 = "utf-8"
# Bytes that are unpacked at once, and of a table of text parsed at once.
PIECE, TEXT_PIECE = 1024 * 1024, 4 * 1024 * 1024
# Longest line of text and longest cell: thousands of columns fit, a file without a line end does not fill the memory.
LINE_MAX = 4 * 1024 * 1024
# What compressions are called, by the suffixes of files, and how files of each begin.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
_BEGIN = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bzip2>BZh[1-9]1AY&SY)|(?P<xz>\xfd7zXZ\0)|(?P<zip>PK\x03\x04)"
)
# What every log holds: codecs that are no text (hex, rot13) fail on it.
_PROBE = 'time,action;1\t"2"\n'
# Ways to spell one text within another.
_NO_FILES = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined")
# Characters before an illegal byte that its error shows.
_CONTEXT = 24
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Megabytes of long cells in the rows of a chunk; a row group, a batch and the lines of a chunk may unpack to twice as
# many. More is allowed to a file of a hundredth of that.
UNPACKED_MB, TIMES = 64, 100
# Of files of fewer bytes, which have few pages, these are looked at too.
SMALL = 4 * 1024 * 1024
# Rows of a chunk, bytes of a cell that is not long, and of the memory that any cell takes.
ROWS, SHORT, CELL = 100_000, 64, 16


def known_encoding(name: str) -> bool:
    """Return whether Python has a text codec of this name.

    >>> known_encoding("windows-1252"), known_encoding("utf-16"), known_encoding("hex"), known_encoding("latin-9000")
    (True, True, False, False)
    """
    try:
        return _PROBE.encode(name).decode(name) == _PROBE and codecs.lookup(name).name not in _NO_FILES
    except (LookupError, ValueError):
        return False


def longest_line() -> int:
    """Return how many characters a line may have, and how many bytes a row, as the environment or `LINE_MAX` says."""
    return number_set("EVALUATE_LINE_MAX", LINE_MAX)


def number_set(variable: str, usual: int) -> int:
    """Return a limit that a variable of the environment sets: whoever runs the command, never a spec, may raise it.

    Raises UsageError if the variable holds no whole number from 1 on.
    """
    text = os.environ.get(variable) or str(usual)
    if re.fullmatch("[1-9][0-9]{0,14}", text) is None:
        hint = f"unset it: {usual:,} holds then."
        raise UsageError(f"{variable}={shortened(text)!r} is no whole number from 1 on.", remedy=hint)
    return int(text)


def too_long(where: str, what: str, unit: str, hint: str) -> SourceError:
    """Return the error for a line, a row or a cell that is longer than `longest_line` allows."""
    return SourceError(
        f"{where}: {what} has more than {longest_line():,} {unit}.",
        remedy=f"{hint}, or set EVALUATE_LINE_MAX to a larger number.",
    )


def is_utf8(encoding: str) -> bool:
    """Return whether this is UTF-8, which needs no translation: ``UTF8``, ``utf_8``, ``utf-8-sig``, with or without."""
    return codecs.lookup(encoding).name in (UTF8, "utf-8-sig")


def open_text(path: Path, encoding: str = UTF8) -> io.TextIOWrapper:
    """Open a text file, compressed or not; bytes that are no text in this encoding become U+FFFD."""
    return io.TextIOWrapper(_open_bytes(path), encoding=encoding, errors="replace", newline="")


def utf8_pieces(path: Path, encoding: str, *, returns: bool) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, unpacked, some MB at a time.

    Where lines end with carriage returns alone, as old spreadsheets write them, newlines take their place (`returns`).
    Raises SourceError if a byte is no text in an encoding other than UTF-8, or if a compressed file is truncated or
    damaged.
    """
    if is_utf8(encoding) and not returns:
        yield from unzipped_pieces(path, TEXT_PIECE)
        return
    for text in decoded(path, encoding):
        yield (text.replace("\r", "\n") if returns else text).encode(UTF8, "replace")


def refuse_illegal(path: Path, encoding: str = UTF8) -> None:
    """Raise SourceError at the first byte that is no text in this encoding, or where a compressed file ends too early.

    Cost: one pass over the file.
    """
    for _ in decoded(path, encoding):
        pass


def compression_of(path: Path) -> str | None:
    """Return how a file is compressed, as it begins, whatever its name; None if it is not.

    Raises SourceError if the file may not be read.
    """
    try:
        with path.open("rb") as stream:
            found = _BEGIN.match(stream.read(10))
            return None if found is None else found.lastgroup
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}).", remedy="check its permissions.") from None


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """Raise SourceError for a compressed file that ends too early, or is damaged."""
    try:
        yield
    except SourceError:  # an OSError too, which says what is wrong
        raise
    except (EOFError, zlib.error, zlib_ng.error, lzma.LZMAError, zipfile.BadZipFile, OSError) as error:
        kind = None if getattr(error, "errno", None) else compression_of(path)
        if kind is None:
            raise
        said = _damage(path) or error if kind == "gzip" else error
        raise SourceError(f"{path}: truncated or damaged {kind} ({said}).", remedy="download the file again.") from None


def _damage(path: Path) -> Exception | None:
    """Return what Python's own reader says of a damaged file: zlib-ng calls some damage by names of its own."""
    with gzip.GzipFile(path) as stream:
        try:
            while stream.read(PIECE):
                pass
        except (EOFError, zlib.error, OSError) as error:
            return error
    return None


def _open_bytes(path: Path) -> BinaryIO:
    kind = compression_of(path)
    if kind == "zip":
        return _open_zip(path)
    if kind == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    opener = {"gzip": GzipNGFile, "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}.get(str(kind))
    return path.open("rb") if opener is None else cast(BinaryIO, opener(path))


def _open_zip(path: Path) -> BinaryIO:
    """Open the one file of an archive.

    Raises SourceError if it holds several files, or needs a password.
    """
    unpack = f"unpack it: unzip {path.name}"
    archive = zipfile.ZipFile(path)
    held = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX/")]
    if len(held) != 1:
        raise SourceError(f"{path}: an archive of {len(held)} files, where one is a table.", remedy=f"{unpack}.")
    try:
        return cast(BinaryIO, archive.open(held[0]))
    except (RuntimeError, NotImplementedError) as error:
        raise SourceError(f"{path}: {error}.", remedy=f"{unpack}.") from None


def unzipped_pieces(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked, some at a time.

    Raises SourceError if the file is compressed, and truncated or damaged.
    """
    with unpacking(path), closing(_open_bytes(path)) as stream:
        while piece := stream.read(size or PIECE):
            yield piece


def decoded(path: Path, encoding: str) -> Iterator[str]:
    """Yield the text of a file, unzipped, some at a time.

    Raises SourceError if a byte is no text in this encoding, or if a compressed file is truncated or damaged.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    read, line, before_it = 0, 1, ""
    last = False
    coming = unzipped_pieces(path)
    while not last:
        piece = next(coming, b"")
        last = not piece
        before = decoder.getstate()
        try:
            text = decoder.decode(piece, last)
        except UnicodeError as error:
            # From Python 3.13 on, a missing byte order mark is an illegal first byte.
            if not isinstance(error, UnicodeDecodeError) or "BOM" in error.reason:
                raise _no_mark(path, encoding, error) from None
            # The decoder put what it had kept of the pieces before in front of this one.
            kept = len(error.object) - len(piece)
            decoder.setstate(before)
            sound = before_it + decoder.decode(piece[: max(error.start - kept, 0)])
            line += sound.count("\n")
            after = sound.rpartition("\n")[2][-_CONTEXT:]
            byte = f"byte 0x{error.object[error.start]:02x} at offset {read - kept + error.start:,}"
            raise _illegal(path, encoding, line, byte + (f", after {after!r}," if after else "")) from None
        read += len(piece)
        line += text.count("\n")
        before_it = text.rpartition("\n")[2][-_CONTEXT:]
        yield text


def _illegal(path: Path, encoding: str, line: int, byte: str) -> SourceError:
    with closing(_open_bytes(path)) as stream:
        marked = stream.read(2) in _UTF16_MARKS
    if not is_utf8(encoding):
        hint = f"the spec says encoding = {encoding!r} in [source]: name the one it was saved in, or repair the byte."
    elif marked:
        hint = 'write encoding = "utf-16" in [source] of the spec.'
    else:
        hint = 'write encoding = "windows-1252" (or "latin-1") in [source] of the spec, or save the file as UTF-8.'
    unzipped = " (unzipped)" if compression_of(path) else ""
    return SourceError(f"{path} line {line}{unzipped}: {byte} is not {encoding} text.", remedy=hint)


def _no_mark(path: Path, encoding: str, error: Exception) -> SourceError:
    return SourceError(
        f"{path}: not {encoding} text ({error}).", remedy='name what it was saved in, such as "utf-16-le" or "utf-8".'
    )


def allowed(path: Path, times: int = 1) -> int:
    """Return how many bytes may be read at once: `times` the limit, or a hundred times the size of the file."""
    flat = number_set("EVALUATE_UNPACKED_MB", UNPACKED_MB) * 1024 * 1024
    return max(times * flat, TIMES * path.stat().st_size)


def refuse_more(size: int, path: Path, where: str, times: int = 1) -> None:
    """Raise SourceError if what is read at once has more bytes than are `allowed`."""
    if size > allowed(path, times):
        raise SourceError(
            f"{where} unpack to {size:,} bytes, where {allowed(path, times):,} are allowed for a file of this size.",
            remedy="shorten its cells, or set EVALUATE_UNPACKED_MB to a larger number.",
        )


class Unpacked:
    """Count of the memory that the rows of one chunk take when they are unpacked."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._rows = self._size = 0

    def add(self, size: int, rows: int, what: str, times: int = 1) -> None:
        """Add the bytes of more rows; raise SourceError if those of a chunk have too many."""
        if self._rows >= ROWS:
            self._rows = self._size = 0
        self._rows, self._size = self._rows + rows, self._size + size
        refuse_more(self._size, self._path, f"{self._name}: {what} of {self._rows:,} rows", times)

    def add_frame(self, frame: pl.DataFrame) -> None:
        """Add the long cells of more rows, before a label that many rows share is copied for each of them."""
        import polars as pl

        long, most = 0, longest_line()
        for column in frame:
            coded = column.dtype in (pl.Categorical, pl.Enum)
            lengths = column.cat.len_bytes().cast(pl.Int64) if coded else None
            size = int(column.estimated_size() if lengths is None else lengths.sum())
            if size > most and column.dtype in (pl.String, pl.Categorical, pl.Enum):
                lengths = column.str.len_bytes() if lengths is None else lengths
                if (lengths > most).any():
                    where = f"{self._name}: column {column.name!r}"
                    raise too_long(where, "a cell", "bytes", "check what the column holds")
            long += max(size - SHORT * frame.height, 0)
        self.add(long, frame.height, "long cells")


def refuse_row_groups(path: Path, name: str, columns: Collection[str]) -> bool:
    """Refuse a file of Parquet that has row groups that unpack to too much, by its footer, or the pages of a small one.

    Returns whether row groups have so many rows that they are to be read some rows at a time.
    """
    import pyarrow.parquet as pq

    about, large = pq.read_metadata(path), False
    nested = [about.schema.column(at).max_repetition_level > 0 for at in range(about.num_columns)]
    small = path.stat().st_size < SMALL
    with path.open("rb") as file:
        for number in range(about.num_row_groups):
            group, size, rows = about.row_group(number), 0, 0
            for at in range(about.num_columns):
                column = group.column(at)
                if column.path_in_schema.split(".")[0] in columns:
                    try:
                        pages = _pages(file, column) if small else 0
                    except (ValueError, KeyError, OverflowError, OSError):
                        what = f"{name}: row group {number + 1} holds what is no page"
                        raise SourceError(f"{what}.", remedy="check the download or export.") from None
                    size += max(column.total_uncompressed_size, pages, 8 * column.num_values * nested[at])
                    rows += CELL * group.num_rows
            refuse_more(size, path, f"{name}: the columns of row group {number + 1}", times=2)
            large = large or rows > allowed(path, times=2)
    return large


def _pages(file: BinaryIO, column: pq.ColumnChunkMetaData) -> int:
    """Return the unpacked size that the pages of a column state, because readers believe the pages and not the footer.

    Their headers are structs of Thrift: field 2 of each is what it unpacks to, field 3 what it takes in the file.
    """
    size, begin = 0, min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
    file.seek(max(begin, 0))
    with suppress(IndexError):  # it ends within a page, which is for who reads it to say
        while file.tell() < begin + column.total_compressed_size:
            numbers, fields = {2: 0, 3: 0}, [0]  # the last field of each struct that is open
            while fields:
                head = file.read(1)[0]
                if head == 0:
                    fields.pop()
                    continue
                fields[-1] = fields[-1] + (head >> 4) if head >> 4 else _varint(file) >> 1
                kind = head & 15
                if kind == 12:
                    fields.append(0)
                elif kind in (4, 5, 6):
                    numbers[fields[-1] if len(fields) == 1 else 0] = _varint(file) >> 1
                elif kind not in (1, 2):
                    file.seek(_varint(file) if kind == 8 else {3: 1, 7: 8}[kind], 1)
            size += numbers[2]
            file.seek(numbers[3], 1)
    return size


def _varint(file: BinaryIO) -> int:
    number = shift = 0
    while (byte := file.read(1)[0]) & 128:
        number |= (byte & 127) << shift
        shift += 7
        if shift > 63:
            raise ValueError("no number of 64 bits")
    return number | byte << shift


def refuse_batches(path: Path, name: str) -> None:
    """Refuse a file of IPC that has batches, or dictionaries, that unpack to too much. A damaged one is for its reader.

    Cost: eight bytes of each buffer are read.
    """
    import pyarrow as pa

    kept = 0
    try:
        with pa.memory_map(str(path)) as mapped:
            for number, (is_dictionary, size) in enumerate(_batches(memoryview(mapped.read_buffer()))):
                refuse_more(kept + size, path, f"{name}: the columns of batch {number + 1}", times=2)
                kept += size if is_dictionary else 0
    except SourceError:  # an OSError too
        raise
    except (OSError, struct.error):
        return


def _batches(data: memoryview) -> Iterator[tuple[bool, int]]:
    """Yield of each batch of an IPC file whether it is a dictionary, and what its compressed buffers unpack to.

    PyArrow does not tell before it has unpacked them. These are tables of Flatbuffers: Footer, Message, RecordBatch.
    """
    footer = len(data) - 10 - struct.unpack_from("<i", data, len(data) - 10)[0]
    for blocks in (2, 3):
        for block in _elements(data, _target(data, footer), blocks, 24):
            begin, head = struct.unpack_from("<qi", data, block)
            message = begin + (8 if struct.unpack_from("<i", data, begin)[0] == -1 else 4)
            batch = _target(data, _field(data, _target(data, message), 2))
            batch = _target(data, _field(data, batch, 1)) if blocks == 2 else batch
            size = 0
            for buffer in _elements(data, batch, 2, 16) if _field(data, batch, 3) else ():
                offset, length = struct.unpack_from("<qq", data, buffer)
                # The first eight bytes say how many follow once unpacked, or -1 where they are not compressed.
                size += max(struct.unpack_from("<q", data, begin + head + offset)[0], 0) if length > 8 else 0
            yield blocks == 2, size


def _target(data: memoryview, at: int) -> int:
    """Return the place that an offset points to."""
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: memoryview, table: int, number: int) -> int:
    """Return the place of a field of a table, 0 where it has its default."""
    offsets = table - struct.unpack_from("<i", data, table)[0]
    known = 4 + 2 * number < struct.unpack_from("<H", data, offsets)[0]
    offset = struct.unpack_from("<H", data, offsets + 4 + 2 * number)[0] if known else 0
    return table + offset if offset else 0


def _elements(data: memoryview, table: int, number: int, width: int) -> range:
    """Return the places of the elements of a field that is a list."""
    if not (field := _field(data, table, number)):
        return range(0)
    first = _target(data, field)
    count = struct.unpack_from("<I", data, first)[0]
    return range(first + 4, min(first + 4 + count * width, len(data)), width)
