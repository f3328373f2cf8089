"""Words of the command line that do not fit: what its parser says of them, in one line of ours.

The parser is Typer's own in its later versions and Click's in the earlier ones; both have exceptions of these names.
"""

from __future__ import annotations

import re
from typing import Any

import typer

from evaluator.cli.lending import declarations
from evaluator.errors import EvaluatorError, UnknownNameError, UnknownOptionError, UsageError, nearest
from evaluator.options.declaration import alternatives, no_number
from evaluator.visible import shortened


class OneLineErrors:
    """Of a command or a group: what its parser refuses is an error of ours, which `main` prints in one line."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the words of the command line.

        Raises
        ------
        EvaluatorError
            They do not fit; says what is wrong, and how to repair it.
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
            raise _translate_error(error, ctx) from None


def unknown_command(ctx: Any, word: str) -> UnknownNameError:
    """Return the error that says which command is nearest to one that there is not, or where there is one."""
    elsewhere = [path for path, _ in _commands(ctx.find_root().command) if path.endswith(f" {word}")]
    hint = f"did you mean {' or '.join(elsewhere)}?" if elsewhere else nearest(word, ctx.command.commands)
    return UnknownNameError(f"{_words(ctx)} has no command {word!r}.", remedy=hint)


def _refuse_empty(ctx: Any, args: list[str]) -> None:
    """Raise where an option's value is empty: as a path it would be the working folder."""
    takes = {flag: one for one in ctx.command.params for flag in one.opts if not getattr(one, "is_flag", False)}
    for word, after in zip(args, [*args, None][1:], strict=True):
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if flag in takes and not value and (equals or after == "") and not ctx.resilient_parsing:
            raise UsageError(f"{flag} is empty.", remedy=f"give a value, or leave it out. {_told(takes[flag])}")


def _translate_error(error: Any, ctx: Any) -> EvaluatorError:
    worded = _SAID.get(type(error).__name__)
    return (worded and worded(error, ctx)) or UsageError(_sentence(error.format_message()), remedy=_help_of(ctx))


def _words(ctx: Any) -> str:
    """Return the command that is being read, as one types it."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(["evaluate", *words])


def _help_of(ctx: Any) -> str:
    return f"{_words(ctx)} {'--help' if hasattr(ctx.command, 'commands') else '--help-all'} says what it takes."


def _sentence(text: str) -> str:
    return f"{' '.join(text.split()).rstrip('.')}."


def _flags(command: Any) -> list[str]:
    return [flag for given in command.params for flag in (*given.opts, *given.secondary_opts) if flag.startswith("--")]


def _told(parameter: Any) -> str:
    """Return what the help says of an option or argument, as it prints it."""
    return str(parameter.help).replace("\\[", "[")


def _no_option(error: Any, ctx: Any) -> EvaluatorError:
    """Say which option is nearest, or which commands have it."""
    flag = error.option_name
    others = [path for path, other in _commands(ctx.find_root().command) if flag in _flags(other)]
    close = nearest(flag, ["--help", "--help-all", *_flags(ctx.command)])
    if others:
        hint = f"it is an option of {', '.join(others)}."
    else:
        hint = close if close.startswith("did you mean") else _help_of(ctx)
    return UnknownOptionError(f"{_words(ctx)} has no option {flag}.", remedy=hint)


def _commands(command: Any, path: str = "evaluate") -> list[tuple[str, Any]]:
    """Return a command, or those of a group and its groups, each with the words that name it."""
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [pair for name, one in command.commands.items() for pair in _commands(one, f"{path} {name}")]


def _missing(error: Any, ctx: Any) -> EvaluatorError | None:
    if error.param is None:
        return None
    from evaluator.datasets.locate import needs_spec

    # Who names a file of rows needs a spec first, whatever else is missing.
    for log in filter(None, map(ctx.params.get, ("log", "dataset"))):
        if unread := needs_spec(log):
            return unread
    name = error.param.opts[0] if error.param.param_type_name == "option" else error.param.name.upper()
    return UsageError(f"{_words(ctx)} needs {name}.", remedy=_told(error.param))


def _no_value(error: Any, ctx: Any) -> EvaluatorError | None:
    if "does not take a value" in error.message:
        flag = error.option_name.partition("=")[0]
        return UsageError(f"{flag} takes no value.", remedy=f"write {flag} alone.")
    given = next((one for one in ctx.command.params if error.option_name in one.opts), None)
    if given is None:
        return None
    return UsageError(f"{error.option_name} needs a value.", remedy=_told(given))


def _bad_value(error: Any, ctx: Any) -> EvaluatorError | None:
    """Say what a number may be that was none."""
    if error.param is None or (text := _quoted(error)) is None:
        return None
    name = error.param.name
    declared, kind = declarations(ctx.command)[name]
    number = next((one for one in (int, float) if one in alternatives(kind)), None)
    return None if declared is None or number is None else no_number(f"`{name}`", text, number, declared)


def _quoted(error: Any) -> str | None:
    """Return the word that was no number."""
    if hasattr(error.__cause__, "errors"):
        return str(error.__cause__.errors()[0]["input"])
    match = re.match(r"'(.*)' is not a valid ", error.message)
    return match and match[1]


def _extra(error: Any, ctx: Any) -> EvaluatorError | None:
    """Say what stands where nothing is taken; the parser quotes it in brackets."""
    match = re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", error.message)
    if match is None:
        return None
    places = [given.name.upper() for given in ctx.command.params if given.param_type_name == "argument"]
    takes = f"takes {' and '.join(places)} by place, and no more" if places else "takes nothing by place"
    return UsageError(
        f"{_words(ctx)} {takes}: {shortened(repr(match[1]))}.",
        remedy=f"all else goes by the name of its option; {_help_of(ctx)}",
    )


_SAID = {
    "NoSuchOption": _no_option,
    "MissingParameter": _missing,
    "BadOptionUsage": _no_value,
    "BadParameter": _bad_value,
    "UsageError": _extra,
}
