"""The replay's clock: how many rounds lie between a display and its conversion.

Replay thins the stream, so counting delays in the log's own time makes feedback look faster than it would be live. On
the *traffic clock* one accepted display is one round of live traffic: a delay is the number of logged displays
between a display and its conversion (the traffic the policy would have served meanwhile), times the traffic share.
The *wall clock* is the same with a share equal to the acceptance rate: right for a rollout on that share of the
traffic, and for no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.options.shared import ClockName
from evaluator.replays.rounds.survey import Survey

# Shares of the traffic beyond these are slips of the pen.
_LEAST_SHARE = 1e-6
# Whole numbers in floating point, and what lies past them still has room in 64 bits.
_MOST_ROUNDS = 2.0**53


@dataclass(frozen=True)
class ReplayClock:
    """The clock of a replay.

    Parameters
    ----------
    kind
        Kind of clock: ``traffic`` or ``wall``.
    share
        Number of rounds of the policy per display that delays count: the traffic share over the log's sampling rate, or
        the acceptance rate on the wall clock.
    rate
        Number of such displays per tick; nan when all displays share one time.
    tick_seconds
        Length of a tick in seconds; None where the log counts rounds.
    sampling_rate
        Share of the traffic's displays that the clock counts.
    """

    kind: ClockName
    share: float
    rate: float
    tick_seconds: float | None
    sampling_rate: float = 1.0

    @property
    def traffic_share(self) -> float:
        """Rounds of the policy per display of the whole traffic."""
        return self.share * self.sampling_rate

    def days(self, rounds: float) -> float | None:
        """Return the days of live traffic in which the policy would play these rounds; None on a log of rounds."""
        if self.tick_seconds is None or not np.isfinite(self.rate):
            return None
        return rounds / (self.share * self.rate) * self.tick_seconds / 86400.0


def start_clock(survey: Survey, kind: ClockName, *, traffic_share: float, acceptance: float) -> ReplayClock:
    """Return the clock of a replay that accepts this share of the logged displays.

    Raises
    ------
    ParameterError
        The traffic share is not above 0, or is given for the wall clock, which has its own.
    """
    if not _LEAST_SHARE <= traffic_share <= 1.0 / _LEAST_SHARE:
        raise ParameterError(
            f"`traffic_share={traffic_share:g}` is out of range.",
            remedy="take a share above 0 (a millionth to a million); above 1 where the policy will serve more traffic "
            "than was logged.",
        )
    if kind == "wall" and traffic_share != 1.0:
        raise ParameterError(
            "`traffic_share` and `clock='wall'` exclude each other.",
            remedy="the wall clock is the traffic clock with a share equal to the acceptance rate.",
        )
    sampled = survey.log.meta.sampling_rate
    share = traffic_share / sampled if kind == "traffic" else acceptance * survey.kept
    return ReplayClock(kind, share, survey.rate, survey.log.meta.tick_seconds, sampled)


def on_clock(displays: npt.NDArray[np.int64], clock: ReplayClock) -> npt.NDArray[np.int64]:
    """Return a number of displays, as delays count them, in rounds of the policy, to the nearest round.

    Raises
    ------
    ParameterError
        A delay takes more rounds than floating point counts one by one.
    """
    if clock.share == 1.0:
        return displays
    rounds = displays * clock.share
    if rounds.max(initial=0.0) > _MOST_ROUNDS:
        raise ParameterError(
            f"{rounds.max():.3g} rounds of the policy are too many for a delay: {clock.share:.3g} for each display.",
            remedy="check the sampling rate of the log (`sampling_rate`) and `traffic_share`.",
        )
    return np.asarray(np.rint(rounds), np.int64)
