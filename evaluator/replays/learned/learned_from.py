"""Which displays a policy learned from, so that nobody judges it on them."""

from __future__ import annotations

from typing import NamedTuple


class LearnedFrom(NamedTuple):
    """The displays that a replay went through.

    Parameters
    ----------
    log, fingerprint
        Name of their log, and hash of its source.
    displays
        Number of displays of the log.
    first_display, end_display
        Numbers in that log of the first of them, and of the first after them.
    first_time, last_time
        Times of the first and the last of them, in ticks.
    window
        Window that was asked for: rounds, a duration, or ``none``.
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
        """Return whether some displays may be those of `other`: of one source, and neither all before nor all after."""
        same = self.fingerprint != "" and self.fingerprint == other.fingerprint
        return same and not (self._before(other) or other._before(self))

    def _before(self, other: LearnedFrom) -> bool:
        """Whether its displays end before the others begin; those of one time are told apart within one log."""
        if self.last_time != other.first_time:
            return self.last_time < other.first_time
        return self.displays == other.displays and self.end_display <= other.first_display
