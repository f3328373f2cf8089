"""Traffic that comes in bursts, beside which the delays are long: there a replay is not what would happen live.

A policy that serves all the traffic plays a burst through before its conversions come, and knows them all when the next
one begins. A replay has only a K-th of the burst's rounds, but the delays of whole bursts: feedback is spread over the
rounds otherwise than live, though as many rounds late on average. What is measured is how many displays follow one
within a short or a median delay, at the most, over the mean number. `tests/statistical/test_bursts.py`: below 2.5, with
daily rhythms of any amplitude, replays and live runs of `ucb1` agree; with ten minutes of a hundred times the traffic
every six hours (6.8) they differ by a twentieth of the value. On the wall clock they agree there, too.
"""

from __future__ import annotations

import numpy as np

from evaluator.replays.rounds.survey import Survey

# Peak over mean from which it is said, and the fewest displays within the delay for which it is no chance.
BURSTY, FEWEST = 2.5, 50.0
_LEVELS = (0.25, 0.5)


def peak_within_delay(survey: Survey) -> tuple[int, float]:
    """Return a delay in ticks, and the most displays that follow one within it, over the mean number.

    The number at the most is taken three standard deviations of chance lower. Of the first quartile and the median of
    the delays, the one with the larger ratio. The ratio is nan where it would
    be chance: few displays within the delay, delays of no more than ten time stamps, or no conversions.
    """
    if not len(survey.display) or not np.isfinite(survey.rate):
        return 0, float("nan")
    found = 0, float("nan")
    for delay in np.quantile(survey.delay_ticks, _LEVELS, method="lower").tolist():
        if survey.rate * delay >= FEWEST and not survey.blurs(delay):
            longest = survey.longest_span(delay)
            # The largest of many Poisson counts lies some deviations above what the traffic brings.
            ratio = (longest - 3.0 * np.sqrt(longest)) / (survey.rate * delay)
            found = found if found[1] >= ratio else (delay, ratio)
    return found
