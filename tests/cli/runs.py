"""Run the command line in this process."""

from __future__ import annotations

import contextlib
import importlib.resources
import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main

from evaluator.cli import app as cli
from evaluator.cli import options
from evaluator.outputs.atomic import described

# The parser of a command line, made once: that takes longer than many a command.
_COMMAND = cache(typer.main.get_command)


@dataclass(frozen=True)
class Run:
    """Exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def evaluate(*words: str) -> Run:
    """Run ``evaluate`` as its script does, errors and exit code included."""
    out, err = io.StringIO(), io.StringIO()
    patch = pytest.MonkeyPatch()
    patch.setattr("sys.argv", ["evaluate", *words])
    patch.setattr(options, "debug", False)
    patch.setattr("typer.main.get_command", _COMMAND)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
            cli.main()
    finally:
        patch.undo()
    return Run(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def sentences(document: Any) -> list[str]:
    """Return what a JSON document says of its findings, one sentence or two each."""
    return [f"{of['what']} {of['remedy']}".strip() for of in document["findings"]]


def validate(document: Any) -> None:
    """Validate a document against the schema that it names."""
    validator(document["schema"].removeprefix("evaluate.").partition("/")[0]).validate(document)


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Return what validates documents of a schema, which is checked once: that takes longer than a document."""
    schema = json.loads((importlib.resources.files("evaluator.reports") / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def manifest_of(out: Path) -> Any:
    """Return the manifest of a result, which keeps its schema and describes every other file of its folder."""
    manifest = json.loads((out / "manifest.json").read_text())
    validator("manifest").validate(manifest)
    assert manifest["files"] == described(path for path in out.iterdir() if path.name != "manifest.json")
    return manifest
