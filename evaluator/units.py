"""Durations as users write them (``7d``), ticks as logs count them, and which numbers a log may hold."""

from __future__ import annotations

import re
from typing import Literal

from evaluator.errors import ParameterError
from evaluator.escape import shortened

Tick = Literal["ns", "us", "ms", "s", "min", "h", "d", "round"]
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
ROUND: Tick = "round"
# A window no delay reaches.
NO_WINDOW = 2**62
# Delays of a sample count the displays of its traffic: this is how many for each of its own. A delay of 9 billion
# displays, times that, is the last that 64 bits hold; `evaluator.replays.rounds.clock` says which delays it carries.
LEAST_SAMPLE = 1e-9
# Values are squared, weighted and summed: that stays finite far beyond any log's length.
MOST_VALUE = 1e100
_DIGITS = 19
_TICKS = re.compile(r"(\d[\d,]*(?:\.\d+)?) ticks")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|min|h|d|w)")


def parse_duration(text: str) -> float:
    """Return the seconds in a duration such as ``90s``, ``15min``, ``1h``, ``7d``; ParameterError for any other text.

    >>> parse_duration("1.5h")
    5400.0
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ParameterError(
            f"Expected a duration, got {shortened(text)!r}.",
            remedy=f"write a number and a unit ({', '.join(SECONDS)}): 7d.",
        )
    return float(match[1]) * SECONDS[match[2]]


def duration_ticks(text: str, tick_seconds: float) -> float:
    """Return the ticks in a duration, not rounded; ParameterError where it is none, or of more ticks than 64 bits hold.

    >>> duration_ticks("1.5h", 60.0)
    90.0
    """
    ticks = parse_duration(text) / tick_seconds
    if ticks >= NO_WINDOW:
        raise ParameterError(
            f"{text!r} is longer than any log.", remedy="64 bits hold 146 years of ns, or 146,000 of us."
        )
    return ticks


def rounds_of_window(window: str | int | None, recommended: int | None) -> int | None:
    """Return a window in rounds: a number, none, or the recommended one where none is named; None cuts nothing off.

    >>> rounds_of_window(" none", 5), rounds_of_window(None, 5), rounds_of_window("20", 5)
    (None, 5, 20)
    """
    if window is None:
        return recommended
    word = str(window).strip()
    rounds = parse_whole(word)
    if word != "none" and not rounds:
        raise ParameterError(
            f"`window={shortened(repr(window))}` is no number of rounds.", remedy="take 1 round or more, or none."
        )
    return rounds


def parse_whole(text: str) -> int | None:
    """Return the whole number that a text spells in digits, None where it spells none; ParameterError beyond 64 bits.

    >>> parse_whole(" 2000 "), parse_whole("7d"), parse_whole("-5")
    (2000, None, None)
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal()):
        return None
    if len(digits) > _DIGITS or int(digits) >= NO_WINDOW:
        raise ParameterError(f"{shortened(text)!r} is a number beyond 64 bits.", remedy="take a smaller one.")
    return int(digits)


def is_whole(value: object, least: int, bits: int = 63) -> bool:
    """Return whether a value is a whole number from `least` on that so many bits hold.

    >>> is_whole(3, 1), is_whole(True, 1), is_whole(0, 1), is_whole(2**63, 1)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**bits


def ticks_words(ticks: float, tick_seconds: float | None) -> str:
    """Return ticks as a duration, or as a number of rounds where the log counts these.

    >>> ticks_words(2000, None), ticks_words(1, None), ticks_words(36, 3600.0)
    ('2,000 rounds', '1 round', '1.5 d')
    """
    if tick_seconds is None:
        return f"{ticks:,.0f} round{'' if round(ticks) == 1 else 's'}"
    return format_duration(ticks * tick_seconds)


def without_ticks(sentence: str, tick_seconds: float | None) -> str:
    """Return a sentence of a function that knows no unit, ``... 2,400 ticks``, with durations (or rounds) in it.

    >>> without_ticks("given at most 2,400 ticks", 3600.0)
    'given at most 100 d'
    """
    return _TICKS.sub(lambda found: ticks_words(float(found[1].replace(",", "")), tick_seconds), sentence)


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that keeps the number above one.

    >>> format_duration(272160)
    '3.15 d'
    """
    for unit in ("d", "h", "min", "s", "ms", "us", "ns"):
        if seconds >= SECONDS[unit]:
            return f"{seconds / SECONDS[unit]:.3g} {unit}"
    return f"{seconds:.3g} s"
