"""Parquet files of some rows each, as the bytes of the one file that would hold all of them.

What a writer makes of a row group does not depend on the others. One file is therefore the row groups of all parts, one
after the other, and an end that says where they are now: places and numbers in it move by what comes before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.log.compact_thrift import Struct, read_struct, write_struct
from evaluator.log.log_files import LogFile, opened, size_of

# A Parquet file begins and ends with four letters, the latter behind the length of its footer (little-endian).
_LETTERS = b"PAR1"
_TAIL = 8
_CHUNK = 1 << 20
# Fields of the footer (parquet.thrift): FileMetaData, RowGroup, ColumnChunk, ColumnMetaData.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _ABOUT = 2, 3
_PAGE_OFFSETS = (9, 10, 11)


@dataclass(frozen=True)
class _Part:
    path: LogFile
    data: int
    footer: Struct


def checksum_as_one(paths: Sequence[LogFile]) -> str:
    """Return the SHA-256, in hex, of the one Parquet file that holds the rows of all these; of one file its own.

    The parts must have been written alike, and hold whole row groups of that file. Memory: their footers.

    Raises
    ------
    OSError
        A file cannot be read.
    """
    digest = hashlib.sha256()
    for piece in as_one_file(paths):
        digest.update(piece)
    return digest.hexdigest()


def as_one_file(paths: Sequence[LogFile]) -> Iterator[bytes]:
    """Yield the bytes of the one Parquet file that holds the rows of all these, piece by piece."""
    if len(paths) == 1:
        yield from _bytes(paths[0], 0, size_of(paths[0]))
        return
    parts = [_part(path) for path in paths]
    yield _LETTERS
    for part in parts:
        yield from _bytes(part.path, len(_LETTERS), part.data)
    footer = write_struct(_joined(parts))
    yield footer + len(footer).to_bytes(4, "little") + _LETTERS


def _part(path: LogFile) -> _Part:
    size = size_of(path)
    with opened(path) as stream:
        stream.seek(-_TAIL, os.SEEK_END)
        length = int.from_bytes(stream.read(4), "little")
        stream.seek(-_TAIL - length, os.SEEK_END)
        return _Part(path, size - length - _TAIL - len(_LETTERS), read_struct(stream.read(length)))


def _bytes(path: LogFile, start: int, length: int) -> Iterator[bytes]:
    with opened(path) as stream:
        stream.seek(start)
        while length > 0 and (piece := stream.read(min(_CHUNK, length))):
            yield piece
            length -= len(piece)


def _joined(parts: Sequence[_Part]) -> Struct:
    """Return the footer of the one file."""
    before, groups = 0, list[Struct]()
    for part in parts:
        for group in part.footer[_GROUPS]:
            if _ORDINAL in group:
                group[_ORDINAL] = len(groups)
            places: list[tuple[Struct, tuple[int, ...]]] = [(group, (_GROUP_OFFSET,))]
            for column in group[_COLUMNS]:
                places += [(column, (_CHUNK_OFFSET,)), (column[_ABOUT], _PAGE_OFFSETS)]
            for of, fields in places:
                for field in fields:
                    if of.get(field):  # 0 says nothing
                        of[field] += before
            groups.append(group)
        before += part.data
    footer = parts[0].footer
    footer[_ROWS] = sum(part.footer[_ROWS] for part in parts)
    footer[_GROUPS][:] = groups
    return footer
