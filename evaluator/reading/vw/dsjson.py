"""Decisions of the joined JSON logs of VowpalWabbit's decision service, which Azure Personalizer left behind too.

A line is ``{"_label_cost": ..., "_label_probability": ..., "_label_Action": ..., "_labelIndex": ..., "Timestamp": ...,
"EventId": ..., "a": [...], "p": [...], "c": {..., "_multi": [{...}, ...]}}``: ``a`` has the numbers of the actions,
from 1 or from 0, ``p`` the probability of each in that order, ``c`` the features, those of the actions under
``_multi``. The label names the action that was chosen; without one it is the first of ``a``. What begins with an
underscore within features is no feature, but for the words of ``_text``. Every key that VowpalWabbit reads is honoured,
passed over or refused: ``datasets/vw_dsjson/README.md`` lists them.

Source: VowpalWabbit's wiki, "Contextual Bandit ds-json format"; its parser of the format; the log converter of its
library for services, reinforcement_learning.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from evaluator.escape import shortened

# Probabilities are logged with seven digits.
_PROBABILITIES_OFF = 1e-3
# Keys that are read here as they are spelt; those of the label are known in any case.
_KEYS = frozenset({
    "_label_cost", "_label_probability", "_label_Action", "_labelIndex", "_skipLearn", "DeferredAction", "Timestamp",
    "EventId", "a", "p", "_p", "c", "o", "pdrop",
})  # fmt: skip
_LABELS = {key.lower(): key for key in _KEYS if key.startswith("_label")}
_SLOTS, _CONTINUOUS = "several slots, which are not read", "continuous actions, which are not read"
_REFUSED = {"_outcomes": _SLOTS, "pdf": _CONTINUOUS}
_REFUSED_WITHIN = {
    "_slots": _SLOTS, "_slot_id": _SLOTS, "_inc": _SLOTS, "_multi": "lists actions a second time",
    "__aid": "names features that stand elsewhere", "_graph": "feedback of other actions, which is not read",
}  # fmt: skip


def dsjson_units(lines: Iterable[tuple[int, str]]) -> Iterator[Unit]:
    """Yield what the numbered lines of a file hold, a unit a line."""
    for number, line in lines:
        try:
            if line[:1] == "[":
                _refuse_array(line)
                yield Unit(number, None, None, "checkpoints (they begin with a bracket)")
                continue
            found = json.loads(line)
            if not isinstance(found, dict):
                raise NoDecisionError("no JSON object")
            if "\\u" in line:
                _refuse_half_characters(found)
            passed_over = _passed_over(found)
            yield Unit(number, None if passed_over else _decision(found), None, passed_over)
        except json.JSONDecodeError as error:
            yield Unit(number, None, f"{shortened(repr(line))} ({error.msg} at character {error.colno})")
        except RecursionError:
            yield Unit(number, None, f"{shortened(repr(line))} (nested too deeply)")
        except NoDecisionError as error:
            yield Unit(number, None, f"{shortened(repr(line))} ({error})")


def _refuse_array(line: str) -> None:
    """Raise NoDecisionError where a line is, or begins, an array of objects."""
    if line[1:].lstrip()[:1] in ("", "{"):
        raise NoDecisionError("an array of objects: write one object a line, without brackets and commas between them")


def _passed_over(found: Mapping[str, Any]) -> str | None:
    """Return a description of a line that is no decision or was never shown; None for other lines."""
    if "c" not in found:
        if "RewardValue" in found:
            return "rewards whose decision the log lacks (RewardValue)"
        if "ActionTaken" in found:
            return "activations whose decision the log lacks (ActionTaken)"
    skipped = found.get("_skipLearn")
    if skipped is None:
        if found.get("DeferredAction") is True and not _is_activated(found.get("o")):
            return "decisions that were never activated (DeferredAction without ActionTaken)"
    elif not isinstance(skipped, bool):
        raise NoDecisionError(f"_skipLearn {skipped!r} is neither true nor false")
    elif skipped:
        return "decisions that were never shown (_skipLearn)"
    return None


def _is_activated(outcomes: object) -> bool:
    found = outcomes if isinstance(outcomes, list) else []
    return any(isinstance(one, dict) and one.get("ActionTaken") is True for one in found)


def _refuse_half_characters(found: dict[str, Any]) -> None:
    """Raise NoDecisionError where an escape is half of a character, which no text can hold."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NoDecisionError("half a character, a lone surrogate") from None


