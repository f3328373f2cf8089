"""What a log must hold for the joint model of conversion and delay to be right about its rate.

Measured by ``python -m tests.bench.delays_truth joint``: with fewer conversions, or where much is still to come after
the longest follow-up, intervals hold on clearly fewer logs than they say.
"""

from __future__ import annotations

from evaluator.errors import DataError

FEWEST_CONVERSIONS = 100
CONVERSIONS_A_DIRECTION = 10
# Of the conversions that the model expects: those later than any display was followed rest on the law alone.
MOST_UNSEEN = 0.15


def check_conversions(conversions: int, directions: int) -> None:
    """Raise `DataError` where the conversions are too few for contexts of so many directions."""
    needed = max(FEWEST_CONVERSIONS, CONVERSIONS_A_DIRECTION * directions)
    if conversions < needed:
        raise DataError(
            f"`joint`: {conversions:,} of the displays converted; the model needs {needed:,} for contexts of "
            f"{directions} independent columns ({CONVERSIONS_A_DIRECTION} each, {FEWEST_CONVERSIONS} at least).",
            hint="give the log fewer context columns, or wait for more conversions.",
        )


def check_follow_up(unseen: float) -> None:
    """Raise `DataError` where too many of the conversions expected are later than any display was followed."""
    if not unseen <= MOST_UNSEEN:
        raise DataError(
            f"`joint`: {unseen:.0%} of the conversions that the model expects are later than any display was followed: "
            f"their number rests on the law alone (at most {MOST_UNSEEN:.0%} may).",
            hint="wait until displays are older, or name an attribution window in the spec.",
        )
