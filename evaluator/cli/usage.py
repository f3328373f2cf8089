"""Errors of the command-line parser, translated into one-line errors of this package.

Later versions of Typer have a parser of their own, earlier ones use Click's; both have exceptions of these names.
"""

from __future__ import annotations

import re
from typing import Any

import typer

from evaluator.cli.command_parameters import declarations
from evaluator.errors import EvaluatorError, UnknownNameError, UnknownOptionError, UsageError, nearest
from evaluator.escape import shortened
from evaluator.options.declaration import alternatives, no_number


class OneLineErrors:
    """Base of commands and groups that turn the errors of the parser into errors that `main` prints in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the words of the command line.

        Raises
        ------
        EvaluatorError
            A word is wrong; the message says why, and how to repair it.
        """
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
    return f"{_words(ctx)} {'--help' if hasattr(ctx.command, 'commands') else '--help-all'} says what it takes."


def _flags(command: Any) -> list[str]:
    return [flag for given in command.params for flag in (*given.opts, *given.secondary_opts) if flag.startswith("--")]


def _help_text(parameter: Any) -> str:
    """Return the description of an option or argument as the help prints it."""
    return str(parameter.help).replace("\\[", "[")


def _no_option(error: Any, ctx: Any) -> EvaluatorError:
    """Return the error for an unknown option: it names the commands that have the option, or the nearest option."""
    flag = error.option_name
    others = [path for path, other in _commands(ctx.find_root().command) if flag in _flags(other)]
    close = nearest(flag, ["--help", "--help-all", *_flags(ctx.command)])
    if others:
        remedy = f"it is an option of {', '.join(others)}."
    else:
        remedy = close if close.startswith("did you mean") else _point_to_help(ctx)
    return UnknownOptionError(f"{_words(ctx)} has no option {flag}.", remedy=remedy)


def _commands(command: Any, path: str = "evaluate") -> list[tuple[str, Any]]:
    """Return a command, or all commands of a group and its subgroups, each with the words that the user types."""
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [pair for name, member in command.commands.items() for pair in _commands(member, f"{path} {name}")]


def _missing(error: Any, ctx: Any) -> EvaluatorError | None:
    if error.param is None:
        return None
    from evaluator.datasets.locate import needs_spec

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
