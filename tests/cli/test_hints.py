"""Hints fit where they are read: no option that is not there, and no advice that fails."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer

import evaluator
from evaluator import replay
from evaluator.api import audit, simulate
from evaluator.cli.app import app
from evaluator.errors import EvaluatorError, UnknownOptionError
from evaluator.replays.rounds.propensity import how_it_chose
from tests.checks.shops import shop
from tests.cli.runs import evaluate
from tests.logs import build_log

PACKAGE = Path(evaluator.__file__).parent
# Advice that names the options of another command says so.
ELSEWHERE = re.compile(r"\b(replay|convert|compare)\b", re.IGNORECASE)
COMMANDS = {"audits": "audit", "comparisons": "compare", "simulations": "simulate", "checks": "check"}


def advice(file: Path) -> list[str]:
    """The texts that a file gives as `hint` or `do`."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg in ("hint", "remedy"):
            texts = (n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str))
            found.append("".join(texts))
    return found


def options(command: str) -> set[str]:
    known = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    return {name.lstrip("-").replace("-", "_") for parameter in known for name in (parameter.name, *parameter.opts)}


@pytest.mark.parametrize("room", COMMANDS)
def test_advice_names_options_of_its_command_or_says_of_which(room: str) -> None:
    of_some = set.union(*(options(name) for name in ("audit", "check", "compare", "delays", "replay", "simulate")))
    own, texts = options(COMMANDS[room]), [text for file in (PACKAGE / room).rglob("*.py") for text in advice(file)]
    assert texts
    for text in texts:
        for name in re.findall(r"`([a-z_]+)(?:=[^`]*)?`", text):
            assert name in own or name not in of_some or ELSEWHERE.search(text), text


def test_hints_of_the_library_name_no_options_of_the_command_line() -> None:
    for file in PACKAGE.rglob("*.py"):
        if {"cli", "reports"}.isdisjoint(file.relative_to(PACKAGE).parts):
            for text in advice(file):
                assert re.sub(r"`?evaluate [a-z ]+[^`]*`?", "", text).count("--") == 0 or "pip" in text, (file, text)


def test_hints_name_no_page_that_only_a_checkout_has() -> None:
    """A wheel has neither docs nor a folder of datasets beside it."""
    pages = re.compile(r"(docs|datasets|tests|notebooks)/[\w/.-]+|README|CONTRIBUTING|\.md\b")
    for file in PACKAGE.rglob("*.py"):
        for text in advice(file):
            assert not pages.search(text), (file, text)


def test_who_cannot_model_the_logger_by_context_is_not_told_to() -> None:
    log = shop(1, n=2000).log()
    nameless = build_log(time=range(60), action=[i % 2 for i in range(60)], conversion_display=[3], conversion_time=[5],
                         n_actions=2)  # fmt: skip
    assert "estimate:context" in how_it_chose(log)
    assert "estimate:context" not in how_it_chose(nameless)
    with pytest.raises(EvaluatorError) as raised:
        replay(nameless, "ucb1", propensity="estimate:context")
    assert "`propensity='estimate'`" in raised.value.remedy


@pytest.mark.parametrize("function", [audit, simulate])
def test_dry_run_is_said_to_be_of_a_replay(function: object) -> None:
    with pytest.raises(UnknownOptionError, match="it is of `evaluate replay`; here `plan"):
        function("synthetic", "ucb1", dry_run=True)  # type: ignore[operator]


def test_a_column_to_keep_is_named_as_the_command_line_names_it() -> None:
    for command in (("check", "--cluster-by", "user"), ("delays", "--by", "user")):
        said = evaluate(*command, "--limit", "500") if command[0] == "check" else evaluate(*command)
        assert said.code == 2
        assert "with --keep user" in said.err
