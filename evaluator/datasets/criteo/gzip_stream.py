"""One gzip member from pieces that were compressed apart, e.g. in several threads."""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO, NamedTuple

# No name and no time in the header: same content, same bytes. 4: fastest; 255: unknown system.
HEADER = b"\x1f\x8b\x08\x00" + struct.pack("<I", 0) + b"\x04\xff"
END = b"\x03\x00"  # an empty last block
LEVEL = 1


class CompressedText(NamedTuple):
    """Text and its deflate blocks."""

    text: bytes
    blocks: bytes


def compress(text: bytes) -> CompressedText:
    """Return `text` with its deflate blocks, which end on a byte and refer to nothing before them."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return CompressedText(text, packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH))


class GzipStream:
    r"""Writes pieces in order; `close` ends the member.

    Examples
    --------
    >>> import gzip, io
    >>> file = io.BytesIO()
    >>> stream = GzipStream(file)
    >>> for text in (b"a\tb\n", b"1\t2\n"):
    ...     stream.write(compress(text))
    >>> stream.close()
    >>> gzip.decompress(file.getvalue())
    b'a\tb\n1\t2\n'
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._checksum = 0
        self._length = 0
        file.write(HEADER)

    def write(self, piece: CompressedText) -> None:
        """Append a piece."""
        self._file.write(piece.blocks)
        self._checksum = zlib.crc32(piece.text, self._checksum)
        self._length += len(piece.text)

    def close(self) -> None:
        """Write the last block, the checksum and the length; the file stays open."""
        self._file.write(END + struct.pack("<II", self._checksum, self._length & 0xFFFFFFFF))
