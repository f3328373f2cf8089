"""Values and keys as TOML writes them, whatever characters they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from evaluator.visible import visible

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What TOML forbids, and what JSON leaves as it is although nobody sees it.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")

Value = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]


def toml_value(value: Value) -> str:
    r"""Return a value on one line; a list and a table are written inline.

    >>> print(toml_value({"sold at": [-1, 'a "b"'], "x": "line\n\x7f"}))
    { "sold at" = [-1, "a \"b\""], x = "line\n\u007f" }
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml_key(key)} = {toml_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # The escapes of JSON are TOML's, too.
        quoted = json.dumps(value, ensure_ascii=False)
        return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
    return json.dumps(value)


def toml_key(name: str) -> str:
    """Return a key, quoted where it must be."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def toml_comment(text: str) -> str:
    """Return a comment, on one line whatever it quotes."""
    return f"# {visible(text)}"
