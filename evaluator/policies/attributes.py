"""Whether two copies of an object still hold the same."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

_STREAMS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
_SEQUENCES = (list, tuple, deque)
_SETS = (set, frozenset)
_PLAIN = (int, float, complex, str, bytes, bytearray, np.generic, type(None))


def changed_attributes(before: Any, after: Any) -> list[str]:
    """Return the names of the attributes in which an object differs from a copy of it, sorted.

    Arrays are compared by their bytes, containers and other objects by what they hold. Random streams do not count, and
    what shows nothing of what it holds is taken as unchanged.
    """
    seen: set[tuple[int, int]] = set()
    own, others = _attributes(before), _attributes(after)
    return sorted(
        name
        for name in own.keys() | others.keys()
        if name not in own or name not in others or not _same(own[name], others[name], seen)
    )


def streams_of(held: Any) -> dict[str, Any]:
    """Return an object's own random streams by the names of their attributes."""
    return {name: value for name, value in _attributes(held).items() if isinstance(value, _STREAMS)}


def _attributes(held: Any) -> dict[str, Any]:
    found = dict(getattr(held, "__dict__", {}))
    for cls in type(held).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(held, name):
                found[name] = getattr(held, name)
    return found


def _same(a: Any, b: Any, seen: set[tuple[int, int]]) -> bool:
    if a is b or isinstance(a, _STREAMS):
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b) or bool(a != a and b != b)  # nan is the same nan
    if (id(a), id(b)) in seen:
        return True
    seen.add((id(a), id(b)))
    if isinstance(a, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return _all_same(a.flat, b.flat, seen) if a.dtype.hasobject else a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return len(a) == len(b) and _all_same(a.keys(), b.keys(), seen) and _all_same(a.values(), b.values(), seen)
    if isinstance(a, _SEQUENCES):
        return len(a) == len(b) and _all_same(a, b, seen)
    if isinstance(a, _SETS):
        # Copies of what has no equality of its own are never equal.
        return a == b or (len(a) == len(b) and not all(isinstance(x, _PLAIN) for x in a))
    own, others = _attributes(a), _attributes(b)
    return own.keys() == others.keys() and all(_same(value, others[name], seen) for name, value in own.items())


def _all_same(a: Iterable[Any], b: Iterable[Any], seen: set[tuple[int, int]]) -> bool:
    return all(_same(x, y, seen) for x, y in zip(a, b, strict=True))
