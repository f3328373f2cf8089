"""Structs of Thrift's compact protocol, in which a Parquet file says where its pages are: read, changed and written.

A struct that is read and written again has the same bytes. Nothing need be known of what its fields mean.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _STRUCT = 1, 2, 3, 7, 8, 9, 12
_INTEGERS = (4, 5, 6)
# A header holds sizes of lists and steps between fields below this in itself.
_SHORT = 15


class Struct(dict[int, Any]):
    """Values of the fields, by number; a list is a `TypedList`.

    Attributes
    ----------
    kinds
        Type of each field, by its number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[int, int] = {}


class TypedList(list[Any]):
    """A list, with the type of its elements."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind = kind


def read_struct(data: bytes) -> Struct:
    """Return the struct that begins these bytes.

    Raises
    ------
    ValueError
        A field is of a type that no Parquet footer has.
    """
    return _struct(io.BytesIO(data))


def write_struct(struct: Struct) -> bytes:
    """Return a struct as bytes."""
    out = bytearray()
    _put_struct(out, struct)
    return bytes(out)


def _struct(data: BinaryIO) -> Struct:
    found, field = Struct(), 0
    while header := data.read(1)[0]:
        step, kind = header >> 4, header & 15
        field = field + step if step else _signed(_varint(data))
        found[field], found.kinds[field] = _value(data, kind), kind
    return found


def _value(data: BinaryIO, kind: int) -> Any:
    if kind in _INTEGERS:
        return _signed(_varint(data))
    if kind == _BINARY:
        return data.read(_varint(data))
    if kind == _STRUCT:
        return _struct(data)
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE
    if kind in (_BYTE, _DOUBLE):
        return data.read(1 if kind == _BYTE else 8)
    if kind != _LIST:
        raise ValueError(f"a field of type {kind}")
    header = data.read(1)[0]
    found = TypedList(header & 15)
    size = header >> 4
    for _ in range(_varint(data) if size == _SHORT else size):
        found.append(_value(data, found.kind))
    return found


def _varint(data: BinaryIO) -> int:
    number = shift = 0
    while (byte := data.read(1)[0]) & 128:
        number |= (byte & 127) << shift
        shift += 7
    return number | byte << shift


def _signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def _put_struct(out: bytearray, struct: Struct) -> None:
    last = 0
    for field, value in struct.items():
        kind = struct.kinds[field]
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if value else _FALSE
        if 0 < field - last <= _SHORT:
            out.append(field - last << 4 | kind)
        else:
            out.append(kind)
            _put_varint(out, _unsigned(field))
        _put(out, value, kind)
        last = field
    out.append(0)


def _put(out: bytearray, value: Any, kind: int) -> None:
    if kind in _INTEGERS:
        _put_varint(out, _unsigned(value))
    elif kind == _BINARY:
        _put_varint(out, len(value))
        out += value
    elif kind == _STRUCT:
        _put_struct(out, value)
    elif kind in (_BYTE, _DOUBLE):
        out += value
    elif kind == _LIST:
        if len(value) < _SHORT:
            out.append(len(value) << 4 | value.kind)
        else:
            out.append(_SHORT << 4 | value.kind)
            _put_varint(out, len(value))
        for one in value:
            _put(out, one, value.kind)


def _unsigned(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _put_varint(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
