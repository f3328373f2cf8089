"""One identity for a value, whatever holds it: the text that tells actions, categories, ids and groups apart.

White space around a text is none of it. A whole number is written without a fraction: 7, 7.0 and "7.00" are one value;
other digits stay as they are written, so that "08", "1e5" and version "1.10" are none but themselves. The truth values
that tables hold as True, TRUE and true are true. The letters of a UUID are small.
"""

from __future__ import annotations

import re

WHOLE = r"^(?:-?(0)|(-?[1-9][0-9]*))\.0+$"
UUID = r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"
UUID_LENGTH = 36
TRUTHS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}

_WHOLE, _UUID = re.compile(WHOLE), re.compile(UUID)


def value_text(text: str) -> str:
    """Return the text of a value as logs hold it, empty where it is missing; of columns: `datasets.labels.value_texts`.

    >>> [value_text(text) for text in (" a ", "7.0", "-0.0", "08", "1.10", "True")]
    ['a', '7', '0', '08', '1.10', 'true']
    """
    text = text.strip()
    if text in TRUTHS:
        return TRUTHS[text]
    if len(text) == UUID_LENGTH and _UUID.match(text):
        return text.lower()
    found = _WHOLE.match(text)
    return (found[1] or found[2]) if found else text
