"""Damage that knows nothing of the format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Mutator = Callable[[Rng, bytes], bytes]

# Magic and lengths of Parquet, zip and gzip lie at the ends.
EDGE = 512


def _place(rng: Rng, data: bytes) -> int:
    """Return a position, half of the time near one of the ends, where formats keep what describes the rest."""
    n = len(data)
    where = rng.integers(4)
    if where == 0:
        return int(rng.integers(max(n - EDGE, 0), n))
    if where == 1:
        return int(rng.integers(min(n, EDGE)))
    return int(rng.integers(n))


def _block(rng: Rng, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(start + int(2 ** rng.uniform(0, 10)), len(data))


def flip_bits(rng: Rng, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(1 + rng.geometric(0.6)):
        out[_place(rng, data)] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwrite(rng: Rng, data: bytes) -> bytes:
    start, end = _block(rng, data)
    fill = rng.choice([b"\x00", b"\xff", b"", b"\x80"])
    new = bytes(fill) * (end - start) if fill else rng.bytes(end - start)
    return data[:start] + new + data[end:]


def cut_end(rng: Rng, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data)))]


def cut_block(rng: Rng, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:start] + data[end:]


def extend(rng: Rng, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data + (data[start:end] if rng.integers(2) else rng.bytes(end - start))


def repeat_block(rng: Rng, data: bytes) -> bytes:
    start, end = _block(rng, data)
    return data[:end] + data[start:end] * int(2 ** rng.uniform(0, 6)) + data[end:]


def exchange_blocks(rng: Rng, data: bytes) -> bytes:
    (a, b), (c, d) = sorted((_block(rng, data), _block(rng, data)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def extreme_number(rng: Rng, data: bytes) -> bytes:
    """Write a length or count that no file of this size has."""
    out = bytearray(data)
    size = int(rng.choice([2, 4, 8]))
    value = int(rng.choice([0, 1, 2**15, 2**31 - 1, 2**31, 2**62, 2**63 - 1])) % 2 ** (8 * size)
    start = _place(rng, data)
    out[start : start + size] = value.to_bytes(size, "little")
    return bytes(out)


def nothing(rng: Rng, data: bytes) -> bytes:
    return b""


RAW: tuple[Mutator, ...] = (
    flip_bits, flip_bits, flip_bits, overwrite, cut_end, cut_block, extend, repeat_block, exchange_blocks,
    extreme_number, nothing,
)  # fmt: skip
