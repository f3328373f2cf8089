"""The catalogue of findings: the files ``*.toml`` beside this module explain each code in a table of its own.

The tables stand in the order of a report. A test runs every example, whose result must have the finding, and every
mended example, whose result must not.
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
# The commands by which the catalogue is divided, in the order of its page.
COMMANDS: tuple[Command, ...] = get_args(Command)


@dataclass(frozen=True, kw_only=True)
class Entry(JsonPart):
    """Entry of the catalogue: it explains one code.

    Parameters
    ----------
    code
        Code of the finding.
    command
        Command whose results have the finding; a comparison also has the findings of its replays.
    title
        Phrase that names the finding.
    means
        Sentences that say what the finding means.
    how
        Sentences that say how the finding is detected.
    effect
        Sentences that say what the finding does to the numbers.
    remedy
        Sentences that say what to do.
    example
        Python code that ends with a result that has the finding.
    mended
        Python code that ends with a result that no longer has the finding; empty where no call mends the example.
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
    """The catalogue of findings, or one of its entries."""

    schema: ClassVar[str] = "evaluate.findings/1"

    findings: Annotated[tuple[Entry, ...], several]


@cache
def catalogue() -> dict[str, Entry]:
    """Return every entry by its code, in the order of the files."""
    entries: dict[str, Entry] = {}
    for command in COMMANDS:
        tables = tomllib.loads((files("evaluator.findings") / f"{command}.toml").read_text("utf-8"))
        entries |= {code: Entry(code=code, command=command, **table) for code, table in tables.items()}
    return entries


def explain(code: str) -> Entry:
    """Return the entry that explains a finding: its meaning, how it is detected, its effect, and what to do.

    Parameters
    ----------
    code
        Code of the finding, as results name it: ``few-rounds``.

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
