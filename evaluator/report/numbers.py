"""Numbers as people read them."""

from __future__ import annotations

import math

# So small a number is read by its power of ten.
_MOST_DIGITS = 7


def count_text(value: float) -> str:
    """Return a count with thousands separated, or a share with six digits.

    >>> count_text(16468027.0), count_text(0.1862651)
    ('16,468,027', '0.186265')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def interval_text(estimate: float, low: float, high: float, *, percent: bool = False, sign: bool = True) -> str:
    """Return an estimate with its interval, in as many digits as its error carries: two of half the interval's length.

    Parameters
    ----------
    estimate, low, high
        Estimate and the ends of its interval, of which one may not be finite.
    percent
        Whether to write shares as per cent.
    sign
        Whether to write the sign of numbers above 0.

    Examples
    --------
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
        return format(end, form) if math.isfinite(end) else f"{end:g}"

    return f"{said(estimate)} [{said(low)}, {said(high)}]"
