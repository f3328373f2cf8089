"""Files of a format whose spec the package brings: they need no draft, which would guess worse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from operator import ge
from pathlib import Path
from shlex import quote
from typing import Any

from evaluator.datasets.column_looks import Look
from evaluator.datasets.locate import bundled_logs
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_file import read_spec
from evaluator.datasets.text import unzipped_pieces
from evaluator.errors import SourceError

_LINES = 50
# action:cost:probability, or the line that a decision's actions share, before what VowpalWabbit reads as features.
_VW = re.compile(r"(\d+:-?[\d.eE+-]+:[\d.eE+-]+\s.*\||shared\s*\|)")


def refuse_decisions(path: Path, name: str) -> None:
    """Raise SourceError if a file of text holds decisions as VowpalWabbit writes them, by its first lines."""
    start = next(unzipped_pieces(path), b"")[:200_000].decode("utf-8", "replace")
    lines = [line for line in start.splitlines()[:_LINES] if line.strip()]
    if any(_VW.match(line) for line in lines):
        raise _bundled(name, "vw_text")
    if any("_label" in line and _is_dsjson(line) for line in lines):
        raise _bundled(name, "vw_dsjson")


def _is_dsjson(line: str) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False
    return isinstance(said, dict) and any(key.startswith("_label") for key in said)


def refuse_bundled(columns: Mapping[str, Look], source: dict[str, Any], name: str) -> None:
    """Raise SourceError if a table has all columns of a bundled dataset, or columns like its own that have no names."""
    for dataset, path in sorted(bundled_logs().items()):
        spec = read_spec(path)
        if not isinstance(spec, FileSpec) or spec.candidates is not None:
            continue
        own = spec.source.columns
        if own is not None:
            like = [look.numbers is None for look in columns.values()]
            kinds = [column in spec.context.kinds() for column in own]
            if source.get("header") is False and len(like) == len(own) and all(map(ge, like, kinds)):
                raise _bundled(name, dataset)
            continue
        wide = [] if spec.action_set is None else [pattern.partition("{")[0] for pattern in spec.action_set.patterns]
        named = {*spec.no_features(), *spec.context.kinds(), *spec.leakage.columns, *spec.keep.values()}
        if named <= set(columns) and all(any(c.startswith(prefix) for c in columns) for prefix in wide):
            raise _bundled(name, dataset)


def _bundled(name: str, dataset: str) -> SourceError:
    return SourceError(
        f"{name} is in the format of {dataset}, whose spec comes with the package: no draft is needed.",
        hint=f"evaluate datasets convert {dataset} LOG --path {quote(name)} writes the log that commands read.",
    )
