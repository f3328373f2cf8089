"""Hours without conversions at times of day that usually have many: an outage, or a hole in the log.

Displays shown before and during such a gap lose conversions and still count as judged, so values come out too low. The
conversions' own times are enough to see it, and they are in memory.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from evaluator.findings.codes import CONVERSION_GAP
from evaluator.findings.finding import Finding
from evaluator.log.schema import to_numpy
from evaluator.log.times import time_words
from evaluator.replays.rounds.survey import Survey

Ints = npt.NDArray[np.int64]

DAY, WEEK = 24, 168
# None is no chance where so many are usual: exp(-20) is 2e-9.
USUAL = 20
# Hours beyond this many (a century) come from times in the wrong unit.
_MOST_HOURS = 1_000_000

# Bursts: a policy that serves all the traffic plays one through before its conversions come, and knows them all when
# the next one begins. A replay has only a K-th of its rounds, but the delays of whole bursts: feedback is spread
# over the rounds otherwise than live, though as many rounds late on average. What is measured is how many displays
# follow one within a short or a median delay, at the most, over the mean number. `tests/statistical/test_bursts.py`:
# below 2.5, with daily rhythms of any amplitude, replays and live runs of `ucb1` agree; with ten minutes of a
# hundred times the traffic every six hours (6.8) they differ by a twentieth of the value. On the wall clock they
# agree there, too.
# Peak over mean from which it is said, and the fewest displays within the delay for which it is no chance.
BURSTY, FEWEST = 2.5, 50.0
_LEVELS = (0.25, 0.5)


class ConversionGap(NamedTuple):
    """Hours in a row without a conversion, from tick `start` until `end`.

    `usual` conversions came in the same hours of the days before and after, the smaller of the two. `weekly` says
    whether the same hours of a week before or after had as many, too; False where the log is too short to tell, so that
    the gap may be a usual weekend.
    """

    start: int
    end: int
    hours: int
    usual: int
    weekly: bool


# Of surveys that are in use: the variants of a study share one.
_FOUND: WeakKeyDictionary[Survey, list[ConversionGap]] = WeakKeyDictionary()


def conversion_gaps(survey: Survey) -> list[ConversionGap]:
    """Return the gaps in a log's conversions, in order of time.

    A run of hours without a conversion is a gap when the same hours of the nearest days before it had `USUAL` or more,
    of those after it as well and, in logs that hold them, of the weeks before and after. Nights, weekends, and traffic
    that grows or ends are none. Cost, once a survey: a sort of the hours that have conversions.
    """
    if survey not in _FOUND:
        _FOUND[survey] = _find_gaps(survey)
    return _FOUND[survey]


def _find_gaps(survey: Survey) -> list[ConversionGap]:
    seconds = survey.log.meta.tick_seconds
    if seconds is None or seconds > 3600.0:
        return []
    hour = max(round(3600.0 / seconds), 1)
    when = to_numpy(survey.log.conversions["time"]).astype(np.int64, copy=False)
    # The first of each display: a basket, or refunds booked in one night, are one event. None precedes its display.
    once = (np.diff(survey.display, prepend=-1) != 0) & (when >= survey.shown_at)
    if not once.any():
        return []
    of = when[once] // hour
    first = int(of.min())
    if int(of.max()) - first >= _MOST_HOURS:
        return []
    counts = np.bincount(of - first)
    total = np.concatenate(([0], np.cumsum(counts)))
    backwards, hours = total[-1] - total[::-1], len(counts)
    full = np.flatnonzero(counts)
    gaps = []
    for at in np.flatnonzero(np.diff(full) > 1):
        start, end = int(full[at]) + 1, int(full[at + 1])
        # What the days after let expect is the same of the log seen backwards.
        around = [_before(total, start, end), _before(backwards, hours - end, hours - start)]
        weeks = [
            int(total[end + shift] - total[start + shift])
            for shift in (-WEEK, WEEK)
            if start + shift >= 0 and end + shift < len(total)
        ]
        usual = int(min(around))
        if usual >= USUAL and all(week >= USUAL for week in weeks):
            gaps.append(ConversionGap((start + first) * hour, (end + first) * hour, end - start, usual, bool(weeks)))
    return gaps


def gap_warnings(survey: Survey) -> list[Finding]:
    """Return a warning of the longest gap of a log's conversions; none without."""
    gaps = conversion_gaps(survey)
    if not gaps:
        return []
    longest = max(gaps, key=lambda gap: gap.usual)
    times = "time" if len(gaps) == 2 else "times"
    more = f" (and {len(gaps) - 1} more {times})" if len(gaps) > 1 else ""
    when = gap_words(survey, longest, start=int(survey.shown_at[0]))
    return [
        CONVERSION_GAP.found(
            f"No conversion comes {when}{more}, where the same hours of the days around have {longest.usual:,} or "
            "more: an "
            "outage, or a hole in the log. Displays of that time and before it lose conversions but count as judged, "
            "so values are too low.",
            "evaluate check says which displays to keep.",
            hours=longest.hours,
            usual=longest.usual,
        )
    ]


def gap_words(survey: Survey, gap: ConversionGap, *, start: int) -> str:
    """Return from when to when a gap lasts; days are counted from the time `start`."""
    seconds = survey.log.meta.tick_seconds
    return f"from {time_words(gap.start, seconds, start=start)} to {time_words(gap.end, seconds, start=start)}"


def _before(total: Ints, start: int, end: int) -> float:
    """Return what the days before let expect: the same hours of the day before or, of a long run, the mean of the days.

    Where the log begins less than a day before: the day after, times what came before the run in shares of the same
    hours a day later, so that a log whose conversions only begin to come expects few.
    """
    long = end - start
    if long >= DAY:
        reach = min(-(-long // DAY), start // DAY) * DAY
        return float(total[start] - total[start - reach]) * float(long / reach) if reach else 0.0
    if start >= DAY:
        return float(total[end - DAY] - total[start - DAY])
    if end + DAY >= len(total) or total[start + DAY] - total[DAY] < USUAL:
        return 0.0
    share = min(float(total[start] / (total[start + DAY] - total[DAY])), 1.0)
    return float(total[end + DAY] - total[start + DAY]) * share


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
