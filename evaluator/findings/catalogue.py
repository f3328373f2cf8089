"""What each code means: the files ``*.toml`` beside this one, in the order of a report, one table a code.

A test runs every example and finds its code; where there is a mended one, it finds the code no more.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, ClassVar, Literal, get_args

from evaluator.errors import UnknownNameError, nearest
from evaluator.results.json_documents import JsonDocument, JsonPart, Text, several

Command = Literal["replay", "compare", "audit", "check"]
# By the command whose results have them, in the order of a page.
COMMANDS: tuple[Command, ...] = get_args(Command)


@dataclass(frozen=True, kw_only=True)
class Entry(JsonPart):
    """What a code means.

    Parameters
    ----------
    code
        Code of a finding.
    command
        Command whose results have it first; a comparison has those of its replays, too.
    title
        Phrase that names it.
    means
        Sentences that say what it is.
    how
        Sentences that say how it is found.
    effect
        Sentences that say what it does to the numbers.
    remedy
        Sentences that say what to do.
    example
        Python that ends with a result that has it.
    mended
        Python that ends with a result that has it no more; empty where no call mends the example.
    """

    code: Text
    command: Command
    title: Text
    means: Text
    how: Text
    effect: Text
    remedy: Text
    example: Text
    mended: str = ""

    def __repr__(self) -> str:
        parts = [f"{self.code}: {self.title}", self.means, self.how, self.effect, self.remedy, self.example]
        return "\n\n".join(part.strip() for part in parts)


@dataclass(frozen=True)
class Catalogue(JsonDocument):
    """Catalogue of findings, or one entry of it."""

    schema: ClassVar[str] = "evaluate.findings/1"

    findings: Annotated[tuple[Entry, ...], several]


@cache
def catalogue() -> dict[str, Entry]:
    """Return every entry by its code, in the order of the files."""
    entries: dict[str, Entry] = {}
    for command in COMMANDS:
        told = tomllib.loads((files("evaluator.findings") / f"{command}.toml").read_text("utf-8"))
        entries |= {code: Entry(code=code, command=command, **entry) for code, entry in told.items()}
    return entries


def explain(code: str) -> Entry:
    """Return what a code of a finding means: how it is found, what it does to the numbers, and what to do.

    Parameters
    ----------
    code
        Code as results name it: ``few-rounds``.

    Raises
    ------
    UnknownNameError
        No finding has this code.

    Examples
    --------
    >>> explain("few-rounds").title
    'Few rounds for so many actions'
    """
    entries = catalogue()
    if code not in entries:
        raise UnknownNameError(f"No finding has the code {code!r}.", remedy=nearest(code, entries))
    return entries[code]
