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
from evaluator.log.groups import group_codes
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
    """

    delays: GroupCDFs
    group: Ints
    columns: tuple[str, ...]
    needed: int
    until: int
    shortest: int
    in_displays: bool

    def weights(self, survey: Survey, displays: Ints) -> npt.NDArray[np.float64]:
        """Return the weight of displays with these numbers, shape (n,), each of which has a conversion."""
        at = np.searchsorted(survey.display, displays)
        shown = (survey.position if self.in_displays else survey.shown_at)[at]
        followed = np.minimum(self.until - shown, self.needed)
        seen = self.delays(followed, self.group[at])
        return np.asarray(1.0 / np.maximum(seen, LEAST_SEEN))

    @property
    def heaviest(self) -> float:
        """No used display weighs more."""
        return 1.0 / self.delays.smallest(self.shortest)

    @property
    def assumption(self) -> str:
        """What the corrected numbers rest on, in words."""
        on = " and ".join(["action", *self.columns])
        rest = "the context or the time" if not self.columns else "anything else, nor on the time"
        few = "" if self.delays.weight.max() > 0 else ", of which the log shows no two that differ"
        return (
            f"`immature='correct'`: how late a display converts depends on its {on}, not on {rest}{few}; each law is "
            "drawn to the common one as far as its conversions are few; anytime-valid intervals take the laws as known"
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
        delays = _delays_within(survey, self.group, self.needed, times, in_displays=self.in_displays)
        return self if delays is None else replace(self, delays=delays)


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
            hint="take drop, correct (delays by action), or correct:COLUMN (by action and that column of the log).",
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
    delays = _delays_within(survey, group, needed, times, in_displays=in_displays)
    if delays is None:
        raise DataError(
            "`immature='correct'`: the log has no conversions to fit delays to.", hint="use `immature='drop'`."
        )
    return Correction(delays, group, columns, needed, end, delays.reached(LEAST_SEEN), in_displays)


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
    codes = group_codes(survey.log, displays, columns, asked="`immature='correct:{}'`")
    group: Ints = to_numpy(survey.log.take(displays, ["action"])["action"]).astype(np.int64)
    for code in codes:
        group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)[1].astype(np.int64)
    return group[of]
