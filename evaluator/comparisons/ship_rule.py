"""What must be told of a difference before a policy ships, stated before the run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from evaluator.errors import ParameterError
from evaluator.results.json_documents import Finite, Text

_GRAMMAR = re.compile(r"\s*uplift\s*(>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
_HOW = "write 'uplift > 0.002': at least so much more per round than the baseline; 'uplift > 0' asks for any more."


@dataclass(frozen=True)
class ShipRule:
    """A limit that a variant's difference to the baseline must be told to exceed.

    Parameters
    ----------
    text
        Words that state it.
    limit
        Limit in reward per round: the interval of the difference must lie above it.
    """

    text: Text
    limit: Finite

    @property
    def asked(self) -> bool:
        """Whether a difference of some size is asked for."""
        return self.limit > 0.0


ANY_UPLIFT = ShipRule("uplift > 0", 0.0)


def parse_ship_rule(text: str) -> ShipRule:
    """Return the rule of some words.

    Raises
    ------
    ParameterError
        They are no rule; says how one is written.

    Examples
    --------
    >>> parse_ship_rule("uplift > 0.002").limit
    0.002
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ParameterError(f"`ship_if` {text!r} is no rule.", remedy=_HOW)
    _, number, percent = found.groups()
    if percent:
        raise ParameterError(
            f"`ship_if` {text!r}: a share of what the baseline earns is not known before the run.",
            remedy=f"give the difference per round that it comes to. {_HOW[0].upper()}{_HOW[1:]}",
        )
    if not math.isfinite(limit := float(number)):
        raise ParameterError(f"`ship_if` {text!r}: the limit is no number.", remedy=_HOW)
    return ShipRule(text.strip(), limit)
