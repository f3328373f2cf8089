"""Until when a log was followed, where its spec says "until its end": the latest event, but for strays.

A log holds what came until someone stopped looking. Its end is the last display, or the last conversion if the log
was followed on. One stray conversion, entered by hand or with a wrong clock, would move that end and turn all young
displays into judged ones. So the last conversions count only if the log looks followed until then: the others say how
many conversions displays bring at each age, hence how many should have come since the one before the strays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# So many conversions may be strays.
MOST = 10
# They are if at least so many should have come meanwhile, and so many times as many as came: at most one of 30 comes by
# chance with a probability of 3e-12; of 10, had rates fallen to a third, with 5e-4.
FEWEST, TIMES = 30.0, 10.0
BINS = 4096


class FollowUpEnd(NamedTuple):
    """Until when a log was followed.

    Parameters
    ----------
    until
        Latest time (ticks) of an event that is no stray.
    stray
        Whether each conversion is a stray, shape (n,).
    expected
        Number of conversions that should have come since `until`, had the log been followed to the strays; nan without
        strays.
    """

    until: int
    stray: npt.NDArray[np.bool_]
    expected: float = float("nan")


def find_end(times: Callable[[], Iterable[Ints]], *, last: int, shown: Ints, time: Ints) -> FollowUpEnd:
    """Return until when a log was followed. Cost: nothing, or a pass over the displays if conversions come after them.

    Parameters
    ----------
    times
        Function that gives the times of all displays in ticks, sorted, in arrays of shape (m,), some at a time.
    last
        Time of the last display in ticks.
    shown, time
        Time of each conversion's display, and of the conversion itself, in ticks, shape (n,).
    """
    stray = np.zeros(len(time), np.bool_)
    late = np.flatnonzero(time > last)
    if len(late) == 0:
        return FollowUpEnd(last, stray)
    late = late[np.argsort(time[late], kind="stable")]
    middles, displays = _histogram(times, last)
    latest = int(time[late[-1]])
    end = FollowUpEnd(latest, stray)
    for n in range(1, min(MOST, len(late)) + 1):
        before = int(time[late[-n - 1]]) if n < len(late) else last
        expected = _expected(middles, displays, shown, time, before, latest)
        if expected >= max(FEWEST, TIMES * n):
            stray = np.zeros(len(time), np.bool_)
            stray[late[-n:]] = True
            end = FollowUpEnd(before, stray, expected)
    return end


def _histogram(times: Callable[[], Iterable[Ints]], last: int) -> tuple[Floats, Ints]:
    """Return times (B,) and the number of displays around each (B,)."""
    counts, edges = np.zeros(BINS, np.int64), None
    for some in times():
        if edges is None:
            edges = np.linspace(int(some[0]), max(last, int(some[0]) + 1), BINS + 1)
        counts += np.histogram(some, edges)[0]
    assert edges is not None
    held = counts > 0
    return ((edges[:-1] + edges[1:]) / 2)[held], counts[held]


def _expected(middles: Floats, displays: Ints, shown: Ints, time: Ints, since: int, until: int) -> float:
    """Return how many conversions should come in (since, until], had the log been followed from its start to then.

    The conversions up to `since` give those that a display brings by age x, H(x) = sum over delays d <= x of
    1 / (displays followed for d by then). Beyond the age that half of the displays have reached nothing is expected.
    """
    known = time <= since
    delay = np.sort((time - shown)[known])
    of_age = np.concatenate([[0], np.cumsum(displays)])[np.searchsorted(middles, since - delay, side="right")]
    enough = of_age >= displays.sum() / 2
    delay, of_age = delay[enough], of_age[enough]
    brought = np.concatenate([[0.0], np.cumsum(1.0 / of_age)])
    ages = (np.searchsorted(delay, at - middles, side="right") for at in (until, since))
    more, so_far = (brought[age] for age in ages)
    return float(displays @ (more - so_far))
