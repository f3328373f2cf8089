"""Shares of a log: which displays are judged, and the last ones, held out to evaluate the final policy on them."""

from __future__ import annotations

from typing import Literal

from evaluator.errors import DataError
from evaluator.replays.rounds.shares import final_share

FinalPolicyName = Literal["greedy", "exploring"]


def held_out(used: int, text: str) -> int:
    """Return how many of the displays that can be judged are left for the final policy.

    Raises
    ------
    DataError
        The share leaves none of them, or all: the log is too short for it.
    """
    displays = round(final_share(text) * used)
    if not 0 < displays < used:
        raise DataError(
            f"`final='{text}'` leaves {used - displays:,} displays to replay and {displays:,} for the final policy.",
            hint="take another share, or a longer log.",
        )
    return displays
