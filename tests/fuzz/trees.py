"""Damage to JSON and TOML that leaves them JSON and TOML."""

from __future__ import annotations

import copy
import json
import math
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.raw import Mutator, Rng

VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 1.5, -0.0, True, False, "", "x", "7d", "1e400", "é\x1b[2J\x07\u2028", "x" * 5_000, "../../etc/hosts",
    "payload.py:Evil", "payload:Evil", "*", "**/*", 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 1e308,
    1e-320, 1e9, math.nan, math.inf, -math.inf, [], {}, [[]], [1, "a"], {"a": 1}, None, 10**400,
)  # fmt: skip


def _spots(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key)."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(pairs):
        yield tree, key
        yield from _spots(value)


def _changed(rng: Rng, tree: Any) -> Any:
    tree = copy.deepcopy(tree)
    spots = list(_spots(tree))
    if not spots:
        return VALUES[int(rng.integers(len(VALUES)))]
    box, key = spots[int(rng.integers(len(spots)))]
    other, other_key = spots[int(rng.integers(len(spots)))]
    kind = rng.integers(10)
    if kind < 5:
        box[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    elif kind == 5:
        del box[key]
    elif kind == 6:
        box[key] = copy.deepcopy(other[other_key])
    elif kind == 7 and isinstance(box, dict):
        box[f"{key}_"[: int(rng.integers(1, 40))]] = box.pop(key)
    elif kind == 8:
        value = box[key]
        box[key] = _resized(rng, value)
    else:
        for _ in range(int(2 ** rng.uniform(0, 12))):
            box[key] = [box[key]]
    return tree


def _resized(rng: Rng, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return value * (10.0 ** int(rng.integers(-20, 20)) if rng.integers(2) else -1)
    if isinstance(value, list):
        return value[: int(rng.integers(len(value) + 1))] if rng.integers(2) else value * int(2 ** rng.uniform(0, 8))
    return [value] if isinstance(value, dict) else value * int(rng.integers(0, 4))


def json_text(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def toml_text(tree: Any) -> bytes:
    """Write what `tomllib` reads; None, for which TOML has no word, is left out."""
    if not isinstance(tree, dict):
        tree = {"x": tree}
    return "".join(f"{_key(k)} = {_toml(v)}\n" for k, v in tree.items() if v is not None).encode("utf-8", "replace")


def _key(key: Any) -> str:
    return json.dumps(str(key))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value if v is not None) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return json.dumps(value)


def _mutator(read: Callable[[str], Any], write: Callable[[Any], bytes]) -> Mutator:
    def mutate(rng: Rng, data: bytes) -> bytes:
        try:
            tree = read(data.decode("utf-8"))
            for _ in range(rng.geometric(0.7)):
                tree = _changed(rng, tree)
            return write(tree)
        except (ValueError, RecursionError):  # damaged before, or too deep to be written
            return data

    return mutate


change_json: Mutator = _mutator(json.loads, json_text)
change_toml: Mutator = _mutator(tomllib.loads, toml_text)


def change_json_line(rng: Rng, data: bytes) -> bytes:
    """Change the JSON of one line among many."""
    lines = data.splitlines()
    if not lines:
        return data
    at = int(rng.integers(len(lines)))
    changed = change_json(rng, lines[at]).replace(b"\n", b" ")
    return b"\n".join([*lines[:at], changed, *lines[at + 1 :], b""])


def deep(rng: Rng, data: bytes) -> bytes:
    """Open more brackets than any parser follows."""
    return (b"[" if rng.integers(2) else b'{"a":') * 100_000


def deep_toml(rng: Rng, data: bytes) -> bytes:
    return data + b"\ndeep = " + (b"[" if rng.integers(2) else b"{a=") * 5_000
