"""What must be told of a difference before a policy ships, stated before the run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evaluator.errors import ParameterError
from evaluator.results.json_documents import Finite, Text

_GRAMMAR = re.compile(r"\s*uplift\s*(>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
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


def parse_ship_rule(text: str) -> ShipRule:
    """Return the rule of some words.

    Raises
    ------
    ParameterError
        They are no rule; says how one is written.

    Examples
    --------
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
