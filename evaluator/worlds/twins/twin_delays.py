"""How late a twin's conversions come: by action, as a replay corrects young displays (`evaluator.delays.by_group`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evaluator.delays.by_group import GroupCDFs, group_cdfs
from evaluator.delays.cdf import DelayCDF
from evaluator.log.schema import to_numpy
from evaluator.replays.plan import ReplayPlan
from evaluator.worlds.twins.means_in_blocks import mean_of_columns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DelayLaws:
    """The delay laws of a truth, in ticks of the twins.

    Parameters
    ----------
    grid
        Delays that occur, in ticks, increasing, shape (J,).
    tau
        CDF of each law at the delays in `grid`, shape (R, J).
    of_action
        Row of `tau` for each action's delays, shape (K,).
    said
        Sentence that says what the laws are.
    """

    grid: Ints
    tau: Floats
    of_action: Ints
    said: str

    @cached_property
    def cdfs(self) -> tuple[DelayCDF, ...]:
        """Each law."""
        return tuple(DelayCDF(delays=self.grid[row > 0], cdf=row[row > 0], source=self.said) for row in self.tau)

    def drawn(self, action: Ints, uniform: Floats) -> Ints:
        """Return the delays of conversions of some actions, by inversion, shape (n,)."""
        law = self.of_action[action]
        out = np.empty(len(action), np.int64)
        for r in np.unique(law):
            mine = law == r
            at = np.searchsorted(self.tau[r], uniform[mine], side="right")
            out[mine] = self.grid[np.minimum(at, len(self.grid) - 1)]
        return out

    def seen(self, n: int, ages: Callable[[int, int], Ints]) -> Floats:
        """Return the mean chance that a conversion of each action has come by some ages, shape (K,).

        Parameters
        ----------
        n
            Number of ages.
        ages
            Function that returns those from one number to another (excluded), shape (m,).
        """
        padded = np.column_stack((np.zeros(len(self.tau)), self.tau))

        def chances(first: int, end: int) -> Floats:
            return padded[:, np.searchsorted(self.grid, ages(first, end), side="right")]

        share: Floats = mean_of_columns(n, chances)[self.of_action]
        return share


def fit_delay_laws(plan: ReplayPlan, longest: int | None, *, in_time: bool) -> DelayLaws:
    """Return the delay laws in ticks of the twins, within the attribution window.

    These are ticks of the log, or displays where twins count rounds.
    """
    survey = plan.survey
    delay = survey.delay_ticks if in_time else survey.delay
    limit = survey.limit_ticks() if in_time else survey.limit
    if survey.kept != 1.0 and not in_time:
        delay = np.rint(delay * survey.kept).astype(np.int64)
        limit = None if limit is None else np.rint(limit * survey.kept).astype(np.int64)
    limit = np.full(len(delay), delay.max()) if limit is None else np.maximum(limit, delay)
    action = action_of_conversions(plan)
    if longest is not None and (delay <= longest).any():
        short = delay <= longest
        delay, limit, action = delay[short], np.minimum(limit[short], longest), action[short]
    found = group_cdfs(delay, limit, action, n_groups=plan.log.n_actions)
    return DelayLaws(found.grid, found.table[:, 1:], found.row, _words(found))


def shares_within_window(plan: ReplayPlan) -> Floats:
    """Return the share of each action's conversions that come within the policy's window, shape (K,)."""
    survey = plan.survey
    in_displays = plan.window.ticks is None
    delay = survey.delay if in_displays else survey.delay_ticks
    limit = survey.limit if in_displays else survey.limit_ticks()
    longest = int((plan.window.rounds + 0.5) / plan.clock.share) if plan.window.ticks is None else plan.window.ticks
    limit = np.full(len(delay), delay.max()) if limit is None else np.maximum(limit, delay)
    found = group_cdfs(delay, limit, action_of_conversions(plan), n_groups=plan.log.n_actions)
    return found(longest, np.arange(plan.log.n_actions))


def action_of_conversions(plan: ReplayPlan) -> Ints:
    """Return the action of each conversion's display, shape (c,)."""
    displays, of = np.unique(plan.survey.display, return_inverse=True)
    action: Ints = to_numpy(plan.log.take(displays, ["action"])["action"]).astype(np.int64)[of]
    return action


def _words(found: GroupCDFs) -> str:
    own = int((found.weight > 0).sum())
    if own == 0:
        return f"delays, the same for all actions: {found.common.source}"
    return (
        f"delays of {own:,} actions by laws of their own, drawn to the common one by as much as the log cannot tell "
        f"them from it: {found.common.source}"
    )
