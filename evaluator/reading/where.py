"""``where`` of a table: a few conditions on its columns that say which of its rows are meant.

    conditions = condition {"and" condition}
    condition  = column "=" text | column "!=" text | column "in" "(" text {"," text} ")" | column "is" ["not"] "null"

A column is a name, in double quotes where it is no plain one, and a text stands in single quotes. No other word is
known, and what is written here never reaches an engine as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

import polars as pl

from evaluator.escape import shortened
from evaluator.log.encoder import value_text

_TOKENS = re.compile(
    r"""\s*(?:(?P<name>[^\W\d][\w.$-]*)|"(?P<quoted>(?:[^"]|"")+)"|'(?P<text>(?:[^']|'')*)'"""
    r"""|(?P<number>[-+]?\d[\w.]*)|(?P<mark>!=|==|<>|<=|>=|.))""",
    re.DOTALL,
)
_JOINED = "conditions are joined by and; of several texts write column in ('a', 'b')"


class Condition(NamedTuple):
    """What a cell of a column must be: one of some texts, or missing where there are None; or not, if `negated`."""

    column: str
    texts: tuple[str, ...] | None
    negated: bool

    def met(self, cells: pl.Series) -> pl.Series:
        """Return whether each cell, a text, meets it; what is missing is no text, neither equal nor another."""
        if self.texts is None:
            return cells.is_not_null() if self.negated else cells.is_null()
        found = cells.is_in(list(self.texts))
        return (~found if self.negated else found).fill_null(False)


class _Token(NamedTuple):
    kind: str
    text: str
    place: int

    def is_word(self, *words: str) -> bool:
        return self.kind in ("name", "mark") and self.text.lower() in words

    @property
    def is_column(self) -> bool:
        return self.kind in ("name", "quoted")


def conditions(where: str) -> list[Condition]:
    """Return the conditions that a text states.

    Raises ValueError, which says at which character what is expected, for any other text.

    >>> conditions("event = 'purchase' and user is not null")
    [Condition(column='event', texts=('purchase',), negated=False), Condition(column='user', texts=None, negated=True)]
    >>> conditions("event == 'purchase'")
    Traceback (most recent call last):
    ValueError: "event == 'purchase'": at character 7: expected =, !=, in or is, got '==': write one =
    """
    tokens = list(_tokens(where))
    found, place = [], 0
    while True:
        condition, place = _condition(where, tokens, place)
        found.append(condition)
        if tokens[place].kind == "end":
            return found
        if not tokens[place].is_word("and"):
            _refuse(where, tokens[place], "and, or the end", _JOINED)
        place += 1


def _tokens(where: str) -> Iterator[_Token]:
    place = 0
    while (found := _TOKENS.match(where.rstrip(), place)) is not None:
        kind = str(found.lastgroup)
        quote = {"quoted": '"', "text": "'"}.get(kind)
        text = found[kind] if quote is None else found[kind].replace(2 * quote, quote)
        yield _Token(kind, text, found.start(kind) + (quote is None))
        place = found.end()
    yield _Token("end", "", len(where) + 1)


def _condition(where: str, tokens: list[_Token], place: int) -> tuple[Condition, int]:
    name, mark = tokens[place], tokens[min(place + 1, len(tokens) - 1)]
    if not name.is_column:
        _refuse(where, name, "a column", 'write its name, in double quotes where it has spaces: "event type"')
    if mark.is_word("=", "!="):
        return Condition(name.text, (_text(where, tokens[place + 2]),), mark.text != "="), place + 3
    if mark.is_word("is"):
        negated = tokens[place + 2].is_word("not")
        if not tokens[place + 2 + negated].is_word("null"):
            _refuse(
                where, tokens[place + 2 + negated], "null", f"write {name.text} is null, or {name.text} is not null"
            )
        return Condition(name.text, None, negated), place + 3 + negated
    if not mark.is_word("in"):
        said = {"==": "write one =", "not": f"write {name.text} != 'a' and {name.text} != 'b'"}
        _refuse(where, mark, "=, !=, in or is", said.get(mark.text.lower(), "a table takes no other comparison"))
    place += 2
    texts: list[str] = []
    while tokens[place].is_word("," if texts else "("):
        texts.append(_text(where, tokens[place + 1]))
        place += 2
    if not texts or not tokens[place].is_word(")"):
        _refuse(where, tokens[place], ", or )" if texts else "(", f"write {name.text} in ('a', 'b')")
    return Condition(name.text, tuple(texts), False), place + 1


def _text(where: str, token: _Token) -> str:
    if token.kind != "text":
        repair = f"write '{token.text}'" if token.text and token.kind != "mark" else "write 'a'"
        _refuse(where, token, "a text in single quotes", repair)
    return value_text(token.text)


def _refuse(where: str, token: _Token, expected: str, repair: str) -> NoReturn:
    got = "the end" if token.kind == "end" else shortened(repr(token.text))
    raise ValueError(f"{shortened(repr(where))}: at character {token.place}: expected {expected}, got {got}: {repair}")


def written_name(column: str) -> str:
    """Return a column as conditions write it.

    >>> written_name("event"), written_name("event type")
    ('event', '"event type"')
    """
    found = _TOKENS.fullmatch(column)
    return column if found and found["name"] == column else '"' + column.replace('"', '""') + '"'


def written_text(value: str) -> str:
    """Return a text as conditions write it.

    >>> written_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def columns_of(where: str | None) -> list[str]:
    """Return the columns on which a table has conditions."""
    return [] if where is None else list(dict.fromkeys(of.column for of in conditions(where)))


def all_met(found: Iterable[Condition], cells: Callable[[str], pl.Series]) -> pl.Series:
    """Return whether each row meets all conditions; `cells` gives the texts of a column."""
    met = [of.met(cells(of.column)) for of in found]
    whole = met[0]
    for other in met[1:]:
        whole &= other
    return whole
