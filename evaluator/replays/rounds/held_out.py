"""Shares of a log: which displays are judged, and the last ones, held out to evaluate the final policy on them."""

from __future__ import annotations

from typing import Literal

from evaluator.errors import DataError, ParameterError

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
            remedy="take another share, or a longer log.",
        )
    return displays


def parse_share(text: str, *, end: Literal["first", "last"], option: str) -> float:
    """Return the share of the displays that ``first:20%`` or ``last:20%`` names.

    >>> parse_share("first:20%", end="first", option="`delays_from`")
    0.2

    Raises
    ------
    ParameterError
        The text has another form or end, or a share outside (0, 100) percent; the message names the option.
    """
    kind, _, percent = text.strip().partition(":")
    try:
        share = float(percent.removesuffix("%")) / 100.0
        if kind == end and percent.endswith("%") and 0.0 < share < 1.0:
            return share
    except ValueError:
        pass
    raise ParameterError(f"{option} {text!r} is no part of the log.", remedy=f"the {end} displays: {end}:20%.")


def known_share(text: str) -> float:
    """Return the share of ``--delays-from``."""
    return parse_share(text, end="first", option="`delays_from`")


def final_share(text: str) -> float:
    """Return the share of ``--final``."""
    return parse_share(text, end="last", option="`final`")
