"""What was known of the delays before the replayed period began: no hindsight for policies that need a CDF."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.errors import DataError
from evaluator.log.reward_kinds import sales
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.in_displays import position_of
from evaluator.replays.rounds.survey import Survey


@dataclass(frozen=True, eq=False)
class KnownDelays:
    """Delays seen by the time of a log's last display before the replayed period.

    Parameters
    ----------
    displays
        Number of displays up to that time; the replay leaves them out.
    delay, limit
        Delay of each conversion seen by then, and the longest one that could have been seen, in displays of the
        traffic, shape (c,).
    delay_ticks, limit_ticks
        Delays and limits of the same conversions in ticks, shape (c,).
    """

    displays: int
    delay: npt.NDArray[np.int64]
    limit: npt.NDArray[np.int64]
    delay_ticks: npt.NDArray[np.int64]
    limit_ticks: npt.NDArray[np.int64]

    def drawn(self, rng: np.random.Generator) -> KnownDelays:
        """Return as many conversions, drawn from these with replacement."""
        c = len(self.delay)
        of = rng.integers(0, c, c)
        return KnownDelays(self.displays, self.delay[of], self.limit[of], self.delay_ticks[of], self.limit_ticks[of])


def known_delays(survey: Survey, share: float) -> KnownDelays:
    """Return what was known once a share of the displays had been shown.

    Raises
    ------
    DataError
        No conversion had come by then.
    """
    first = max(round(share * len(survey.log)), 1)
    left = position_of(survey.log, first - 1) - survey.position
    now = int(to_numpy(survey.log.take(np.array([first - 1]), ["time"])["time"])[0])
    left_ticks = now - survey.shown_at
    # A conversion after that display but before the next one follows as many displays as one that came in time.
    seen = (survey.display < first) & (survey.delay <= left) & (survey.delay_ticks <= left_ticks)
    sold = sales(survey.log.conversions)
    seen = seen if sold is None else seen & sold
    if not seen.any() or first == len(survey.log):
        raise DataError(
            f"`delays_from`: no conversion had come when the first {first:,} displays had been shown.",
            remedy="take a larger share, or give the delays with `delays`.",
        )
    limit = left[seen] if survey.limit is None else np.minimum(left[seen], survey.limit[seen])
    whole = survey.limit_ticks()
    left_ticks = left_ticks if whole is None else np.minimum(left_ticks, whole)
    return KnownDelays(first, survey.delay[seen], limit, survey.delay_ticks[seen], left_ticks[seen])
