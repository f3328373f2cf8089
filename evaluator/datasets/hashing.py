"""Hashed categories: the position and sign of a token ``column=value``, for whole columns."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ONES = np.uint32(0xFFFFFFFF)


def token_slots(column: str, labels: pa.LargeStringArray, dimensions: int) -> npt.NDArray[np.uint32]:
    """Return where each token ``column=label`` goes: twice its position, plus one if its sign is minus, (n,) uint32.

    Position from the low 31 bits of its CRC-32 (UTF-8), sign from the top bit.

    >>> token_slots("cat1", pa.array(["9", "10"], pa.large_string()), 16).tolist()
    [0, 30]
    """
    code = _crc32(f"{column}=".encode(), labels)
    return (code & np.uint32(0x7FFFFFFF)) % np.uint32(dimensions) * np.uint32(2) + (code >> np.uint32(31))


def _crc32(prefix: bytes, labels: pa.LargeStringArray) -> npt.NDArray[np.uint32]:
    """Return zlib.crc32(prefix + label) of each label: the table-driven algorithm, one byte of all labels at a time."""
    n = len(labels)
    _, offset_buffer, data = labels.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, n + 1, labels.offset * 8)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    start, length = offsets[:-1], np.diff(offsets)
    state = np.full(n, zlib.crc32(prefix), np.uint32) ^ _ONES
    going = np.arange(n)
    for i in range(int(length.max(initial=0))):
        going = going[length[going] > i]
        old = state[going]
        state[going] = _TABLE[(old ^ bytes_[start[going] + i]) & np.uint32(0xFF)] ^ (old >> np.uint32(8))
    return state ^ _ONES


# What one byte does to a state of zero, read off the library.
_TABLE = np.array([zlib.crc32(bytes([byte]), 0xFFFFFFFF) for byte in range(256)], np.uint32) ^ _ONES
