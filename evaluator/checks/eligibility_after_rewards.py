"""Whether what is eligible follows from what was shown before, and how it did.

A replay meets the sets of the log, whatever its policy chooses. That is what would have happened live where sets are
independent of outcomes: a calendar, a rule on contexts, chance. Where an action is withdrawn for selling badly, or runs
out once it has sold, another policy would have met other sets.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.record import Check
from evaluator.checks.result import TRIVIAL, CheckResult
from evaluator.checks.tables import Tables
from evaluator.log import Log
from evaluator.log.eligible import SetCodes, members
from evaluator.log.schema import ELIGIBLE
from evaluator.log.set_kinds import has_eligibility

NAME = "eligibility after rewards"
# Parts of the log, of as many displays each: spans after which somebody looks, or in which stock runs out.
PARTS = (40, 400)
# Displays that a part has at least, on average.
_FEWEST = 20
# Sweeps of the projections that take level, trend and part out of a number; they converge by a factor each.
_SWEEPS = 60

Floats = npt.NDArray[np.float64]


class Cells(NamedTuple):
    """What happened to each action in each part of the log.

    Parameters
    ----------
    shown
        Displays that showed the action and were followed to their end, shape (parts, K).
    rewarded
        Those of them with a reward, shape (parts, K).
    share
        Share of the displays at which it is eligible, shape (parts, K).
    """

    shown: Floats
    rewarded: Floats
    share: Floats


class Lead(NamedTuple):
    """How rates of reward go with the change of eligibility that follows.

    Parameters
    ----------
    z
        Score over its standard error; 0 where nothing changes.
    slope
        Rate of reward less what action, trend, part and present eligibility make of it, per unit of the change that
        follows.
    """

    z: float = 0.0
    slope: float = 0.0

    @property
    def p_value(self) -> float:
        """Two-sided p-value."""
        return math.erfc(abs(self.z) / math.sqrt(2.0))


def read_cells(log: Log, rewards: npt.NDArray[np.int64], judged: int, parts: int) -> Cells:
    """Return the cells of a log, in one pass over its actions and sets.

    Parameters
    ----------
    log
        Log with sets.
    rewards
        Displays with a reward, in any order, shape (c,).
    judged
        Number of displays that were followed to their end, the first ones.
    parts
        Number of parts of as many displays each.
    """
    k = log.n_actions
    rewarded = np.zeros(len(log), np.bool_)
    rewarded[rewards] = True
    counts, eligible, sizes = np.zeros((2, parts * k)), np.zeros((parts, k)), np.zeros(parts)
    for first, batch in log.batches(["action", ELIGIBLE], coded=True):
        sets, action = batch[ELIGIBLE], batch["action"].astype(np.int64)
        assert isinstance(sets, SetCodes)
        number = np.arange(first, first + len(action))
        part, mature = number * parts // len(log), number < judged
        cell = part * k + action
        for row, own in enumerate((mature, mature & rewarded[number])):
            counts[row] += np.bincount(cell[own], minlength=parts * k)
        begins, listed = members(sets.distinct)
        for p in np.unique(part):
            of_set = np.bincount(np.asarray(sets)[part == p], minlength=len(sets.distinct))
            eligible[p] += np.bincount(listed, np.repeat(of_set, np.diff(begins)), minlength=k)
            sizes[p] += of_set.sum()
    shown, earned = counts.reshape(2, parts, k)
    return Cells(shown, earned, eligible / np.maximum(sizes, 1.0)[:, None])


def lead_of(cells: Cells) -> Lead:
    """Test whether rates of reward go with the change of eligibility that follows.

    Where sets are strictly exogenous, the change c from a part to the next has no part in the rate of reward y of an
    action's n displays beside fixed effects of the action, of its trend and of the part, and beside what is eligible
    now (Wooldridge 2010, section 10.7.1: a lead of the regressor in the within regression). So with c less all of
    these, the score sum n c y is 0 on average. Its variance is the largest of three: of independent displays; of
    independent cells, whose displays may hang together; of actions whose near cells may (Newey, West 1987).
    """
    n, y = cells.shown, cells.rewarded
    c, now = (_within(x, n) for x in (np.diff(cells.share, axis=0, append=cells.share[-1:]), cells.share))
    c = c - now * _over((n * now * c).sum(), (n * now**2).sum())
    rate = _over(y, n)
    seen = n > 0
    fitted = seen.any(axis=0).sum() * 2 + seen.any(axis=1).sum() + 1
    # What is fitted leaves less than there was (MacKinnon, White 1985: HC1).
    off = n * c * _within(rate, n) * math.sqrt(seen.sum() / max(seen.sum() - fitted, 1))
    spread = float((n * c**2).sum())
    if spread <= 1e-12 * float(n.sum()):
        return Lead()
    score = float((c * y).sum())
    alone = n * c**2 * rate * (1.0 - rate) * _over(n, np.maximum(n - 1.0, 1.0))
    lags = len(n) // 8  # an eighth of the log
    near = sum((1.0 - lag / (lags + 1)) * float((off[lag:] * off[:-lag]).sum()) for lag in range(1, lags + 1))
    variance = max(float(alone.sum()), float((off**2).sum()), float((off**2).sum()) + 2.0 * near)
    return Lead(score / math.sqrt(variance), score / spread) if variance > 0.0 else Lead()


def _within(x: Floats, n: Floats) -> Floats:
    """Return numbers of shape (parts, K) less the level and trend of each action and the level of each part.

    `n` weighs them; where it is 0, they are 0. Alternating projections (von Neumann, Halperin).
    """
    x, part = np.where(n > 0, x, 0.0), np.arange(len(n))[:, None]
    at = part - _over((n * part).sum(axis=0), n.sum(axis=0))
    for _ in range(_SWEEPS):
        x = x - _over((n * x).sum(axis=1), n.sum(axis=1))[:, None]
        x = x - _over((n * x).sum(axis=0), n.sum(axis=0))
        x = x - at * _over((n * at * x).sum(axis=0), (n * at**2).sum(axis=0))
    return np.where(n > 0, x, 0.0)


def _over(of: Floats, by: Floats) -> Floats:
    return np.divide(of, by, out=np.zeros(np.shape(of)), where=np.asarray(by) > 0)


def eligibility_after_rewards(t: Tables, level: float) -> CheckResult:
    """Compare how actions did in each part of the log with how their eligibility changed to the next one."""
    survey = t.logged.survey
    log = survey.log
    if not has_eligibility(log):
        return CheckResult(name=NAME, verdict="not applicable", number="", what="every action is always eligible")
    parts = [count for count in PARTS if len(log) >= _FEWEST * count]
    cells = [read_cells(log, survey.display, t.logged.follow_up.mature, count) for count in parts]
    leads = [lead_of(each) for each in cells]
    if not any(lead.z for lead in leads):
        why = "what is eligible does not change with time, no display has a reward, or there are too few displays"
        return CheckResult(name=NAME, verdict="not applicable", number="", what=why)
    first = min(range(len(leads)), key=lambda i: leads[i].p_value)
    lead, mean = leads[first], float(cells[first].rewarded.sum() / cells[first].shown.sum())
    p_value, effect = min(1.0, len(leads) * lead.p_value), abs(lead.slope) / mean
    finding = CheckResult(
        name=NAME,
        verdict="pass",
        number=f"{-lead.slope / mean:+.0%} of the mean rate before an action leaves",
        statistic=lead.z,
        p_value=p_value,
        effect=effect,
        numbers={"slope": lead.slope, "mean_rate": mean, "parts": parts[first]},
        what="Nothing tells that what is eligible follows from how it did before.",
    )
    if p_value > level or effect < TRIVIAL:
        return finding
    than, because = (
        ("lower", "they are withdrawn for doing badly") if lead.slope > 0
        else ("higher", "they run out once they have sold")
    )  # fmt: skip
    return replace(
        finding,
        verdict="warn",
        what=f"Before actions leave the sets, their rate of reward is {than} than else, as if {because}: another "
        "policy would have met other sets than a replay of this log shows it.",
        remedy="Ask who decides what is eligible. If outcomes do, evaluate on spans between decisions, or among "
        "actions that they leave alone (`actions`).",
    )


ELIGIBILITY_AFTER_REWARDS = Check(
    name=NAME,
    finds="actions that are withdrawn for doing badly, or run out once they have sold",
    run=eligibility_after_rewards,
    instead_of="replay of the logger",
)
