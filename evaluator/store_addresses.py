"""Addresses, which are no paths: ``s3://bucket/log``."""

from __future__ import annotations

import re
from pathlib import Path

# What a Path makes of an address: two slashes become one.
_AS_PATH = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")


def is_address(text: str) -> bool:
    """Return whether this is an address, and no path.

    >>> is_address("s3://bucket/log.csv"), is_address("logs/day=3.csv")
    (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def as_given(place: str | Path) -> str:
    """Return a place as text; an address that was made a path is one again.

    >>> as_given(Path("s3://bucket/log")), as_given(Path("logs/day=3"))
    ('s3://bucket/log', 'logs/day=3')
    """
    return _AS_PATH.sub(r"\1://", str(place)) if isinstance(place, Path) else place
