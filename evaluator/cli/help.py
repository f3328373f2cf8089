"""The help of a command: a section for each question or panel, unbroken names of options, and examples to copy.

``--help`` lists the options that most users need, by the questions that they answer; ``--help-all`` lists every option,
by panel. Which question an option answers is said where it is declared. What the parser finds wrong becomes a one-line
error of this package; Typer has had a parser of its own and Click's, and both have exceptions of the same names.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from evaluator.cli.command_parameters import declarations
from evaluator.errors import EvaluatorError, UnknownNameError, UnknownOptionError, UsageError, nearest
from evaluator.escape import shortened
from evaluator.options.declaration import alternatives, no_number
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


class OneLineErrors:
    """Base of commands and groups that turn the errors of the parser into errors that `main` prints in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the words of the command line; an EvaluatorError says which word is wrong, why, and how to repair it."""
        _refuse_empty(ctx, args)
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(ctx.get_help(), err=True)
                raise typer.Exit(UsageError.exit_code) from None
            translate = _TRANSLATIONS.get(type(error).__name__)
            translated = translate and translate(error, ctx)
            sentence = f"{' '.join(error.format_message().split()).rstrip('.')}."
            raise (translated or UsageError(sentence, remedy=_point_to_help(ctx))) from None


def unknown_command(ctx: Any, word: str) -> UnknownNameError:
    """Return the error for an unknown command: it names the group that has the command, or the nearest command."""
    elsewhere = [path for path, _ in _commands(ctx.find_root().command) if path.endswith(f" {word}")]
    remedy = f"did you mean {' or '.join(elsewhere)}?" if elsewhere else nearest(word, ctx.command.commands)
    return UnknownNameError(f"{_words(ctx)} has no command {word!r}.", remedy=remedy)


def _refuse_empty(ctx: Any, args: list[str]) -> None:
    """Raise if the value of an option is empty, which as a path would mean the working folder."""
    takes = {
        flag: parameter
        for parameter in ctx.command.params
        for flag in parameter.opts
        if not getattr(parameter, "is_flag", False)
    }
    for word, after in zip(args, [*args, None][1:], strict=True):
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if flag in takes and not value and (equals or after == "") and not ctx.resilient_parsing:
            raise UsageError(f"{flag} is empty.", remedy=f"give a value, or leave it out. {_help_text(takes[flag])}")


def _words(ctx: Any) -> str:
    """Return the command that is being parsed, as the user types it."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(["evaluate", *words])


def _point_to_help(ctx: Any) -> str:
    return f"{_words(ctx)} {'--help' if _is_group(ctx.command) else '--help-all'} says what it takes."


def _is_group(command: Any) -> bool:
    """Return whether it is a group of commands, all of which its ``--help`` lists: it has no ``--help-all``."""
    return hasattr(command, "commands")


def _flags(command: Any) -> list[str]:
    return [flag for given in command.params for flag in (*given.opts, *given.secondary_opts) if flag.startswith("--")]


def _help_text(parameter: Any) -> str:
    """Return the description of an option or argument as the help prints it."""
    return str(parameter.help).replace("\\[", "[")


def _no_option(error: Any, ctx: Any) -> EvaluatorError:
    """Return the error for an unknown option: it names the commands that have the option, or the nearest option."""
    flag = error.option_name
    others = [path for path, other in _commands(ctx.find_root().command) if flag in _flags(other)]
    close = nearest(flag, ["--help", *([] if _is_group(ctx.command) else ["--help-all"]), *_flags(ctx.command)])
    if others:
        remedy = f"it is an option of {', '.join(others)}."
    else:
        remedy = close if close.startswith("did you mean") else _point_to_help(ctx)
    return UnknownOptionError(f"{_words(ctx)} has no option {flag}.", remedy=remedy)


def _commands(command: Any, path: str = "evaluate") -> list[tuple[str, Any]]:
    """Return a command, or all commands of a group and its subgroups, each with the words that the user types."""
    if not _is_group(command):
        return [(path, command)]
    return [pair for name, member in command.commands.items() for pair in _commands(member, f"{path} {name}")]


def _missing(error: Any, ctx: Any) -> EvaluatorError | None:
    if error.param is None:
        return None
    from evaluator.reading.locate import needs_spec

    # Who names a file of rows needs a spec first, whatever else is missing.
    for log in filter(None, map(ctx.params.get, ("log", "dataset"))):
        if unread := needs_spec(log):
            return unread
    name = error.param.opts[0] if error.param.param_type_name == "option" else error.param.name.upper()
    return UsageError(f"{_words(ctx)} needs {name}.", remedy=_help_text(error.param))


def _no_value(error: Any, ctx: Any) -> EvaluatorError | None:
    if "does not take a value" in error.message:
        flag = error.option_name.partition("=")[0]
        return UsageError(f"{flag} takes no value.", remedy=f"write {flag} alone.")
    option = next((parameter for parameter in ctx.command.params if error.option_name in parameter.opts), None)
    if option is None:
        return None
    return UsageError(f"{error.option_name} needs a value.", remedy=_help_text(option))


def _bad_value(error: Any, ctx: Any) -> EvaluatorError | None:
    """Return the error for a word that is not the number that an option takes: it says which numbers fit."""
    if error.param is None or (text := _quoted(error)) is None:
        return None
    name = error.param.name
    declared, kind = declarations(ctx.command)[name]
    number = next((type_ for type_ in (int, float) if type_ in alternatives(kind)), None)
    return None if declared is None or number is None else no_number(f"`{name}`", text, number, declared)


def _quoted(error: Any) -> str | None:
    """Return the word that is not a number."""
    if hasattr(error.__cause__, "errors"):
        return str(error.__cause__.errors()[0]["input"])
    match = re.match(r"'(.*)' is not a valid ", error.message)
    return match and match[1]


def _extra(error: Any, ctx: Any) -> EvaluatorError | None:
    """Return the error for surplus arguments, which the parser quotes in brackets."""
    match = re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", error.message)
    if match is None:
        return None
    places = [given.name.upper() for given in ctx.command.params if given.param_type_name == "argument"]
    takes = f"takes {' and '.join(places)} by place, and no more" if places else "takes nothing by place"
    return UsageError(
        f"{_words(ctx)} {takes}: {shortened(repr(match[1]))}.",
        remedy=f"all else goes by the name of its option; {_point_to_help(ctx)}",
    )


_TRANSLATIONS = {
    "NoSuchOption": _no_option,
    "MissingParameter": _missing,
    "BadOptionUsage": _no_value,
    "BadParameter": _bad_value,
    "UsageError": _extra,
}


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
        """Return the command that the first word names, or raise UnknownNameError, which names the nearest."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise unknown_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super(TyperGroup, self).format_help(ctx, formatter)
        _restore_characters(formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands."""
        rows = [(name, self.summary(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def summary(self, ctx: Any, name: str) -> str:
        """Return the sentence that says what a command does."""
        command = self.get_command(ctx, name)
        return "" if command is None else str(command.get_short_help_str(limit=1000))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        _write_examples(self.epilog or "", formatter)


class App(typer.Typer):
    """An app whose commands and groups have this help."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("cls", Group)
        settings.setdefault("add_completion", False)
        super().__init__(**settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return a decorator that makes a function a command."""
        return super().command(name, cls=Command, **settings)
