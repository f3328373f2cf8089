"""Why an action is shown less than its propensities say: it came late, or not for all, or they are wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.checks.finding import TRIVIAL
from evaluator.checks.tables import Tables
from evaluator.log.times import time_words

Floats = npt.NDArray[np.float64]

# None is no chance where so many displays are usual: exp(-20) is 2e-9.
USUAL = 20.0
# A mean of 1 / p so many standard errors below 1 is looked into.
_SURE = 4.0
_NAMED = 8


class Absence(NamedTuple):
    """A part of the log without any display of an action that has many in the rest.

    Parameters
    ----------
    action
        Index of the action.
    share
        Share of the log's displays at which it was not shown.
    since, until
        Time of its first display where it came later than the log, and of its last one where it went earlier; each is
        None where it did neither.
    """

    action: int
    share: float
    since: int | None
    until: int | None


class MissingSupport(NamedTuple):
    """Displays at which an action is hardly ever shown, while its propensities hold at others.

    Parameters
    ----------
    action
        Index of the action.
    share
        Estimated share of the log's displays at which it is hardly ever shown: 1 minus the mean of 1 / p.
    where
        Group of displays in which it is shown least.
    shown, expected
        Number of its displays in that group, and how many it would have there at its share of all displays.
    """

    action: int
    share: float
    where: str
    shown: int
    expected: float


def absences(t: Tables) -> list[Absence]:
    """Return the actions that came after the log began or went before it ended, by displays that chance does not miss.

    Between its first and last display an action has a share of the displays; where that share of the ones before (or
    after) makes `USUAL` displays or more, and these are `TRIVIAL` of the log or more, it was not there.
    """
    n = len(t.logged.survey.log)
    found = []
    for a in np.flatnonzero(t.counts[0]).tolist():
        before, after = t.outside[:, a].tolist()
        rate = t.counts[0, a] / (n - before - after)
        came = rate * before >= USUAL and before >= TRIVIAL * n
        went = rate * after >= USUAL and after >= TRIVIAL * n
        if came or went:
            share = (before * came + after * went) / n
            found.append(Absence(a, share, int(t.first[1, a]) if came else None, int(t.last[1, a]) if went else None))
    return found


def absence_words(t: Tables, absence: Absence) -> str:
    """Return from when to when an action has displays, in words: ``a3 has displays only from ... on, none in ...``."""
    label, seconds = t.logged.survey.log.labels[absence.action], t.logged.survey.log.meta.tick_seconds
    start = t.logged.timeline.start
    words = f"action {label} has displays only"
    if absence.since is not None:
        words += f" from {time_words(absence.since, seconds, start=start)}" + (" on" if absence.until is None else "")
    if absence.until is not None:
        words += f" until {time_words(absence.until, seconds, start=start)}"
    return f"{words}, none in the other {absence.share:.0%} of the traffic"


def deficits(t: Tables) -> list[int]:
    """Return the actions whose mean of 1 / p is below 1, most first: by `TRIVIAL` and four standard errors or more.

    Where propensities are constant that is their share of the displays over p.
    """
    n, constant = float(len(t.logged.survey.log)), t.logged.constant
    with np.errstate(invalid="ignore", divide="ignore"):
        if constant is None:
            mean, error = t.inverse[0, 0] / n, np.sqrt(t.inverse[1, 0]) / n
        else:
            mean, error = t.counts[0] / (n * constant), np.sqrt(1.0 / (n * constant))
    low = (t.counts[0] > 0) & (mean < 1.0 - TRIVIAL) & (mean < 1.0 - _SURE * error)
    return [int(a) for a in np.argsort(mean, kind="stable") if low[a]]


def hole(t: Tables, action: int) -> MissingSupport | None:
    """Return where an action is not shown, if its mean of 1 / p is 1 in some groups and far from it in others.

    A wrong propensity is wrong everywhere, by about the same factor; None then, and where propensities are constant.
    """
    if t.logged.constant is not None:
        return None
    size = t.counts.sum(axis=1)
    share = t.inverse[0, 0, action] / size[0]
    best, found = 0.0, None
    for family, all_rows in t.families.items():
        if family.kind == "all":
            continue
        rows = [i for i in all_rows if size[i] > 0]
        mean = t.inverse[0, rows, action] / size[rows]
        # Variance of the mean of 1{A = a} / p: its second moment, or what the whole log lets expect.
        spread = np.maximum(t.inverse[1, rows, action] / size[rows], t.inverse[1, 0, action] / size[0])
        error = np.sqrt(spread / size[rows])
        apart = float((((mean - share) / error) ** 2).sum()) - len(rows)
        least = int(mean.argmin())
        holds = mean[mean.argmax()] + 3.0 * error[mean.argmax()] >= 1.0
        sure = (share - mean[least]) / error[least] >= _SURE
        if len(rows) > 1 and holds and sure and apart > best:
            row = rows[least]
            expected = float(size[row] * t.counts[0, action] / size[0])
            best = apart
            found = MissingSupport(action, 1.0 - float(share), t.groups[row].name, int(t.counts[row, action]), expected)
    return found


def absence_advice(t: Tables, gone: list[Absence]) -> tuple[str, str]:
    """Return what launches and retirements, of which there is one at least, mean for a replay, and what to do."""
    most, everyone = max(gone, key=lambda absence: absence.share), np.arange(t.counts.shape[1])
    return (
        f"{_said(t, most, len(gone) - 1)}. A policy that chooses it at other times finds no display, and a replay of "
        "the whole log tilts towards the time in which it was there",
        "Replay the time in which all actions were there (`limit`, or a file that starts later), or leave out what was "
        f"not: {without(t, np.isin(everyone, [absence.action for absence in gone]))}.",
    )


def absence_cause(t: Tables, among: list[int] | None = None) -> tuple[str, str] | None:
    """Return by which launches or retirements, of some actions or all, shares are off, and what to do; None without."""
    gone = [absence for absence in absences(t) if among is None or absence.action in among]
    if not gone:
        return None
    most = max(gone, key=lambda absence: absence.share)
    return (
        f"{_said(t, most, len(gone) - 1)}. If it was launched or retired, its propensities may be right; see overlap.",
        "Do as overlap says, and check what is left again.",
    )


def _said(t: Tables, absence: Absence, others: int) -> str:
    words = absence_words(t, absence)
    return words[0].upper() + words[1:] + (f" ({others} more come late or go early)" if others else "")


def hole_cause(t: Tables) -> tuple[str, str] | None:
    """Return what a hole in the overlap means and what to do; None where the propensities are wrong."""
    found = next((there for action in deficits(t) if (there := hole(t, action)) is not None), None)
    if found is None:
        return None
    label, everyone = t.logged.survey.log.labels[found.action], np.arange(t.counts.shape[1])
    shown = "never" if found.shown == 0 else f"only {found.shown:,} times"
    return (
        f"A hole in the overlap rather than a wrong propensity: action {label} has the displays its propensities say "
        f"in some groups, but is shown {shown} in {found.where}, where {found.expected:,.0f} were to be expected. By "
        f"its mean of 1/p, {found.share:.0%} of the traffic never shows it: what it would earn there the log cannot "
        "tell, and its value is that of the rest.",
        f"Leave out the action ({without(t, everyone == found.action)}) or, at the source, the displays that "
        "could not show it; or log with some exploration there. The propensities need no repair.",
    )


def without(t: Tables, actions: npt.NDArray[np.bool_]) -> str:
    """Return the options that leave out some actions, shape (K,), by naming the others where these are few enough.

    Logged propensities that change between displays are those of the full set: what is left needs its own.
    """
    logged = t.logged
    kept = [label for label, gone in zip(logged.survey.log.labels, actions, strict=True) if not gone]
    words = f"`actions='{','.join(kept)}'`" if len(kept) <= _NAMED else "`actions` with the labels of the others"
    if logged.constant is None:
        words += f" `propensity='estimate{':context' if logged.has_context else ''}'`"
    return words
