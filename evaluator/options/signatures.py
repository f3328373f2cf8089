"""Show the options of the public functions in signature and docstring, and refuse keywords that are not options."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from evaluator.errors import UnknownOptionError, nearest
from evaluator.options.declaration import Options, declaration, kinds_of, parameter_docs, several

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = "**options\n    See below."


def shows(*options: type[Options], leave_out: Sequence[str] = ()) -> Callable[[F], F]:
    """Return a decorator that replaces ``**options`` by the fields of dataclasses, but those left out.

    The signature lists each option with its default and type, and the docstring says what it does, so that ``help`` and
    editors show them. A field that several dataclasses have is the first one's.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function, eval_str=False)
        out: list[tuple[type[Options], Sequence[str]]] = []
        names = [*leave_out]
        for cls in options:
            out.append((cls, tuple(names)))
            names += [field.name for field in dataclasses.fields(cls)]
        listed = [keyword for one in out for keyword in _keywords(*one)]
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        if function.__doc__ is not None:
            docs = "\n".join(parameter_docs(cls, leave_out=names) for cls, names in out)
            # Before Python 3.13 the lines of a docstring keep the indentation of the source.
            function.__doc__ = inspect.cleandoc(function.__doc__).replace(_PLACE, docs.rstrip("\n"))
        return function

    return decorate


def _keywords(cls: type[Options], leave_out: Sequence[str]) -> Iterator[inspect.Parameter]:
    """Yield the keywords of a dataclass; an option that takes several values also has its singular."""
    for field in dataclasses.fields(cls):
        if field.name not in leave_out:
            kind, singular = kinds_of(cls)[field.name], declaration(field).singular
            keyword = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, keyword, default=field.default, annotation=kind)
            if singular:
                yield inspect.Parameter(singular, keyword, default=None, annotation=several(kind) | None)


def refuse_unknown(
    function: str, given: Iterable[str], *options: type[Options], elsewhere: Mapping[str, str] | None = None
) -> None:
    """Raise UnknownOptionError if a keyword is not an option of a function, nor the singular of one.

    The message says where it belongs, by the hints for options that are `elsewhere`, or which option is nearest.
    """
    fields = [field for cls in options for field in dataclasses.fields(cls)]
    known = {name for field in fields for name in (field.name, declaration(field).singular) if name}
    for name in given:
        if name not in known:
            remedy = (elsewhere or {}).get(name) or nearest(name, known)
            raise UnknownOptionError(f"`{name}` is no option of `{function}`.", remedy=remedy)
