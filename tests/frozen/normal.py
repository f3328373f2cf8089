"""Text, JSON and pages in a form that is the same on every machine, and their comparison."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from typing import Any

from evaluator.version import __version__

DIGITS = 9
# What is smaller is what rounding leaves of 0.
NOTHING = 1e-12
# Longer lists of numbers are kept by their ends and their sum.
LONG, SHOWN = 24, 3
WIDTH = 120
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
VERSION = re.compile(
    rf"(?<![\d.]){re.escape(__version__)}(?!\d|\.\d)|(?<=\b(?:numpy|numba|scipy) )[\d.]+\d"
    r"|(?<=\bpolars )[\d.]+\d|(?<=\bpyarrow )[\d.]+\d"
)
HASH = re.compile(r"\b[0-9a-f]{64}\b|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,40}\b")
DATE = re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(?:Z|\+00:00)?")


def plain(text: str, folder: str) -> str:
    """Return text without what differs from machine to machine: the folder of the run, versions, hashes."""
    text = text.replace(folder, "FOLDER")
    text = DATE.sub("DATE", HASH.sub("HASH", VERSION.sub("VERSION", text)))
    return "\n".join(line.rstrip() for line in text.splitlines())


def plain_json(value: Any) -> str:
    """Return JSON with rounded numbers, long lists of numbers cut, what repeats named once, short values on a line."""
    return "\n".join(_lines(_shortened(value, "", {}), ""))


def _shortened(value: Any, path: str, seen: dict[str, str]) -> Any:
    if isinstance(value, float):
        return 0.0 if abs(value) < NOTHING else float(f"{value:.{DIGITS}g}")
    if not isinstance(value, (dict, list)):
        return value
    text = json.dumps(value)
    if len(text) > WIDTH:
        first = seen.setdefault(text, path)
        if first != path:
            return f"as {first}"
    if isinstance(value, dict):
        return {key: _shortened(inner, f"{path}.{key}".lstrip("."), seen) for key, inner in value.items()}
    total = _sum(value) if len(value) > LONG else None
    shown = range(len(value)) if total is None else (*range(SHOWN), *range(len(value) - SHOWN, len(value)))
    inner = [_shortened(value[i], f"{path}[{i}]", seen) for i in shown]
    if total is not None:
        inner.insert(SHOWN, f"{len(value)} in all, sum {total:.{DIGITS}g}")
    return inner


def _sum(value: Any) -> float | None:
    """Return the sum of all numbers in a list of numbers, or of lists of such; None where it holds anything else."""
    if value is None or isinstance(value, bool):
        return 0.0
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return None
    sums = [_sum(inner) for inner in value]
    return None if None in sums else math.fsum(s for s in sums if s is not None)


def _lines(value: Any, before: str) -> list[str]:
    whole = before + json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or len(whole) <= WIDTH:
        return [whole]
    indent = " " * (len(before) - len(before.lstrip()) + 1)
    if isinstance(value, dict):
        inner = [_lines(of, f"{indent}{json.dumps(key)}: ") for key, of in value.items()]
    else:
        inner = [_lines(of, indent) for of in value]
    for lines in inner[:-1]:
        lines[-1] += ","
    ends = "{}" if isinstance(value, dict) else "[]"
    return [before + ends[0], *(line for lines in inner for line in lines), indent[1:] + ends[1]]


def same(a: str, b: str) -> bool:
    """Whether two lines differ by nothing but the last kept digit of numbers with a point, where rounding may tip."""
    if a == b:
        return True
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(NUMBER.findall(a), NUMBER.findall(b), strict=True)
    return all(
        x == y
        or (
            len(re.sub(r"e.*|\D", "", x).lstrip("0")) >= DIGITS - 2
            and "." in x
            and math.isclose(float(x), float(y), rel_tol=2 * 10.0 ** (1 - DIGITS))
        )
        for x, y in pairs
    )


def page_text(html: str) -> str:
    """Return a page's text and structure: a line for each block with its tag and id, charts by their labels."""
    reader = _Page()
    reader.feed(html)
    reader.close()
    return "\n".join(line for line in reader.finished())


class _Page(HTMLParser):
    SKIPPED = frozenset({"style", "script"})
    INLINE = frozenset({"a", "abbr", "b", "br", "code", "em", "i", "small", "span", "strong", "sub", "sup"})
    CELLS = frozenset({"td", "th"})
    VOID = frozenset({"br", "hr", "img", "link", "meta", "input", "col"})
    # Of a chart its titles, axes and legends, as they are read aloud; not each point.
    CHART, TITLES = "svg", re.compile(r"^[XY]-axis|^(?:Title|Subtitle) text|\blegend\b")
    TOLD = frozenset({"title", "section", "table", "details", "figure", "svg", "ul", "ol"})

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.line = ""
        self.depth = 0
        self.within: list[str] = []

    def finished(self) -> list[str]:
        self._end_line()
        return self.lines

    def _end_line(self) -> None:
        text = " ".join(self.line.split())
        if text and (not text.endswith(":") or not text[:-1].isalnum() or text[:-1] in self.TOLD):
            self.lines.append(" " * self.depth + text)
        self.line = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        inside = self.CHART in self.within
        if tag not in self.VOID:
            self.within.append(tag)
        label = given.get("aria-label")
        if inside:
            if label and self.TITLES.search(label):
                self._end_line()
                self.line = f"- {label}"
                self._end_line()
            return
        if tag in self.INLINE:
            if tag == "a":
                self.line += f"[{given.get('href') or ''}]"
            return
        if tag in self.CELLS:
            self.line += f" | {self._marks(given)} "
            return
        self._end_line()
        self.depth = max(len([of for of in self.within if of not in self.INLINE | self.CELLS]) - 3, 0)
        self.line = f"{tag}{self._marks(given)}: {label or ''}"

    def _marks(self, given: dict[str, str | None]) -> str:
        marks = [f"#{given['id']}"] if given.get("id") else []
        marks += [f".{name}" for name in (given.get("class") or "").split()]
        return "".join([*marks, *(f"[{name}]" for name in ("open", "hidden") if name in given)])

    def handle_endtag(self, tag: str) -> None:
        while self.within and self.within.pop() != tag:
            pass
        if self.CHART not in self.within and tag not in self.INLINE | self.CELLS:
            self._end_line()

    def handle_data(self, data: str) -> None:
        if self.CHART not in self.within and not self.SKIPPED & set(self.within):
            self.line += data
