"""A result as the bytes of one Parquet file: its trajectory, and all else in the metadata, under ``result``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.outputs.kept_folder import RESULT
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult

_NOT_WRITTEN = ("trajectory", "plan", "learned")


def written(result: ReplayResult, key: str) -> bytes:
    """Return a result, the answer to the question with a key, as it is written; not what its policy learned."""
    said = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in _NOT_WRITTEN}
    about = {RESULT: json.dumps({"key": key, **{name: _plain(x) for name, x in said.items()}})}
    sink = pa.BufferOutputStream()
    pq.write_table(result.trajectory.replace_schema_metadata(about), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_back(content: bytes, key: str, plan: ReplayPlan) -> ReplayResult | None:
    """Return the result of a plan that was written so; None where it is of another question, or no result."""
    try:
        table = pq.read_table(pa.BufferReader(content))
        said = json.loads(table.schema.metadata[RESULT])
        if said.pop("key") != key:
            return None
        hints = get_type_hints(ReplayResult)
        rebuilt = {name: _rebuilt(hints[name], x) for name, x in said.items()}
        return ReplayResult(
            **rebuilt, plan=plan.to_dict(), trajectory=table.replace_schema_metadata(None), learned=None
        )
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _rebuilt(hint: Any, value: Any) -> Any:
    """Return a value of the type that a field names, from what JSON made of it."""
    if value is None:
        return None
    if isinstance(value, list):
        inner = get_args(hint)[0] if get_origin(hint) is tuple else None
        return tuple(_rebuilt(inner, x) if is_dataclass(inner) else x for x in value)
    if get_origin(hint) is Mapping:
        return {name: _rebuilt(get_args(hint)[1], x) for name, x in value.items()}
    kind = next((kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)), None)
    if kind is None:
        return value
    hints = get_type_hints(kind)
    return kind(**{name: _rebuilt(hints[name], x) for name, x in value.items()})  # type: ignore[operator]
