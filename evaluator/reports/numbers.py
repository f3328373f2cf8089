"""Numbers as text, with the decimals that their errors justify."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from evaluator.results.tabular import IntervalEnds

# Largest number of decimals; numbers that need more are written with a power of ten.
_MOST_DIGITS = 7
_MOST_DECIMALS = 12
# Significant digits of a number whose error is not known.
_UNMEASURED = 4


def count_text(value: float) -> str:
    """Return a count with separated thousands, or a share with six digits.

    >>> count_text(16468027.0), count_text(0.1862651)
    ('16,468,027', '0.186265')
    """
    return f"{value:,.0f}" if float(value).is_integer() else significant_text(value, 6)


def percent_text(share: float) -> str:
    """Return a share in whole per cent.

    >>> percent_text(0.125)
    '12 %'
    """
    return f"{share:.0%}".replace("%", " %")


def significant_text(value: float, digits: int, *, sign: bool = False) -> str:
    """Return a number with so many significant digits, never with a power of ten.

    >>> significant_text(0.052731, 2), significant_text(12034.2, 4), significant_text(0.0000123, 2)
    ('0.053', '12,034', '0.000012')
    """
    plus = "+" if sign else ""
    # 0 has no sign.
    text = f"{value:{plus},.{digits}g}" if value else "0"
    if "e" not in text:
        return text
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return text if decimals > _MOST_DECIMALS else f"{value:{plus},.{max(decimals, 0)}f}"


def column_digits(errors: Iterable[float], *, least: int = 1) -> int:
    """Return the decimals of a column of numbers: two digits of its largest standard error, and one of its smallest.

    An error that is not above 0 counts as unknown; a column without errors has `least` decimals.

    >>> column_digits([2.2, 0.45]), column_digits([0.031, 0.0004]), column_digits([1234.0]), column_digits([])
    (1, 4, 0, 1)
    """
    known = [error for error in errors if error > 0 and math.isfinite(error)]
    if not known:
        return least
    return min(max(1 - math.floor(math.log10(max(known))), -math.floor(math.log10(min(known))), 0), _MOST_DIGITS + 1)


def error_text(value: float, error: float, digits: int, plus_minus: str, *, sign: bool = False) -> str:
    """Return a number with its standard error, if that is above 0, in the decimals of its column.

    >>> error_text(18.83, 0.45, 1, "±"), error_text(0.0, 0.0, 1, "±", sign=True)
    ('18.8 ± 0.5', '+0.0')
    """
    known = f" {plus_minus} {error:,.{digits}f}" if error > 0 else ""
    return f"{value:{'+' if sign else ''},.{digits}f}{known}"


@dataclass(frozen=True)
class Measured:
    """A cell of a table with an estimate, its interval or both; the errors in the table determine the decimals.

    Ends that are not known are nan.
    """

    estimate: float
    low: float
    high: float
    part: Literal["estimate", "interval", "below", "beside"]
    sign: bool = False

    @property
    def error(self) -> float:
        """Half the length of the interval, or the length of its known half; nan if no end is known."""
        known = [abs(end - self.estimate) for end in (self.low, self.high) if math.isfinite(end)]
        return sum(known) / len(known) if known else math.nan

    def lines(self, decimals: int | None) -> tuple[str, ...]:
        """Return the lines of the cell; if `decimals` is None, numbers have their significant digits."""
        unknown = math.isnan(self.estimate)
        value = "unknown" if unknown else self._text(self.estimate, decimals)
        if unknown or math.isnan(self.low):
            ends = "none"
        else:
            ends = f"[{self._text(self.low, decimals)}, {self._text(self.high, decimals)}]"
        parts = {"estimate": (value,), "interval": (ends,), "below": (value, ends), "beside": (f"{value} {ends}",)}
        return parts[self.part]

    def _text(self, value: float, decimals: int | None) -> str:
        if decimals is None or not math.isfinite(value):
            return significant_text(value, _UNMEASURED, sign=self.sign)
        return fixed_text(value, decimals, sign=self.sign)


def measured(interval: IntervalEnds, *, sign: bool = False) -> tuple[Measured, Measured]:
    """Return the cells of an estimate and of its interval."""
    ends = interval.estimate, interval.low, interval.high
    return Measured(*ends, "estimate", sign), Measured(*ends, "interval", sign)


def measured_below(interval: IntervalEnds, *, sign: bool = False) -> Measured:
    """Return the cell of an estimate with its interval below."""
    return Measured(interval.estimate, interval.low, interval.high, "below", sign)


def fixed_text(value: float, decimals: int, *, sign: bool = False) -> str:
    """Return a number with some decimals; a number that rounds to 0 has no sign.

    >>> fixed_text(-0.0004, 2, sign=True), fixed_text(1234.5678, 2, sign=True)
    ('0.00', '+1,234.57')
    """
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    return text if any(digit in text for digit in "123456789") else text.lstrip("+-")


def interval_text(estimate: float, low: float, high: float, *, percent: bool = False, sign: bool = True) -> str:
    """Return an estimate with its interval; decimals show two significant digits of half the interval's length.

    Ends may be infinite.

    >>> interval_text(0.08713, -0.2561, 0.4304), interval_text(1234.5, 911.2, 1557.8, sign=False)
    ('+0.09 [-0.26, +0.43]', '1,234 [911, 1,558]')
    >>> interval_text(0.0312, -0.0123, math.inf, percent=True)
    '+3.1% [-1.2%, inf]'
    """
    known = [abs(end - estimate) for end in (low, high) if math.isfinite(end)]
    error = sum(known) / len(known) * (100.0 if percent else 1.0) if known else 0.0
    digits = max(1 - math.floor(math.log10(error)), 0) if error > 0.0 else _MOST_DIGITS + 1
    plus = "+" if sign else ""
    form = f"{plus},.{digits}{'%' if percent else 'f'}" if digits <= _MOST_DIGITS else f"{plus}.3g"

    def said(end: float) -> str:
        if not math.isfinite(end):
            return f"{end:g}"
        text = format(end, form)
        # A number that rounds to 0 has no sign.
        return format(0.0, form).lstrip("+") if float(text.replace(",", "").rstrip("%")) == 0.0 else text

    return f"{said(estimate)} [{said(low)}, {said(high)}]"


def interval_parts(interval: IntervalEnds, *, percent: bool = False, sign: bool = True) -> tuple[str, str, str]:
    """Return an estimate and the ends of its interval in as many digits as it supports, without signs of per cent.

    >>> interval_parts(Measured(0.48, 0.164, 0.802, "interval"))
    ('+0.48', '+0.16', '+0.80')
    """
    ends = interval.estimate, interval.low, interval.high
    number, _, rest = interval_text(*ends, percent=percent, sign=sign).replace("%", "").partition(" [")
    low, high = rest.rstrip("]").split(", ")
    return number, low, high
