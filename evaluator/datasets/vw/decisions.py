"""A decision as VowpalWabbit logs it, whichever of its formats it stands in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# What a feature is: a number, or a word.
Value = float | str
# Numbers of VowpalWabbit have 32 bits; with larger ones products of features would not be finite.
_LARGEST = float.fromhex("0x1.fffffep+127")


class Action(NamedTuple):
    """One of the actions of a decision.

    Parameters
    ----------
    position
        Number of the action in the list of the decision, from 1.
    tag
        Name that the log gives it; None without one.
    features
        Value of each feature by ``namespace.name``.
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

    Parameters
    ----------
    line
        Number of the first of them.
    decision
        Decision they hold; None where they break a rule.
    broken
        What they are instead, in words; None where they are sound.
    passed_over
        What they are where that is no decision, and no fault: such lines are counted and left out.
    """

    line: int
    decision: Decision | None
    broken: str | None
    passed_over: str | None = None


def finite(value: object, what: str) -> float:
    """Return a number that a line holds.

    Raises
    ------
    NoDecisionError
        It is none, none that is finite, or larger than VowpalWabbit's.
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
