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

*The delay CDF that a policy is told* is that of the log on the replay's clock: of the whole log, or of what was known
before the replayed period began, without hindsight.

*Shares of the conversions.* A log that stops looking holds the short delays of its last displays only, so that the
share of the *seen* conversions within some time is too high. The shares here are those of the delay CDF corrected for
that. They are shares of what comes within the longest follow-up of any display: of conversions later than that no log
knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.delays.laws import given_cdf, told_cdf
from evaluator.delays.product_limit import product_limit
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log, LogMeta
from evaluator.log.reward_kinds import sales
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.options.shared import ClockName
from evaluator.replays.rounds.survey import Survey, position_of
from evaluator.streams import Stream, random_stream
from evaluator.units import NO_WINDOW, ROUND, duration_ticks, format_duration, parse_duration, parse_whole, ticks_words

# Shares of the traffic beyond these are slips of the pen.
_LEAST_SHARE = 1e-6
# Whole numbers in floating point, and what lies past them still has room in 64 bits.
_MOST_ROUNDS = 2.0**53
_NEGATIVE = re.compile(r"\s*-\d+\s*")
# Levels of the delays that a plan keeps of a CDF: evenly, and the tail.
_LEVELS = np.append(np.arange(1, 50) / 50.0, [0.99, 0.995, 0.999, 1.0])
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReplayClock:
    """The clock of a replay, ``traffic`` or ``wall``.

    `share` is the number of rounds of the policy per display that delays count: the traffic share over the log's
    sampling rate, or the acceptance rate on the wall clock. `rate` is the number of such displays per tick, nan when
    all displays share one time; `tick_seconds` the length of a tick, None where the log counts rounds; `sampling_rate`
    the share of the traffic's displays that the clock counts.
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
    """Cut-off of the system: no conversion is revealed after so many rounds on the replay's clock, `NO_WINDOW` without.

    Where the cut-off is a duration, `ticks` is the longest delay that is revealed; None where it is in rounds. `text`
    is what the user asked for.
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
        return survey.once(("revealed", *self.cut, clock.share), lambda: self._revealed(survey, clock))

    def _revealed(self, survey: Survey, clock: ReplayClock) -> npt.NDArray[np.int64]:
        delay = on_clock(survey.delay, clock)
        if self.ticks is None:
            return delay  # compared with `rounds` as they are
        within = survey.delay_ticks <= self.ticks
        if within.all() and delay.max(initial=0) <= self.rounds:
            return delay
        # One that spans more rounds than any did when the policy was told of them is not hidden for it.
        return np.where(within, np.minimum(delay, self.rounds), NO_WINDOW)

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


@dataclass(frozen=True, eq=False)
class SeenDelays:
    """Delays of some conversions on a replay's clock, of which a window reveals a part.

    Of each conversion its delay and the longest one that could have been seen, None where nothing was cut off: in
    displays of the traffic and in ticks, shape (c,) each; on a resampled log each as often as it is there.
    """

    clock: ReplayClock
    window: ReplayWindow
    delay: Ints
    limit: Ints | None
    delay_ticks: Ints
    limit_ticks: Ints | None
    _told: dict[int, DelayCDF | None] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def cdf(self) -> DelayCDF | None:
        """The delay CDF on the clock, on which it is estimated as it is used there; None without conversions."""
        return self._fitted(slice(None))

    @cached_property
    def in_unit_of_window(self) -> DelayCDF | None:
        """The delay CDF in the unit of the window: ticks where it is a duration, else rounds."""
        if self.window.ticks is None or not len(self.delay):
            return self.cdf
        return product_limit(self.delay_ticks, self.limit_ticks)

    @property
    def share(self) -> float:
        """Share of the conversions that come within the window, in its own unit; nan without conversions."""
        cdf, ticks = self.in_unit_of_window, self.window.ticks
        return float("nan") if cdf is None else float(cdf(min(self.window.rounds, 2**53) if ticks is None else ticks))

    @property
    def revealed(self) -> DelayCDF | None:
        """The delay CDF that policies weigh their displays with; None where no conversion is revealed.

        Where the window is a duration W it is P(D <= a rounds and D <= W in time): the CDF of the conversions within W,
        times the share of them, so that no display is credited with a conversion that W cuts off.
        """
        if self.window.ticks is None:
            return self.cdf
        fitted = self._fitted(self.delay_ticks <= self.window.ticks)
        if fitted is None:
            return None
        return DelayCDF(delays=fitted.delays, cdf=np.minimum(fitted.cdf * self.share, 1.0), source=fitted.source)

    def told(self, reach: int) -> DelayCDF | None:
        """Return `revealed` as policies are told it that ask for delays up to `reach` rounds, once for all of them."""
        if reach not in self._told:
            revealed = self.revealed
            self._told[reach] = None if revealed is None else told_cdf(revealed, reach)
        return self._told[reach]

    def _fitted(self, which: slice | npt.NDArray[np.bool_]) -> DelayCDF | None:
        rounds = on_clock(self.delay[which], self.clock)
        if not len(rounds):
            return None
        if self.limit is None:
            return product_limit(rounds)
        # Rounding to rounds may put a conversion at the very end of its follow-up one round past it.
        return product_limit(rounds, np.maximum(on_clock(self.limit[which], self.clock), rounds))


