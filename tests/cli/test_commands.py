"""Every command has help, an example and JSON; every option is explained; the CLI and the API are twins."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import typer

import evaluator
from evaluator.cli.app import app
from evaluator.cli.help import examples
from evaluator.replays.options import ReplayOptions
from tests.cli.runs import evaluate, validate

COMMANDS = {
    "replay": [],
    "compare": [],
    "audit": [],
    "simulate": [],
    "delays": [],
    "check": [],
    "report": [],
    "explain": [],
    "datasets list": [],
    "datasets show": [],
    "datasets validate": [],
    "datasets convert": [],
    "datasets init": [],
    "datasets make": [],
    "policies compile": ["random"],
    "datasets schema": [],
    "policies list": [],
    "policies show": [],
}
ROOT = typer.main.get_command(app)


def command(path: str) -> Any:
    found = ROOT
    for word in path.split():
        found = found.commands[word]
    return found


def test_all_commands_are_listed_here() -> None:
    def walk(group: Any, prefix: str = "") -> Iterator[str]:
        for name, sub in group.commands.items():
            yield from walk(sub, f"{prefix}{name} ") if hasattr(sub, "commands") else [f"{prefix}{name}"]

    assert set(walk(ROOT)) == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_and_an_example(path: str) -> None:
    run = evaluate(*path.split(), "--help")
    assert run.code == 0
    assert "Example" in run.out
    assert command(path).help


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_explained(path: str) -> None:
    for parameter in command(path).params:
        assert getattr(parameter, "help", None), f"{path}: {parameter.name}"


@pytest.mark.parametrize("path", [*COMMANDS, "", "datasets", "policies"])
def test_help_is_printed_as_it_was_written(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are markup to the printer unless they are escaped."""
    monkeypatch.setenv("COLUMNS", "1000")
    printed = "".join(evaluate(*path.split(), "--help-all" if path in COMMANDS else "--help").out.split())
    commands, rest = examples(command(path).epilog or "")
    for text in [command(path).help, *commands, rest, *(p.help for p in command(path).params if not p.hidden)]:
        assert "".join((text or "").replace("\\[", "[").split()) in printed


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_debug(path: str) -> None:
    assert "debug" in {p.name for p in command(path).params}


@pytest.mark.parametrize(
    ("path", "several", "own"),
    [
        ("replay", {}, {"policy", "dry_run", "save_policy", "cluster"}),
        (
            "compare",
            {"window": "windows", "learn_every": "schedules"},
            {"policies", "baseline", "study", "ship_if", "look", "cluster"},
        ),
    ],
)
def test_commands_take_every_option_of_the_python_function(path: str, several: dict[str, str], own: set[str]) -> None:
    from evaluator import datasets

    given = {p.name for p in command(path).params}
    fields = {several.get(f.name, f.name) for f in dataclasses.fields(ReplayOptions)}
    loading = set(inspect.signature(datasets.load).parameters) - {"seed", "keep"}  # a replay has no use for groups
    assert fields | loading <= given
    assert given - fields - loading == {*own, "log", "full", "as_json", "out", "fail_on", "debug"}


def test_delays_takes_every_option_of_the_python_function() -> None:
    from evaluator import datasets
    from evaluator.delays.study.options import DelayOptions

    given = {p.name: p for p in command("delays").params}
    fields = {f.name: f.default for f in dataclasses.fields(DelayOptions)}
    loading = set(inspect.signature(datasets.load).parameters) - {"seed", "keep"}  # --by says what to keep
    file = {"file", "delay_column", "unit", "followed"}
    assert set(given) == fields.keys() | loading | file | {"log", "by", "full", "as_json", "out", "cluster", "debug"}
    assert {name: given[name].default for name in fields} == fields


