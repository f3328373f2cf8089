"""Names of what lies beside an output while it is written."""

from __future__ import annotations

import hashlib
import os

# Bytes: longer names leave no room, of the 255 that most systems allow, for what is put around them.
_LONGEST = 128
_KEPT = 40


def base_name(name: str) -> str:
    """Return what names beside an output begin with: its name, of a very long one the beginning and a hash.

    >>> base_name("run1")
    'run1'
    >>> base_name("a" * 250)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-3f3e35e0a775d9b1'
    """
    whole = os.fsencode(name)
    return name if len(whole) <= _LONGEST else f"{name[:_KEPT]}-{hashlib.sha256(whole).hexdigest()[:16]}"
