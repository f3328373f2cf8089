"""What must not happen to a kind of events, stated before a replay, and whether it did: never by an estimate alone.

A guardrail names a limit of the value per display of an outcome, or of `sales`, `refunds`, `revenue` or `cost`, or of
the difference of that to the logging policy's. It is answered by an interval at the run's level, adjusted for the
number m of guardrails that are stated together (Bonferroni): each interval fails with a probability of at most alpha /
m, and so any wrong answer, *holds* or *broken*, is given with a probability of at most alpha, whatever the dependence
of the outcomes. Where the interval holds the limit, nothing can be told.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluator.errors import ParameterError, UnknownNameError
from evaluator.estimates.confidence import Interval
from evaluator.estimates.paired import difference
from evaluator.log import Log
from evaluator.log.reward_kinds import may_be_below_0, name_kind
from evaluator.results.json_documents import Finite, Positive

Quantity = Literal["value", "uplift", "relative uplift"]
Verdict = Literal["holds", "broken", "cannot tell"]

_GRAMMAR = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*([<>])\s*([+-]?)((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
_HOW = (
    "write an outcome (or sales, refunds, revenue, cost), < or >, and a limit: 'unsubscribe < +0.001' (at most so much "
    "more per display than the logging policy), 'unsubscribe < +5%' (than its value), or 'unsubscribe < 0.02' (the "
    "value itself)."
)


@dataclass(frozen=True)
class Guardrail:
    """A limit that an outcome, or another kind of events, must keep, with the words that state it.

    What is limited is the value per display, its difference to the logging policy's, or that difference as a share of
    the logging policy's; the limit is a share where the words give per cent. The quantity must stay `below` it, or
    above.
    """

    text: str
    outcome: str
    quantity: Quantity
    below: bool
    limit: float

    def verdict(self, of: Interval) -> Verdict:
        """Return what an interval of the quantity says."""
        low, high = (of.low, of.high) if self.below else (-of.high, -of.low)
        limit = self.limit if self.below else -self.limit
        return "holds" if high < limit else "broken" if low >= limit else "cannot tell"


@dataclass(frozen=True)
class GuardrailAnswer:
    """Whether a guardrail holds.

    Parameters
    ----------
    guardrail
        Words that state it.
    outcome, quantity, limit
        Outcome, quantity and limit of it, as of `Guardrail`.
    answer
        Verdict: it holds, it is broken, or the log cannot tell.
    interval
        Interval of the quantity by which that was answered, at the adjusted level.
    tests
        Number of answers that the level is adjusted for.
    """

    guardrail: str
    outcome: str
    quantity: Quantity
    limit: Finite
    answer: Verdict
    interval: Interval
    tests: Positive


def parse_guardrail(text: str) -> Guardrail:
    """Return a guardrail from its words.

    Raises
    ------
    ParameterError
        They are no guardrail; says how one is written.

    Examples
    --------
    >>> parse_guardrail("unsubscribe < +5%")
    Guardrail(text='unsubscribe < +5%', outcome='unsubscribe', quantity='relative uplift', below=True, limit=0.05)
    """
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ParameterError(f"`guardrails` {text!r} is no guardrail.", remedy=_HOW)
    outcome, side, sign, number, percent = found.groups()
    limit = float(sign + number)
    if percent and not sign:
        raise ParameterError(
            f"`guardrails` {text!r}: {number}% of what?",
            remedy=f"'{outcome} {side} +{number}%' is relative to the logging policy; a value has a plain number.",
        )
    if not math.isfinite(limit):
        raise ParameterError(f"`guardrails` {text!r}: the limit is no number.", remedy=_HOW)
    quantity: Quantity = "relative uplift" if percent else "uplift" if sign else "value"
    return Guardrail(text.strip(), outcome, quantity, side == "<", limit / 100.0 if percent else limit)


def parse_guardrails(texts: Sequence[str] | None) -> list[Guardrail]:
    """Return guardrails from their words, none for None; errors as of `parse_guardrail`, or one is there twice."""
    found = [parse_guardrail(text) for text in texts or ()]
    limits = [(one.outcome, one.quantity, one.below, one.limit) for one in found]
    for one, limit in zip(found, limits, strict=True):
        if limits.count(limit) > 1:
            raise ParameterError(f"`guardrails` {one.text!r} is there twice.", remedy="state each once.")
    return found


def limited_kinds(log: Log, guardrails: Sequence[Guardrail]) -> list[str]:
    """Return the names of the kinds of events that guardrails limit, each once.

    Raise UnknownNameError if the log does not have a kind, ParameterError if a share is limited of what may be below 0.
    """
    kinds = []
    for one in guardrails:
        try:
            kinds.append(name_kind(log, one.outcome))
        except UnknownNameError as error:
            raise UnknownNameError(f"`guardrails` {one.text!r}: {error.what}", remedy=error.remedy) from None
        if one.quantity == "relative uplift" and may_be_below_0(log, one.outcome):
            raise ParameterError(
                f"`guardrails` {one.text!r}: values of {one.outcome} may be below 0, and no share of them is defined.",
                remedy=f"limit the difference itself: '{one.outcome} {'< +' if one.below else '> -'}0.001'.",
            )
    return list(dict.fromkeys(kinds))


def refuse_on_a_choice(log: Log, guardrails: Sequence[Guardrail]) -> None:
    """Raise ParameterError at limits relative to the logging policy where propensities of kept actions vary.

    On a choice of actions whose propensities depend on the display, a replay is valued on the traffic, the logging
    policy where it showed a kept action: of a policy that does what the logging policy did, that difference is not 0,
    and no interval of it answers what was asked.
    """
    for one in guardrails:
        if one.quantity != "value":
            raise ParameterError(
                f"`guardrails` {one.text!r} compares with the logging policy, whose displays in log {log.meta.name!r} "
                "are no even sample of those that a replay is valued on: the log keeps the displays of some actions, "
                "with propensities that depend on the context.",
                remedy=f"limit the value itself, '{one.outcome} {'<' if one.below else '>'} 0.02'; or replay the log "
                "with all actions.",
            )


def relative(value: Interval, logging: Interval) -> Interval:
    """Return the interval of value / logging - 1, of values that are not negative, from theirs at half its error.

    The quotient of two numbers above 0 that each lie in their interval lies between the quotients of the ends; where
    the logging policy's value may be 0, it has no upper end.
    """
    plain = difference(value, logging)
    return Interval(
        estimate=value.estimate / logging.estimate - 1.0 if logging.estimate > 0.0 else math.nan,
        low=value.low / logging.high - 1.0,
        high=value.high / logging.low - 1.0 if logging.low > 0.0 else math.inf,
        n=plain.n,
        level=plain.level,
        kind=plain.kind,
    )
