"""How the public functions show their options: in their signature and their docstring, from the declarations."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from evaluator.options.declaration import Options, kinds_of, parameter_docs

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = "    **options\n        See below.\n"


def shows(options: type[Options], *, leave_out: Sequence[str] = ()) -> Callable[[F], F]:
    """Return a decorator that puts the fields of a dataclass in the place of ``**options``.

    The signature lists each with default and type, and the docstring says what it does, so that ``help`` and editors
    show them.

    Parameters
    ----------
    options
        Dataclass whose fields are the keywords.
    leave_out
        Names of fields that are no keywords of this function.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function, eval_str=False)
        kinds = kinds_of(options)
        listed = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name]
            )
            for field in dataclasses.fields(options)
            if field.name not in leave_out
        ]
        named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            docs = parameter_docs(options, leave_out=leave_out)
            told = "".join(f"    {line}\n" for line in docs.splitlines())
            function.__doc__ = function.__doc__.replace(_PLACE, told)
        return function

    return decorate
