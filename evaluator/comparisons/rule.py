"""The rule by which a policy ships, stated before the run, and which planned look at a growing log a verdict is."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evaluator.errors import ParameterError
from evaluator.results.json_documents import Finite, Positive, Text

_GRAMMAR = re.compile(r"\s*uplift\s*(>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
_LOOK = re.compile(r"\s*([0-9]{1,4})\s*(?:of|/)\s*([0-9]{1,4})\s*")
# Power of the share of the looks by which the error is spent; looks planned at most: the first of more has hardly any.
_SPENDING, _MOST_LOOKS = 3, 1_000
_HOW = (
    "write 'uplift > 0.002': more than so much per round beyond the baseline; 'uplift > 2%' asks for more than 2 % of "
    "what the baseline earns, and 'uplift > 0' for any more."
)


@dataclass(frozen=True)
class ShipRule:
    """A limit that a variant's difference to the baseline must be told to exceed.

    Parameters
    ----------
    text
        Words that state it.
    limit
        Limit that the interval of the difference must lie above: in reward per round, or as a share of the baseline's
        value.
    relative
        Whether the limit is a share of what the baseline earns, whose own interval is allowed for.
    """

    text: Text
    limit: Finite
    relative: bool = False

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        if self.limit == 0.0:
            return "0"
        return f"the {100.0 * self.limit:g} % asked for" if self.relative else f"the {self.limit:g} asked for"


ANY_UPLIFT = ShipRule("uplift > 0", 0.0)


@dataclass(frozen=True)
class Look:
    """One of several planned looks at a log that grows, over which the error of a verdict is spent.

    Parameters
    ----------
    number
        Number of the look, from 1.
    planned
        Number of looks that were planned.
    """

    number: Positive
    planned: Positive

    def level(self, level: float) -> float:
        """Return the level of this look, where all looks together hold at a level.

        >>> [round(Look(k, 3).level(0.95), 4) for k in (1, 2, 3)]
        [0.9981, 0.987, 0.9648]
        """
        spent: float = (self.number**_SPENDING - (self.number - 1) ** _SPENDING) / self.planned**_SPENDING
        return 1.0 - spent * (1.0 - level)

    def __str__(self) -> str:
        return f"look {self.number:,} of {self.planned:,}"


def parse_ship_rule(text: str) -> ShipRule:
    """Return the rule of some words; ParameterError, which says how one is written, if they are none.

    >>> parse_ship_rule("uplift > 0.002").limit, parse_ship_rule("uplift > 2%").limit
    (0.002, 0.02)
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ParameterError(f"`ship_if` {text!r} is no rule.", remedy=_HOW)
    _, number, percent = found.groups()
    if not math.isfinite(limit := float(number)):
        raise ParameterError(f"`ship_if` {text!r}: the limit is no number.", remedy=_HOW)
    return ShipRule(text.strip(), limit / 100.0, True) if percent else ShipRule(text.strip(), limit)


def parse_look(text: str) -> Look | None:
    """Return the look of some words; None for the only one, which has all of the error.

    ParameterError, which says how one is written, if they are none.

    >>> parse_look("3 of 5") == parse_look("3/5") == Look(3, 5)
    True
    """
    found = _LOOK.fullmatch(text)
    number, planned = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= planned <= _MOST_LOOKS:
        how = f"write '3 of 5': the third of five looks that were planned, of {_MOST_LOOKS:,} at most."
        raise ParameterError(f"`look` {text!r} is no look.", remedy=how)
    return None if planned == 1 else Look(number, planned)
