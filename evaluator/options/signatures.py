"""How the public functions show their options: in their signature and their docstring, from the declarations."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from evaluator.errors import nearest
from evaluator.options.declaration import Options, declaration, kinds_of, parameter_docs, several

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = "    **options\n        See below.\n"


def shows(*options: type[Options], leave_out: Sequence[str] = ()) -> Callable[[F], F]:
    """Return a decorator that puts the fields of a dataclass in the place of ``**options``.

    The signature lists each with default and type, and the docstring says what it does, so that ``help`` and editors
    show them. A keyword that is none is refused with the one that is nearest.

    Parameters
    ----------
    *options
        Dataclasses whose fields are the keywords.
    leave_out
        Names of fields that are no keywords of this function.
    """

    def decorate(function: F) -> F:
        own = inspect.signature(function, eval_str=False)
        listed = [keyword for cls in options for keyword in _keywords(cls, leave_out)]
        named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        listing = own.replace(parameters=[*named, *listed])

        @functools.wraps(function)
        def called(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name not in listing.parameters:
                    said = f"{function.__name__}() got an unexpected keyword argument {name!r}."
                    raise TypeError(f"{said} Hint: {nearest(name, listing.parameters)}")
            return function(*arguments, **given)

        called.__signature__ = listing  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            docs = "\n".join(parameter_docs(cls, leave_out=leave_out) for cls in options)
            told = "".join(f"    {line}\n" for line in docs.splitlines())
            called.__doc__ = function.__doc__.replace(_PLACE, told)
        return cast(F, called)

    return decorate


def _keywords(cls: type[Options], leave_out: Sequence[str]) -> Iterator[inspect.Parameter]:
    """Yield the keywords of a dataclass; one of several values goes by its singular, too."""
    for field in dataclasses.fields(cls):
        if field.name not in leave_out:
            kind, one = kinds_of(cls)[field.name], declaration(field).singular
            keyword = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, keyword, default=field.default, annotation=kind)
            if one:
                yield inspect.Parameter(one, keyword, default=None, annotation=several(kind) | None)
