"""Help: few options by default and all on request; on any terminal names and examples whole, no line too wide."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

from evaluator.cli.app import app
from evaluator.cli.help import by_question, examples
from evaluator.options.shared import QUESTIONS
from tests.cli.runs import evaluate

GROUP: Any = typer.main.get_command(app)
GROUPS = {name: command for name, command in GROUP.commands.items() if hasattr(command, "commands")}
COMMANDS = {name: command for name, command in GROUP.commands.items() if name not in GROUPS} | {
    f"{name} {below}": command for name, group in GROUPS.items() for below, command in group.commands.items()
}


def printed(command: str, width: int, flag: str = "--help") -> str:
    done = CliRunner().invoke(app, [*command.split(), flag], env={"COLUMNS": str(width)}, terminal_width=width)
    assert done.exit_code == 0, done.output
    return done.output


def flags(parameters: Iterable[Any]) -> list[str]:
    return [word for one in parameters for word in (*one.opts, *one.secondary_opts) if one.param_type_name == "option"]


@pytest.mark.parametrize("command", COMMANDS)
def test_few_options_are_listed_by_the_questions_that_they_answer(command: str) -> None:
    listed, others = by_question(COMMANDS[command])
    shown = printed(command, 80)
    heads = re.findall(r"^(?!Usage|Examples?)([A-Z].*):$", shown, re.M)
    assert heads == [*listed, "Help"]
    assert [*listed] == [head for head in ("Arguments", *QUESTIONS) if head in listed]
    for head, parameters in listed.items():
        section = re.search(rf"^{re.escape(head)}:\n((?:  .*\n)+)", shown, re.M)
        assert section is not None
        for parameter in parameters:
            assert parameter.opts[0] in section[1]
    assert not [one for one in others if one.required or one.param_type_name == "argument"]
    options = [one for ones in listed.values() for one in ones if one.param_type_name == "option"]
    assert len(options) <= 13
    hidden = [one.get_help_record(typer.Context(COMMANDS[command]))[0] for one in others]
    assert not [record for record in hidden if f"  {record} " in shown]
    assert f"List {len(others)} more option{'s' * (len(others) > 1)} and exit." in shown


def test_most_options_of_long_commands_wait_for_help_all() -> None:
    for command in ("replay", "compare", "audit"):
        listed, others = by_question(COMMANDS[command])
        assert 8 <= sum(map(len, listed.values())) < len(others) / 2
        assert "Those that describe the log are accepted, but belong into its spec." in " ".join(
            printed(command, 80).split()
        )
        assert {"path", "actions", "features", "deduplicate", "sampling_rate"} < {one.name for one in others}
    assert "describe the log" not in printed("simulate", 80)


def test_all_options_are_listed_before_what_else_is_missing_is_asked_for() -> None:
    shown = printed("replay", 80, "--help-all")
    assert shown == CliRunner().invoke(app, ["replay", "-d", "nowhere", "--help-all"], terminal_width=80).output
    assert "--cluster <str>" in shown


def test_help_uses_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    for command in ("compare", "datasets convert"):
        rest = evaluate(*command.split(), "--help-all").out.split("\nExample")[0]
        assert 100 < max(map(len, rest.splitlines())) <= 120


@pytest.mark.parametrize("width", [140, 80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_names_and_examples_are_whole_and_lines_fit(command: str, width: int) -> None:
    few = printed(command, width).split("\nExample")[0]
    assert max(map(len, few.splitlines())) <= width
    shown = printed(command, width, "--help-all")
    commands, _ = examples(COMMANDS[command].epilog)
    assert commands
    for line in commands:
        assert f"\n  {line}\n" in shown
    rest = shown.split("\nExample")[0]
    assert max(map(len, rest.splitlines())) <= width
    assert "…" not in shown
    for name in [*flags(COMMANDS[command].params), "--help"]:
        assert re.search(rf"(?:^|[ \[]){re.escape(name)}(?:[,. \]]|$)", rest, re.M), name
    # No line ends within an option, nor between one and the value that an example gives it.
    assert not re.search(r"--?[a-z]*-$", rest, re.M)
    assert not re.search(r": --[a-z-]+$", rest, re.M)


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_a_group_says_what_each_command_does_in_whole_sentences(group: str) -> None:
    shown = " ".join(printed(group, 60).split())
    for command in (GROUPS[group] if group else GROUP).commands.values():
        said = " ".join(command.help.split()).partition(". ")[0]
        assert said in shown


def test_choices_are_listed() -> None:
    shown = printed("replay", 60, "--help-all")
    for listed in ("--clock [traffic|wall]", "--sampler [rejection|keep|queue]", "--on-error [stop|quarantine]"):
        assert listed in shown


def test_every_command_has_an_example() -> None:
    assert not [name for name, command in COMMANDS.items() if not re.match("Examples?: evaluate", command.epilog or "")]