def _decision(of: dict[str, Any]) -> Decision:
    for key in of.keys() - _KEYS:
        if key in _REFUSED or key[:6] == "_label":
            _respell(of, key)
    context = of.get("c")
    for key in ("_label_cost", "a", "c"):
        if key not in of:
            raise NoDecisionError(_SLOTS if isinstance(context, dict) and "_slots" in context else f"no {key}")
    multi = context.get("_multi") if isinstance(context, dict) else None
    if not isinstance(multi, list) or not multi or not all(isinstance(action, dict) for action in multi):
        raise NoDecisionError("c._multi is no list of actions")
    assert isinstance(context, dict)
    order = _order(of["a"], len(multi))
    chosen = _chosen(of, order, len(multi))
    drop = 0.0 if of.get("pdrop") is None else finite(of["pdrop"], "pdrop")
    if not 0 <= drop < 1:
        raise NoDecisionError(f"pdrop {drop:g} outside [0, 1): of such decisions none, or more than all, are kept")
    probability, probabilities = _probabilities(of, order, chosen, drop)
    event, time = of.get("EventId"), of.get("Timestamp")
    return Decision(
        event=None if event is None else str(event),
        time=None if time is None else str(time),
        chosen=chosen,
        actions=[Action(i + 1, _tag(action), _features(action)) for i, action in enumerate(multi)],
        probability=probability,
        probabilities=probabilities,
        cost=finite(of["_label_cost"], "_label_cost"),
        shared=_features(context, whole=True),
        weight=1.0 / (1.0 - drop),
    )


def _respell(of: dict[str, Any], key: str) -> None:
    """Give a part of the label the key that is read here; refuse what means that a line is another problem's."""
    if said := _REFUSED.get(key, _CONTINUOUS if key.startswith("_label_ca") else None):
        raise NoDecisionError(said)
    read = _LABELS.get(key.lower())
    if read is None:
        raise NoDecisionError(f"{key}, a label that is not read")
    if read in of:
        raise NoDecisionError(f"{key} beside {read}")
    of[read] = of[key]


def _order(given: object, k: int) -> list[int]:
    """Return the places of the k actions that ``a`` numbers, from 1 or from 0."""
    if isinstance(given, list) and len(given) == k:
        found = sorted(map(str, given))
        for first in (1, 0):
            if found == _numbers(first, k):
                return [int(action) - first for action in given]
    raise NoDecisionError(f"a is not the numbers 1 to {k}, or 0 to {k - 1}, of the actions that c._multi has")


@cache
def _numbers(first: int, k: int) -> list[str]:
    return sorted(map(str, range(first, first + k)))


def _chosen(of: Mapping[str, Any], order: list[int], k: int) -> int:
    """Return the place of the chosen action: what the label says, and without one the first of ``a``."""
    index, action = of.get("_labelIndex"), of.get("_label_Action")
    place = order[0]
    if index is not None:
        place = _whole(index, "_labelIndex")
        if not 0 <= place < k:
            raise NoDecisionError(f"_labelIndex {index} is none of 0 to {k - 1}")
    if action is None:
        return place
    number = _whole(action, "_label_Action")
    if index is None:
        if not 1 <= number <= k:
            raise NoDecisionError(f"_label_Action {action} is none of 1 to {k}")
        return number - 1
    # Who counts actions from 0 in `a` may do so here, too.
    if number != place + 1 and not (number == place and "0" in map(str, of["a"])):
        raise NoDecisionError(
            f"_label_Action {action}, counted from 1, and _labelIndex {index}, counted from 0, are two actions"
        )
    return place


def _whole(value: object, what: str) -> int:
    number = finite(value, what)
    if not number.is_integer():
        raise NoDecisionError(f"{what} {value!r} is no whole number")
    return int(number)


def _probabilities(
    of: Mapping[str, Any], order: list[int], chosen: int, drop: float
) -> tuple[float, list[float] | None]:
    """Return the probability of the chosen action, and of each where the line has them, summing to 1."""
    p, said = of.get("p"), of.get("_label_probability")
    if "_p" in of:
        if p is not None and p != of["_p"]:
            raise NoDecisionError("p and _p are two lists of probabilities")
        p = of["_p"]
    label = None if said is None else finite(said, "_label_probability")
    if p is None:
        if label is None:
            raise NoDecisionError("no p, and no _label_probability")
        if not 0 < label <= 1:
            raise NoDecisionError(f"_label_probability {label:g} outside (0, 1]")
        return label, None
    k = len(order)
    if not isinstance(p, list) or len(p) != k:
        raise NoDecisionError(f"p is not {k} probabilities, one for each of a")
    found = [0.0] * k
    for place, chance in zip(order, p, strict=True):
        found[place] = finite(chance, "probability")
    total = sum(found)
    if min(found) < 0 or abs(total - 1.0) > _PROBABILITIES_OFF:
        raise NoDecisionError(f"p sums to {total:g}, not 1, or has a number below 0")
    own = found[chosen]
    if own == 0:
        raise NoDecisionError("the chosen action has probability 0")
    # Some writers multiply it by the chance that the decision was kept.
    if label is not None and not (_is_near(label, own) or _is_near(label, own * (1.0 - drop))):
        raise NoDecisionError(f"_label_probability {label:g} is not the {own:g} that p has for the chosen action")
    return own / total, [chance / total for chance in found]


