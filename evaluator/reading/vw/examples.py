"""Decisions of VowpalWabbit's text format, ``--cb`` and ``--cb_adf``.

With ``--cb_adf`` a decision is some lines and an empty one behind: perhaps ``shared | features`` first, then a line
for each action, of which the chosen one begins with the label ``action:cost:probability`` (the number in it is not
read, as VowpalWabbit does not). With ``--cb`` it is one line, whose label has the number of the chosen action; which
others there were the file does not say. A line is ``label tag|namespace feature:value ... |namespace ...``. The format
has neither times nor ids. Lines of other problems (``ccb``, ``slates``, ``ca``) are refused by their name.

Source: VowpalWabbit's wiki, "Input format" and "Contextual Bandit algorithms".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from evaluator.escape import shortened
from evaluator.reading.vw.dsjson import Action, Decision, NoDecisionError, Unit, Value, finite

# First words of lines of problems that are no choice of one action among some.
_OTHERS = {"ccb": "several slots", "slates": "several slots", "ca": "continuous actions"}


class _Line(NamedTuple):
    """One line: whether it is shared, its labels (action, cost, probability), its tag and its features."""

    shared: bool
    labels: list[tuple[int, float, float]]
    tag: str | None
    features: dict[str, Value]


def text_units(lines: Iterable[tuple[int, str]]) -> Iterator[Unit]:
    """Yield what the numbered lines of a file hold, empty ones among them."""
    for block in _blocks(lines):
        single = _is_single(block)
        for part in [[line] for line in block] if single else [block]:
            try:
                decision = _of_line(part[0][1]) if single else _of_lines([text for _, text in part])
                yield Unit(part[0][0], decision, None)
            except NoDecisionError as error:
                yield Unit(part[0][0], None, f"{shortened(repr(part[0][1]))} ({error})")


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines between empty ones."""
    block: list[tuple[int, str]] = []
    for number, line in chain(lines, [(0, "")]):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []


def _is_single(block: list[tuple[int, str]]) -> bool:
    """Whether each of these lines is a decision: with --cb they all have a label."""
    heads = [line.split("|", 1)[0].split() for _, line in block]
    return all(head and ":" in head[0] for head in heads) and not any(head[0].split(":")[0] == "0" for head in heads)


def _of_line(text: str) -> Decision:
    line = _parsed(text)
    if len(line.labels) != 1:
        raise NoDecisionError("several labels, of which one can have been chosen")
    action, cost, p = line.labels[0]
    chosen = Action(action, str(action), {})
    return Decision(None, None, 0, [chosen], _chance(p), None, cost, line.features)


def _of_lines(texts: list[str]) -> Decision:
    found = [_parsed(text) for text in texts]
    shared = found[0].features if found[0].shared else {}
    rest = found[1:] if found[0].shared else found
    if any(line.shared for line in rest):
        raise NoDecisionError("a shared line that is not the first")
    chosen = [i for i, line in enumerate(rest) if line.labels]
    if len(chosen) != 1 or len(rest[chosen[0]].labels) != 1:
        raise NoDecisionError(f"{len(chosen)} of {len(rest)} actions have a label action:cost:probability, not one")
    _, cost, p = rest[chosen[0]].labels[0]
    actions = [Action(i + 1, line.tag, line.features) for i, line in enumerate(rest)]
    return Decision(None, None, chosen[0], actions, _chance(p), None, cost, shared)


def _chance(p: float) -> float:
    if not 0 < p <= 1:
        raise NoDecisionError(f"probability {p:g} outside (0, 1]")
    return p


def _parsed(text: str) -> _Line:
    head, bar, tail = text.partition("|")
    if not bar:
        raise NoDecisionError("no | before its features")
    words = head.split()
    # What touches the bar is the tag, or begins with a quote; VowpalWabbit takes a label alone for a label.
    tag = None
    if words and (
        words[-1].startswith("'") or (head == head.rstrip() and ":" not in words[-1] and words[-1] != "shared")
    ):
        tag = words.pop().removeprefix("'")
    if words and words[0] in _OTHERS:
        raise NoDecisionError(f"{words[0]}: {_OTHERS[words[0]]}, which are not read")
    shared = bool(words) and words[0] == "shared"
    labels = [_label(word) for word in words[shared:] if ":" in word]
    return _Line(shared, labels, tag, _text_features(tail))


def _label(word: str) -> tuple[int, float, float]:
    parts = word.split(":")
    if len(parts) != 3 or not parts[0].isdecimal():
        raise NoDecisionError(f"label {word!r} is no action:cost:probability")
    return int(parts[0]), finite(parts[1], "cost"), finite(parts[2], "probability")


def _text_features(tail: str) -> dict[str, Value]:
    """Return the features behind the first bar; a feature alone has value 1."""
    found: dict[str, Value] = {}
    for part in tail.split("|"):
        words = part.split()
        space, scale = "", 1.0
        if words and not part[:1].isspace():
            name, _, weight = words.pop(0).partition(":")
            space, scale = f"{name}.", finite(weight, f"weight of namespace {name}") if weight else 1.0
        for word in words:
            name, colon, value = word.rpartition(":") if ":" in word else (word, "", "")
            key = f"{space}{name}"
            number = finite(value, f"feature {key}") if colon else 1.0
            before = found.get(key, 0.0)
            assert isinstance(before, float)
            found[key] = finite(before + scale * number, f"feature {key}")
    return found
