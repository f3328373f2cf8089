"""How an option is declared once: its default, what it does, and which values it takes.

Options of a function are the fields of a dataclass that inherits from `Options`. From these declarations come the
options of the command line, the keys of study files, the checks of values and their error texts, the typed keywords of
the Python functions, their docstrings, and `describe`, which documentation and schemas read.

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
import math
import numbers
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evaluator.errors import ParameterError, nearest
from evaluator.visible import shortened

T = TypeVar("T", bound="Options")

_BOUNDS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
_KINDS = {
    str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path", types.NoneType: "None"
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of an option, or of a parameter of a policy.

    Parameters
    ----------
    default
        Value of the option where none is given.
    help
        Phrase, printed by the command line and the docstrings, that says what the option does.
    more
        Whole sentences that only the docstrings add.
    example
        Value of the option as one writes it on the command line; empty where `help` shows one.
    panel
        Heading under which ``--help-all`` lists it.
    question
        The user's question that it answers, under which ``--help`` lists it; empty where only ``--help-all`` does.
    flags
        Further names on the command line, such as ``-w``; one with a slash replaces its name by a pair of switches.
    singular
        Second name of an option that takes several values, for one of them; empty where it takes but one.
    plural
        Second name, on the command line, of an option that takes one value where others take several; empty where none
        does.
    above, at_least, below, at_most
        Range of a number; `above` and `below` exclude the bound. None where there is no such bound.
    bits
        Number of bits of a whole number that may not be negative.
    origin
        Declaration that this one departs from; None where it departs from none.
    """

    default: Any
    help: str
    more: str = ""
    example: str = ""
    panel: str = ""
    question: str = ""
    flags: tuple[str, ...] = ()
    singular: str = ""
    plural: str = ""
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    bits: int = 63
    origin: Option | None = None

    def field(self) -> Any:
        """Return a field of a dataclass that this declares."""
        return dataclasses.field(default=self.default, metadata={"option": self})

    def but(self, **changes: Any) -> Option:
        """Return a declaration that departs from this one, where a function's default or meaning does."""
        return dataclasses.replace(self, **changes, origin=self.root)

    @property
    def root(self) -> Option:
        """What it departs from, in the end: the same for all options of one name."""
        return self.origin or self

    @property
    def range_text(self) -> str:
        """The range as text, empty where there is none."""
        bounds = ((sign, getattr(self, name)) for name, sign in _BOUNDS.items())
        return ", ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    @property
    def range_hint(self) -> str:
        """How to repair a number outside the range."""
        such = f", such as {self.example if self.default is None else self.default}" if self.example else ""
        return f"take a number {self.range_text}{such}."


def option(default: Any, help: str, **more: Any) -> Any:
    """Declare an option that one dataclass has, as its field; see `Option`."""
    return Option(default=default, help=help, **more).field()


def declaration(field: dataclasses.Field[Any]) -> Option:
    """Return what declares a field; of a plain field, its default alone."""
    declared: Option | None = field.metadata.get("option")
    return declared or Option(default=field.default, help="")


class Wording(NamedTuple):
    """How messages name an option: alone, with a number it does not take, and with a word that is no choice."""

    name: str
    number: str
    choice: str


def _option_wording(name: str) -> Wording:
    return Wording(f"`{name}`", f"`{name}={{}}`", f"`{name}` {{}}")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of all options dataclasses: checks type, range and choice of every field, and documents them."""

    def __post_init__(self) -> None:
        """Check every option.

        Raises
        ------
        ParameterError
            A value does not fit; the message names the option, the value and what it takes.
        """
        kinds = kinds_of(type(self))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            value = checked(value, kinds[field.name], declaration(field), _option_wording(field.name))
            object.__setattr__(self, field.name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the options by name."""
        return dataclasses.asdict(self)


def kinds_of(cls: type) -> Mapping[str, Any]:
    """Return the type of each option of a dataclass."""
    return _look_up_types(cls)


@cache  # a small log's replay asks often, and each look-up evaluates every annotation
def _look_up_types(cls: type) -> Mapping[str, Any]:
    return typing.get_type_hints(cls)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the types that a value may have, one by one.

    >>> alternatives(str | None)
    (<class 'str'>, <class 'NoneType'>)
    """
    return typing.get_args(kind) if isinstance(kind, types.UnionType) or _is(kind, typing.Union) else (kind,)


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the values that a type lists, none where it lists none."""
    return tuple(value for one in alternatives(kind) if _is(one, typing.Literal) for value in typing.get_args(one))


def several(kind: Any) -> Any:
    """Return the type of one of several values, None where a value is one."""
    kinds = [typing.get_args(one)[0] for one in alternatives(kind) if _is(one, Sequence)]
    return kinds[0] if kinds else None


def _is(kind: Any, generic: Any) -> bool:
    return typing.get_origin(kind) is generic


