"""The help of a command: a section for each question or panel, unbroken names of options, and examples to copy.

``--help`` lists the options that most users need, by the questions that they answer; ``--help-all`` lists every option,
by panel. Which question an option answers is said where it is declared.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from evaluator.cli.command_parameters import declarations
from evaluator.cli.usage import OneLineErrors, unknown_command
from evaluator.options.shared import LOG, QUESTIONS

# Characters at which lines do not break: they replace hyphens and spaces within the name of an option, between an
# option and its value, and within a default. No help text contains them otherwise.
_HYPHEN, _SPACE = "\u2011", "\u00a0"
_WHOLE = re.compile(r"(?<!\w)--?[a-z][a-z-]*(?: [^\s()]+)?|\[[^\]]*\]$")
# Under which a command's context remembers that all options are asked for.
_ALL = "evaluator.help_all"
_LIST = re.compile(r"<list\[(\w+)\]>")


def examples(epilog: str) -> tuple[list[str], str]:
    """Return the example commands of an epilog, which bars separate, and the text that follows them."""
    commands, rest = [], ""
    for part in re.sub(r"^Examples?: ", "", epilog.strip()).split(" | "):
        command, _, more = " ".join(part.split()).partition(". ")
        commands += [command] if command else []
        rest = more or rest
    return commands, rest


def _print_all(ctx: Any, parameter: Any, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        raise typer.Exit


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


def by_question(command: Any) -> tuple[dict[str, list[Any]], list[Any]]:
    """Return the options and arguments that ``--help`` lists, by the questions that they answer, and all others.

    Arguments that answer none come first.
    """
    declared = declarations(command)
    listed: dict[str, list[Any]] = {head: [] for head in ("Arguments", *QUESTIONS)}
    others: list[Any] = []
    for parameter in command.params:
        option, _ = declared[parameter.name]
        plain = "Arguments" if parameter.param_type_name == "argument" else ""
        head = option.question if option is not None and option.question else plain
        (listed[head] if head else others).append(parameter)
    return {head: ones for head, ones in listed.items() if ones}, others


def by_panel(parameters: Iterable[Any]) -> dict[str, list[Any]]:
    """Return options and arguments by the panels in which ``--help-all`` lists them, those of no panel first."""
    panels: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for parameter in parameters:
        plain = "Arguments" if parameter.param_type_name == "argument" else "Options"
        panels.setdefault(getattr(parameter, "rich_help_panel", None) or plain, []).append(parameter)
    return {panel: ones for panel, ones in panels.items() if ones}


def _count_others(others: Sequence[Any]) -> str:
    """Return what is said of the options that only ``--help-all`` lists."""
    more = f"List {len(others)} more option{'s' * (len(others) > 1)} and exit."
    of_log = any(getattr(one, "rich_help_panel", None) == LOG for one in others)
    return f"{more} Those that describe the log are accepted, but belong into its spec." if of_log else more


class Command(OneLineErrors, TyperCommand):
    """A command that lists few options or all; Typer's own tables cut names on narrow terminals."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments: its own, ``--help``, and ``--help-all``."""
        parameters = super().get_params(ctx)
        if self._help_all is None:  # parsers compare options by identity
            self._help_all = copy.copy(parameters[-1])
            self._help_all.name, self._help_all.opts = "help_all", ["--help-all"]
            self._help_all.help = _count_others(by_question(self)[1])
            self._help_all.callback = _print_all
        return [*parameters, self._help_all]

    _help_all: Any = None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super(TyperCommand, self).format_help(ctx, formatter)
        _restore_characters(formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and arguments, one section for each question or panel."""
        *own, short, full = self.get_params(ctx)
        sections = by_panel([*own, short]) if ctx.meta.get(_ALL) else {**by_question(self)[0], "Help": [short, full]}
        for head, parameters in sections.items():
            records = [record for one in parameters if (record := one.get_help_record(ctx)) is not None]
            rows = [(_LIST.sub(r"<\1,...>", name), _join_options(text.replace("\\[", "["))) for name, text in records]
            with formatter.section(head):
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
