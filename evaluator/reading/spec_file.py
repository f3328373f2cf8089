"""Read and check a ``spec.toml``: one line says which key is wrong and how to repair it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluator.errors import SpecError, nearest, nearest_file
from evaluator.escape import shortened
from evaluator.input_files import NotTomlError, read_toml
from evaluator.reading.spec import FileSpec, ScenarioSpec, Spec
from evaluator.worlds.scenarios.scenario import Scenario

KINDS = [kind for model in get_args(Scenario) for kind in get_args(model.model_fields["kind"].annotation)]
# Where an installed package says what a spec may hold.
KEYS = "`evaluate datasets schema` prints every key and what it takes"
SECTIONS = {*FileSpec.model_fields, *ScenarioSpec.model_fields}


def read_spec(path: Path) -> Spec:
    """Return the checked spec in the file `path`.

    Raises SpecError, which names the file and the key path, if the file is not TOML, has an unknown key, lacks one, or
    has a value of the wrong type.
    """
    try:
        data = read_toml(path)
    except FileNotFoundError:
        hint = nearest_file(path, "name a bundled dataset or a spec.toml.")
        raise SpecError(f"{path}: no such spec file.", remedy=hint) from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read ({error.strerror}).", remedy="name a file that may be read.") from None
    except NotTomlError as error:
        raise SpecError(f"{path}: {error}.", remedy=f"{KEYS}.") from None
    return parse_spec(data, where=str(path))


def parse_spec(data: dict[str, Any], *, where: str = "spec") -> Spec:
    """Return the checked spec in `data`; `where` names it in errors (see `read_spec`)."""
    model: type[FileSpec] | type[ScenarioSpec] = ScenarioSpec if "scenario" in data else FileSpec
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _explain(error, model, where) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a spec."""
    return TypeAdapter(Spec).json_schema()


def _explain(error: ValidationError, model: type[BaseModel], where: str) -> SpecError:
    found = error.errors(include_url=False, include_context=False)
    # A misspelt key gives "missing" and "unknown": the second carries the suggestion.
    first = min(found, key=lambda e: e["type"] != "extra_forbidden")
    parent, path = _walk(model, first["loc"])
    more = f" ({len(found) - 1} more below it)" if len(found) > 1 else ""
    known = sorted(field.alias or name for name, field in parent.model_fields.items()) if parent is not None else []
    if first["type"] == "extra_forbidden":
        words = sorted({*known, *SECTIONS}) if parent is model else known
        return SpecError(f"{where}: unknown key `{path}`{more}.", remedy=nearest(str(first["loc"][-1]), words))
    if first["type"] == "missing":
        return SpecError(f"{where}: `{path}` is missing{more}.", remedy=f"add {first['loc'][-1]} = ... there.")
    if first["type"] in ("union_tag_invalid", "union_tag_not_found"):
        got = first["input"].get("kind") if isinstance(first["input"], dict) else first["input"]
        return SpecError(f"{where}: `{path}.kind`: got {got!r}.", remedy=nearest(str(got), KINDS))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return SpecError(f"{where}: at `{path}`: {message}{more}.", remedy=f"{KEYS}.")
    got = first["input"]
    expected = message.replace("Input should be", "expected").replace("String should", "expected text that should")
    return SpecError(
        f"{where}: `{path}`: {expected}, got {shortened(repr(got))} ({type(got).__name__}){more}.",
        remedy=_suggest(got, message),
    )


def _suggest(got: object, message: str) -> str:
    words = [w for w in message.split("'") if (w.strip(" ,or") and w.isidentifier()) or "-" in w]
    close = difflib.get_close_matches(str(got), words, n=1)
    return f"did you mean {close[0]}?" if close else f"{KEYS}."


def _walk(model: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel] | None, str]:
    """Return the model that owns the last key of `loc`, and its path without pydantic's union tags."""
    at: type[BaseModel] | None = model
    parent: type[BaseModel] | None = model
    path, named = "$", False
    for i, part in enumerate(loc):
        if isinstance(part, int):
            path += f"[{part}]"
            continue
        if part == "[key]":  # it is the name itself that is wrong
            continue
        if named:  # a name that the writer of the spec chose, of a table of tables
            path, named = f"{path}.{part}", False
            continue
        parent = at
        fields = {} if at is None else {field.alias or name: field for name, field in at.model_fields.items()}
        if part in fields:
            models = list(_models(fields[part].annotation))
            named = bool(models) and get_origin(fields[part].annotation) is dict
            path += f".{part}"
            tag = loc[i + 1] if i + 1 < len(loc) else None
            tagged = [
                m for m in models if "kind" in m.model_fields and tag in get_args(m.model_fields["kind"].annotation)
            ]
            at = next(iter(tagged or models), None)
        elif at is not None and "kind" in at.model_fields and part in get_args(at.model_fields["kind"].annotation):
            continue
        elif i == len(loc) - 1 and at is not None:
            path += f".{part}"
    return parent, path


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for a in get_args(annotation) for m in _models(a)]
