"""Write results as text and read them back, the same to the bit: numbers, texts, tuples, dicts, arrays, dataclasses.

JSON has no tuples, no arrays and no classes, and pickle would run whatever a file says. Here the reader names the
classes that it expects, and no other class is created.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np


def as_text(value: Any) -> str:
    """Return a value as text: None, a number, a text, a tuple, a dict, a NumPy array, a named tuple or a dataclass."""
    return json.dumps(_encode(value))


def from_text(text: str, classes: Iterable[type]) -> Any:
    """Return the value that `as_text` wrote; it may hold instances of the classes given.

    Raises
    ------
    ValueError
        The text holds an instance of another class, or `as_text` did not write it.
    """
    return _decode(json.loads(text), {cls.__name__: cls for cls in classes})


def _encode(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, dict):
        return {"dict": [[_encode(name), _encode(item)] for name, item in value.items()]}
    if isinstance(value, tuple):
        fields = [_encode(item) for item in value]
        return {"record": [type(value).__name__, fields]} if hasattr(value, "_fields") else fields
    if dataclasses.is_dataclass(value):
        fields = [_encode(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return {"record": [type(value).__name__, fields]}
    raise TypeError(f"a {type(value).__name__} cannot be written as text")


def _decode(encoded: Any, classes: dict[str, type]) -> Any:
    if isinstance(encoded, list):
        return tuple(_decode(item, classes) for item in encoded)
    if not isinstance(encoded, dict):
        return encoded
    ((kind, parts),) = encoded.items()
    if kind == "array":
        dtype, shape, data = parts
        return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()
    if kind == "scalar":
        return np.frombuffer(base64.b64decode(parts[1]), np.dtype(parts[0]))[0]
    if kind == "dict":
        return {_decode(name, classes): _decode(item, classes) for name, item in parts}
    name, fields = parts
    if kind != "record" or name not in classes:
        raise ValueError(f"no {name} is expected here")
    cls, values = classes[name], [_decode(item, classes) for item in fields]
    if dataclasses.is_dataclass(cls):  # a dataclass may take its fields as keywords only
        return cls(**{field.name: value for field, value in zip(dataclasses.fields(cls), values, strict=True)})
    return cls(*values)
