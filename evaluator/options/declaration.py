"""The declaration of an option: its default, its description, and the values that it takes.

Each option is declared once, as a field of a dataclass that inherits from `Options`. The declarations give the options
of the command line, the keys of study files, the checks of values with their error messages, the typed keywords of the
Python functions, their docstrings, and `describe`, which documentation and schemas use.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Draws(Options):
...     count: int = option(10, "Number of draws", at_least=1, example="20")
>>> Draws(count=0)
Traceback (most recent call last):
evaluator.errors.ParameterError: `count=0` is out of range. Hint: take a whole number from 1 to 2^63 - 1.
>>> describe(Draws)[0]["range"]
'>= 1'
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evaluator.errors import ParameterError, UnknownOptionError, nearest
from evaluator.escape import shortened

T = TypeVar("T", bound="Options")

_BOUNDS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
_KINDS = {
    str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path", types.NoneType: "None"
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of an option, or of a parameter of a policy."""

    default: Any  # if the user gives none
    help: str  # phrase that says what the option does, for the command line and the docstrings
    more: str = ""  # sentences that only docstrings add
    example: str = ""  # value as one writes it on the command line; empty where `help` shows a value
    panel: str = ""  # heading under which --help-all lists the option
    question: str = ""  # of the user, under which --help lists it; empty if only --help-all does
    flags: tuple[str, ...] = ()  # further names such as -w; one with a slash is a pair of switches
    singular: str = ""  # second name of an option that takes several values, under which one value may be given
    plural: str = ""  # second name, on the command line, where other commands take several values
    above: float | None = None  # range of a number; None for no such bound
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    bits: int = 63  # of a whole number without a sign
    origin: Option | None = None  # declaration from which this one is derived

    def field(self) -> Any:
        """Return a field of a dataclass with this declaration."""
        return dataclasses.field(default=self.default, metadata={"option": self})

    def but(self, **changes: Any) -> Option:
        """Return a declaration derived from this one, for a function with another default or another meaning."""
        return dataclasses.replace(self, **changes, origin=self.root)

    @property
    def root(self) -> Option:
        """The first declaration from which this one is derived: the same for all options of one name."""
        return self.origin or self

    @property
    def range_text(self) -> str:
        """The range as text; empty without a range."""
        bounds = ((sign, getattr(self, name)) for name, sign in _BOUNDS.items())
        return ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    @property
    def range_hint(self) -> str:
        """Phrase that says how to repair a number outside the range."""
        example = f", such as {self.example if self.default is None else self.default}" if self.example else ""
        return f"take a number {self.range_text}{example}."


def option(default: Any, help: str, **more: Any) -> Any:
    """Return a field of a dataclass that declares an option; `Option` describes the parameters."""
    return Option(default=default, help=help, **more).field()


def declaration(field: dataclasses.Field[Any]) -> Option:
    """Return the declaration of a field; for a plain field it holds the default only."""
    declared: Option | None = field.metadata.get("option")
    return declared or Option(default=field.default, help="")


class Wording(NamedTuple):
    """Names of an option in messages: alone, with a number out of range, and with a word that is not a choice."""

    name: str
    number: str
    choice: str


