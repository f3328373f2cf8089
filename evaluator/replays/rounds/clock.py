"""The replay's clock and window: how many rounds lie between a display and its conversion, and which are revealed.

Replay thins the stream, so counting delays in the log's own time makes feedback look faster than it would be live. On
the *traffic clock* one accepted display is one round of live traffic: a delay is the number of logged displays
between a display and its conversion (the traffic the policy would have served meanwhile), times the traffic share.
The *wall clock* is the same with a share equal to the acceptance rate: right for a rollout on that share of the
traffic, and for no other.

The *window* is the system's cut-off: it says which conversions a policy is told of. A window in rounds is cut in
rounds: by the number of displays that came meanwhile. A window given as a duration is cut in time: by the conversion's
own delay, whether it came in a busy hour or a quiet one. At the mean rate of the traffic both are the same; with a
rhythm, growth or bursts they are not, and a duration turned into rounds by the mean rate would reveal late conversions
of quiet hours and hide early ones of busy hours.

Policies count rounds. Under a duration they are told m = the largest number of rounds that the duration spans anywhere
in the log, so that no conversion is revealed after m rounds, and a display m rounds old is closed for sure: whoever
waits for m rounds (`waitlinucb`, `discarding-ucb`, `qpm-d`...) learns no false zeros, but later than a system that
watches the time of each display: `python -m tests.bench.closing` measures regrets of 0.9 to 1.1 times that system's,
and that rounds of the mean rate take up to a tenth of the conversions that come in time for none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.log import LogMeta
from evaluator.options.shared import ClockName
from evaluator.replays.rounds.survey import Survey
from evaluator.units import NO_WINDOW, duration_ticks, format_duration, parse_duration, parse_whole

# Shares of the traffic beyond these are slips of the pen.
_LEAST_SHARE = 1e-6
# Whole numbers in floating point, and what lies past them still has room in 64 bits.
_MOST_ROUNDS = 2.0**53
_NEGATIVE = re.compile(r"\s*-\d+\s*")


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

    Raise ParameterError if the traffic share is not above 0, or is given for the wall clock, which has its own.
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

    Raise ParameterError if a delay takes more rounds than floating point counts one by one.
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


@dataclass(frozen=True)
class ReplayWindow:
    """Cut-off of the system.

    Parameters
    ----------
    rounds
        Window m on the replay's clock, in rounds: no conversion is revealed later; `NO_WINDOW` without a cut-off.
    ticks
        Longest delay that is revealed, in ticks, where the cut-off is a duration; None where it is in rounds.
    text
        Text that the user asked for.
    """

    rounds: int
    ticks: int | None
    text: str

    @property
    def cut(self) -> tuple[int, int | None]:
        """What fixes which conversions are revealed."""
        return self.rounds, self.ticks

    def ends_rewards(self, meta: LogMeta) -> bool:
        """Return whether only conversions within it are rewards: a log that stops looking names no other cut-off."""
        return meta.observed_until is not None and meta.attribution_window is None and self.rounds != NO_WINDOW

    def revealed(self, survey: Survey, clock: ReplayClock) -> npt.NDArray[np.int64]:
        """Return delays in rounds, shape (c,), with `NO_WINDOW` for conversions that a duration cuts off.

        One array for all plans whose window and clock are the same.
        """
        return survey.in_rounds((*self.cut, clock.share), lambda: self._revealed(survey, clock))

    def _revealed(self, survey: Survey, clock: ReplayClock) -> npt.NDArray[np.int64]:
        delay = on_clock(survey.delay, clock)
        if self.ticks is None:
            return delay  # compared with `rounds` as they are
        # One that spans more rounds than any did when the policy was told of them is not hidden for it.
        return np.where(survey.delay_ticks <= self.ticks, np.minimum(delay, self.rounds), NO_WINDOW)

    def describe(self, clock: ReplayClock) -> str:
        """Return the window as it was asked for and, where the log has a time unit, in the other unit."""
        if self.rounds == NO_WINDOW:
            return "none"
        words = f"{self.rounds:,} rounds"
        if clock.tick_seconds is None or not np.isfinite(clock.rate):
            return words
        if self.ticks is not None:
            return f"{format_duration(self.ticks * clock.tick_seconds)}, at most {words}"
        return f"{words}, {format_duration(self.rounds / (clock.rate * clock.share) * clock.tick_seconds)} on average"


def resolve_window(text: str | int | None, clock: ReplayClock, survey: Survey) -> ReplayWindow:
    """Return the window a user asked for: rounds (``2000``), a duration (``7d``), or None for no cut-off.

    On the wall clock rounds are logged displays. Raise ParameterError if the text is zero, negative, no number, a
    duration on a log of rounds, or one shorter than the log's time stamps tell.
    """
    if text is None:
        return ReplayWindow(NO_WINDOW, None, "none")
    out_of_range = ParameterError(f"`window={text!r}` is out of range.", remedy="take at least one round.")
    text = str(text)
    if _NEGATIVE.fullmatch(text):
        raise out_of_range
    rounds = parse_whole(text)
    if rounds is None:
        if parse_duration(text) <= 0:
            raise out_of_range
        return _of_duration(text, clock, survey)
    if rounds == 0:
        raise out_of_range
    on_wall = min(np.rint(rounds * clock.share), NO_WINDOW)
    return ReplayWindow(max(int(on_wall) if clock.kind == "wall" else rounds, 1), None, text)


def _of_duration(text: str, clock: ReplayClock, survey: Survey) -> ReplayWindow:
    if clock.tick_seconds is None or not np.isfinite(clock.rate):
        raise ParameterError(
            f"`window='{text}'`: this log counts rounds, not time.", remedy="give the window in rounds: `window=2000`."
        )
    # A little more than whole, so that 0.1 + 0.2 of a unit is not cut below it.
    ticks = int(np.floor(duration_ticks(text, clock.tick_seconds) * (1.0 + 1e-12)))
    if ticks < survey.stamp:
        stamp = format_duration(survey.stamp * clock.tick_seconds)
        raise ParameterError(
            f"`window='{text}'` is shorter than what the time stamps of log {survey.log.meta.name!r} tell apart: all "
            f"are multiples of {stamp}.",
            remedy=f"take a window of at least {stamp}, or log finer times.",
        )
    # What rounding does to numbers in a traffic of which the log is a part never hides a conversion.
    late = survey.delay[survey.delay_ticks <= ticks].max(initial=1)
    span = on_clock(np.array([max(survey.longest_span(ticks), late)]), clock)
    return ReplayWindow(max(int(span[0]), 1), ticks, text)
