"""The system's cut-off: which conversions a policy is told of, and what the policy is told of the cut-off.

A window in rounds is cut in rounds: by the number of displays that came meanwhile. A window given as a duration is cut
in time: by the conversion's own delay, whether it came in a busy hour or a quiet one. At the mean rate of the traffic
both are the same; with a rhythm, growth or bursts they are not, and a duration turned into rounds by the mean rate
would reveal late conversions of quiet hours and hide early ones of busy hours.

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
from evaluator.replays.rounds.clock import ReplayClock, on_clock
from evaluator.replays.rounds.survey import Survey
from evaluator.units import NO_WINDOW, duration_ticks, format_duration, parse_duration, parse_whole

_NEGATIVE = re.compile(r"\s*-\d+\s*")


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
    """Return the window a user asked for.

    Parameters
    ----------
    text
        Text that the user asked for: rounds (``2000``), a duration (``7d``), or None for no cut-off. On the wall clock
        rounds are logged displays.
    clock
        Clock of the replay.
    survey
        Survey of the log, which tells how many displays a duration spans.

    Raises
    ------
    ParameterError
        The text is zero, negative, no number, a duration on a log of rounds, or one shorter than the log's time stamps
        tell.
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
