"""The roles that columns of the tables of a log may have: one row of a table each.

What a spec may name, how its cells are read, which of them break a rule and what to do about it, and whether a policy
may see them, all follow from that row. A new role is one row, its key in the spec, and its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import polars as pl

from evaluator.log.breaches import COST_REPAIR, NO_COST, WEIGHT_REPAIR
from evaluator.reading.cells import Kind
from evaluator.units import MOST_VALUE

# Differences of times fit into 64 bits too.
_LAST_TICK = 2**62
_LATER = "is known only after the outcome"


class Rule(NamedTuple):
    """A predicate of cells of a kind, true where they break the rule; what is wrong then, and what to do about it."""

    problem: str
    breaks: Callable[[pl.Series], pl.Series]
    repair: str


class Role(NamedTuple):
    """What a column may be.

    Parameters
    ----------
    key
        Key of the section of a spec that names it, as Python calls it.
    what
        What its cells say, as the schema of specs describes the key.
    kind
        How its cells are read; None for times, which ``[time]`` describes.
    unfit, known_before
        Why it is no feature, if it is none, and whether it may be known before the display all the same.
    rules
        Rules that its cells must keep, in the order in which they are told.
    number
        What the pass over the displays calls it, if it is a number that the log keeps of every display.
    words
        Words of a column's name that suggest it to who drafts a spec, the likeliest first.
    """

    key: str
    what: str
    kind: Kind | None
    unfit: str = ""
    known_before: bool = False
    rules: tuple[Rule, ...] = ()
    number: str | None = None
    words: tuple[str, ...] = ()

    def columns(self, section: object) -> list[str]:
        """Return the columns that a section of a spec names; none where it names none, or a value instead."""
        found = getattr(section, self.key)
        return [found] if isinstance(found, str) else found if isinstance(found, list) else []


def kinds_of(roles: Iterable[Role], section: object) -> dict[str, Kind]:
    """Return the kind of each column that a section of a spec names, but for times."""
    return {column: role.kind for role in roles if role.kind is not None for column in role.columns(section)}


MISSING = Rule("missing", pl.Series.is_null, "fill the cell, or quarantine the row")
# Of times, or delays, that are so large that sums and differences leave 64 bits.
BEYOND = Rule(
    "a time beyond 2^62 ticks",
    lambda times: ~times.is_between(-_LAST_TICK, _LAST_TICK),
    "check the column and time.unit, or quarantine the row",
)
# Of numbers of the context, which are float32: 1e39 is none.
FINITE = Rule("not finite", lambda cells: ~cells.cast(pl.Float32).is_finite().fill_null(True), "fill the cell")
_OF_LOGGER = "give the probability with which the logger showed the action"
# What the pass over the displays calls their numbers, as no column of the source is called.
PROPENSITY, WEIGHT, COST = "propensity", "display.weight", "display.cost"

DISPLAY = {
    role.key: role
    for role in (
        Role(
            "time",
            "column; absent, with unit = 'round', where rows are in the order of time: rounds count them",
            None, "is the time of the display, ever new (derive the hour or the weekday)", True, (MISSING, BEYOND),
        ),
        Role(
            "action", "column", "category", "is the action that was shown", rules=(MISSING,),
            words=(
                "action", "arm", "banner", "variant", "variation", "creative", "treatment", "campaign", "ad", "advert",
                "item", "offer", "article", "product", "recommendation", "experience", "message", "template", "group",
                "bucket", "cell", "promotion", "promo",
            ),
        ),
        Role(
            "propensity",
            "column; or, by design, the number for all actions, or each one's: { red = 0.4, blue = 0.6 }",
            "float", "is the chance of the action that was shown",
            rules=(
                Rule("propensity missing or nan", lambda p: p.is_null() | p.is_nan(), _OF_LOGGER),
                Rule("propensity 0 although the action was shown", lambda p: p == 0, _OF_LOGGER),
                Rule("negative propensity", lambda p: p < 0, _OF_LOGGER),
                Rule("propensity above 1", lambda p: (p > 1) & p.is_not_nan(), _OF_LOGGER),
            ),
            number=PROPENSITY, words=("p", "prob", "probs", "probability", "propensity", "pscore", "pi", "prop"),
        ),
        Role(
            "weight", "one over the probability with which the display got into the log",
            "float", "says how likely the display was kept, by its outcome",
            rules=(Rule("no weight above 0", lambda w: ~(w.is_finite() & (w > 0)).fill_null(False), WEIGHT_REPAIR),),
            number=WEIGHT, words=("weight", "weights"),
        ),
        Role(
            "cost", "what showing the display cost, 0 or more, in the unit of the values",
            "float", "is the cost of the action that was shown", True,
            (Rule(NO_COST, lambda cost: ~cost.is_between(0.0, MOST_VALUE).fill_null(False), COST_REPAIR),),
            number=COST, words=("cost", "costs"),
        ),
        Role(
            "eligible", "lists the actions that could have been shown; every action when absent",
            "labels", "lists the eligible actions",
        ),
        Role(
            "user", "identifies the user, where conversions are joined to displays by user and time",
            "text", "identifies the user", True,
            words=(
                "user", "users", "visitor", "customer", "cookie", "member", "account", "subscriber", "client", "person",
                "profile", "email", "contact", "uid", "device", "cuid", "idfa", "gaid", "anonymous", "amplitude",
                "distinct", "braze",
            ),
        ),
        Role(
            "id", "identifies the display; row order when absent", "text", "identifies the display",
            rules=(Rule("missing", pl.Series.is_null, "give every display an id"),),
        ),
    )
}  # fmt: skip

# Of a value, which counts on rows that hold an event.
_VALUES = (
    Rule("value not finite", lambda value: ~value.is_finite().fill_null(False), "fill the cell"),
    Rule(
        f"value beyond {MOST_VALUE:g}", lambda value: (value.is_finite() & (value.abs() > MOST_VALUE)).fill_null(False),
        "repair the cell, or count in a larger unit",
    ),
)  # fmt: skip
_FLAG = Rule(
    "not 0 or 1", lambda flag: ~flag.is_in([0, 1]).fill_null(False), "write 1 on rows that converted and 0 elsewhere"
)
# Key and value may be known before the display; those of a second table share no more than a name with its columns.
EVENT = {
    role.key: role
    for role in (
        Role("key", "columns that identify one conversion", "text", "identifies {}", True),
        Role("indicator", "1 on rows that converted; else a time means conversion", "flag", _LATER, rules=(_FLAG,)),
        Role("click", "1 on rows that may carry a conversion", "flag", _LATER),
        Role("attributed", "1 on conversions attributed to the logger", "flag", _LATER),
        Role(
            "value",
            "column, or the value of every conversion",
            "float",
            "is the value of {}",
            True,
            _VALUES,
            words=(
                "revenue",
                "value",
                "total",
                "amount",
                "price",
                "gmv",
                "profit",
                "payout",
                "basket",
                "spend",
                "spent",
                "reward",
                "subtotal",
            ),
        ),
        Role("delay", "delay in ticks, instead of the time", "int", _LATER, rules=(BEYOND,)),
        Role("time", "column", None, _LATER, rules=(BEYOND,)),
    )
}

# Of the tables of candidates, of calendars, and of policies to be evaluated.
_OF_CANDIDATE = "fill the cell, or quarantine the display"


def _probability(word: str, repair: str) -> tuple[Rule, Rule]:
    """Return the rules of what is a probability of an action that need not have been shown."""
    return (
        Rule(f"{word} missing or nan", lambda p: p.is_null() | p.is_nan(), repair),
        Rule(f"{word} outside [0, 1]", lambda p: (p.is_not_nan() & ((p < 0) | (p > 1))).fill_null(False), repair),
    )


def _number(repair: str) -> Rule:
    """Return the rule of what is a number of a vector, which is of single precision: 1e39 is none."""
    return Rule("missing or not finite", lambda cells: ~cells.cast(pl.Float32).is_finite().fill_null(False), repair)


CANDIDATE = {
    role.key: role
    for role in (
        Role(
            "display", "column that holds the id of the display", "text",
            rules=(Rule("missing", pl.Series.is_null, "fill the cell, none is left out"),),
        ),
        Role(
            "action", "column that holds the label of the action", "category",
            rules=(Rule("missing", pl.Series.is_null, _OF_CANDIDATE),),
        ),
        Role(
            "features", "numbers about the action at that display: its vector, in this order", "float",
            rules=(_number(_OF_CANDIDATE),),
        ),
        Role(
            "propensity", "probability with which it would be shown; 1 over a display's candidates", "float",
            rules=_probability("propensity", "give the probability with which the logger would have shown the action"),
        ),
    )
}  # fmt: skip
CALENDAR = {
    role.key: role
    for role in (
        Role(
            "action", "column that holds the label of the action", "category",
            rules=(MISSING._replace(repair="fill the cell"),),
        ),
        Role("start", "its first time; ever where the cell is empty", None, rules=(BEYOND,)),
        Role(
            "until", "first time at which it no longer was; for good where the cell is empty", None, rules=(BEYOND,)
        ),
    )
}  # fmt: skip
TARGETS = {
    role.key: role
    for role in (
        Role(
            "display", "column that holds the id of the display", "text",
            rules=(Rule("missing", pl.Series.is_null, "fill the cell, or leave the row out"),),
        ),
        Role("action", "column with the label of the action that the policy takes", "category"),
        Role(
            "columns",
            "column of each action's label, or one name for all with {action} for the label: 'pi_{action}', which "
            "hold the probabilities of the actions",
            "float", rules=_probability("probability", "give the probability with which the policy shows the action"),
        ),
    )
}  # fmt: skip
VECTORS = Role(
    "columns",
    "one name for all actions with {action} for the label: 'affinity_{action}'; several give a vector of so many "
    "numbers, in this order",
    "float",
    rules=(_number("fill the cell, 0 where it says nothing of the action, or quarantine the row"),),
)
