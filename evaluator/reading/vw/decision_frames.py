"""Decisions as rows: one for each, or one for each action that could have been chosen.

VowpalWabbit's text format is read here too, ``--cb`` and ``--cb_adf``. With ``--cb_adf`` a decision is some lines and
an empty one behind: perhaps ``shared | features`` first, then a line for each action, of which the chosen one begins
with the label ``action:cost:probability`` (the number in it is not read, as VowpalWabbit does not). With ``--cb`` it is
one line, whose label has the number of the chosen action; which others there were the file does not say. A line is
``label tag|namespace feature:value ... |namespace ...``. The format has neither times nor ids. Lines of other problems
(``ccb``, ``slates``, ``ca``) are refused by their name.

Source: VowpalWabbit's wiki, "Input format" and "Contextual Bandit algorithms".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from evaluator.errors import SourceError
from evaluator.escape import shortened
from evaluator.log.encoder import token_slot
from evaluator.reading.cells import Kind
from evaluator.reading.json_lines import text_lines
from evaluator.reading.row_breaches import LINE
from evaluator.reading.vw.dsjson import Action, Decision, NoDecisionError, Unit, Value, dsjson_units, finite

# Of lines that are no decision: what they are instead.
NO_DECISION = "__no_decision"
# First words of lines of problems that are no choice of one action among some.
_OTHERS = {"ccb": "several slots", "slates": "several slots", "ca": "continuous actions"}
# So many decisions tell which columns there are.
_SAMPLE = 1_000
_HASHED = re.compile(r"hashed_(0|[1-9][0-9]{0,4})")
_OF_ALL = ("event", "action.position", "action.tag", "probability")
_OF_DECISIONS = ("time", "cost", "reward", "rewarded", "pdrop.weight")
# Tokens are few: names of features and their words.
_slot = lru_cache(1 << 18)(token_slot)


def decision_columns(path: Path, encoding: str, kind: str, *, until: Iterable[str] = ()) -> list[str]:
    """Return the columns that the first decisions of a file offer; read on until some are found.

    Raises SourceError if the file holds no decisions.
    """
    names = dict.fromkeys((*_OF_ALL, *(() if FORMATS[kind][1] else _OF_DECISIONS)))
    wanted = [name for name in until if not (FORMATS[kind][1] and _HASHED.fullmatch(name))]
    read = 0
    for read, unit in enumerate(_units(path, encoding, kind), start=1):
        if unit.decision is not None:
            names |= dict.fromkeys(_features(unit.decision, of_actions=FORMATS[kind][1]))
        if read >= _SAMPLE and all(name in names for name in wanted):
            break
    if not read:
        raise SourceError(f"{path}: the file is empty.", remedy="check the download or export.")
    return [*names, *(name for name in until if name not in wanted)]


def decision_frames(
    path: Path,
    encoding: str,
    kind: str,
    columns: Mapping[str, Kind],
    rows: int,
    limit: int | None,
    *,
    name: str,
    before: int = 0,
    passed_over: Counter[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the first rows of a file of decisions, about `rows` at a time: the wanted columns as text, and `LINE`.

    Of lines that break a rule `NO_DECISION` says what they are, null elsewhere; they have no actions. ``hashed_i`` is
    coordinate i of `evaluator.reading.vw.decision_frames.hashed_vectors`, as wide as the largest i asked for. A
    ``time`` that is a whole number is the number of the decision, from 1, where a line has no time of its own; `before`
    is how many the files before have. The file's `name` and the line are the id of a decision that has none.
    `passed_over` gets the number of lines that are neither a decision nor broken, by what they are. Raises SourceError
    if a line is too long, or if text is no text.
    """
    wanted = list(columns)
    of_actions = FORMATS[kind][1]
    width = 1 + max((int(found[1]) for c in wanted if (found := _HASHED.fullmatch(c))), default=-1)
    units = _identified(_units(path, encoding, kind), name, Counter() if passed_over is None else passed_over)
    rounds = columns.get("time") == "int"
    left = limit
    while taken := list(islice(units, rows if not of_actions else max(rows // 16, 1))):
        frame = _action_rows(taken, wanted, width) if of_actions else _decision_rows(taken, wanted, before, rounds)
        before += len(taken)
        frame = frame if left is None else frame.head(left)
        yield frame
        left = None if left is None else left - frame.height
        if left == 0:
            return


def has_times(path: Path, encoding: str, kind: str) -> bool:
    """Return whether the first decision of a file has a time, and True if the file has no decision."""
    decisions = (unit.decision for unit in _units(path, encoding, kind) if unit.decision is not None)
    first = next(decisions, None)
    return first is None or first.time is not None


def _identified(units: Iterator[Unit], name: str, passed_over: Counter[str]) -> Iterator[Unit]:
    """Yield the units that are rows, those without an id called by their line; count the others."""
    for unit in units:
        if unit.passed_over is not None:
            passed_over[unit.passed_over] += 1
        elif unit.decision is not None and unit.decision.event is None:
            yield unit._replace(decision=unit.decision._replace(event=f"{name} line {unit.line}"))
        else:
            yield unit


def _units(path: Path, encoding: str, kind: str) -> Iterator[Unit]:
    return FORMATS[kind][0](text_lines(path, encoding, empty=kind.startswith("vw")))


def _decision_rows(units: list[Unit], columns: list[str], before: int, rounds: bool) -> pl.DataFrame:
    found: dict[str, list[Any]] = {name: [] for name in columns}
    broken: list[str | None] = []
    for number, unit in enumerate(units, start=before + 1):
        of, said = unit.decision, unit.broken
        if of is not None and of.time is None and "time" in found:
            of, said = (of._replace(time=str(number)), None) if rounds else (None, "no Timestamp, which others have")
        if of is not None and of.weight != 1.0 and "pdrop.weight" not in found:
            of, said = None, 'pdrop, which the spec does not read: write weight = "pdrop.weight" under [display]'
        broken.append(said)
        for name in columns:
            found[name].append(None if of is None else _cell(of, name))
    more = {NO_DECISION: pl.Series(broken, dtype=pl.String)} if any(broken) else {}
    cells = {name: pl.Series(values, dtype=pl.String) for name, values in found.items()}
    return pl.DataFrame({**cells, LINE: pl.Series([unit.line for unit in units], dtype=pl.Int64), **more})


def _cell(of: Decision, name: str) -> str | None:
    match name:
        case "event":
            return of.event
        case "time":
            return of.time
        case "probability":
            return repr(of.probability)
        case "cost":
            return repr(of.cost)
        case "reward":
            return repr(0.0 - of.cost)
        case "rewarded":
            return "1" if of.cost else "0"
        case "pdrop.weight":
            return repr(of.weight)
    if name.startswith("action."):
        return _of_action(of.actions[of.chosen], name)
    return _text(of.shared.get(name))


def _action_rows(units: list[Unit], columns: list[str], width: int) -> pl.DataFrame:
    sound = [(unit.line, unit.decision) for unit in units if unit.decision is not None]
    number = {name: int(found[1]) for name in columns if (found := _HASHED.fullmatch(name))}
    texts: dict[str, list[str | None]] = {name: [] for name in columns if name not in number}
    for _, of in sound:
        for i, action in enumerate(of.actions):
            for name, cells in texts.items():
                cells.append(_cell_of_action(of, i, action, name))
    vectors = np.zeros((0, width))
    if width and sound:
        vectors = np.concatenate([hashed_vectors(of, width) for _, of in sound])
    lines = [line for line, of in sound for _ in of.actions]
    cells_of = {
        name: pl.Series(vectors[:, number[name]]) if name in number else pl.Series(texts[name], dtype=pl.String)
        for name in columns
    }
    return pl.DataFrame({**cells_of, LINE: pl.Series(lines, dtype=pl.Int64)})


def _cell_of_action(of: Decision, i: int, action: Action, name: str) -> str | None:
    if name == "event":
        return of.event
    if name == "probability":
        p = of.probability if i == of.chosen else None
        return _text(p if of.probabilities is None else of.probabilities[i])
    return _of_action(action, name)


def _of_action(action: Action, name: str) -> str | None:
    if name == "action.position":
        return str(action.position)
    if name == "action.tag":
        return action.tag
    return _text(action.features.get(name.removeprefix("action.")))


def _features(of: Decision, *, of_actions: bool) -> Iterator[str]:
    for action in of.actions if of_actions else of.actions[of.chosen : of.chosen + 1]:
        yield from (f"action.{name}" for name in action.features)
    if not of_actions:
        yield from of.shared


def _text(value: float | str | None) -> str | None:
    return value if value is None or isinstance(value, str) else repr(value)


def hashed_vectors(decision: Decision, width: int) -> npt.NDArray[np.float64]:
    """Return a vector for each action, shape (actions, width), of length 1, or 0 without features.

    A word w of feature f is the token ``f=w`` with value 1, a number the token ``f=`` with its value; the product of a
    feature s of the decision and one of the action is the token ``s×a``, with the product of both (VowpalWabbit's
    ``-q``). Tokens are hashed as categories of a context are (`evaluator.log.encoder.token_slot`).
    """
    shared = list(_tokens(decision.shared))
    out = np.zeros((len(decision.actions), width))
    for row, action in zip(out, decision.actions, strict=True):
        for token, value in _tokens(action.features):
            where, sign = _slot(token, "", width)
            row[where] += sign * value
            for other, factor in shared:
                where, sign = _slot(f"{other}×{token}", "", width)
                row[where] += sign * value * factor
    length = np.linalg.norm(out, axis=1, keepdims=True)
    found: npt.NDArray[np.float64] = np.divide(out, length, out=out, where=length > 0)
    return found


def _tokens(features: Mapping[str, Value]) -> Iterator[tuple[str, float]]:
    for name, value in features.items():
        yield (f"{name}={value}", 1.0) if isinstance(value, str) else (f"{name}=", value)


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


# What reads each format, and whether its rows are actions.
FORMATS: dict[str, tuple[Callable[[Iterable[tuple[int, str]]], Iterator[Unit]], bool]] = {
    "dsjson": (dsjson_units, False),
    "dsjson-actions": (dsjson_units, True),
    "vw": (text_units, False),
    "vw-actions": (text_units, True),
}
