"""Help on narrow terminals: names and examples whole, choices listed, no line wider than the terminal."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from evaluator.cli.app import app
from evaluator.cli.help import examples

GROUP: Any = typer.main.get_command(app)
GROUPS = {name: command for name, command in GROUP.commands.items() if hasattr(command, "commands")}
COMMANDS = {name: command for name, command in GROUP.commands.items() if name not in GROUPS} | {
    f"{name} {below}": command for name, group in GROUPS.items() for below, command in group.commands.items()
}


def printed(command: str, width: int) -> str:
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": str(width)}, terminal_width=width)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_names_and_examples_are_whole_and_lines_fit(command: str, width: int) -> None:
    shown = printed(command, width)
    commands, _ = examples(COMMANDS[command].epilog)
    assert commands
    for line in commands:
        assert f"\n  {line}\n" in shown
    rest = shown.split("\nExample")[0]
    assert max(map(len, rest.splitlines())) <= width
    assert "…" not in shown
    names = [word for parameter in COMMANDS[command].params for word in (*parameter.opts, *parameter.secondary_opts)]
    for name in names:
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
    shown = printed("replay", 60)
    for listed in ("--clock [traffic|wall]", "--sampler [rejection|keep|queue]", "--on-error [stop|quarantine]"):
        assert listed in shown


def test_every_command_has_an_example() -> None:
    assert not [name for name, command in COMMANDS.items() if not re.match("Examples?: evaluate", command.epilog or "")]
