"""Displays too young at the end of the log: their conversions may still come, so they are no failures.

A display can be judged once the log has followed it for the attribution window or, where the log names none, for the
policy's window, in time or in displays as that is cut. Younger displays are left out, or kept with what was seen
corrected for what was not yet: divided by the probability of having seen it.

*Correction.* A conversion of a display followed for l is seen if its delay is at most l, so that the sum over what was
seen, divided by tau(l), has the mean of what comes in the end: if tau is the delay CDF of that display. Delays depend
on the action (some are bought at once, others after a week), so tau is that of the display's action, or of its action
and other columns known at the display (`evaluator.delays.product_limit`). Whether a display is used depends on its
follow-up alone, never on its action: a replay that read the young displays of quick actions only would meet another mix
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.product_limit import GroupCDFs, group_cdfs
from evaluator.errors import DataError, ParameterError
from evaluator.log.column import cross, read_values
from evaluator.log.log_tables import SALES
from evaluator.log.reward_kinds import RewardKind
from evaluator.log.schema import to_numpy
from evaluator.log.times import COARSE_S
from evaluator.replays.rounds.clock import ReplayClock, ReplayWindow
from evaluator.replays.rounds.survey import Survey
from evaluator.units import NO_WINDOW, ticks_words

# A display whose conversions had less than this chance to show says little and would weigh much.
LEAST_SEEN = 0.2
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Maturity:
    """Which displays are used, and with what weight.

    Sorted by time, they are the first `used`; `immature` displays, used or not, were not followed long enough. Without
    a correction all weigh 1. How long a display must be followed is not `known` where the log stops looking but nothing
    says it.
    """

    used: int
    immature: int
    correction: Correction | None
    known: bool

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 if self.correction is None else self.correction.heaviest


def judge_maturity(survey: Survey, window: ReplayWindow, clock: ReplayClock, rule: str) -> Maturity:
    """Return which displays were followed long enough, and what becomes of the others.

    Raise DataError if no display was, or there are no conversions to fit a correction to; ParameterError if delays are
    to be corrected by a column that the log does not have, or whose values are no groups.
    """
    columns = correct_by(rule)
    log, n = survey.log, len(survey.log)
    follow_ups = []
    for kind in survey.kinds:
        if kind.observed_until is None:
            continue
        needed, in_displays = _follow_up(kind.attribution_window, window, clock)
        if needed is None:
            return Maturity(n, 0, None, False)
        end = survey.traffic_by(kind.observed_until) - 1 if in_displays else kind.observed_until
        follow_ups.append(FollowUp(kind, end, needed, in_displays))
    if not follow_ups:
        return Maturity(n, 0, None, True)
    last = min(follow_ups, key=lambda of: of.until - of.needed)
    in_displays = last.in_displays
    # By so many ticks a display was perhaps followed more briefly than time stamps of minutes, hours, days say: one
    # stamped Monday may be one of its last minute, and a log that ends on Tuesday may end in its first.
    coarse = not in_displays and survey.stamp * (log.meta.tick_seconds or 0.0) >= COARSE_S
    mature = _followed(survey, last.until - last.needed - (survey.stamp if coarse else 0), in_displays)
    if mature == 0:
        long = f"{last.needed:,} displays" if in_displays else ticks_words(last.needed, log.meta.tick_seconds)
        raise DataError(
            f"No display of log {log.meta.name!r} was followed for {long}, so none can be judged.",
            remedy="give a shorter attribution_window or `window`, or a log that covers more time.",
        )
    if columns is None or mature == n:
        return Maturity(mature, n - mature, None, True)
    correction = fit_correction(survey, follow_ups, columns)
    used = _followed(survey, correction.last, in_displays)
    return Maturity(used, n - mature, correction, True)


def _follow_up(longest: int | None, window: ReplayWindow, clock: ReplayClock) -> tuple[int | None, bool]:
    """Return how long a display must be followed, None where nothing says, and whether that counts displays."""
    if longest is not None or window.ticks is not None:
        return window.ticks if longest is None else longest, False
    if window.rounds == NO_WINDOW:
        return None, False
    # The most displays that are still rounded to m rounds.
    return (window.rounds if clock.share == 1.0 else int((window.rounds + 0.5) / clock.share)), True


def _followed(survey: Survey, last: int, in_displays: bool) -> int:
    """Return the displays up to the last that was followed for long enough: its number in the traffic, or its time."""
    return survey.displays_numbered_until(last) if in_displays else survey.displays_until(last)


class FollowUp(NamedTuple):
    """How long the displays of a log were followed for events of a kind.

    They were followed `until` a time in ticks, or the number in the traffic of the last display; a display that was
    followed for `needed` weighs 1. Either counts displays for every kind, or ticks for all.
    """

    kind: RewardKind
    until: int
    needed: int
    in_displays: bool


@dataclass(frozen=True, eq=False)
class Correction:
    """Weights 1 / tau(follow-up); delays and follow-up in ticks, or in displays.

    `kinds` of events that were not followed to their end have the delay CDF of each group of displays each; sales come
    first where there are any. `group` is that of each of the log's conversions, shape (c,), by its action and some
    `columns`. `last` is the time in ticks, or the number in the traffic, of the last display that is used: it was
    followed for long enough for every kind.
    """

    kinds: tuple[tuple[FollowUp, GroupCDFs], ...]
    group: Ints
    columns: tuple[str, ...]
    last: int

    @property
    def key(self) -> tuple[object, ...]:
        """What fixes the weights of a log's displays."""
        return (*((of.kind.name, *of[1:]) for of, _ in self.kinds), self.last)

    def weights(self, survey: Survey, displays: Ints) -> npt.NDArray[np.float64]:
        """Return the weight of displays with these numbers, shape (n,), each of which has a sale, and nothing else."""
        at = np.searchsorted(survey.display, displays)
        return self._weights(survey, 0, at)

    def weights_of_events(self, survey: Survey) -> npt.NDArray[np.float64]:
        """Return the weight of each conversion of the log, shape (c,): by its kind. Costs weigh 1."""
        weights = np.ones(len(survey.display))
        for number, (of, _) in enumerate(self.kinds):
            weights[of.kind.at] = self._weights(survey, number, of.kind.at)
        return weights

    def _weights(self, survey: Survey, number: int, at: slice | Ints) -> npt.NDArray[np.float64]:
        of, delays = self.kinds[number]
        shown = (survey.position if of.in_displays else survey.shown_at)[at]
        seen = delays(np.minimum(of.until - shown, of.needed), self.group[at])
        return np.asarray(1.0 / np.maximum(seen, LEAST_SEEN))

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 / min(delays.smallest(of.until - self.last) for of, delays in self.kinds)

    @property
    def assumption(self) -> str:
        """What the corrected numbers rest on, in words."""
        on = " and ".join(["action", *self.columns])
        rest = "the context or the time" if not self.columns else "anything else, nor on the time"
        few = "" if self.kinds[0][1].weight.max() > 0 else ", of which the log shows no two that differ"
        others = " and ".join(of.kind.name for of, _ in self.kinds if of.kind.name != SALES)
        return (
            f"`immature='correct'`: how late a display converts depends on its {on}, not on {rest}{few}; each law is "
            "drawn to the common one as far as its conversions are few; anytime-valid intervals take the laws as known"
            + (f"; {others} are corrected by delays of their own" if others else "")
        )

    def refitted(self, survey: Survey, times: npt.NDArray[np.integer]) -> Correction:
        """Return the same correction fitted to a resampled log, which has each conversion `times` times, shape (c,)."""
        groups = int(self.group.max()) + 1
        kinds = ((of, _delays_within(survey, self.group, of, times, groups) or delays) for of, delays in self.kinds)
        return replace(self, kinds=tuple(kinds))


