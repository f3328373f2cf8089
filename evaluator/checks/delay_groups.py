"""Groups of conversions that lack short delays, or long ones, which the others have: days, or actions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.propensities import p_words
from evaluator.checks.record import Check
from evaluator.checks.result import CheckResult, not_applicable
from evaluator.checks.tables import Tables
from evaluator.units import format_duration

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

OF_DAYS, OF_ACTIONS = "delays of each day", "delays of each action"
FEWEST_CONVERSIONS = 50
# Delays are cut at these quantiles of all, which no assignment to groups changes.
_CUTS = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98)
# A group lacks what it has at most a third of, if that is so many conversions and so much of the group.
THIRD, _FEWEST_USUAL, MISSING = 1.0 / 3.0, 5.0, 0.02


class MissingDelays(NamedTuple):
    """Delays that a group has fewer of than the others.

    Parameters
    ----------
    group
        Number of the group.
    short
        Whether the short delays are missing, those below `cut`; else those of `cut` or more.
    cut
        Delay in ticks that separates the short ones from the others.
    seen, usual
        Number of conversions of the group with such delays, and how many were to be expected.
    p
        P-value of this lack, adjusted for the number of groups and cuts.
    """

    group: int
    short: bool
    cut: int
    seen: int
    usual: float
    p: float


def delays_of_days(t: Tables, level: float) -> CheckResult:
    """Test that no single day lacks short or long delays (hypergeometric, Bonferroni)."""
    timeline, follow = t.logged.timeline, t.logged.follow_up
    if timeline.ends is None:
        return not_applicable(OF_DAYS, "the log counts rounds, or covers fewer than three days")
    day = timeline.period_of(t.logged.survey.display)
    whole = timeline.whole & (timeline.edges[1:] <= follow.mature)
    used = follow.counted(t.logged.survey.display) & whole[day]
    weekday = np.arange(timeline.periods) % 7 if timeline.period == "day" else None
    found = most_lacking(follow.delay[used], day[used], kin=weekday)
    if found is None:
        return not_applicable(OF_DAYS, "too few conversions of whole days")
    name = timeline.name(found.group)
    return _finding(
        OF_DAYS, t, found, level, name,
        f"Conversions of {name} are written later or earlier than those of other days, or they were followed "
        "otherwise: a policy is told of them at the wrong time, and one law of delays does not hold for that day."
        + ("" if timeline.end - timeline.start >= 14 * 24 * timeline.hour else
           " The log is too short to tell whether that weekday is always so."),
        "Compare the clock and the time zone of that day's conversions with those of the days around; leave the day "
        "out if they cannot be repaired.",
    )  # fmt: skip


def delays_of_actions(t: Tables, level: float) -> CheckResult:
    """Test that no action lacks short or long delays (hypergeometric, Bonferroni)."""
    log, follow = t.logged.survey.log, t.logged.follow_up
    used = follow.counted(t.logged.survey.display)
    found = most_lacking(follow.delay[used], t.action[used])
    if found is None:
        return not_applicable(OF_ACTIONS, "too few conversions of two actions")
    name = f"action {log.labels[found.group]}"
    return _finding(
        OF_ACTIONS, t, found, level, name,
        f"{name[0].upper()}{name[1:]} was followed for another time than the others, or its conversions come sooner "
        "or later: displays of one age tell more of one action than of another, and one law of delays, which policies "
        "that need one take for all, is wrong for it.",
        "If it was followed for less, cut all to what it has (`attribution_window`); if its delays are like that, "
        "replay policies that need no law of delays, or with `immature='correct'`, which has one for each action.",
    )  # fmt: skip


def most_lacking(delay: Ints, group: Ints, *, kin: Ints | None = None) -> MissingDelays | None:
    """Return the most significant lack of short or long delays; None if nothing can be tested.

    Given all delays, which of them are in a group is a draw without replacement if delays do not depend on the group,
    so that the number below a cut is hypergeometric.

    Parameters
    ----------
    delay, group
        Delay in ticks, and group from 0, of each conversion, shape (c,).
    kin
        Kind of each group, from 0, shape (G,) or longer, such as the weekday of a day: what all groups of one kind lack
        is no lack. None where all groups are of one kind.
    """
    n = len(delay)
    if n < FEWEST_CONVERSIONS or delay.min() == delay.max():
        return None
    cuts = np.unique(np.quantile(delay, _CUTS, method="higher"))
    cuts = cuts[cuts > delay.min()]
    size = np.bincount(group)
    cell = np.searchsorted(cuts, delay, side="right")
    counts = np.bincount(group * (len(cuts) + 1) + cell, minlength=len(size) * (len(cuts) + 1)).reshape(len(size), -1)
    below = np.cumsum(counts, axis=1)[:, :-1]
    seen = np.stack((below, size[:, None] - below))
    every = np.stack((below.sum(axis=0), n - below.sum(axis=0)))
    usual = size[None, :, None] * every[:, None, :] / n
    # Whole groups are not tested against nothing.
    tested = (usual >= _FEWEST_USUAL) & (size < n)[None, :, None]
    if not tested.any():
        return None
    tests = int(np.count_nonzero(tested))
    lacking = tested & (seen <= THIRD * usual) & (usual - seen >= MISSING * size[None, :, None])
    if kin is not None:
        of_kin = _usual_of_kin(seen, size, kin[: len(size)])
        lacking &= (of_kin >= _FEWEST_USUAL) & (seen <= THIRD * of_kin)
    best = MissingDelays(-1, True, 0, 0, 0.0, 1.0)
    for side, g, c in np.argwhere(lacking).tolist():
        p = min(hypergeometric_tail(int(seen[side, g, c]), n, int(every[side, c]), int(size[g])) * tests, 1.0)
        if p < best.p:
            best = MissingDelays(g, side == 0, int(cuts[c]), int(seen[side, g, c]), float(usual[side, g, c]), p)
    return best


def _usual_of_kin(seen: Ints, size: Ints, kin: Ints) -> Floats:
    """Return what the others of its kind let expect of each group, shape of `seen` (2, G, C); inf where none are."""
    alike = (kin[:, None] == kin) & ~np.eye(len(kin), dtype=bool)
    others = alike @ size
    share = np.einsum("gh,shc->sgc", alike.astype(np.float64), seen) / np.maximum(others, 1)[None, :, None]
    return np.where(others[None, :, None] > 0, share * size[None, :, None], np.inf)


def hypergeometric_tail(seen: int, population: int, marked: int, drawn: int) -> float:
    """Return P(at most `seen` marked ones among those drawn without replacement).

    >>> round(hypergeometric_tail(1, 10, 5, 4), 6)  # (5 + 50) of 210 ways
    0.261905
    """
    from scipy.special import gammaln

    k = np.arange(max(0, drawn + marked - population), seen + 1, dtype=np.float64)
    if not len(k):
        return 0.0

    def ways(n: float, of: Floats) -> Floats:
        return np.asarray(gammaln(n + 1.0) - gammaln(of + 1.0) - gammaln(n - of + 1.0))

    logs = ways(marked, k) + ways(population - marked, drawn - k) - ways(population, np.array([float(drawn)]))
    return float(min(np.exp(logs).sum(), 1.0))


def _finding(
    name: str, t: Tables, found: MissingDelays, level: float, group: str, bad: str, remedy: str
) -> CheckResult:
    seconds = t.logged.survey.log.meta.tick_seconds
    wrong = found.group >= 0 and found.p <= level
    if found.group < 0:
        return CheckResult(
            name=name, verdict="pass", number="none lacks short or long delays", p_value=1.0, effect=0.0,
            what="Short and long delays are where they should be, as far as the log can tell.",
        )  # fmt: skip
    cut = f"{found.cut:,} rounds" if seconds is None else format_duration(found.cut * seconds)
    which = f"of less than {cut}" if found.short else f"of {cut} or more"
    number = f"{group}: {found.seen} delays {which}, {found.usual:.0f} usual, p {p_words(found.p)}"
    return CheckResult(
        name=name, verdict="warn" if wrong else "pass", number=number, p_value=found.p,
        effect=1.0 - found.seen / found.usual,
        numbers={"group": group, "short": found.short, "cut": found.cut, "seen": found.seen, "usual": found.usual},
        what=bad if wrong else "Short and long delays are where they should be, as far as the log can tell.",
        remedy=remedy if wrong else "",
    )  # fmt: skip


DELAYS_OF_DAYS = Check(name=OF_DAYS, finds="conversions written late for a day", run=delays_of_days, by_kind=True)
DELAYS_OF_ACTIONS = Check(name=OF_ACTIONS, finds="an action followed for less", run=delays_of_actions, by_kind=True)
