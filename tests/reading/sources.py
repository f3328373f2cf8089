"""Small sources written by tests."""

from __future__ import annotations

import copy
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from evaluator.datasets import json_schema

BASE: dict[str, Any] = {
    "name": "mine",
    "title": "A log of a test",
    "licence": "none",
    "source": {"files": "log.csv"},
    "time": {"unit": "s"},
    "display": {"time": "t", "action": "ad"},
    "conversion": {"time": "sold"},
}
ROWS = ["t,ad,sold", "1,a,4", "2,b,", "2,a,9", "5,b,5"]


@cache
def spec_validator() -> jsonschema.Draft202012Validator:
    """Return what validates specs; their schema, whose check takes longer than they do, is checked once."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def spec_data(**sections: dict[str, Any]) -> dict[str, Any]:
    """BASE with sections updated; a value of None deletes the key."""
    data = copy.deepcopy(BASE)
    for section, changes in sections.items():
        part = data.setdefault(section, {})
        part.update(changes)
        for key in [k for k, v in part.items() if v is None]:
            del part[key]
    return data


def write_spec(folder: Path, **sections: dict[str, Any]) -> Path:
    lines, tables = [], []
    for key, value in spec_data(**sections).items():
        if isinstance(value, dict):
            tables += _table(key, value)
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    path = folder / "spec.toml"
    path.write_text("\n".join(lines + tables) + "\n")
    return path


def _table(name: str, values: dict[str, Any]) -> list[str]:
    plain = [f"{k} = {json.dumps(v)}" for k, v in values.items() if not isinstance(v, dict)]
    nested = [line for k, v in values.items() if isinstance(v, dict) for line in _table(f"{name}.{k}", v)]
    return [f"[{name}]", *plain, *nested]


def write_rows(path: Path, rows: list[str]) -> Path:
    text = ("\n".join(rows) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def dataset(folder: Path, rows: list[str] | None = None, **sections: dict[str, Any]) -> Path:
    """Write a spec and its file; return the spec's path."""
    spec = write_spec(folder, **sections)
    write_rows(folder / sections.get("source", {}).get("files", "log.csv"), ROWS if rows is None else rows)
    return spec