def seen_delays(survey: Survey, clock: ReplayClock, window: ReplayWindow, of: slice | Ints) -> SeenDelays:
    """Return the delays of some of a log's conversions: their numbers, shape (e,), or a slice."""
    limit_ticks = None if window.ticks is None else survey.limit_ticks()
    return SeenDelays(
        clock,
        window,
        survey.delay[of],
        None if survey.limit is None else survey.limit[of],
        survey.delay_ticks[of],
        None if limit_ticks is None else limit_ticks[of],
    )


def told_delays(seen: SeenDelays, *, delays: str, horizon: int) -> DelayCDF | None:
    """Return the delay CDF that a policy is told; None where there are no conversions to fit one to.

    The delays seen are those of the log, of what was known of it when the displays began that are left out for the
    final policy, or of before the log. `delays` is the option of this name, a law in their place. A policy that is told
    of `horizon` rounds needs no longer delays.
    """
    clock, window = seen.clock, seen.window
    reach = min(window.rounds, max(horizon, 1))
    if delays == "log":
        return seen.told(reach)
    if window.ticks is not None:  # what a law gives away beyond the window's mean length would never be revealed
        reach = min(reach, max(round(window.ticks * clock.rate * clock.share), 1))
    return told_cdf(_known_cdf(delays, clock, reach), reach)


def _known_cdf(text: str, clock: ReplayClock, reach: int) -> DelayCDF:
    """Return the CDF a user gives: in rounds, as the window; on the wall clock in logged displays, as the window.

    One from a file counts time, or displays of the full traffic: the clock turns both into rounds.
    """

    def ticks_per_round(tick: str) -> float:
        own = ROUND if clock.tick_seconds is None else format_duration(clock.tick_seconds)
        if (tick == ROUND) != (clock.tick_seconds is None) or not np.isfinite(clock.rate):
            raise ParameterError(
                f"`delays='{text}'` counts in units of {tick}, this log in {own} at "
                f"{clock.rate:.3g} displays each: no way from one to the other.",
                remedy="fit the delays to a log that counts alike: evaluate delays.",
            )
        ticks = 1.0 if clock.tick_seconds is None else clock.tick_seconds / parse_duration(tick)
        return ticks / (clock.rate * clock.share)

    share = clock.share if clock.kind == "wall" else 1.0
    return given_cdf(text, reach=reach, ticks_per_round=ticks_per_round, share=share)


@dataclass(frozen=True, eq=False)
class KnownDelays:
    """Delays seen by the time of a log's last display before the replayed period; `displays` were shown until then.

    Of each conversion seen by then, its delay and the longest one that could have been seen, in displays of the traffic
    and in ticks, shape (c,) each.
    """

    displays: int
    delay: npt.NDArray[np.int64]
    limit: npt.NDArray[np.int64]
    delay_ticks: npt.NDArray[np.int64]
    limit_ticks: npt.NDArray[np.int64]

    def on(self, clock: ReplayClock, window: ReplayWindow) -> SeenDelays:
        """Return them on a replay's clock."""
        return SeenDelays(clock, window, self.delay, self.limit, self.delay_ticks, self.limit_ticks)

    def drawn(self, rng: np.random.Generator) -> KnownDelays:
        """Return as many conversions, drawn from these with replacement."""
        c = len(self.delay)
        of = rng.integers(0, c, c)
        return KnownDelays(self.displays, self.delay[of], self.limit[of], self.delay_ticks[of], self.limit_ticks[of])


def known_delays(survey: Survey, share: float) -> KnownDelays:
    """Return what was known once a share of the displays had been shown; DataError if no conversion had come."""
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


def even_conversions(log: Log, display: npt.NDArray[np.int64], seed: int) -> slice | npt.NDArray[np.int64]:
    """Return which sales are an even sample of the traffic's, as an index: all where their displays' weights are alike.

    Delays are those of sales: refunds have their own, and costs none. `display` is the number of each conversion's
    display, shape (c,).
    """
    sold = sales(log.conversions)
    every = slice(None) if sold is None else np.flatnonzero(sold)
    if WEIGHT not in log.schema.names or not len(display):
        return every
    weight = to_numpy(log.take(display, [WEIGHT])[WEIGHT])
    if weight.min() == weight.max():
        return every
    draws = random_stream(Stream.EVEN_CONVERSIONS, seed).random(len(weight))
    even = draws * weight.max() < weight
    return np.flatnonzero(even if sold is None else even & sold)
