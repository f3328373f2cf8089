"""Write what the JSON schemas in `evaluator/reports` say of options: ``python docs/schemas.py``, from the declarations.

A schema that has options holds a definition by the name of their dataclass (``"ReplayOptions": {...}`` among its
``$defs``), which this fills in; the rest of it is written by hand. A test says when it is due.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from types import NoneType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the checkout that the script is in, whatever is installed

from evaluator.datasets.options import ReadingOptions  # noqa: E402
from evaluator.options.declaration import (  # noqa: E402
    Option,
    Options,
    alternatives,
    choices,
    declaration,
    kinds_of,
    several,
)
from evaluator.reports.command_words import DECLARED  # noqa: E402

FILES = sorted((ROOT / "evaluator" / "reports").glob("*.schema.json"))
_CLASSES: dict[str, type[Options]] = {cls.__name__: cls for cls in DECLARED}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string", NoneType: "null"}
_BOUNDS = {
    "above": "exclusiveMinimum", "at_least": "minimum", "below": "exclusiveMaximum", "at_most": "maximum"
}  # fmt: skip
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


def source(file: Path) -> str:
    """Return the text of a schema, as the declarations have it now."""
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
