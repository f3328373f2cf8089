"""Damage to lines and cells."""

from __future__ import annotations

import re

from tests.fuzz.raw import Mutator, Rng

TOKENS: tuple[bytes, ...] = (
    b"", b"0", b"-1", b"-0", b"1e308", b"1e309", b"-1e-320", b"nan", b"NaN", b"inf", b"-inf", b"null", b"None", b"true",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"1" * 400, b"1.5", b"0x10", b"1_000",
    b"2024-01-01", b"2024-01-01T00:00:00Z", b"9999999-99-99", b" 1 ", b"+1", b'"', b'""', b'"a""b"', b'"a\nb"', b"'",
    b"\x00", b"\xef\xbb\xbf", b"\xe9", b"\xff\xfe", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\x1b[2J", b"\r", b"\n", b"\r\n",
    b"\t", b",", b";", b"\\", b"{action}", b"../../etc/hosts", b"/dev/zero", b"payload.py:Evil", b"[" * 20_000,
    b"{" * 300, b"a" * 70_000, "é".encode(), "\u2028".encode(), "\U0001f600".encode(), b"=1+1", b"#", b"%s%n", b"$HOME",
    b"*",
)  # fmt: skip


def _token(rng: Rng) -> bytes:
    return TOKENS[int(rng.integers(len(TOKENS)))]


def insert_token(rng: Rng, data: bytes) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + _token(rng) + data[at:]


def replace_word(rng: Rng, data: bytes) -> bytes:
    """Put a token in the place of a cell, a key or a value."""
    words = list(re.finditer(rb"[^\s,;=\"'\[\]{}:]+", data))
    if not words:
        return insert_token(rng, data)
    found = words[int(rng.integers(len(words)))]
    return data[: found.start()] + _token(rng) + data[found.end() :]


def copy_word(rng: Rng, data: bytes) -> bytes:
    words = list(re.finditer(rb"[^\s,;=\"'\[\]{}:]+", data))
    if len(words) < 2:
        return insert_token(rng, data)
    to, source = (words[int(rng.integers(len(words)))] for _ in range(2))
    return data[: to.start()] + source.group() + data[to.end() :]


def _lines(rng: Rng, data: bytes) -> tuple[list[bytes], int, int]:
    lines = data.splitlines(keepends=True) or [b"\n"]
    return lines, int(rng.integers(len(lines))), int(rng.integers(len(lines)))


def drop_line(rng: Rng, data: bytes) -> bytes:
    lines, i, _ = _lines(rng, data)
    return b"".join(lines[:i] + lines[i + 1 :])


def copy_line(rng: Rng, data: bytes) -> bytes:
    lines, i, j = _lines(rng, data)
    return b"".join([*lines[:i], lines[j], *lines[i:]])


def exchange_lines(rng: Rng, data: bytes) -> bytes:
    lines, i, j = _lines(rng, data)
    lines[i], lines[j] = lines[j], lines[i]
    return b"".join(lines)


def keep_first_line(rng: Rng, data: bytes) -> bytes:
    return b"".join(_lines(rng, data)[0][:1])


def other_encoding(rng: Rng, data: bytes) -> bytes:
    encoding = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7")[int(rng.integers(6))]
    return data.decode("utf-8", "replace").encode(encoding, "replace")


def late_latin(rng: Rng, data: bytes) -> bytes:
    """Write a Latin-1 byte far beyond what a reader looks at first."""
    lines, i, _ = _lines(rng, data)
    body = b"".join(lines[1:]) or b"\n"
    far = lines[0] + body * (1 + 10_000 // len(body))
    return far + lines[i].replace(b"a", b"\xe9")


TEXT: tuple[Mutator, ...] = (
    insert_token, insert_token, replace_word, replace_word, replace_word, replace_word, copy_word, drop_line, copy_line,
    exchange_lines, keep_first_line, other_encoding, late_latin,
)  # fmt: skip
