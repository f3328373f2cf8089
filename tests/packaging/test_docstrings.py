"""Docstrings say of each parameter what it is: in words that read on their own, of arrays with the shape."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import evaluator

PACKAGE = Path(evaluator.__file__).parent

HEADINGS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")
FEWEST_WORDS = 3
# What begins so is a part of a phrase whose subject is left out: "Of the log.", "As above.", "Shape (n,)."
FRAGMENTS = re.compile(r"(Of|As|By|In|At|To|With|From|For|Where|When|Whose|Shape|The same|Same|See|Its|Their)\b")
# Options of public functions are put in the place of this when they are imported (`evaluator.options.declaration`).
PLACEHOLDER = ("**options", "See below.")
ARRAY = r"NDArray|ArrayLike|\bFloats\b|\bInts\b"
NAMED_ARRAY = re.compile(r"^(\w+)(?:: TypeAlias)? = (?:npt\.)?NDArray", re.MULTILINE)

Documented = ast.FunctionDef | ast.ClassDef


class Entry(NamedTuple):
    """What a docstring says of one parameter, or of several, or of one thing returned or raised."""

    section: str
    names: tuple[str, ...]
    text: str


def entries(docstring: str) -> Iterator[Entry]:
    """Yield the entries of a docstring's sections, descriptions on one line."""
    lines = inspect.cleandoc(docstring).splitlines()
    section, names, said = "", "", list[str]()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below.startswith("---"):
            if names:
                yield Entry(section, tuple(names.split(", ")), " ".join(said))
            section, names = (line if line in HEADINGS else ""), ""
        elif section and line.startswith(">>>"):
            break
        elif section and line and not line.startswith((" ", "---")):
            if names:
                yield Entry(section, tuple(names.split(", ")), " ".join(said))
            names, said = line, []
        elif section and line.startswith(" "):
            said.append(line.strip())
    if names:
        yield Entry(section, tuple(names.split(", ")), " ".join(said))


def parameters(node: Documented) -> dict[str, str]:
    """Return the parameters of a function, or the fields and the parameters of a class, with their types."""
    if isinstance(node, ast.FunctionDef):
        a = node.args
        starred = [(sign + arg.arg, arg) for sign, arg in (("*", a.vararg), ("**", a.kwarg)) if arg is not None]
        named = [(arg.arg, arg) for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        owner = {"self", "cls"}
        return {
            name: ast.unparse(arg.annotation) if arg.annotation else ""
            for name, arg in [*named, *starred]
            if name not in owner
        }
    found = {
        one.target.id: ast.unparse(one.annotation)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if not ast.unparse(one).startswith(("schema: ClassVar", "beside: ClassVar"))
    }
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            found |= parameters(one)
    return found


def documented(body: list[ast.stmt]) -> Iterator[Documented]:
    """Yield the classes and functions of a module, and what they hold."""
    for node in body:
        if isinstance(node, Documented):
            yield node
            yield from documented(node.body)


def faults(source: str) -> list[str]:
    """Return what is wrong with the sections of a module's docstrings."""
    if "----" not in source:
        return []
    array = re.compile("|".join([ARRAY, *(rf"\b{name}\b" for name in NAMED_ARRAY.findall(source))]))
    found = []
    for node in documented(ast.parse(source).body):
        doc = ast.get_docstring(node, clean=False) or ""
        if "----" not in doc:
            continue
        types = parameters(node)
        said = list(entries(doc))
        listed = {name for entry in said if entry.section == "Parameters" for name in entry.names}
        if listed and (left_out := [name for name in types if name not in listed and not name.startswith("_")]):
            found.append(f"{node.name}: nothing is said of {', '.join(left_out)}")
        for section, names, text in said:
            if section == "Parameters" and (*names, text) == PLACEHOLDER:
                continue
            of = f"{node.name}, {section}, {', '.join(names)}: {text!r}"
            if not text:
                found.append(f"{of}: nothing is said")
            elif not re.match(r"[A-Z`0-9]", text) or not text.endswith("."):
                found.append(f"{of}: begin with a capital and end with a period")
            elif len(text.split()) < FEWEST_WORDS and section != "Raises":
                found.append(f"{of}: say which thing it is")
            if section != "Parameters":
                continue
            if FRAGMENTS.match(text):
                found.append(f"{of}: begin with what it is, not with what it is of")
            if unknown := [name for name in names if name not in types]:
                found.append(f"{of}: there is no {' nor '.join(unknown)}")
            if any(array.search(types.get(name, "")) for name in names) and "shape" not in text:
                found.append(f"{of}: say the shape of the array")
    return found


def test_parameters_are_described_in_words_that_read_on_their_own() -> None:
    found = {str(path.relative_to(PACKAGE)): faults(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert {path: said for path, said in found.items() if said} == {}


EXAMPLE = '''
def followed(times: npt.NDArray[np.int64], n: int) -> int:
    """Return the end.

    Parameters
    ----------
    times
        {times}
    {n}

    Returns
    -------
    int
        Time of the end in ticks.

    >>> followed(np.zeros(1), 2)
    0
    """
'''
GOOD = "Times in ticks, shape (n,)."


def test_a_whole_description_is_let_pass() -> None:
    assert faults(EXAMPLE.format(times=GOOD, n="n\n        Number of displays.")) == []


@pytest.mark.parametrize(
    ("times", "n", "problem"),
    [
        (GOOD, "n", "nothing is said"),
        (GOOD, "n\n        number of the displays.", "begin with a capital"),
        (GOOD, "n\n        Number of the displays", "end with a period"),
        (GOOD, "n\n        The displays.", "say which thing"),
        (GOOD, "n\n        Of the displays, shape (n,).", "not with what it is of"),
        (GOOD, "k\n        Number of displays.", "there is no k"),
        (GOOD, "k\n        Number of displays.", "nothing is said of n"),
        (GOOD, "Both may be empty.", "nothing is said"),
        ("Times of the displays in ticks.", "n\n        Number of displays.", "the shape of the array"),
    ],
)
def test_fragments_are_found(times: str, n: str, problem: str) -> None:
    assert any(problem in fault for fault in faults(EXAMPLE.format(times=times, n=n)))
