"""An option is declared once: every command and function that has it has its name, default and words from there."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import typer

import evaluator
from evaluator import datasets
from evaluator.cli.app import app
from evaluator.cli.command_parameters import declarations, help_text
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
from evaluator.reports.command_words import declared_options, option_names, use_command_words
from tests.cli.runs import evaluate

ROOT: Any = typer.main.get_command(app)


def commands(group: Any = ROOT, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, sub in group.commands.items():
        found |= commands(sub, f"{prefix}{name} ") if hasattr(sub, "commands") else {f"{prefix}{name}": sub}
    return found


COMMANDS = commands()


def of_dataclasses(name: str) -> list[Option]:
    """Return the declarations of a name, in whichever dataclasses have it."""
    return [declaration(f) for cls in declared_options() for f in dataclasses.fields(cls) if f.name == name]


def of_command(path: str) -> dict[str, Option | None]:
    """Return what declares each option and argument of a command; None where it was written by hand."""
    return {name: declared for name, (declared, _) in declarations(COMMANDS[path]).items()}


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_of_a_command_is_declared(path: str) -> None:
    declared = of_command(path)
    assert {given.name for given in COMMANDS[path].params} == set(declared)
    for given in COMMANDS[path].params:
        one = declared[given.name]
        assert one is not None, (
            f"{path} {given.name}: let `option` or `argument` of evaluator.cli.command_parameters make it"
        )
        assert given.help == (one.help if given.param_type_name == "argument" else help_text(given.opts[0][2:], one))
        assert given.default in (one.default, None) or given.required, f"{path} --{given.name}"
        for second in (one.singular, one.plural):
            assert not second or f"--{second.replace('_', '-')}" in given.opts


def test_one_name_means_one_thing_in_every_command_and_function() -> None:
    found: dict[str, set[Option]] = {}
    for path in COMMANDS:
        for name, one in of_command(path).items():
            if one is not None:
                found.setdefault(name, set()).add(one.root)
    for name, roots in found.items():
        roots |= {one.root for one in of_dataclasses(name)}
        assert len(roots) == 1, f"{name} is declared {len(roots)} times: declare it in evaluator.options.shared"


FUNCTIONS = (
    evaluator.load, evaluator.replay, evaluator.plan, evaluator.compare, evaluator.audit, evaluator.simulate,
    evaluator.study_delays, evaluator.check, datasets.convert, datasets.draft, datasets.make, datasets.show,
    datasets.validate,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_options_of_a_function_have_a_declared_default(function: Callable[..., Any]) -> None:
    of_commands = [one for path in COMMANDS for one in of_command(path).items()]
    for name, parameter in inspect.signature(function).parameters.items():
        known = of_dataclasses(name) + [one for of, one in of_commands if of == name and one is not None]
        if known and parameter.default is not parameter.empty:
            assert parameter.default in [one.default for each in known for one in (each, each.root)], name


def test_messages_know_every_option_that_they_may_name() -> None:
    of_commands = {name for path in COMMANDS for name in of_command(path)}
    assert option_names() <= of_commands


@pytest.mark.parametrize("name", sorted({f.name for cls in declared_options() for f in dataclasses.fields(cls)}))
def test_declarations_of_one_name_have_one_origin(name: str) -> None:
    roots = {one.root for one in of_dataclasses(name)}
    assert len(roots) == 1, f"{name} is declared {len(roots)} times: declare it in evaluator.options.shared"


@pytest.mark.parametrize("cls", declared_options())
def test_every_option_is_described(cls: type[Options]) -> None:
    for told, field in zip(describe(cls), dataclasses.fields(cls), strict=True):
        assert told["name"] == field.name
        assert told["help"], f"{field.name} says nothing"
        assert told["name"] in (cls.__doc__ or "")
        assert field.name in option_names()


@pytest.mark.parametrize("cls", declared_options())
def test_several_values_have_a_second_name(cls: type[Options]) -> None:
    kinds = kinds_of(cls)
    for field in dataclasses.fields(cls):
        if several(kinds[field.name]) is not None and field.name not in ("actions", "keep", "learn_from"):
            assert declaration(field).singular, f"{field.name}: what is one of them called?"


def test_a_departure_from_a_declaration_keeps_its_origin() -> None:
    one = Option(default=1, help="Number")
    assert one.but(default=2).but(help="Other").root is one


def test_values_are_checked_by_their_declaration() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Some(Options):
        share: float = option(0.5, "Share", above=0.0, at_most=1.0, example="0.1")
        count: int | None = option(None, "Count", at_least=2)
        clock: Literal["sun", "sand"] = option("sun", "Clock")

    assert Some(share=1).share == 1.0
    assert isinstance(Some(share=1).share, float)
    for wrong, said in (
        ({"share": 0.0}, "`share=0` is out of range. Hint: take a number > 0, <= 1, such as 0.5."),
        ({"share": "much"}, "`share`: expected a number, got 'much'. Hint: take a number > 0, <= 1, such as 0.5."),
        ({"share": True}, "`share=True` is out of range"),
        ({"count": 1}, "`count=1` is out of range. Hint: take a whole number from 2 to 2^63 - 1."),
        ({"count": 2.5}, "`count=2.5` is out of range"),
        ({"clock": np.ones(2)}, "`clock` array([1., 1.]) is not a choice"),
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
    assert use_command_words(python) == shell


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
    run = evaluate("compare", *words, "-b", "random", "--limit", "500", "--bootstrap", "0", "--json")
    assert run.code == 0, run.err
    plans = [variant["plan"] for variant in run.json["variants"]]
    assert [plan["policy"] for plan in plans] == ["random"] * 2 + ["ucb1:exploration=1.0"] * 2
    assert [plan["options"]["window"] for plan in plans] == ["50", None, "50", None]


@pytest.mark.parametrize("command", [("replay",), ("audit", "--twins", "10"), ("simulate", "-s", "vernade2017-low")])
def test_one_value_may_go_by_the_name_of_several(command: tuple[str, ...]) -> None:
    words = (*command, "--policies", "random")
    several = "error: --window takes one value here, not 2: 50, 200. Hint: give one; evaluate compare --windows 50,200"
    for given in (("--windows", "50,200"), ("-w", "50", "-w", "200"), ("--window", "50", "--windows", "200")):
        run = evaluate(*words, *given)
        assert (run.code, run.out, run.err) == (2, "", f"{several} takes several.\n")


@pytest.mark.parametrize("path", ["replay", "compare", "audit", "simulate", "delays"])
def test_repetitions_go_by_one_name_everywhere(path: str) -> None:
    names = [set(given.opts) for given in COMMANDS[path].params]
    for pair in ({"--repeats", "--runs"}, {"--bootstrap", "--bootstraps"}):
        assert all(pair <= opts or not pair & opts for opts in names)
        assert any(pair <= opts for opts in names) or (path, "--runs" in pair) in (
            ("delays", True),
            ("simulate", False),
        )


def test_a_replay_takes_one_policy() -> None:
    for given in (("-p", "random,ucb1:exploration=1"), ("--policies", "random", "-p", "ucb1:exploration=1")):
        run = evaluate("replay", *given)
        assert run.code == 2
        assert run.err == (
            "error: --policy takes one value here, not 2: random, ucb1:exploration=1. Hint: give one; evaluate compare "
            "--policies random,ucb1:exploration=1 takes several.\n"
        )
    run = evaluate("replay", "--policies", "random", "--windows", "50", "--limit", "500", "--json")
    assert run.json["plan"]["options"]["window"] == "50"
