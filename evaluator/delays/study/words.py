"""A study of delays in words: ticks as durations or rounds, what a log can see, and single numbers of the study."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.fitting import spikes
from evaluator.delays.study.window_advice import NewestDelays, WindowShare
from evaluator.log.delay_rows import DelayRows
from evaluator.log.times import COARSE_S, TOLD_APART
from evaluator.results.json_documents import Count, NotNegative, NotNegativeOrNull
from evaluator.units import ticks_words

_NAMED = 5


def words(rows: DelayRows, ticks: float) -> str:
    """Return a delay as a duration, or as a number of rounds where the log counts these.

    >>> import numpy as np
    >>> seconds = DelayRows("log", "s", np.array([5]), None, None, "")
    >>> words(seconds, 272160), words(seconds, 0)
    ('3.15 d', '0 s')
    """
    return ticks_words(ticks, rows.tick_seconds)


def between(rows: DelayRows, low: float, high: float) -> str:
    """Return the interval of a delay, which may have no upper end.

    >>> import numpy as np
    >>> rounds = DelayRows("log", "round", np.array([5]), None, None, "")
    >>> between(rounds, 3, 9), between(rounds, 3, np.inf)
    ('[3 rounds, 9 rounds]', 'at least 3 rounds')
    """
    return f"at least {words(rows, low)}" if math.isinf(high) else f"[{words(rows, low)}, {words(rows, high)}]"


def last_shown(fit: NonparametricFit) -> float:
    """Return the delay (ticks) at which pictures end: the longest the log could show, or saw if nothing was cut off."""
    return float(fit.longest if math.isfinite(fit.longest) else fit.delays[-1])


def first_positive(fit: NonparametricFit) -> float:
    """Return the smallest delay above 0 (ticks), where a logarithmic axis can start."""
    return float(fit.delays[fit.delays > 0][0])


def since_words(rows: DelayRows, newest: NewestDelays) -> str:
    """Return the first period of the newest displays: a date, or a number."""
    assert rows.periods is not None
    label = rows.periods.label(newest.since, rows.tick_seconds)
    return f"{rows.periods.name} {label}" if label.isdecimal() else label


def mixture(rows: DelayRows, newest: NewestDelays | None) -> tuple[str, ...]:
    """Return what rests on which displays where delays change along the log."""
    if newest is None:
        return ()
    followed = "to their end" if rows.limit is None else f"for at most {words(rows, newest.fit.longest)}"
    return (
        "Delays change along the log, which breaks that assumption. Windows and the recommended one rest on the "
        f"{newest.fit.conversions:,} conversions of displays since {since_words(rows, newest)}, followed {followed}; "
        "quantiles, law, tail and groups mix the delays before and since, and are those of no display to come.",
    )


def sight(rows: DelayRows, fit: NonparametricFit) -> tuple[str, ...]:
    """Return sentences about the delays that a log can show, and those that it cannot."""
    said = []
    if rows.limit is None:
        said.append("Every display was followed to its end: no delay was cut off.")
        said.append(
            f"The longest delay seen is {words(rows, float(fit.delays[-1]))}; of conversions to come, up to "
            f"{1.0 - fit.low[-1]:.2g} of all may be later ({fit.confidence:.0%} confidence, as {fit.conversions:,} "
            "were seen)."
        )
    else:
        least, most = int(rows.limit.min()), int(rows.limit.max())
        longest = words(rows, fit.longest)
        if least == most:
            said.append(f"Every display that converted was followed for {longest}.")
        else:
            said.append(
                f"Displays that converted were followed for {words(rows, least)} to {words(rows, most)}: later "
                "conversions are cut off, which makes the delays seen too short."
            )
            said.append("All this assumes that delays do not depend on when a display was shown.")
        span = f"{words(rows, fit.shortest)} <= delay" if fit.shortest else "delay"
        said.append(f"All that follows is conditional on {span} <= {longest}.")
        said.append(f"The share of conversions later than {longest} is unknown: the log cannot tell.")
    if rows.left_out:
        said.append(rows.left_out)
    if rows.deduplicated:
        said.append(
            f"{rows.deduplicated:,} more rows of the same conversions were dropped (de-duplication). Near the ends of "
            "the log fewer displays compete for a conversion, so that rates and delays differ there for that reason "
            "alone; `deduplicate='all'` keeps every row."
        )
    if rows.shared:
        said.append(
            "Several displays carry the same conversion (no de-duplication): their delays are not independent, which "
            "intervals and p-values take them to be."
        )
    coarse = rows.stamp * (rows.tick_seconds or 0.0) >= COARSE_S
    if coarse and fit.delays[-1] > 0 and float(np.median(rows.delay)) < TOLD_APART * rows.stamp:
        said.append(
            f"Times are multiples of {words(rows, rows.stamp)}, and half of the delays are shorter than {TOLD_APART} "
            "of these: a delay is known up to one. Shares, quantiles, laws and means below are those of time stamps; "
            f"the true ones may be off by as much as {words(rows, rows.stamp)} makes, which no interval allows for."
        )
    if fit.delays[-1] == 0:
        said.append(
            f"Every conversion came within the time stamp of its display ({words(rows, rows.stamp)}): all delays are "
            "0, every window keeps all that were seen, and there is no picture to draw."
        )
    for spike in spikes(rows.delay, rows.stamp)[:_NAMED]:
        said.append(
            f"{spike.share:.0%} of the conversions seen have a delay of exactly {words(rows, spike.delay)}, more than "
            "any other within a tenth of it: a rule of some system rather than people, of which a law knows nothing."
        )
    if fit.left_out:
        said.append(
            f"{fit.left_out:,} of {len(rows.delay):,} conversions are left out: displays that converted early were not "
            "followed long enough to say what they weigh."
        )
    return tuple(said)


@dataclass(frozen=True)
class StudyWindow:
    """A window as asked for, and its share of the conversions.

    Parameters
    ----------
    text
        Text of the window, as the user wrote it.
    ticks, rounds
        The window in ticks and in rounds of full traffic: one is as asked, the other at the traffic's mean rate; rounds
        are None where the rate is unknown.
    share
        Share of the conversions that come within it: by their delays in time where it is a duration, in displays where
        it is in rounds.
    in_rounds
        Whether it was asked for in rounds.
    """

    text: str
    ticks: NotNegative
    rounds: NotNegative | None
    share: WindowShare
    in_rounds: bool

    def label(self, rows: DelayRows) -> str:
        """Return the window in its own unit, as tables name it."""
        own = words(rows, self.ticks)
        return f"{self.rounds:,.0f} rounds, {own} on average" if self.in_rounds and rows.tick_seconds else own


@dataclass(frozen=True)
class PeriodRate:
    """Conversions per display of one period.

    Parameters
    ----------
    period
        Number of the period.
    displays, conversions
        Number of its displays, and of their conversions.
    seen
        Conversions per display seen so far.
    corrected
        Conversions per display given a follow-up as long as the longest, sum of 1 / tau(limit) over the conversions,
        divided by the displays; None where the period is too new to say.
    """

    period: Count
    displays: Count
    conversions: Count
    seen: NotNegativeOrNull
    corrected: NotNegative | None
