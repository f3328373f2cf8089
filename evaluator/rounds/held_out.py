"""The last displays of a log, left out of a replay so that its final policy can be evaluated on them."""

from __future__ import annotations

from evaluator.errors import DataError, ParameterError


def parse_last(text: str) -> float:
    """Return the share of the displays that ``last:20%`` names.

    >>> parse_last("last:20%")
    0.2

    Raises
    ------
    ParameterError
        Another form, or a share outside (0, 100) percent.
    """
    kind, _, percent = text.strip().partition(":")
    try:
        share = float(percent.removesuffix("%")) / 100.0
        if kind == "last" and percent.endswith("%") and 0.0 < share < 1.0:
            return share
    except ValueError:
        pass
    raise ParameterError(f"--final {text!r} is no part of the log.", hint="the last displays: last:20%.")


def held_out(used: int, text: str) -> int:
    """Return how many of the displays that can be judged are left for the final policy.

    Raises
    ------
    DataError
        None of them, or all: too short a log for the share.
    """
    displays = round(parse_last(text) * used)
    if not 0 < displays < used:
        raise DataError(
            f"--final {text} leaves {used - displays:,} displays to replay and {displays:,} for the final policy.",
            hint="take another share, or a longer log.",
        )
    return displays
