"""Young displays corrected: what was seen of them, divided by the probability of having seen it.

A conversion of a display followed for l is seen if its delay is at most l, so that the sum over what was seen, divided
by tau(l), has the mean of what comes in the end: if tau is the delay CDF of that display. Delays depend on the action
(some are bought at once, others after a week), so tau is that of the display's action, or of its action and other
columns known at the display (`evaluator.delays.by_group`). Whether a display is used depends on its follow-up alone,
never on its action: a replay that read the young displays of quick actions only would meet another mix of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evaluator.delays.by_group import GroupCDFs, group_cdfs
from evaluator.errors import DataError, ParameterError
from evaluator.log.column import cross, read_values
from evaluator.log.costs import cost_events, sales
from evaluator.log.schema import to_numpy
from evaluator.replays.rounds.survey import Survey

# A display whose conversions had less than this chance to show says little and would weigh much.
LEAST_SEEN = 0.2

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Weights 1 / tau(follow-up); delays and follow-up in ticks, or in displays.

    Parameters
    ----------
    delays
        Delay CDF of each group of displays.
    group
        Group of each of the log's conversions, shape (c,).
    columns
        Columns that make groups, beside the action.
    needed
        Follow-up after which a display weighs 1, in ticks or displays.
    until
        Time (ticks), or number in the traffic of the last display, until which the log followed its displays.
    shortest
        Shortest follow-up of a display that is used, in ticks or displays; others are left out.
    in_displays
        Whether delays are counted in displays.
    refunds
        Delay CDF of the refunds of each group of displays; None without refunds.
    """

    delays: GroupCDFs
    group: Ints
    columns: tuple[str, ...]
    needed: int
    until: int
    shortest: int
    in_displays: bool
    refunds: GroupCDFs | None = None

    def weights(self, survey: Survey, displays: Ints) -> npt.NDArray[np.float64]:
        """Return the weight of displays with these numbers, shape (n,), each of which has a conversion."""
        at = np.searchsorted(survey.display, displays)
        shown = (survey.position if self.in_displays else survey.shown_at)[at]
        followed = np.minimum(self.until - shown, self.needed)
        seen = self.delays(followed, self.group[at])
        return np.asarray(1.0 / np.maximum(seen, LEAST_SEEN))

    def weights_of_events(self, survey: Survey) -> npt.NDArray[np.float64]:
        """Return the weight of each conversion of the log, shape (c,): refunds have their own delays, costs none."""
        shown = survey.position if self.in_displays else survey.shown_at
        followed = np.minimum(self.until - shown, self.needed)
        seen = self.delays(followed, self.group)
        value, costs = to_numpy(survey.log.conversions["value"]), cost_events(survey.log.conversions)
        if self.refunds is not None:
            seen = np.where(value < 0.0, self.refunds(followed, self.group), seen)
        weights = 1.0 / np.maximum(seen, LEAST_SEEN)
        return np.asarray(weights if costs is None else np.where(costs, 1.0, weights))

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 / min(of.smallest(self.shortest) for of in (self.delays, self.refunds) if of is not None)

    @property
    def assumption(self) -> str:
        """What the corrected numbers rest on, in words."""
        on = " and ".join(["action", *self.columns])
        rest = "the context or the time" if not self.columns else "anything else, nor on the time"
        few = "" if self.delays.weight.max() > 0 else ", of which the log shows no two that differ"
        return (
            f"`immature='correct'`: how late a display converts depends on its {on}, not on {rest}{few}; each law is "
            "drawn to the common one as far as its conversions are few; anytime-valid intervals take the laws as known"
            + ("; refunds are corrected by delays of their own" if self.refunds is not None else "")
        )

    def refitted(self, survey: Survey, times: npt.NDArray[np.integer]) -> Correction:
        """Return the correction of the same displays with CDFs fitted to a resampled log.

        Parameters
        ----------
        survey
            Survey of the log.
        times
            Number of times that each of the log's conversions is in the resampled one, shape (c,).
        """
        delays, refunds = _of_kinds(survey, self.group, self.needed, times, in_displays=self.in_displays)
        return replace(self, delays=delays or self.delays, refunds=refunds or self.refunds)


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


def fit_correction(survey: Survey, end: int, needed: int, columns: tuple[str, ...], *, in_displays: bool) -> Correction:
    """Return the correction of displays followed until `end` where `needed` is long enough.

    The slowest group decides which displays are left out: those of which less than `LEAST_SEEN` would show.

    Raises
    ------
    DataError
        The log has no conversions.
    ParameterError
        A column is not in the log, or its values are no groups.
    """
    group = _groups(survey, columns)
    times = np.ones(len(survey.display), np.int64)
    delays, refunds = _of_kinds(survey, group, needed, times, in_displays=in_displays)
    if delays is None:
        raise DataError(
            "`immature='correct'`: the log has no conversions to fit delays to.", remedy="use `immature='drop'`."
        )
    shortest = max(of.reached(LEAST_SEEN) for of in (delays, refunds) if of is not None)
    return Correction(delays, group, columns, needed, end, shortest, in_displays, refunds)


def _of_kinds(
    survey: Survey, group: Ints, needed: int, times: npt.NDArray[np.integer], *, in_displays: bool
) -> tuple[GroupCDFs | None, GroupCDFs | None]:
    """Return the delay CDFs of sales and of refunds, each by group; None where there are none."""
    sold, costs = sales(survey.log.conversions), cost_events(survey.log.conversions)
    if sold is None:
        return _delays_within(survey, group, needed, times, in_displays=in_displays), None
    refunded = ~sold if costs is None else ~(sold | costs)
    kinds = (np.where(of, times, 0) for of in (sold, refunded))
    of_sales, of_refunds = (_delays_within(survey, group, needed, of, in_displays=in_displays) for of in kinds)
    return of_sales, of_refunds


def _delays_within(
    survey: Survey, group: Ints, needed: int, times: npt.NDArray[np.integer], *, in_displays: bool
) -> GroupCDFs | None:
    """Fit the delay CDFs to conversions that are there so many times each; None where there are none."""
    delay = survey.delay if in_displays else survey.delay_ticks
    limit = survey.limit if in_displays else survey.limit_ticks()
    assert limit is not None  # the log stops looking
    limit = np.minimum(limit, needed)
    times = np.where(delay <= needed, times, 0)
    if not times.any():
        return None
    rows = (np.repeat(of, times) for of in (delay, limit, group))
    return group_cdfs(*rows, n_groups=int(group.max()) + 1)


def _groups(survey: Survey, columns: tuple[str, ...]) -> Ints:
    """Return the group of each conversion's display, shape (c,): its action, and its values in other columns."""
    displays, of = np.unique(survey.display, return_inverse=True)
    group: Ints = to_numpy(survey.log.take(displays, ["action"])["action"]).astype(np.int64)
    for column in read_values(survey.log, columns, displays, asked="`immature='correct:{}'`", fractions=False):
        group = cross(group, column.code)[2]
    return group[of]