def _option_wording(name: str) -> Wording:
    return Wording(f"`{name}`", f"`{name}={{}}`", f"`{name}` {{}}")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all dataclasses of options: it checks type, range and choice of every field."""

    def __post_init__(self) -> None:
        """Check every option; ParameterError names a wrong one, its value, and the values that it takes."""
        cls: type = type(self)
        kinds = kinds_of(cls)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            value = (
                _checked_default(cls, field)
                if value is field.default
                else checked(value, kinds[field.name], declaration(field), _option_wording(field.name))
            )
            object.__setattr__(self, field.name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return dataclasses.asdict(self)


def kinds_of(cls: type) -> Mapping[str, Any]:
    """Return the type of each option of a dataclass."""
    return _look_up_types(cls)


@cache  # each look-up evaluates every annotation, which a replay of a small log would notice
def _look_up_types(cls: type) -> Mapping[str, Any]:
    return typing.get_type_hints(cls)


@cache  # an audit makes the options of each of its replays, most of them the defaults
def _checked_default(cls: type, field: dataclasses.Field[Any]) -> Any:
    return checked(field.default, kinds_of(cls)[field.name], declaration(field), _option_wording(field.name))


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union one by one, or the type itself.

    >>> alternatives(str | None)
    (<class 'str'>, <class 'NoneType'>)
    """
    return typing.get_args(kind) if isinstance(kind, types.UnionType) or _is(kind, typing.Union) else (kind,)


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the values that a type lists as literals; empty if it lists no values."""
    return tuple(
        value for type_ in alternatives(kind) if _is(type_, typing.Literal) for value in typing.get_args(type_)
    )


def several(kind: Any) -> Any:
    """Return the type of the elements of an option that takes several values, or None if it takes one value."""
    kinds = [typing.get_args(type_)[0] for type_ in alternatives(kind) if _is(type_, Sequence)]
    return kinds[0] if kinds else None


def _is(kind: Any, generic: Any) -> bool:
    return typing.get_origin(kind) is generic


def checked(value: Any, kind: Any, declared: Option, wording: Wording) -> Any:
    """Check a value against its declaration and return it, with numbers as floats and one value as a tuple if needed.

    ParameterError says whether the value has another type, is out of range, or is not a choice.
    """
    kinds = alternatives(kind)
    if value is None and types.NoneType in kinds:
        return None
    inner = several(kind)
    if inner is not None and not (isinstance(value, str) and str in kinds):
        return tuple(checked(item, inner, declared, wording) for item in _as_sequence(value, declared, wording))
    if allowed := choices(kind):
        # The type is compared first: an array compares element by element.
        if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
            what = wording.choice.format(shortened(repr(value)))
            raise ParameterError(f"{what} is not a choice.", remedy=nearest(str(value), map(str, allowed)))
        return value
    if isinstance(value, str) and not value.strip():
        raise ParameterError(f"{wording.name} is empty.", remedy=f"give a value{_such_as(declared)}, or leave it out.")
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    if float in kinds and _is_whole(value):
        value = float(value) if abs(value) < 2**1023 else (math.inf if value > 0 else -math.inf)
    number = next((type_ for type_ in (float, int) if type_ in kinds), None)
    is_number = isinstance(value, int | float) if str not in kinds else type(value) is int and bool(declared.range_text)
    if number is not None and is_number:
        _check_number(value, number, declared, wording)
    elif number is not None and str not in kinds and Path not in kinds:
        raise no_number(wording.name, value, number, declared)
    elif not any(isinstance(value, type_) and (type_ is bool or not isinstance(value, bool)) for type_ in kinds):
        takes = " or ".join(_KINDS.get(type_, getattr(type_, "__name__", str(type_))) for type_ in kinds)
        raise ParameterError(f"{wording.name}: expected {takes}, got {shortened(repr(value))}.", remedy=declared.help)
    return value


def _as_sequence(value: Any, declared: Option, wording: Wording) -> Sequence[Any]:
    """Return the values of an option that takes several; one value may be given alone."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    if not isinstance(value, Sequence):
        order = ", which has no order" if isinstance(value, Set) else ""
        raise ParameterError(
            f"{wording.name}: expected a list, got a {type(value).__name__}{order}.",
            remedy=f"give a list{_such_as(declared)}.",
        )
    if not value and declared.default is None:
        raise ParameterError(f"{wording.name} is empty.", remedy=f"give a list{_such_as(declared)}, or leave it out.")
    return value


def _such_as(declared: Option) -> str:
    return f" such as {declared.example}" if declared.example else ""


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def no_number(name: str, value: object, number: type, declared: Option) -> ParameterError:
    """Return the error for a value that is not a number: it says which numbers the option takes."""
    what = f"{name}: expected {_KINDS[number]}, got {shortened(repr(value))}."
    return ParameterError(what, remedy=_number_hint(number, declared))