def correct_by(rule: str) -> tuple[str, ...] | None:
    """Return the columns, beside the action, by which a rule of ``--immature`` corrects delays; None to drop.

    >>> correct_by("correct"), correct_by("correct:device,country"), correct_by("drop")
    ((), ('device', 'country'), None)

    Raises
    ------
    ParameterError
        The rule is neither ``drop`` nor ``correct`` nor ``correct:COLUMN``.
    """
    name, colon, columns = rule.partition(":")
    named = tuple(dict.fromkeys(column.strip() for column in columns.split(",")))
    if rule == "drop":
        return None
    if name != "correct" or (colon and not all(named)):
        raise ParameterError(
            f"`immature` {rule!r} is not a choice.",
            remedy="take drop, correct (delays by action), or correct:COLUMN (by action and that column of the log).",
        )
    return tuple(column for column in named if column and column != "action")


def fit_correction(survey: Survey, follow_ups: Sequence[FollowUp], columns: tuple[str, ...]) -> Correction:
    """Return the correction of displays that were followed so long for each kind of event.

    The slowest group decides which displays are left out: those of which less than `LEAST_SEEN` would show. Raise
    DataError if the log has no conversions, ParameterError if a column is not in the log or its values are no groups.
    """
    group = _groups(survey, columns)
    times = np.ones(len(survey.display), np.int64)
    groups = int(group.max(initial=0)) + 1
    fitted = [(of, _delays_within(survey, group, of, times, groups)) for of in follow_ups]
    kinds = tuple((of, delays) for of, delays in fitted if delays is not None)
    if not kinds:
        raise DataError(
            "`immature='correct'`: the log has no conversions to fit delays to.", remedy="use `immature='drop'`."
        )
    ends = [of.until - delays.reached(LEAST_SEEN) for of, delays in kinds]
    # Nothing corrects an outcome of which no event was seen.
    ends += [of.until - of.needed for of, delays in fitted if delays is None and not of.kind.of_conversions]
    return Correction(kinds, group, columns, min(ends))


def _delays_within(
    survey: Survey, group: Ints, of: FollowUp, times: npt.NDArray[np.integer], groups: int
) -> GroupCDFs | None:
    """Fit the delay CDFs to events of a kind that are there so many times each; None where there are none."""
    at = of.kind.at
    delay = (survey.delay if of.in_displays else survey.delay_ticks)[at]
    limit = survey.limit if of.in_displays else survey.limit_ticks()
    assert limit is not None  # the log stops looking
    times = np.where(delay <= of.needed, times[at], 0)
    if not times.any():
        return None
    rows = (np.repeat(each, times) for each in (delay, np.minimum(limit[at], of.needed), group[at]))
    return group_cdfs(*rows, n_groups=groups)


def _groups(survey: Survey, columns: tuple[str, ...]) -> Ints:
    """Return the group of each conversion's display, shape (c,): its action, and its values in other columns."""
    displays, of = np.unique(survey.display, return_inverse=True)
    group: Ints = to_numpy(survey.log.take(displays, ["action"])["action"]).astype(np.int64)
    for column in read_values(survey.log, columns, displays, asked="`immature='correct:{}'`", fractions=False):
        group = cross(group, column.code)[2]
    return group[of]
