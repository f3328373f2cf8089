"""Results as JSON documents: types say what a document holds, and give it its schema.

A document is a frozen dataclass of plain values: the result itself, or one that the result fills in. Its fields are the
names of the document, and so are properties that are `in_document`; fields that are `omitted` are not in it. The
files ``evaluator/reports/*.schema.json`` are written from these types (``python docs/schemas.py``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import (
    Field,
    GetPydanticSchema,
    PlainSerializer,
    TypeAdapter,
    WithJsonSchema,
    computed_field,
    field_serializer,
)
from pydantic_core import core_schema

from evaluator.units import ROUND, SECONDS

# A number is null in a document where it is not finite, or not known; these never are.
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
# Ticks, counts and the like: whole ones are written as such.
Finite = Annotated[int | float, WithJsonSchema({"type": "number"})]
NotNegative = Annotated[int | float, WithJsonSchema({"type": "number", "minimum": 0})]
AboveZero = Annotated[float, Field(gt=0)]
AtMostZero = Annotated[float, Field(le=0)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Level = Annotated[float, Field(gt=0, lt=1)]
# These may be null, though they have bounds.
ShareOrNull = Annotated[float, WithJsonSchema({"type": ["number", "null"], "minimum": 0, "maximum": 1})]
NotNegativeOrNull = Annotated[int | float, WithJsonSchema({"type": ["number", "null"], "minimum": 0})]
Text = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
# Unit of the times of a log.
Tick = Annotated[str, Field(json_schema_extra={"enum": [*(unit for unit in SECONDS if unit != "w"), ROUND]})]
# Value of some kind.
Plain = Annotated[Any, WithJsonSchema({"type": ["number", "string", "boolean", "null"]})]
# Numbers of a sentence, by name.
Numbers = dict[str, Plain]
# Number of an action or variant, or -1 for none.
IndexOrNone = Annotated[int, Field(ge=-1)]
# Of a tuple that is never empty.
several = Field(min_length=1)
# Of a property that a document has, too.
in_document = computed_field
# Of a value for which a document has another: what a function of it returns.
written_as = PlainSerializer
# Of a method that returns what a document has in the place of a field.
in_place_of = field_serializer
# Of a field of any type, which a method writes.
anything = GetPydanticSchema(lambda source, handler: core_schema.any_schema())
# Of a field that no document holds, whatever its type.
omitted = (anything, Field(exclude=True))


def called(name: str) -> Any:
    """Return the mark of a field that has another name in a document."""
    return Field(serialization_alias=name)


def at_least(smallest: int) -> Any:
    """Return the mark of a number that is never below this one."""
    return Field(ge=smallest)


def at_most(most: int) -> Any:
    """Return the mark of a tuple that has no more items."""
    return Field(max_length=most)


def array_of(kind: Any, *, most: int) -> Any:
    """Return the marks of a field whose array is written as a list of a type of number, with no more than so many."""
    return anything, PlainSerializer(lambda array: array.tolist(), return_type=Annotated[list[kind], at_most(most)])


def values_of(kind: Any) -> Any:
    """Return the mark of a field that holds the JSON values of a type already."""
    return GetPydanticSchema(lambda source, handler: handler.generate_schema(kind))


def where_given(kind: Any) -> Any:
    """Return the marks of a field that is in a document where it is not None, and holds the JSON values of a type."""
    return values_of(kind), Field(exclude_if=lambda value: value is None)


def naming(*names: str) -> Any:
    """Return the mark of a mapping that has these names at least."""
    return Field(json_schema_extra={"required": list(names)})


class JsonPart:
    """What is a part of a JSON document."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: None for numbers that are not finite, or not known."""
        return dict(plain_values(self))


class JsonDocument(JsonPart):
    """What becomes a JSON document, which names its schema first."""

    __slots__ = ()
    schema: ClassVar[str]
    # Field whose own names stand beside the others; empty for none.
    beside: ClassVar[str] = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return how pydantic writes it: a document within another names its schema, too."""

        def named(document: JsonDocument, written: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
            fields = written(document)
            others = fields.pop(cls.beside, {})
            return {"schema": document.schema, **fields, **others}

        return {**handler(source), "serialization": core_schema.wrap_serializer_function_ser_schema(named)}


def plain_values(part: Any) -> Any:
    """Return a part of a document as JSON values, by its type.

    Examples
    --------
    >>> from evaluator.estimates.confidence import Interval
    >>> plain_values(Interval(0.5, float("-inf"), 1.0, 200, 0.95, "of some kind"))["low"]
    """
    # What is not of its declared type is written as it is: a test compares documents with their schemas.
    return json.loads(_adapter(type(part)).dump_json(part, by_alias=True, warnings=False))


_adapter: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
