"""Numbers as people read them."""

from __future__ import annotations


def count_text(value: float) -> str:
    """Return a count with thousands separated, or a share with six digits.

    >>> count_text(16468027.0), count_text(0.1862651)
    ('16,468,027', '0.186265')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
