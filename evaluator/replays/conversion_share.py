"""How many of the conversions come within some time, and how far a log can see.

A log that stops looking holds the short delays of its last displays only, so that the share of the *seen* conversions
within some time is too high. The shares here are those of the delay CDF corrected for that. They are shares of what
comes within the longest follow-up of any display: of conversions later than that no log knows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.product_limit import product_limit
from evaluator.replays.rounds.clock import ReplayClock
from evaluator.replays.rounds.survey import Survey
from evaluator.replays.rounds.window import ReplayWindow
from evaluator.units import ticks_words

# Levels of the delays that a plan keeps of a CDF: evenly, and the tail.
_LEVELS = np.append(np.arange(1, 50) / 50.0, [0.99, 0.995, 0.999, 1.0])


def share_within(
    survey: Survey, window: ReplayWindow, cdf: DelayCDF | None, even: slice | npt.NDArray[np.int64]
) -> float:
    """Return the share of the conversions that come within the window, in its own unit; nan without conversions.

    Parameters
    ----------
    survey
        Survey of the log.
    window
        Window of the replay.
    cdf
        Delay CDF of the log on the replay's clock; None without conversions.
    even
        Numbers of the conversions that are an even sample of the traffic's, shape (e,), or a slice.
    """
    return share_by(window, in_unit_of_window(survey, window, cdf, even))


def in_unit_of_window(
    survey: Survey, window: ReplayWindow, cdf: DelayCDF | None, even: slice | npt.NDArray[np.int64]
) -> DelayCDF | None:
    """Return the delay CDF in the unit of the window: ticks where it is a duration, else rounds.

    Parameters are those of `share_within`.
    """
    if cdf is None or window.ticks is None:
        return cdf
    limit = survey.limit_ticks()
    return product_limit(survey.delay_ticks[even], None if limit is None else limit[even])


def share_by(window: ReplayWindow, cdf: DelayCDF | None) -> float:
    """Return the share of the conversions that come within a window, of their CDF in its unit; nan without any."""
    if cdf is None:
        return float("nan")
    return float(cdf(min(window.rounds, 2**53) if window.ticks is None else window.ticks))


def steps_of(cdf: DelayCDF | None) -> tuple[tuple[int, float], ...]:
    """Return delays from the shortest to the longest, each with the share of the conversions that come by it.

    Examples
    --------
    >>> steps_of(DelayCDF(delays=np.array([2, 5]), cdf=np.array([0.75, 1.0]), source="by hand"))
    ((2, 0.75), (5, 1.0))
    """
    if cdf is None:
        return ()
    delays = np.unique(cdf.quantiles(np.append(np.finfo(np.float64).tiny, _LEVELS)))
    # A sum of many shares may be 1 and a little.
    return tuple(zip(delays.tolist(), np.minimum(cdf(delays), 1.0).tolist(), strict=True))


def followed_ticks(survey: Survey) -> int | None:
    """Return the longest time, in ticks, for which the log followed a display; None where each was to its end."""
    meta = survey.log.meta
    if meta.observed_until is None:
        return None
    longest = int(meta.observed_until - survey.marked_at[0])
    return longest if meta.attribution_window is None else min(longest, meta.attribution_window)


def followed_for(survey: Survey, clock: ReplayClock) -> str | None:
    """Return the longest time for which the log followed a display, in words; None where each was to its end."""
    ticks = followed_ticks(survey)
    if ticks is None:
        return None
    return ticks_words(ticks, clock.tick_seconds)


def of_conversions(followed: str | None) -> str:
    """Return of what such a share is one, where `followed_for` says how long the log looked.

    Examples
    --------
    >>> of_conversions(None)
    'of the conversions'
    >>> of_conversions("30 d")
    'of the conversions that come within 30 d (the log looked no longer)'
    """
    return "of the conversions" + (f" that come within {followed} (the log looked no longer)" if followed else "")
