"""Text of others made fit to be shown: what would steer a terminal, forge a line or reverse it, is spelled out."""

from __future__ import annotations

import re

# C0 and C1, line separators, marks of direction, lone surrogates, and what no XML may hold.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def escape(text: str) -> str:
    r"""Return a text as one line in which every character is seen, the others as Python writes them.

    >>> print(escape("shop\x1b[2J\nerror: none"))
    shop\x1b[2J\nerror: none
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str, most: int = 60) -> str:
    """Return a text, as errors quote it, with its middle left out if it has more than so many characters.

    >>> shortened("a very long label", 9)
    'a ve…abel'
    """
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[-half:]}"
