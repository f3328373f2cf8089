"""The replay's clock: how many rounds lie between a display and its conversion.

Replay thins the stream, so counting delays in the log's own time makes feedback look faster than it would be live. On
the *traffic clock* one accepted display is one round of live traffic: a delay is the number of logged displays
between a display and its conversion (the traffic the policy would have served meanwhile), times the traffic share.
The *wall clock* is the same with a share equal to the acceptance rate: right for a rollout on that share of the
traffic, and for no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.rounds.survey import Survey

ClockName = Literal["traffic", "wall"]


@dataclass(frozen=True)
class Clock:
    """The clock of a replay.

    Parameters
    ----------
    kind
        traffic or wall.
    share
        Rounds of the policy per logged display: the traffic share, or the acceptance rate on the wall clock.
    rate
        Logged displays per tick; nan when all displays share one time.
    tick_seconds
        Seconds in a tick; None where the log counts rounds.
    """

    kind: ClockName
    share: float
    rate: float
    tick_seconds: float | None

    def days(self, rounds: float) -> float | None:
        """Return the days of live traffic in which the policy would play these rounds; None on a log of rounds."""
        if self.tick_seconds is None or not np.isfinite(self.rate):
            return None
        return rounds / (self.share * self.rate) * self.tick_seconds / 86400.0


def start_clock(survey: Survey, kind: ClockName, *, traffic_share: float, acceptance: float) -> Clock:
    """Return the clock of a replay that accepts this share of the logged displays.

    Raises
    ------
    ParameterError
        The traffic share is not in (0, 1], or is given for the wall clock, which has its own.
    """
    if not 0.0 < traffic_share <= 1.0:
        raise ParameterError(f"--traffic-share {traffic_share:g} is out of range.", hint="take a share in (0, 1].")
    if kind == "wall" and traffic_share != 1.0:
        raise ParameterError(
            "--traffic-share and --clock wall exclude each other.",
            hint="the wall clock is the traffic clock with a share equal to the acceptance rate.",
        )
    share = traffic_share if kind == "traffic" else acceptance
    return Clock(kind, share, survey.rate, survey.log.meta.tick_seconds)


def on_clock(displays: npt.NDArray[np.int64], clock: Clock) -> npt.NDArray[np.int64]:
    """Return a number of logged displays in rounds of the policy, to the nearest round."""
    return displays if clock.share == 1.0 else np.rint(displays * clock.share).astype(np.int64)
