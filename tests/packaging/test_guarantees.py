"""The page on guarantees promises nothing that no test shows."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "why" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
HEADINGS = ("Outputs", "Resuming", "Verified inputs", "Trusted and untrusted inputs", "The same numbers", "Exit codes")


def rows() -> list[str]:
    """Return the rows of the page's tables, without their heads."""
    lines = PAGE.splitlines()
    heads = [i for i, line in enumerate(lines) if re.fullmatch(r"[|-]+", line)]
    skipped = {i for head in heads for i in (head - 1, head)}
    return [line for i, line in enumerate(lines) if line.startswith("|") and i not in skipped]


def functions_in(file: str) -> set[str]:
    if not (ROOT / file).is_file():
        return set()
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_it_names_exists() -> None:
    known = {file: functions_in(file) for file, _ in NAMED}
    assert [f"{file}::{name}" for file, name in NAMED if name not in known[file]] == []


def test_every_promise_names_a_test() -> None:
    assert len(rows()) > 20
    for row in rows():
        shown = row.strip("| ").split(" | ")[-1]
        assert re.search(r"`tests/[\w/]+\.py::\w+`", shown), row


def test_every_kind_of_promise_is_there() -> None:
    for heading in HEADINGS:
        assert f"\n## {heading}" in PAGE


def test_files_it_speaks_of_exist() -> None:
    for file in re.findall(r"`((?:tests|docs|evaluator)/[\w/]+\.(?:py|md))`", PAGE):
        assert (ROOT / file).is_file(), file
    for link in re.findall(r"\]\(([\w./-]+)\)", PAGE):
        assert (ROOT / "docs" / "why" / link).exists(), link
