"""Decisions of the joined JSON logs of VowpalWabbit's decision service, which Azure Personalizer left behind too.

A line is ``{"_label_cost": ..., "_label_probability": ..., "_label_Action": ..., "Timestamp": ..., "EventId": ...,
"a": [...], "p": [...], "c": {..., "_multi": [{...}, ...]}}``: ``a`` has the numbers of the actions, from 1, the chosen
one first, ``p`` the probability of each in that order, ``c`` the features, those of the actions under ``_multi``. What
begins with an underscore within features is no feature. A line with ``"_skipLearn": true`` is a decision that was never
shown, one with ``RewardValue`` a reward of a decision that the log lacks: both are passed over.

Source: VowpalWabbit's wiki, "Contextual Bandit ds-json format"; the log converter of its library for services,
reinforcement_learning.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evaluator.datasets.vw.decisions import Action, Decision, NoDecisionError, Unit, Value, finite
from evaluator.visible import shortened

_PROBABILITIES_OFF = 1e-3


def dsjson_units(lines: Iterable[tuple[int, str]]) -> Iterator[Unit]:
    """Yield what the numbered lines of a file hold, a unit a line; what is passed over is left out."""
    for number, line in lines:
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise NoDecisionError("no JSON object")
            if "\\u" in line:
                _refuse_half_characters(found)
            if found.get("_skipLearn") is True or ("RewardValue" in found and "c" not in found):
                continue
            yield Unit(number, _decision(found), None)
        except json.JSONDecodeError as error:
            yield Unit(number, None, f"{shortened(repr(line))} ({error.msg} at character {error.colno})")
        except RecursionError:
            yield Unit(number, None, f"{shortened(repr(line))} (nested too deeply)")
        except NoDecisionError as error:
            yield Unit(number, None, f"{shortened(repr(line))} ({error})")


def _refuse_half_characters(found: dict[str, Any]) -> None:
    """Raise NoDecisionError where an escape is half of a character, which no text can hold."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NoDecisionError("half a character, a lone surrogate") from None


def _decision(of: Mapping[str, Any]) -> Decision:
    for key in ("_label_cost", "Timestamp", "EventId", "a", "p", "c"):
        if key not in of:
            said = "several slots, which are not read" if "_outcomes" in of else f"no {key}"
            raise NoDecisionError(said)
    order, p, context = of["a"], of["p"], of["c"]
    multi = context.get("_multi") if isinstance(context, dict) else None
    if not isinstance(multi, list) or not multi or not all(isinstance(action, dict) for action in multi):
        raise NoDecisionError("c._multi is no list of actions")
    k = len(multi)
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(map(str, range(1, k + 1))):
        raise NoDecisionError(f"a is not the numbers 1 to {k}, which c._multi has")
    if not isinstance(p, list) or len(p) != k:
        raise NoDecisionError(f"p is not {k} probabilities, one for each of a")
    probabilities = [0.0] * k
    for action, chance in zip(order, p, strict=True):
        probabilities[int(action) - 1] = finite(chance, "probability")
    total = sum(probabilities)
    if min(probabilities) < 0 or abs(total - 1.0) > _PROBABILITIES_OFF:
        raise NoDecisionError(f"p sums to {total:g}, not 1, or has a number below 0")
    chosen = int(order[0]) - 1
    if probabilities[chosen] == 0:
        raise NoDecisionError("the chosen action has probability 0")
    # Logged with seven digits.
    probabilities = [chance / total for chance in probabilities]
    return Decision(
        event=str(of["EventId"]),
        time=str(of["Timestamp"]),
        chosen=chosen,
        actions=[Action(i + 1, _tag(action), _features(action)) for i, action in enumerate(multi)],
        probability=probabilities[chosen],
        probabilities=probabilities,
        cost=finite(of["_label_cost"], "_label_cost"),
        shared=_features(context),
    )


def _tag(action: Mapping[str, Any]) -> str | None:
    tag = action.get("_tag")
    return None if tag is None else str(tag)


def _features(of: Mapping[str, Any], prefix: str = "") -> dict[str, Value]:
    """Return the features under a namespace, nested ones by the path to them."""
    found: dict[str, Value] = {}
    for key, value in of.items():
        if not key.startswith("_"):
            _add(found, f"{prefix}{key}", value)
    return found


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
