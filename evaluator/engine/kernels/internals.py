"""The fence around what Numba does not promise: where its version is not one that was tested, we do without.

What lies behind it makes code faster; it never changes what is computed.
"""

from __future__ import annotations

import re

import numba

# The versions with which the tests were run, from the first to the last; pyproject.toml installs none later.
FIRST_TESTED, LAST_TESTED = (0, 63), (0, 68)


def is_tested(version: str) -> bool:
    """Return whether a version of Numba is one that was tested.

    Examples
    --------
    >>> is_tested("0.68.1"), is_tested("0.99.0"), is_tested("unknown")
    (True, False, False)
    """
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and FIRST_TESTED <= (int(numbers[1]), int(numbers[2])) <= LAST_TESTED


TESTED = is_tested(numba.__version__)
