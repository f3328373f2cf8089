"""Results as text and back, the same to the bit: numbers, texts, tuples, dicts, arrays, and classes named beforehand.

JSON knows neither tuples nor arrays nor which class a record is of; pickle would run whatever a file says. Here a class
is looked up among those that the reader expects, and nothing else is made.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np


def as_text(value: Any) -> str:
    """Return a value as text: None, numbers, texts, tuples, dicts, NumPy arrays, dataclasses and the like."""
    return json.dumps(_said(value))


def from_text(text: str, classes: Iterable[type]) -> Any:
    """Return the value that `as_text` wrote, whose classes are among some.

    Raises
    ------
    ValueError
        It is of another class, or no such text.
    """
    return _made(json.loads(text), {cls.__name__: cls for cls in classes})


def _said(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, np.generic):
        return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, dict):
        return {"dict": [[_said(name), _said(one)] for name, one in value.items()]}
    if isinstance(value, tuple):
        fields = [_said(one) for one in value]
        return {"record": [type(value).__name__, fields]} if hasattr(value, "_fields") else fields
    if dataclasses.is_dataclass(value):
        fields = [_said(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return {"record": [type(value).__name__, fields]}
    raise TypeError(f"a {type(value).__name__} is none of the values that are written")


def _made(said: Any, classes: dict[str, type]) -> Any:
    if isinstance(said, list):
        return tuple(_made(one, classes) for one in said)
    if not isinstance(said, dict):
        return said
    ((kind, parts),) = said.items()
    if kind == "array":
        dtype, shape, data = parts
        return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()
    if kind == "scalar":
        return np.frombuffer(base64.b64decode(parts[1]), np.dtype(parts[0]))[0]
    if kind == "dict":
        return {_made(name, classes): _made(one, classes) for name, one in parts}
    name, fields = parts
    if kind != "record" or name not in classes:
        raise ValueError(f"no {name} is expected here")
    cls, values = classes[name], [_made(one, classes) for one in fields]
    if dataclasses.is_dataclass(cls):  # some take their fields by name alone
        return cls(**{field.name: value for field, value in zip(dataclasses.fields(cls), values, strict=True)})
    return cls(*values)