def _check_number(value: Any, number: type, declared: Option, wording: Wording) -> None:
    if number is int:
        low, high = _whole_range(declared)
        fits = _is_whole(value) and low <= value <= high
    else:
        fits = (
            isinstance(value, float)
            and math.isfinite(value)
            and (declared.above is None or value > declared.above)
            and (declared.at_least is None or value >= declared.at_least)
            and (declared.below is None or value < declared.below)
            and (declared.at_most is None or value <= declared.at_most)
        )
    if not fits:
        what = f"{wording.number.format(_quote_number(value))} is out of range."
        raise ParameterError(what, remedy=_number_hint(number, declared))


def _number_hint(number: type, declared: Option) -> str:
    """Return the phrase that says how to repair a number out of range, or a value that is not a number."""
    if number is float:
        return declared.range_hint if declared.range_text else "take a number."
    low, high = _whole_range(declared)
    return f"take {'a whole number' if low < 0 else f'a whole number from {low} to {_power(high)}'}."


def _whole_range(declared: Option) -> tuple[int, int]:
    lows = [-(2**63)] if declared.at_least is None else [int(declared.at_least)]
    low = max([*lows, *([] if declared.above is None else [math.floor(declared.above) + 1])])
    return low, 2**declared.bits - 1 if declared.at_most is None else int(declared.at_most)


def _quote_number(value: Any) -> str:
    if _is_whole(value):
        return str(value) if abs(value) < 2**64 else "a number beyond 64 bits"
    return f"{value:g}" if isinstance(value, float) else shortened(repr(value))


def _power(high: int) -> str:
    return f"2^{high.bit_length()} - 1" if high.bit_length() > 32 else f"{high:,}"


def under_own_names(cls: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords in which a value that was given under an option's singular stands under its own name.

    ParameterError if both names of an option are given.
    """
    keywords = dict(given)
    for field in dataclasses.fields(cls):
        if (one := declaration(field).singular) in keywords:
            if keywords.get(field.name) is not None:
                raise ParameterError(f"`{one}` and `{field.name}` exclude each other.", remedy="give the second.")
            keywords[field.name] = keywords.pop(one)
    return keywords


def described(name: str, kind: Any, declared: Option) -> dict[str, Any]:
    """Return a declaration as a JSON object."""
    return {
        "name": name,
        "type": type_text(kind),
        "default": list(declared.default) if isinstance(declared.default, tuple) else declared.default,
        "range": declared.range_text,
        "choices": list(choices(kind)),
        "help": declared.help,
        "more": declared.more,
        "panel": declared.panel,
        "example": declared.example,
        "singular": declared.singular,
    }


def describe(cls: type[Options]) -> list[dict[str, Any]]:
    """Return the options of a dataclass, in order: name, type, default, range, choices, help."""
    kinds = kinds_of(cls)
    return [described(f.name, kinds[f.name], declaration(f)) for f in dataclasses.fields(cls)]


def type_text(kind: Any) -> str:
    """Return a type as Python writes it.

    >>> type_text(Sequence[str | int] | None)
    'Sequence[str | int] | None'
    """
    kinds = alternatives(kind)
    if len(kinds) > 1:
        return " | ".join(map(type_text, kinds))
    if kind is types.NoneType:
        return "None"
    if _is(kind, typing.Literal):
        return f"Literal[{', '.join(map(repr, typing.get_args(kind)))}]".replace("'", '"')
    if inner := several(kind):
        return f"Sequence[{type_text(inner)}]"
    return str(kind.__name__)


def parameter_docs(cls: type[Options], *, leave_out: Sequence[str] = ()) -> str:
    """Return the lines of a docstring's section Parameters that document the options of a dataclass."""
    lines = []
    for record in describe(cls):
        if record["name"] in leave_out:
            continue
        singular = f"One alone: `{record['singular']}`." if record["singular"] else ""
        sentence = " ".join(filter(None, (f"{record['help'].rstrip('.')}.", record["more"], singular)))
        lines += [f"{record['name']} : {record['type']}, default {record['default']!r}"]
        lines += textwrap.wrap(sentence, 112, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def documented(cls: type[T]) -> type[T]:
    """Add the section Parameters to the docstring of a dataclass of options."""
    if cls.__doc__ is not None:
        cls.__doc__ = f"{cls.__doc__.rstrip()}\n\nParameters\n----------\n{parameter_docs(cls)}\n"
    return cls


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