def _is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_PROBABILITIES_OFF)


def _tag(action: Mapping[str, Any]) -> str | None:
    tag = action.get("_tag")
    if tag is None:
        tag = next((action[key] for key in action if key.lower() == "_tag"), None)
    return None if tag is None else str(tag)


def _features(of: Mapping[str, Any], prefix: str = "", *, whole: bool = False) -> dict[str, Value]:
    """Return the features under a namespace, nested ones by the path to them; of the `whole` the actions apart."""
    found: dict[str, Value] = {}
    for key, value in of.items():
        if key[:1] != "_":
            _add(found, f"{prefix}{key}", value)
        elif key == "_text":
            _add_words(found, prefix, value)
        elif (said := _REFUSED_WITHIN.get(key)) and not (whole and key == "_multi"):
            raise NoDecisionError(f"{key} within features: {said}")
        elif key.startswith("_label"):
            raise NoDecisionError(f"{key} within features: a label that is not read there")
    return found


def _add_words(found: dict[str, Value], prefix: str, text: object) -> None:
    """Add each word of a text as a feature that counts it."""
    if not isinstance(text, str):
        raise NoDecisionError(f"_text {text!r} is no text")
    for word in text.split():
        before = found.get(name := f"{prefix}{word}", 0.0)
        if isinstance(before, str):
            raise NoDecisionError(f"feature {name} is a word of _text, and has the value {before!r}")
        found[name] = before + 1.0


def _add(found: dict[str, Value], name: str, value: Any) -> None:
    if isinstance(value, dict):
        found.update(_features(value, f"{name}."))
    elif isinstance(value, list):
        several = len(value) > 1
        for i, entry in enumerate(value):
            _add(found, f"{name}.{i}" if several else name, entry)
    elif isinstance(value, bool):
        found[name] = float(value)
    elif isinstance(value, int | float):
        found[name] = finite(value, name)
    elif value is not None:
        found[name] = str(value)


# What a feature is: a number, or a word.
Value = float | str
# Numbers of VowpalWabbit have 32 bits; with larger ones products of features would not be finite.
_LARGEST = float.fromhex("0x1.fffffep+127")


class Action(NamedTuple):
    """One of the actions of a decision.

    `position` is its number in the list of the decision, from 1; `tag` the name that the log gives it; features are by
    ``namespace.name``.
    """

    position: int
    tag: str | None
    features: Mapping[str, Value]


class Decision(NamedTuple):
    """A choice among some actions, and what it cost.

    Parameters
    ----------
    event
        Identity of the decision; None where the log has none.
    time
        Time as it is written; None where the log has none.
    chosen
        Place of the chosen action in `actions`.
    actions
        The actions that could have been chosen; the chosen one alone where the log does not list them.
    probability
        Probability with which the chosen action was chosen.
    probabilities
        Probability of each action, summing to 1; None where the log has that of the chosen one alone.
    cost
        What the decision cost: a reward is one below 0.
    shared
        Features of the decision, whatever is chosen, as of an action.
    weight
        Number of decisions that it stands for, where others like it were dropped.
    """

    event: str | None
    time: str | None
    chosen: int
    actions: Sequence[Action]
    probability: float
    probabilities: Sequence[float] | None
    cost: float
    shared: Mapping[str, Value]
    weight: float = 1.0


class NoDecisionError(Exception):
    """What is wrong with a line, in words that stand behind the line."""


class Unit(NamedTuple):
    """Some lines of a file that belong together.

    `line` is the number of the first of them. The decision is None where they break a rule; `broken` says what they are
    instead, `passed_over` what they are where that is no decision, and no fault: such lines are counted and left out.
    """

    line: int
    decision: Decision | None
    broken: str | None
    passed_over: str | None = None


def finite(value: object, what: str) -> float:
    """Return a number that a line holds.

    Raises NoDecisionError if it is none, none that is finite, or larger than VowpalWabbit's.
    """
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise NoDecisionError(f"{what} {value!r} is no number") from None
    except OverflowError:  # a whole number of hundreds of digits
        found = math.inf
    if isinstance(value, bool) or not math.isfinite(found):
        raise NoDecisionError(f"{what} {value!r} is no finite number")
    if abs(found) > _LARGEST:
        raise NoDecisionError(f"{what} {value!r} is beyond {_LARGEST:.2g}, the largest that VowpalWabbit holds")
    return found