def test_check_takes_every_option_of_the_python_function() -> None:
    from evaluator import datasets
    from evaluator.checks.options import CheckOptions

    given = {p.name: p for p in command("check").params}
    fields = {f.name: f.default for f in dataclasses.fields(CheckOptions)}
    loading = set(inspect.signature(datasets.load).parameters) - {"seed", "keep"}
    assert set(given) == fields.keys() | loading | {"log", "full", "as_json", "out", "fail_on", "debug"}
    assert {name: given[name].default for name in fields} == fields


def test_audit_takes_every_option_of_the_python_function() -> None:
    from evaluator import datasets
    from evaluator.audits.options import AuditOptions

    given = {p.name: p for p in command("audit").params}
    fields = {f.name: f.default for f in dataclasses.fields(AuditOptions)}
    loading = set(inspect.signature(datasets.load).parameters) - {"seed", "keep"}
    assert set(given) == fields.keys() | loading | {"log", "policies", "full", "as_json", "out", "cluster", "debug"}
    assert {name: given[name].default for name in fields} == fields


@pytest.mark.parametrize("path", ["replay", "compare"])
def test_defaults_agree_with_the_python_function(path: str) -> None:
    defaults = {f.name: f.default for f in dataclasses.fields(ReplayOptions)}
    function = inspect.signature(getattr(evaluator, path)).parameters
    # What the function itself names stands before what it shares with a replay: a comparison resamples as it needs.
    defaults |= {name: of.default for name, of in function.items() if name in defaults and of.default is not of.empty}
    for parameter in command(path).params:
        if parameter.name in defaults:
            assert parameter.default == defaults[parameter.name], parameter.name


@pytest.mark.parametrize(
    "words",
    [
        ("datasets", "list"),
        ("datasets", "show", "synthetic", "--limit", "2000"),
        ("datasets", "show", "criteo_attribution"),
        ("datasets", "validate", "synthetic", "--limit", "2000"),
        ("policies", "list"),
        ("policies", "show", "otflinucb"),
        ("replay", "-p", "random", "--limit", "2000"),
        ("replay", "-p", "random", "--limit", "2000", "--dry-run"),
        ("compare", "-p", "random", "-p", "ucb1", "--limit", "2000"),
        ("simulate", "-s", "vernade2017-low", "-p", "random", "--runs", "2", "--horizon", "100"),
        ("audit", "-p", "random", "--limit", "2000", "--twins", "10"),
        ("delays", "--limit", "2000", "--families", "geometric"),
        ("check", "--limit", "5000"),
        ("explain", "few-rounds"),
    ],
)
def test_json_is_alone_on_stdout_and_what_its_schema_says(words: tuple[str, ...]) -> None:
    run = evaluate(*words, "--json")
    assert run.code == 0, run.err
    assert re.fullmatch(r"evaluate\.[a-z_]+/\d", run.json["schema"])
    validate(run.json)
    for key in run.json.keys() - {"schema"}:
        with pytest.raises(jsonschema.ValidationError):
            validate({"typo" if name == key else name: value for name, value in run.json.items()})


def test_plain_output_of_listings() -> None:
    assert "criteo_attribution" in evaluate("datasets", "list").out
    assert "otflinucb" in evaluate("policies", "list").out
    # Brackets are the formula's, not markup.
    assert "[theta^, 1]" in " ".join(evaluate("policies", "list").out.split())
    assert "alpha" in evaluate("policies", "show", "otflinucb").out
    assert "no parameters" in evaluate("policies", "show", "random").out
    assert "displays" in evaluate("datasets", "show", "synthetic", "--limit", "2000").out
    run = evaluate("datasets", "validate", "-d", "synthetic", "--limit", "2000")
    assert run.out.startswith("Sound: synthetic\n\ndisplays ")
    assert evaluate("datasets", "validate", "synthetic", "--limit", "2000") == run
    assert evaluate("datasets", "validate").code == 2
    assert evaluate("datasets", "schema").json["$defs"]
    assert evaluate("--version").out.startswith("delayed-replay ")


def test_show_of_a_dataset_whose_files_are_elsewhere() -> None:
    run = evaluate("datasets", "show", "criteo_attribution")
    assert run.code == 0
    assert "The spec alone" in run.out
