"""What each code means: the files ``*.toml`` beside this one, in the order of a report, one table a code.

A test runs every example and finds its code; where there is a mended one, it finds the code no more.
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evaluator.errors import UnknownNameError, nearest

# By the command whose results have them, in the order of a page.
COMMANDS = ("replay", "compare", "audit", "check")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a code means.

    Parameters
    ----------
    code, command
        Code, and the command whose results have it first; a comparison has those of its replays, too.
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

    code: str
    command: str
    title: str
    means: str
    how: str
    effect: str
    remedy: str
    example: str
    mended: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    def __repr__(self) -> str:
        parts = [f"{self.code}: {self.title}", self.means, self.how, self.effect, self.remedy, self.example]
        return "\n\n".join(part.strip() for part in parts)


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
