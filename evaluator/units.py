"""Durations as users write them (``7d``) and ticks as logs count them."""

from __future__ import annotations

import re

from evaluator.errors import ParameterError

SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
ROUND = "round"
# A window no delay reaches.
NO_WINDOW = 2**62
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h|d|w)")


def parse_duration(text: str) -> float:
    """Return the seconds in a duration such as ``90s``, ``15min``, ``1h``, ``7d``.

    >>> parse_duration("1.5h")
    5400.0

    Raises
    ------
    ParameterError
        The text is not a number followed by one of ns, us, ms, s, min, h, d, w.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ParameterError(
            f"Expected a duration, got {text!r}.",
            hint=f"write a number and a unit ({', '.join(SECONDS)}): 7d.",
        )
    return float(match[1]) * SECONDS[match[2]]


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that keeps the number above one.

    >>> format_duration(272160)
    '3.15 d'
    """
    for unit in ("d", "h", "min", "s", "ms", "us"):
        if seconds >= SECONDS[unit]:
            return f"{seconds / SECONDS[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"