def checked(value: Any, kind: Any, declared: Option, wording: Wording) -> Any:
    """Return a value that fits its declaration: whole numbers as numbers, one value as several, where these are meant.

    Parameters
    ----------
    value, kind, declared, wording
        Value that is given, its type, its declaration, and how messages name it.

    Raises
    ------
    ParameterError
        The value is of another type, outside the range, or no choice; the message says which.
    """
    kinds = alternatives(kind)
    if value is None and types.NoneType in kinds:
        return None
    inner = several(kind)
    if inner is not None and not (isinstance(value, str) and str in kinds):
        return tuple(checked(one, inner, declared, wording) for one in _listed(value, declared, wording))
    if allowed := choices(kind):
        # By type first: an array compares element by element.
        if not any(isinstance(value, type(one)) and value == one for one in allowed):
            what = wording.choice.format(shortened(repr(value)))
            raise ParameterError(f"{what} is not a choice.", remedy=nearest(str(value), map(str, allowed)))
        return value
    if isinstance(value, str) and not value.strip():
        raise ParameterError(f"{wording.name} is empty.", remedy=f"give a value{_such(declared)}, or leave it out.")
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        value = int(value)
    if float in kinds and _whole(value):
        value = float(value) if abs(value) < 2**1023 else (math.inf if value > 0 else -math.inf)
    number = next((one for one in (float, int) if one in kinds), None)
    if number is not None and isinstance(value, int | float) and str not in kinds:
        _check_number(value, number, declared, wording)
    elif number is not None and str not in kinds and Path not in kinds:
        raise no_number(wording.name, value, number, declared)
    elif not any(isinstance(value, one) and (one is bool or not isinstance(value, bool)) for one in kinds):
        takes = " or ".join(_KINDS.get(one, getattr(one, "__name__", str(one))) for one in kinds)
        raise ParameterError(f"{wording.name}: expected {takes}, got {shortened(repr(value))}.", remedy=declared.help)
    return value


def _listed(value: Any, declared: Option, wording: Wording) -> Sequence[Any]:
    """Return the values of an option that takes several, of which one may be given alone."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    if not isinstance(value, Sequence):
        order = ", which has no order" if isinstance(value, Set) else ""
        raise ParameterError(
            f"{wording.name}: expected a list, got a {type(value).__name__}{order}.",
            remedy=f"give a list{_such(declared)}.",
        )
    if not value and declared.default is None:
        raise ParameterError(f"{wording.name} is empty.", remedy=f"give a list{_such(declared)}, or leave it out.")
    return value


def _such(declared: Option) -> str:
    return f" such as {declared.example}" if declared.example else ""


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def no_number(name: str, value: object, number: type, declared: Option) -> ParameterError:
    """Return the error that says which numbers an option takes, whose value is none.

    Parameters
    ----------
    name, value, number, declared
        How the message names the option, its value, the type of number that it takes, and its declaration.
    """
    what = f"{name}: expected {_KINDS[number]}, got {shortened(repr(value))}."
    return ParameterError(what, remedy=_number_hint(number, declared))


def _check_number(value: Any, number: type, declared: Option, wording: Wording) -> None:
    if number is int:
        low, high = _whole_range(declared)
        fits = _whole(value) and low <= value <= high
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
        what = f"{wording.number.format(_said(value))} is out of range."
        raise ParameterError(what, remedy=_number_hint(number, declared))


def _number_hint(number: type, declared: Option) -> str:
    """Return how to repair a number outside the range, or a value that is no number."""
    if number is float:
        return declared.range_hint if declared.range_text else "take a number."
    low, high = _whole_range(declared)
    return f"take {'a whole number' if low < 0 else f'a whole number from {low} to {_power(high)}'}."


def _whole_range(declared: Option) -> tuple[int, int]:
    lows = [-(2**63)] if declared.at_least is None else [int(declared.at_least)]
    low = max([*lows, *([] if declared.above is None else [math.floor(declared.above) + 1])])
    return low, 2**declared.bits - 1 if declared.at_most is None else int(declared.at_most)


def _said(value: Any) -> str:
    if _whole(value):
        return str(value) if abs(value) < 2**64 else "a number beyond 64 bits"
    return f"{value:g}" if isinstance(value, float) else shortened(repr(value))


def _power(high: int) -> str:
    return f"2^{high.bit_length()} - 1" if high.bit_length() > 32 else f"{high:,}"


def under_own_names(cls: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords with one of several values, which may be given by its singular, under the name of the several.

    Raises
    ------
    ParameterError
        Both names of an option are given.
    """
    keywords = dict(given)
    for field in dataclasses.fields(cls):
        if (one := declaration(field).singular) in keywords:
            if keywords.get(field.name) is not None:
                raise ParameterError(f"`{one}` and `{field.name}` exclude each other.", remedy="give the second.")
            keywords[field.name] = keywords.pop(one)
    return keywords


def described(name: str, kind: Any, declared: Option) -> dict[str, Any]:
    """Return a declaration as a record of JSON."""
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
    """Return the lines of a docstring's Parameters that document the options of a dataclass."""
    lines = []
    for told in describe(cls):
        if told["name"] in leave_out:
            continue
        one = f"One alone: `{told['singular']}`." if told["singular"] else ""
        sentence = " ".join(filter(None, (f"{told['help'].rstrip('.')}.", told["more"], one)))
        lines += [f"{told['name']} : {told['type']}, default {told['default']!r}"]
        lines += textwrap.wrap(sentence, 112, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def documented(cls: type[T]) -> type[T]:
    """Complete the docstring of an options dataclass by a section on its fields."""
    if cls.__doc__ is not None:
        cls.__doc__ = f"{cls.__doc__.rstrip()}\n\nParameters\n----------\n{parameter_docs(cls)}\n"
    return cls
