"""An option is declared once: every command and function that has it has its name, default and words from there."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import typer

from evaluator.cli.app import app
from evaluator.cli.lending import help_text
from evaluator.delays.study.options import DelayOptions
from evaluator.errors import ParameterError
from evaluator.options.declaration import (
    Option,
    Options,
    declaration,
    describe,
    kinds_of,
    option,
    several,
    under_own_names,
)
from evaluator.replays.options import ReplayOptions
from evaluator.report.command_words import DECLARED, in_command_words, option_names
from tests.cli.runs import evaluate

ROOT: Any = typer.main.get_command(app)
# What commands declare by hand, as no function of the library has it: where a log is, and what is printed or written.
BY_HAND = {
    "as_json", "by", "dataset", "debug", "delay_column", "dry_run", "file", "followed", "log", "name", "names", "out",
    "overwrite", "policy", "save_policy", "scenario", "unit", "version",
}  # fmt: skip


def commands(group: Any = ROOT, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, sub in group.commands.items():
        found |= commands(sub, f"{prefix}{name} ") if hasattr(sub, "commands") else {f"{prefix}{name}": sub}
    return found


def declared(name: str) -> list[Option]:
    """Return the declarations of a name, in whichever dataclasses have it."""
    classes = (*DECLARED, ReplayOptions)
    return [declaration(f) for cls in classes for f in dataclasses.fields(cls) if f.name == name]


COMMANDS = commands()


@pytest.mark.parametrize("path", COMMANDS)
def test_options_of_a_command_are_the_declared_ones(path: str) -> None:
    for given in COMMANDS[path].params:
        if given.name in BY_HAND:
            continue
        fitting = [one for one in declared(given.name) if help_text(given.name, one) == given.help]
        assert fitting, f"{path} --{given.name}: no declaration says {given.help!r}"
        assert given.default in (fitting[0].default, None), f"{path} --{given.name}"


@pytest.mark.parametrize("name", sorted({f.name for cls in DECLARED for f in dataclasses.fields(cls)}))
def test_declarations_of_one_name_have_one_origin(name: str) -> None:
    roots = {one.root for one in declared(name)}
    assert len(roots) == 1, f"{name} is declared {len(roots)} times: declare it in evaluator.options.shared"


@pytest.mark.parametrize("cls", DECLARED)
def test_every_option_is_described(cls: type[Options]) -> None:
    for told, field in zip(describe(cls), dataclasses.fields(cls), strict=True):
        assert told["name"] == field.name
        assert told["help"], f"{field.name} says nothing"
        assert told["name"] in (cls.__doc__ or "")
        assert field.name in option_names()


@pytest.mark.parametrize("path", COMMANDS)
def test_several_values_have_a_second_name(path: str) -> None:
    kinds = {f.name: kinds_of(cls)[f.name] for cls in DECLARED for f in dataclasses.fields(cls)}
    for given in COMMANDS[path].params:
        kind = kinds.get(given.name)
        if kind is not None and several(kind) is not None and given.name.endswith("s") and str(kind) != "str":
            singular = [one.singular for one in declared(given.name) if one.singular]
            assert given.name == "actions" or f"--{singular[0]}" in given.opts


def test_a_departure_from_a_declaration_keeps_its_origin() -> None:
    one = Option(default=1, help="Number")
    assert one.but(default=2).but(help="Other").root is one


def test_values_are_checked_by_their_declaration() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Some(Options):
        share: float = option(0.5, "Share", above=0.0, at_most=1.0, example="0.1")
        count: int | None = option(None, "Count", at_least=2)

    assert Some(share=1).share == 1.0
    assert isinstance(Some(share=1).share, float)
    for wrong, said in (
        ({"share": 0.0}, "`share=0` is out of range. Hint: take a number > 0, <= 1, such as 0.5."),
        ({"share": "much"}, "`share`: expected a number, got 'much'. Hint: Share"),
        ({"share": True}, "`share=True` is out of range"),
        ({"count": 1}, "`count=1` is out of range. Hint: take a whole number from 2 to 2^63 - 1."),
        ({"count": 2.5}, "`count=2.5` is out of range"),
    ):
        with pytest.raises(ParameterError) as raised:
            Some(**wrong)  # type: ignore[arg-type]
        assert said in str(raised.value)


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("`reward_max` and `level=2`", "--reward-max and --level 2"),
        ("use `sampler='rejection'`", "use --sampler rejection"),
        ("`doubly_robust=True`", "--doubly-robust"),
        ("`clock` 'sun' is not a choice", "--clock 'sun' is not a choice"),
        ("actions go from 0 to 9; the traceback shows where.", "actions go from 0 to 9; --debug shows where."),
        ("`evaluate delays`, `theta`, `k=3`", "`evaluate delays`, `theta`, `k=3`"),
    ],
)
def test_the_command_line_speaks_its_own_words(python: str, shell: str) -> None:
    assert in_command_words(python) == shell


def test_one_of_several_values_goes_by_its_singular() -> None:
    assert under_own_names(DelayOptions, {"window": 5, "seed": 1}) == {"windows": 5, "seed": 1}
    assert DelayOptions(**under_own_names(DelayOptions, {"window": 5})).windows == (5,)
    with pytest.raises(ParameterError, match="`window` and `windows` exclude each other"):
        under_own_names(DelayOptions, {"window": 5, "windows": [6]})


@pytest.mark.parametrize(
    "words",
    [
        ("-p", "random", "-p", "ucb1:exploration=1", "--windows", "50,none"),
        ("--policies", "random,ucb1:exploration=1", "--window", "50", "--window", "none"),
        ("-p", "random,ucb1:exploration=1", "-w", "50, none"),
    ],
)
def test_several_values_stand_together_or_alone(words: tuple[str, ...]) -> None:
    run = evaluate("compare", *words, "--limit", "500", "--json")
    assert run.code == 0, run.err
    plans = [variant["plan"] for variant in run.json["variants"]]
    assert [plan["policy"] for plan in plans] == ["random"] * 2 + ["ucb1:exploration=1.0"] * 2
    assert [plan["options"]["window"] for plan in plans] == ["50", None, "50", None]
