"""Which displays a policy learned from, so that nobody judges it on them."""

from __future__ import annotations

from typing import NamedTuple


class LearnedFrom(NamedTuple):
    """The displays that a replay went through.

    Parameters
    ----------
    log, fingerprint
        Name of their log, and the hash of its source.
    displays
        How many the log had.
    first_display, end_display
        Numbers in that log of the first of them, and of the first after them.
    first_time, last_time
        Of the first and the last of them, in ticks.
    window
        What was asked for: rounds, a duration, or ``none``.
    """

    log: str
    fingerprint: str
    displays: int
    first_display: int
    end_display: int
    first_time: int
    last_time: int
    window: str

    def shares(self, other: LearnedFrom) -> bool:
        """Whether some displays may be those of `other`: of one source, and not known to be others."""
        if not self.fingerprint or self.fingerprint != other.fingerprint:
            return False
        if self.displays == other.displays:
            return self.first_display < other.end_display and other.first_display < self.end_display
        return self.first_time <= other.last_time and other.first_time <= self.last_time
