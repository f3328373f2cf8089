"""The help of a command: a section for each panel, unbroken names of options at any width, and examples to copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from evaluator.cli.usage import OneLineErrors, unknown_command

# Characters at which lines do not break: they replace hyphens and spaces within the name of an option, between an
# option and its value, and within a default. No help text contains them otherwise.
_HYPHEN, _SPACE = "\u2011", "\u00a0"
_WHOLE = re.compile(r"(?<!\w)--?[a-z][a-z-]*(?: [^\s()]+)?|\[[^\]]*\]$")
_LIST = re.compile(r"<list\[(\w+)\]>")


def examples(epilog: str) -> tuple[list[str], str]:
    """Return the example commands of an epilog, which bars separate, and the text that follows them."""
    commands, rest = [], ""
    for part in re.sub(r"^Examples?: ", "", epilog.strip()).split(" | "):
        command, _, more = " ".join(part.split()).partition(". ")
        commands += [command] if command else []
        rest = more or rest
    return commands, rest


def _join_options(text: str) -> str:
    """Return text whose options do not break across lines, by characters that `_restore_characters` takes back."""
    return _WHOLE.sub(lambda match: match[0].replace("-", _HYPHEN).replace(" ", _SPACE), text)


def _restore_characters(formatter: Any) -> None:
    formatter.buffer[:] = [part.replace(_HYPHEN, "-").replace(_SPACE, " ") for part in formatter.buffer]


def _write_examples(epilog: str, formatter: Any) -> None:
    """Write each example on one line, however long it is, so that it can be copied."""
    commands, rest = examples(epilog)
    if commands:
        with formatter.section("Examples" if len(commands) > 1 else "Example"):
            formatter.write("".join(f"  {command}\n" for command in commands))
    if rest:
        formatter.write_paragraph()
        formatter.write_text(rest)


class Command(OneLineErrors, TyperCommand):
    """A command whose help lists its options by panel; Typer's own tables cut names on narrow terminals."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super(TyperCommand, self).format_help(ctx, formatter)
        _restore_characters(formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, one section for each panel; options without a panel come first."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or plain
                name = _LIST.sub(r"<\1,...>", record[0])
                panels.setdefault(panel, []).append((name, _join_options(record[1].replace("\\[", "["))))
        for panel, rows in panels.items():
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows, col_max=28)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(self.epilog or "", formatter)


class Group(OneLineErrors, TyperGroup):
    """A group of commands, whose help describes each command in a whole sentence."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names.

        Raises
        ------
        UnknownNameError
            No command has this name; the message names the nearest.
        """
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise unknown_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super(TyperGroup, self).format_help(ctx, formatter)
        _restore_characters(formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(self.epilog or "", formatter)


class App(typer.Typer):
    """An app whose commands and groups have this help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return a decorator that makes a function a command."""
        return super().command(name, cls=Command, **settings)
