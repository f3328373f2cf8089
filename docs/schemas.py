"""Write the JSON schemas in `evaluator/reports`: ``python docs/schemas.py``, from the types of documents.

What a name of a document holds is said by the docstring of its type, under Parameters, or by that of the property. A
test says when this is due.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the checkout that the script is in, whatever is installed

from evaluator.audits.result import Audit  # noqa: E402
from evaluator.checks.run import CheckReport  # noqa: E402
from evaluator.comparisons.result import Comparison  # noqa: E402
from evaluator.delays.study.result import DelayStudy  # noqa: E402
from evaluator.findings.catalogue import Catalogue  # noqa: E402
from evaluator.options.declaration import (  # noqa: E402
    Option,
    Options,
    alternatives,
    choices,
    declaration,
    kinds_of,
    several,
)
from evaluator.policies.base import PolicyDescription, PolicyList  # noqa: E402
from evaluator.reading.facts import (  # noqa: E402
    Conversion,
    DatasetFacts,
    DatasetList,
    MadeShop,
    MadeTwin,
    PromotionsFacts,
    SpecFacts,
    Validation,
)
from evaluator.reading.options import ReadingOptions  # noqa: E402
from evaluator.replays.plan import PlanDocument  # noqa: E402
from evaluator.replays.result import ReplayResult  # noqa: E402
from evaluator.reports.command_words import declared_options  # noqa: E402
from evaluator.reports.manifest import Manifest  # noqa: E402
from evaluator.results.json_documents import JsonDocument  # noqa: E402
from evaluator.simulations.result import Simulation  # noqa: E402

DOCUMENTS: tuple[type[JsonDocument], ...] = (
    Audit, Catalogue, CheckReport, Comparison, Conversion, DatasetFacts, DatasetList, DelayStudy, MadeShop, MadeTwin,
    Manifest, PlanDocument, PolicyDescription, PolicyList, PromotionsFacts, ReplayResult, Simulation, SpecFacts,
    Validation,
)  # fmt: skip
FILES = sorted((ROOT / "evaluator" / "reports").glob("*.schema.json"))
_TYPED: dict[str, Any] = {}
for _kind in DOCUMENTS:
    _file = f"{_kind.schema.removeprefix('evaluate.').partition('/')[0]}.schema.json"
    _TYPED[_file] = _TYPED[_file] | _kind if _file in _TYPED else _kind
_CLASSES: dict[str, type[Options]] = {cls.__name__: cls for cls in declared_options()}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string", NoneType: "null"}
_BOUNDS = {
    "above": "exclusiveMinimum", "at_least": "minimum", "below": "exclusiveMaximum", "at_most": "maximum"
}  # fmt: skip
_PARAMETERS = "\n\nParameters\n----------\n"
# Names of parameters in a docstring, and the indented lines that say what they are.
_PARAMETER = re.compile(r"^(\w[\w, ]*)\n((?: {4}.*\n?)+)", re.MULTILINE)
_DEFINED = re.compile(r'^( *)"(\w+Options)": (?=\{)', re.MULTILINE)


def schema(kind: Any, declared: Option) -> dict[str, Any]:
    """Return the JSON schema of the value of an option, of a type."""
    kinds = alternatives(kind)
    if allowed := choices(kind):
        return {"enum": [*allowed, *([None] if NoneType in kinds else [])]}
    names = [*dict.fromkeys(_TYPES[one] for one in kinds if one in _TYPES)]
    inner = several(kind)
    names += ["array"] if inner is not None else []
    found: dict[str, Any] = {"type": names[0] if len(names) == 1 else names}
    if inner is not None:
        found["items"] = schema(inner, declared)
    elif "integer" in names or "number" in names:
        found |= {word: getattr(declared, one) for one, word in _BOUNDS.items() if getattr(declared, one) is not None}
    return found


def definition(cls: type[Options], indent: str) -> str:
    """Return the JSON schema of what is recorded of the options of a dataclass, an option a line."""
    fields = dataclasses.fields(cls)
    kinds = kinds_of(cls)
    # Of the reading of a log, only what was given is recorded.
    required = [] if cls is ReadingOptions else [field.name for field in fields]
    lines = [f'"{f.name}": {json.dumps(schema(kinds[f.name], declaration(f)))}' for f in fields]
    inner = f"\n{indent}  "
    parts = ['"type": "object"', '"additionalProperties": false']
    parts += [f'"required": {json.dumps(required)}'] if required else []
    parts += [f'"properties": {{{inner}  ' + f",{inner}  ".join(lines) + f"{inner}}}"]
    return f"{{{inner}" + f",{inner}".join(parts) + f"\n{indent}}}"


def described(cls: type) -> dict[str, str]:
    """Return what the docstring of a class says of its parameters."""
    _, _, parameters = cleandoc(cls.__doc__ or "").partition(_PARAMETERS)
    return {
        name: " ".join(text.split()) for names, text in _PARAMETER.findall(parameters) for name in names.split(", ")
    }


class DocumentSchema(GenerateJsonSchema):
    """Schemas of documents: all names and no other, described by the docstrings of their dataclasses."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Return whether it is always there: what has a default is written, too."""
        return "serialization_exclude_if" not in field

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False: a title would repeat the name."""
        return False

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        """Return that a number may be null, but for one that is bounded."""
        found = super().float_schema(schema)
        return found if len(found) > 1 else {"type": ["number", "null"]}

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of what may be null as one type, or several, where these have no more to say."""
        found = super().nullable_schema(schema)
        inner = found.get("anyOf", [found])
        if any("type" not in one or "enum" in one or "const" in one for one in inner):
            return found
        kinds = [kind for one in inner for kind in (one["type"] if isinstance(one["type"], list) else [one["type"]])]
        return {**inner[0], "type": list(dict.fromkeys(kinds))}

    def dataclass_schema(self, schema: Any) -> JsonSchemaValue:
        """Return the schema of a dataclass: of a document, of a part of one, or of options."""
        cls = schema["cls"]
        if issubclass(cls, Options):
            return dict(json.loads(definition(cls, "")))
        found = super().dataclass_schema(schema)
        said = {name: text for base in reversed(cls.__mro__) for name, text in described(base).items()}
        names = {field.get("serialization_alias"): field["name"] for field in schema["schema"]["fields"]}
        for name, value in found["properties"].items():
            for word in ("default", "readOnly", "title"):
                value.pop(word, None)
            name = names.get(name, name)
            value |= {"description": said[name]} if name in said and "description" not in value else {}
        if issubclass(cls, JsonDocument):
            found["properties"] = {"schema": {"const": cls.schema}, **found["properties"]}
            found["required"] = ["schema", *(name for name in found["required"] if name != cls.beside)]
        others = found["properties"].pop(getattr(cls, "beside", ""), {"additionalProperties": False})
        found |= {
            "title": cleandoc(cls.__doc__).partition("\n")[0].rstrip("."),
            "additionalProperties": others["additionalProperties"],
        }
        found.pop("description", None)
        return found


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type of document, or of several that are one."""
    found = TypeAdapter(kind).json_schema(mode="serialization", schema_generator=DocumentSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect, **found}


def source(file: Path) -> str:
    """Return the text of a schema, as the declarations have it now."""
    if kind := _TYPED.get(file.name):
        return json.dumps(schema_of(kind), indent=2) + "\n"
    text, done, parts = file.read_text(encoding="utf-8"), 0, []
    for found in _DEFINED.finditer(text):
        _, end = json.JSONDecoder().raw_decode(text, found.end())
        parts += [text[done : found.end()], definition(_CLASSES[found[2]], found[1])]
        done = end
    return "".join([*parts, text[done:]])


def main() -> None:
    """Write the schemas."""
    for file in FILES:
        file.write_text(source(file), encoding="utf-8")


if __name__ == "__main__":
    main()
