"""What time stamps tell apart: the unit that a log's times are whole multiples of, whatever its tick.

A delay between two stamps is known up to one stamp; `delays_within_stamps` draws it. The mean number of stamps between
display and conversion is the mean delay in stamps, whatever the law, where displays are spread evenly over theirs; so a
constant hazard of that mean is assumed within a stamp. Conversions spread evenly over what is left of their stamp would
come late by up to a third of it where delays are much shorter (`tests/statistical/test_coarse_stamps.py`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Time stamps of so many seconds are coarse: what they do not tell is a good part of many windows.
COARSE_S = 60.0
# A delay of fewer time stamps than this is known by a tenth at best.
TOLD_APART = 10
# Displays that share a time stamp from which it matters that their order is not known.
FEW_SHARE = 10
# Points of a distribution function that is inverted.
_POINTS = 4_096


def stamp_of(*differences: Ints, known: int = 0) -> int:
    """Return the largest number of ticks of which all these are whole multiples, `known` among them; 1 if all are 0.

    A log in microseconds whose times are whole seconds is the log in seconds, and says no more of a delay than it.

    Examples
    --------
    >>> stamp_of(np.array([0, 120, 300]), np.array([60])), stamp_of(np.array([0, 0]))
    (60, 1)
    """
    for values in differences:
        if known == 1:
            break
        known = int(np.gcd.reduce(np.abs(values), initial=known))
    return known or 1


def delays_within_stamps(stamps: Ints, uniform: Floats) -> Floats:
    """Return delays in stamps, drawn given how many stamps lie between display and conversion, shape (c,).

    With hazard h and a display anywhere in its stamp, a delay d with k stamps between has the density
    exp(-h d) (1 - |d - k|) for 0 < d and k - 1 < d < k + 1: one law for k = 0, and one of d - k for all others.

    Parameters
    ----------
    stamps
        Number of stamps from that of the display to that of the conversion, 0 where both are one, shape (c,).
    uniform
        Draws between 0 and 1, shape (c,).

    Examples
    --------
    >>> delays_within_stamps(np.array([0, 0, 1]), np.array([0.1, 0.9, 0.5])).round(2)
    array([0.02, 0.46, 0.51])
    """
    if not len(stamps):
        return np.zeros(0)
    hazard = len(stamps) / max(int(stamps.sum()), 1)
    drawn = np.empty(len(stamps))
    for same in (True, False):
        of = (stamps == 0) == same
        length = 1.0 if same else 2.0
        # Quantiles of exp(-h x) from 0 to `length`, closer together in the tail; the rest of the density weighs them.
        q = 1.0 - np.linspace(1.0, 0.0, _POINTS) ** 3
        with np.errstate(divide="ignore"):
            x = np.minimum(-np.log1p(np.expm1(-hazard * length) * q) / hazard, length)
        weight = 1.0 - x if same else 1.0 - np.abs(x - 1.0)
        below = np.concatenate([[0.0], np.cumsum((weight[1:] + weight[:-1]) * np.diff(q))])
        drawn[of] = stamps[of] - (0.0 if same else 1.0) + np.interp(uniform[of] * below[-1], below, x)
    return drawn
