"""Whether the joint model of conversion and delay holds: conversions expected by now beside those seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.results.json_documents import Count, NotNegative, Share, in_document

Floats = npt.NDArray[np.float64]
_PARTS = 10
# Below this level of the test the model is said not to hold.
_LEVEL = 0.05
_POWER = 0.8


@dataclass(frozen=True)
class CalibrationPart:
    """Some displays, and how many of them should have converted by now.

    Parameters
    ----------
    low, high
        Range of what the displays were sorted by: predicted conversion rate, or ticks followed.
    displays
        Number of displays in the part.
    seen
        Number of them that have converted.
    expected
        Number of them that should have converted by now, by the model.
    error
        Standard deviation of `seen` if the model holds, in displays.
    """

    low: float
    high: float
    displays: Count
    seen: Count
    expected: NotNegative
    error: NotNegative


@dataclass(frozen=True)
class Calibration:
    """Goodness of fit of the joint model (`calibrate`).

    Parameters
    ----------
    by_rate, by_age
        Tenths of the displays by predicted conversion rate, and by how long they were followed, those of equal age
        together.
    p
        Bonferroni's p-value of the part that is furthest off, normal: cautious, as the model was fitted to the same
        displays.
    """

    by_rate: tuple[CalibrationPart, ...]
    by_age: tuple[CalibrationPart, ...]
    p: Share

    @in_document
    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.p > _LEVEL

    @in_document
    @property
    def detectable(self) -> float:
        """By how much of its expected conversions a middling part must be off to be found on 4 of 5 logs.

        Of the parts' (z + .84) errors / expected the median, z the two-sided normal quantile at Bonferroni's level; inf
        where a middling part expects no conversion.
        """
        from scipy.special import ndtri

        parts = (*self.by_rate, *self.by_age)
        width = float(-ndtri(0.5 * _LEVEL / len(parts)) + ndtri(_POWER))
        return float(np.median([width * part.error / part.expected if part.expected else math.inf for part in parts]))

    @property
    def worst(self) -> tuple[str, CalibrationPart]:
        """The part furthest off, in standard deviations, and what it is of: ``rate`` or ``age``."""
        parts = [("rate", part) for part in self.by_rate] + [("age", part) for part in self.by_age]
        return max(parts, key=lambda named: _distance(named[1]))


def calibrate(probability: Floats, share: Floats, elapsed: Floats, converted: npt.NDArray[np.bool_]) -> Calibration:
    """Return expected beside seen conversions.

    A display should have converted by now with probability p (1 - exp(-r e)); the number of those that have is a sum of
    independent indicators.

    Parameters
    ----------
    probability
        Probability that each display ever converts, by the model, shape (n,).
    share
        Share of each display's conversions that come within what it was followed for, 1 - exp(-r e), shape (n,).
    elapsed
        Number of ticks that each display was followed for, shape (n,).
    converted
        Whether each display has converted, shape (n,).

    Examples
    --------
    >>> half = np.full(100, 0.5)
    >>> found = calibrate(half, np.ones(100), np.full(100, 9.0), np.arange(100) < 80)
    >>> found.by_age[0].seen, found.by_age[0].expected, found.holds
    (80, 50.0, False)
    """
    now = probability * share
    parts = [_parts(by, now, converted) for by in (probability, np.asarray(elapsed, np.float64))]
    furthest = max(_distance(part) for of in parts for part in of)
    p = min(1.0, sum(map(len, parts)) * math.erfc(furthest / math.sqrt(2.0)))
    return Calibration(parts[0], parts[1], p)


def _parts(by: Floats, now: Floats, converted: npt.NDArray[np.bool_]) -> tuple[CalibrationPart, ...]:
    edges = np.unique(np.quantile(by, np.arange(1, _PARTS) / _PARTS, method="higher"))
    of = np.searchsorted(edges, by, side="left")
    out = []
    for part in np.unique(of).tolist():
        mine = of == part
        chance = now[mine]
        out.append(
            CalibrationPart(
                low=float(by[mine].min()),
                high=float(by[mine].max()),
                displays=int(mine.sum()),
                seen=int(converted[mine].sum()),
                expected=float(chance.sum()),
                error=math.sqrt(float((chance * (1.0 - chance)).sum())),
            )
        )
    return tuple(out)


def _distance(part: CalibrationPart) -> float:
    return abs(part.seen - part.expected) / part.error if part.error > 0 else 0.0
