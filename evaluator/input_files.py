"""Files of others: opened without waiting for anybody, and TOML (specs and studies) read no further than it may be.

A named pipe in the place of a file is waited for without end, and a device may have none.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from io import BufferedReader
from pathlib import Path
from typing import Any

from evaluator.escape import escape
from evaluator.units import SECONDS

# No spec or study is a hundredth of this; a file without an end stops here.
MOST_BYTES = 1024 * 1024
# A duration where a value stands, without the quotes that TOML wants: 30d.
_DURATION = re.compile(rf"([=\[,]\s*)(\d+(?:\.\d+)?(?:{'|'.join(SECONDS)}))(?=\s*(?:[,\]}}#\r\n]|$))")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What TOML forbids, and what JSON leaves as it is although nobody sees it.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")

Value = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]


class NotRegularError(OSError):
    """A pipe, a device or a socket where a file is expected; says so without the name."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "it is no regular file")

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def open_regular(path: Path, *, follow: bool = True) -> Iterator[BufferedReader[Any]]:
    """Open a file to read its bytes, whatever lies there, without waiting for anybody; a link only if `follow`.

    NotRegularError where the path names no regular file, OSError where it cannot be opened.
    """
    more = getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | more)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotRegularError
        yield file


def refuse_irregular(path: Path) -> None:
    """Raise, as `open_regular` does, before another library opens a file by its name."""
    with open_regular(path):
        pass


class NotTomlError(ValueError):
    """A file holds no TOML, or more than a spec or a study can be; says what is wrong, without the file's name."""


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says, read as UTF-8 with or without a byte-order mark; ``30d`` needs no quotes.

    Dates of TOML are text, as dates in quotes are. NotTomlError where the file is not TOML, not UTF-8, longer than
    `MOST_BYTES`, too deeply nested, or has a number beyond 64 bits; OSError where it cannot be read.
    """
    with open_regular(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NotTomlError(f"not TOML of a person's: more than {MOST_BYTES:,} bytes")
    try:
        said = _loaded(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = f"byte 0x{content[error.start]:02x} at offset {error.start:,}"
        raise NotTomlError(f"not valid TOML: {byte} (line {line}) is not UTF-8 text") from None
    except RecursionError:
        raise NotTomlError("not TOML of a person's: too deeply nested") from None
    except ValueError as error:  # TOMLDecodeError is one, and so is a number of more digits than Python takes
        raise NotTomlError(f"not valid TOML: {str(error).splitlines()[0]}") from None
    for where in _beyond_64_bits(said, "$"):
        raise NotTomlError(f"`{where}` is a number beyond 64 bits")
    return {key: _with_dates_as_text(value) for key, value in said.items()}


def _with_dates_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_dates_as_text(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_dates_as_text(part) for part in value]
    return str(value) if isinstance(value, (date, time)) else value


def _loaded(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        quoted = _DURATION.sub(r'\1"\2"', text)
        if quoted == text:
            raise
        try:
            return tomllib.loads(quoted)
        except tomllib.TOMLDecodeError:
            pass
        raise


def _beyond_64_bits(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _beyond_64_bits(part, f"{where}.{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _beyond_64_bits(part, f"{where}[{i}]")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield where


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
    return f"# {escape(text)}"
