"""Text files as they were saved: compressed or not, in any encoding that Python knows."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from evaluator.errors import SourceError, UsageError
from evaluator.escape import shortened

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

    Raises
    ------
    UsageError
        The variable holds no whole number from 1 on.
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

    Parameters
    ----------
    path, encoding
        Path and encoding of the file.
    returns
        Whether its lines end with carriage returns alone, as old spreadsheets write them: newlines take their place.

    Raises
    ------
    SourceError
        A byte is no text in an encoding other than UTF-8, or a compressed file is truncated or damaged.
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

    Raises
    ------
    SourceError
        The file may not be read.
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
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, OSError) as error:
        kind = None if getattr(error, "errno", None) else compression_of(path)
        if kind is None:
            raise
        raise SourceError(
            f"{path}: truncated or damaged {kind} ({error}).", remedy="download the file again."
        ) from None


def _open_bytes(path: Path) -> BinaryIO:
    kind = compression_of(path)
    if kind == "zip":
        return _open_zip(path)
    if kind == "zstd":
        import pyarrow as pa

        return cast(BinaryIO, pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    opener = {"gzip": gzip.GzipFile, "bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}.get(str(kind))
    return path.open("rb") if opener is None else cast(BinaryIO, opener(path))


def _open_zip(path: Path) -> BinaryIO:
    """Open the one file of an archive.

    Raises
    ------
    SourceError
        It holds several files, or needs a password.
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

    Raises
    ------
    SourceError
        The file is compressed, and truncated or damaged.
    """
    with unpacking(path), closing(_open_bytes(path)) as stream:
        while piece := stream.read(size or PIECE):
            yield piece


def decoded(path: Path, encoding: str) -> Iterator[str]:
    """Yield the text of a file, unzipped, some at a time.

    Raises
    ------
    SourceError
        A byte is no text in this encoding, or a compressed file is truncated or damaged.
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
