"""What a spec says of a query on a database: checked before any database is asked, and without showing a secret."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

# What a query begins with that only reads. Each database sees to it by itself that nothing is written.
READING = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")

_BEFORE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def first_word(query: str) -> str:
    r"""Return the word that a query begins with, in capitals, after its comments.

    >>> first_word("-- displays\n (select 1)"), first_word("")
    ('SELECT', '')
    """
    found = re.match(r"\w*", query[_BEFORE.match(query).end() :])  # type: ignore[union-attr]
    assert found is not None
    return found[0].upper()


def _reads(query: str) -> str:
    if (word := first_word(query)) not in READING:
        begins = f"begins with {word}" if word else "is empty"
        raise ValueError(
            f"query {begins}: it may only read, and begins with {', '.join(READING[:-1])} or {READING[-1]}"
        )
    if "\0" in query:
        raise ValueError("query holds a character that is none, \\0: take it out")
    return query


def _is_variable(name: str) -> str:
    # What stands there in its place may be the URI, with a password: it is not quoted.
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "uri_env is the name of an environment variable, such as SHOP_DB, and not the URI itself, which would "
            "stand here for all to read"
        )
    return name


def _no_uri(value: object) -> object:
    if isinstance(value, str) and not value.isalpha():
        raise ValueError("database is one of postgresql, sqlite and duckdb; its URI stands in the variable of uri_env")
    return value


Database = Annotated[Literal["postgresql", "sqlite", "duckdb"], BeforeValidator(_no_uri)]
VariableName = Annotated[str, AfterValidator(_is_variable)]
Query = Annotated[str, AfterValidator(_reads)]
Parameter = str | bool | Annotated[int, Field(ge=-(2**63), lt=2**63)] | float
