"""Logs over which delays change, and how often a study of them is wrong, and says that they change."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from evaluator.delays.study.options import DelayOptions
from evaluator.delays.study.result import DelayStudy
from evaluator.delays.study.run import study_log, study_rows
from evaluator.log import Log
from evaluator.log.delay_rows import DelayRows
from evaluator.log.times import DAY, Periods
from tests.logs import build_log

MINUTES = 1440  # of a day
DAYS, WEEK, MEAN = 30, 7 * MINUTES, 2 * MINUTES
SPAN = DAYS * MINUTES
LAWS = {
    "exponential": stats.expon(),
    "weibull .7": stats.weibull_min(0.7, scale=1 / math.gamma(1 + 1 / 0.7)),
    "lognormal": stats.lognorm(1.0, scale=math.exp(-0.5)),
}
# Factor of the delays of a display, by its time.
CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "none": lambda time: np.ones(len(time)),
    "x 2 in the last week": lambda time: np.where(time >= SPAN - WEEK, 2.0, 1.0),
    "x 2 from half time": lambda time: np.where(time >= SPAN // 2, 2.0, 1.0),
    "x 1.5 over the log": lambda time: 1.0 + 0.5 * time / SPAN,
    "x 2 over the log": lambda time: 1.0 + time / SPAN,
    "x 0.5 from half time": lambda time: np.where(time >= SPAN // 2, 0.5, 1.0),
}
TRAFFIC = ("even", "daily rhythm", "growth")
OPTIONS = DelayOptions(families=["exponential"], bootstraps=19, windows=["7d"], jobs=1)


class World(NamedTuple):
    """What changes, the law of the delays, the displays (all convert), their times."""

    change: str = "none"
    law: str = "exponential"
    displays: int = 1200
    traffic: str = "even"

    def shown(self, rng: np.random.Generator) -> np.ndarray:
        """Draw when displays are shown, in minutes."""
        time = rng.random(self.displays)
        if self.traffic == "growth":  # fourfold
            time = (np.sqrt(1.0 + 15.0 * time) - 1.0) / 3.0
        time = np.sort(time) * SPAN
        if self.traffic == "daily rhythm":  # all displays of a day within eight hours
            time = time // MINUTES * MINUTES + 600 + time % MINUTES / 3.0
        return np.asarray(time, np.int64)

    def rows(self, rng: np.random.Generator) -> DelayRows:
        """Draw a log's delays, in minutes."""
        time = self.shown(rng)
        delay = (LAWS[self.law].ppf(rng.random(len(time))) * MEAN * CHANGES[self.change](time)).astype(np.int64)
        seen = delay <= SPAN - 1 - time
        day = time // MINUTES
        periods = Periods(DAY, day[seen], np.bincount(day, minlength=DAYS), MINUTES)
        return DelayRows(
            "log", "min", delay[seen], (SPAN - 1 - time)[seen], None, "", displays=len(time), rate=len(time) / SPAN,
            periods=periods,
        )  # fmt: skip

    def share(self, window: float, longest: float) -> float:
        """Return the share of the newest display's conversions within a window, of those within the longest delay."""
        law = LAWS[self.law]
        mean = MEAN * float(CHANGES[self.change](np.array([SPAN - 1]))[0])
        return float(law.cdf((window + 1) / mean) / law.cdf((longest + 1) / mean))


class Verdict(NamedTuple):
    """Of one log: does the interval of the share within 7 days hold, of what was said of the newest displays; does the
    recommended window keep its share; is a change said; is the study wrong and says nothing; days of the window.
    """

    holds: bool
    keeps: bool
    said: bool
    silent: bool
    days: float


def verdict(parts: tuple[Any, ...], log: int) -> Verdict:
    """Draw a log of a world, by its parts, and study it."""
    world = World(*parts)
    rows = world.rows(np.random.default_rng([log, 11]))
    study = study_rows(rows, OPTIONS)
    [window] = study.windows
    # Where a share is unknown, nothing wrong is said.
    holds = math.isnan(window.share.tau) or (
        window.share.low <= world.share(WEEK, window.share.longest) <= window.share.high
    )
    keeps = world.share(study.advice.recommended, float(study.fit.longest)) >= study.advice.share
    said = changed(study)
    return Verdict(holds, keeps, said, not said and not (holds and keeps), study.advice.recommended / MINUTES)


def changed(study: DelayStudy) -> bool:
    """Say whether a study says that delays change."""
    assert study.drift is not None
    return study.drift.changed


def joint_log(change: str, displays: int, rng: np.random.Generator) -> tuple[Log, float]:
    """Draw a log with two contexts whose delays change, and the rate that its displays will have."""
    time = World(displays=displays).shown(rng)
    x = rng.standard_normal((displays, 2))
    converts = rng.random(displays) < 1.0 / (1.0 + np.exp(1.5 - 0.5 * x[:, 0]))
    mean = MEAN * np.exp(-0.3 * x[:, 1]) * CHANGES[change](time)
    came = (time + rng.exponential(mean)).astype(np.int64)
    of = np.flatnonzero(converts & (came < SPAN))
    log = build_log(
        time=time, action=np.zeros(displays, int), conversion_display=of, conversion_time=came[of], n_actions=2,
        context=x, observed_until=SPAN - 1, tick="min",
    )  # fmt: skip
    return log, float(converts.mean())


def joint_verdict(change: str, displays: int, log: int) -> tuple[bool, bool, float]:
    """Say whether the interval of the corrected rate holds, whether a change is said, and estimate over truth."""
    drawn, truth = joint_log(change, displays, np.random.default_rng([log, 12]))
    options = DelayOptions(families=["exponential"], bootstraps=19, joint=True, jobs=1)
    study = study_log(drawn, options, by=None)
    if study.joint is None:
        return True, changed(study), math.nan
    rate = study.joint.rate
    return rate.low <= truth <= rate.high, changed(study), rate.corrected / truth
