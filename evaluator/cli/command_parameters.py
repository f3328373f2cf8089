"""Give commands the options that a dataclass of options declares."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evaluator.cli.completion import COMPLETIONS
from evaluator.errors import UsageError
from evaluator.options.declaration import Option, Options, alternatives, choices, declaration, kinds_of, several

Command = Callable[..., None]
# Every command has these, and lists them at the end.
LAST = ("full", "as_json", "debug")


def options_of(
    options: type[Options], *, to: str, but: Sequence[str] = (), given_only: bool = False
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options of a dataclass.

    Parameters
    ----------
    options
        Dataclass whose fields are the options.
    to
        Name of the command's argument that gets the options as a dict; the command line does not show this argument.
    but
        Names of fields that are not options of this command.
    given_only
        Whether the dict holds only options that the user gave.
    """
    kinds = kinds_of(options)
    own_options = {
        field.name: (declaration(field), kinds[field.name])
        for field in dataclasses.fields(options)
        if field.name not in but
    }

    def decorate(command: Command) -> Command:
        existing = inspect.signature(command, eval_str=True).parameters

        @functools.wraps(command)
        def run_with_options(**arguments: Any) -> None:
            taken = {name: _value(name, arguments.pop(name), *declared) for name, declared in own_options.items()}
            if given_only:
                taken = {name: value for name, value in taken.items() if value != own_options[name][0].default}
            command(**{to: taken}, **arguments)

        declared = (
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=_default(declared, kind), annotation=annotated
            )
            for name, (declared, kind) in own_options.items()
            for annotated in [
                Annotated[_find_parsed_type(declared, kind), option(name, declared, metavar=_metavar(kind))]
            ]
        )
        parameters = [*(p for name, p in existing.items() if name not in (to, *LAST)), *declared]
        parameters += [existing[name] for name in LAST if name in existing]
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        run_with_options.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
        run_with_options.__annotations__ = {p.name: p.annotation for p in keyword}
        return run_with_options

    return decorate


def option(name: str, declared: Option, **more: Any) -> Any:
    """Return typer's description of an option: its names and its text in ``--help``.

    Every option of every command is made by this function, so that each has a declaration; a test checks this.

    Parameters
    ----------
    name, declared
        Name of the option in Python, and its declaration.
    **more
        Further arguments of `typer.Option`.
    """
    pairs = [word for word in declared.flags if "/" in word]
    names = pairs or [f"--{name.replace('_', '-')}"]
    names += [f"--{second}" for second in (declared.singular, declared.plural) if second]
    names += [word for word in declared.flags if "/" not in word]
    if declared.plural:  # typer reads several, so that more than one can be refused in words
        more["metavar"] = "<str>"
    parameter = typer.Option(
        *names,
        help=help_text(name, declared),
        rich_help_panel=declared.panel or None,
        autocompletion=COMPLETIONS.get(name),
        **more,
    )
    parameter.declared = declared
    return parameter


def argument(declared: Option, *, completes: str = "") -> Any:
    """Return typer's description of a positional argument; shells complete it as the option named `completes`."""
    parameter = typer.Argument(help=declared.help, autocompletion=COMPLETIONS.get(completes))
    parameter.declared = declared
    return parameter


def declarations(command: Any) -> dict[str, tuple[Option | None, Any]]:
    """Return the declaration of each option and argument of a command, or None without one, and the type."""
    given = inspect.signature(command.callback, eval_str=True).parameters.items()
    pairs = {
        name: typing.get_args(parameter.annotation)
        for name, parameter in given
        if parameter.annotation is not typer.Context
    }
    return {name: (getattr(offer, "declared", None), kind) for name, (kind, offer) in pairs.items()}


def only(name: str, declared: Option, values: Sequence[str]) -> str:
    """Return the value of an option that takes one value here, and several values in another command.

    Raises
    ------
    UsageError
        Several values are given; the message names the command that takes them.
    """
    if len(values) > 1 and len(set(values)) == 1:
        raise UsageError(f"--{name} is given {len(values)} times: {values[0]}.", remedy="give it once.")
    if len(values) > 1:
        raise UsageError(
            f"--{name} takes one value here, not {len(values)}: {', '.join(values)}.",
            remedy=f"give one; evaluate compare --{declared.plural} {','.join(values)} takes several.",
        )
    return values[0]


def _metavar(kind: Any) -> str | None:
    """Return the choices of an option as the help writes them; None if the option takes other values as well."""
    others = [other for other in alternatives(kind) if other is not type(None) and not choices(other)]
    return f"[{'|'.join(map(str, choices(kind)))}]" if choices(kind) and not others else None


def help_text(name: str, declared: Option) -> str:
    """Return the text of an option in ``--help``."""
    if not declared.example:
        return f"{declared.help}." if ". " in declared.help else declared.help
    example = f"--{name.replace('_', '-')} {declared.example}"
    before, stop, default = declared.help.partition(". Default:")
    return f"{before}: {example}{stop}{default}{'.' if stop else ''}"


def _find_parsed_type(declared: Option, kind: Any) -> Any:
    kinds = alternatives(kind)
    if declared.plural or (several(kind) is not None and str not in kinds):
        return list[str] | None
    plain = next((type_ for type_ in (bool, float, int) if type_ in kinds and str not in kinds), None)
    read: Any = plain or (Path if Path in kinds and str not in kinds else str)
    return read | None if type(None) in kinds else read


def _default(declared: Option, kind: Any) -> Any:
    return None if several(kind) is not None and str not in alternatives(kind) else declared.default


def _value(name: str, given: Any, declared: Option, kind: Any) -> Any:
    """Return the value of an option; a word of an option that takes several values may hold several with commas."""
    if not declared.plural and (several(kind) is None or str in alternatives(kind)):
        return given
    words = tuple(word.strip() for text in given or () for word in text.split(","))
    if declared.plural:
        return only(name, declared, words) if words else declared.default
    return words or (None if type(None) in alternatives(kind) else ())
