"""How late conversions come: everything that `evaluate delays` says about a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.delays.drift import DelayDrift, delay_drift
from evaluator.delays.fitting import DelayFit
from evaluator.delays.goodness import FamilyChoice, choose_family
from evaluator.delays.heterogeneity import GroupDelays, Heterogeneity, fit_groups, heterogeneity
from evaluator.delays.nonparametric import NonparametricFit, fit_nonparametric
from evaluator.delays.tail import TailIndex, tail_index
from evaluator.delays.windows import WindowAdvice, WindowShare, advise_window
from evaluator.errors import DataError, ParameterError
from evaluator.evaluation.delay_words import sight, words
from evaluator.evaluation.joint_study import JointStudy, check_joint, study_joint
from evaluator.evaluation.result import json_values
from evaluator.log import Log
from evaluator.log.delay_rows import DelayRows, delay_rows
from evaluator.units import parse_duration

SCHEMA = "evaluate.delays/1"
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
GROUP_LEVELS = (0.25, 0.5, 0.75)
# Laws are told apart with far fewer conversions; beyond this a random sample is fitted, and the study says so.
LAW_ROWS = 200_000
DRIFT_ROWS = 20_000
# Fewer say nothing of a law's shape, and are no group of their own.
FEWEST = 50
# The conversion rate of a period whose youngest conversion had less than this chance to show is not known.
LEAST_SEEN = 0.2
# A law's mean is believed if at least this share of it lies within what the log can see.
BELIEVED = 0.99

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class DelayOptions:
    """Options of a study of delays.

    Parameters
    ----------
    windows
        In rounds (``"2000"``) or as durations (``"7d"``); None takes 1 h, 1 d, 7 d and 30 d, or 100 to 5,000 rounds.
    families
        Delay laws to fit; None for all.
    groups
        At most so many groups stand alone in tables and charts and are compared in pairs, those with the most
        conversions; the test of one law for all is of all groups with at least 50.
    share
        Of the conversions that the recommended window keeps, in (0, 1).
    bootstraps
        Of the goodness of fit, 19 at least: the smallest p-value is 1 / (bootstraps + 1).
    level
        Of the intervals.
    seed
        Of samples, bootstrap and permutations.
    joint
        Also correct the conversion rate by the log's contexts (`evaluator.evaluation.joint_study.study_joint`).
    """

    windows: Sequence[str | int] | None = None
    families: Sequence[str] | None = None
    groups: int = 10
    share: float = 0.9
    bootstraps: int = 99
    level: float = 0.95
    seed: int = 0
    joint: bool = False

    def __post_init__(self) -> None:
        """Check every option's range.

        Raises
        ------
        ParameterError
            Naming the option, the value and what it takes.
        """
        for name, least in (("groups", 2), ("bootstraps", 19), ("seed", 0)):
            if getattr(self, name) < least:
                raise ParameterError(
                    f"--{name} {getattr(self, name)} is out of range.", hint=f"take a whole number from {least} on."
                )
        for name in ("level", "share"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ParameterError(f"--{name} {getattr(self, name):g} is out of range.", hint="take one in (0, 1).")


@dataclass(frozen=True)
class Quantile:
    """A quantile of the delays, in ticks: of those seen, and corrected for what the log cut off, with its interval."""

    level: float
    naive: float
    corrected: float
    low: float
    high: float


@dataclass(frozen=True)
class Window:
    """A window as asked for, in ticks and in rounds of full traffic (None where the rate is unknown), and its share."""

    text: str
    ticks: float
    rounds: float | None
    share: WindowShare


@dataclass(frozen=True)
class PeriodRate:
    """Conversions per display of one period: seen so far, and given a follow-up as long as the longest (None: too new).

    The latter is sum of 1 / tau(limit) over the conversions, divided by the displays.
    """

    period: int
    displays: int
    conversions: int
    seen: float
    corrected: float | None


@dataclass(frozen=True, eq=False)
class DelayStudy:
    """What the conversions of a log say about their delays (`study_delays`). Delays in ticks.

    Parameters
    ----------
    rows
        The delays studied.
    options
        What was asked.
    sight
        Sentences: what the log can see of delays, and what it cannot.
    fit
        Product limit with bands.
    quantiles
        Naive and corrected.
    choice
        Laws by AIC, and whether the best fits; None where there are too few conversions.
    windows
        Those asked for.
    advice
        The recommended window and 2 x mean.
    groups
        Delays of each group, largest first, the pooled ones last.
    heterogeneity
        Test of one law in all groups.
    tail
        Tail index.
    drift
        Quantiles by period and the change flag.
    rates
        Conversion rate by period.
    missing
        Parts that could not be had, by name, each with the reason.
    joint
        Conversion rate corrected on context; None where not asked for.
    """

    rows: DelayRows
    options: DelayOptions
    sight: tuple[str, ...]
    fit: NonparametricFit
    quantiles: tuple[Quantile, ...]
    choice: FamilyChoice | None
    windows: tuple[Window, ...]
    advice: WindowAdvice
    groups: tuple[GroupDelays, ...]
    heterogeneity: Heterogeneity | None
    tail: TailIndex | None
    drift: DelayDrift | None
    rates: tuple[PeriodRate, ...]
    missing: dict[str, str]
    joint: JointStudy | None = None

    @property
    def conversions(self) -> int:
        """Number of conversions studied."""
        return len(self.rows.delay)

    @property
    def drawable(self) -> bool:
        """Whether there is a delay above 0, without which a logarithmic axis shows nothing."""
        return bool(self.fit.delays[-1] > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the study without the steps of its CDFs, as JSON values: nan and inf become None."""
        rows = self.rows
        summary = {"confidence", "conversions", "left_out", "shortest", "longest", "source", "band_from", "band_to"}
        out = {
            "schema": SCHEMA,
            "dataset": rows.name,
            "tick": rows.tick,
            "displays": rows.displays,
            "displays_per_tick": rows.rate,
            "conversions": self.conversions,
            "sight": self.sight,
            "fit": {name: getattr(self.fit, name) for name in sorted(summary)},
            "quantiles": [dict(q.__dict__) for q in self.quantiles],
            "laws": None if self.choice is None else self.choice.to_dict(),
            "windows": [{**w.__dict__, "share": dict(w.share.__dict__)} for w in self.windows],
            "advice": self.advice.to_dict(),
            "by": rows.by,
            "groups": [_summary(group) for group in self.groups],
            "heterogeneity": None if self.heterogeneity is None else self.heterogeneity.to_dict(),
            "tail": None if self.tail is None else self.tail.to_dict(),
            "period": None if rows.periods is None else rows.periods.name,
            "drift": None if self.drift is None else self.drift.to_dict(),
            "conversion_rates": [dict(rate.__dict__) for rate in self.rates],
            "joint": None if self.joint is None else self.joint.to_dict(),
            "missing": self.missing,
            "options": dict(self.options.__dict__),
        }
        return json_values(out)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        median = next(q for q in self.quantiles if q.level == 0.5)
        return (
            f"DelayStudy({self.rows.name}: {self.conversions:,} conversions, median "
            f"{words(self.rows, median.corrected)} [{words(self.rows, median.low)}, {words(self.rows, median.high)}], "
            f"recommended window {words(self.rows, self.advice.recommended)})"
        )


def study_log(log: Log, options: DelayOptions, *, by: str | None) -> DelayStudy:
    """Return the study of a log's delays (`evaluator.study_delays`); errors are those of `study_rows` and the parts."""
    if options.joint:
        check_joint(log)  # before what takes long
    study = study_rows(delay_rows(log, by=by), options)
    return replace(study, joint=study_joint(log)) if options.joint else study


def study_rows(rows: DelayRows, options: DelayOptions) -> DelayStudy:
    """Return the study of delays alone, all that there is of a bare file: `joint` needs a log.

    Raises
    ------
    DataError
        There are no delays, or impossible ones.
    ParameterError
        An option does not fit.
    UnknownNameError
        No such family.
    """
    delay, limit = rows.delay, rows.limit
    asked = [_parsed(text, rows) for text in (_usual(rows) if options.windows is None else options.windows)]
    fit = fit_nonparametric(delay, limit, confidence=options.level)
    missing: dict[str, str] = {}
    choice = _laws(rows, options, missing)
    advice = advise_window(fit, [t for _, t, _ in asked], law=_believed(choice, rows), share=options.share)
    groups, test = _groups(rows, options, missing)
    tail = None
    try:
        tail = tail_index(delay, limit, confidence=options.level)
    except DataError as error:
        missing["tail"] = error.what
    return DelayStudy(
        rows=rows,
        options=options,
        sight=sight(rows, fit),
        fit=fit,
        quantiles=_quantiles(fit),
        choice=choice,
        windows=tuple(Window(*asking, share) for asking, share in zip(asked, advice.windows, strict=True)),
        advice=advice,
        groups=groups,
        heterogeneity=test,
        tail=tail,
        drift=_drift(rows, options, missing),
        rates=_rates(rows, fit),
        missing=missing,
    )


def _summary(group: GroupDelays) -> dict[str, Any]:
    low, high = group.fit.quantile_intervals(GROUP_LEVELS)
    found = zip(GROUP_LEVELS, group.fit.quantiles(GROUP_LEVELS), low, high, strict=True)
    return {
        "label": group.label,
        "members": list(group.members),
        "conversions": group.conversions,
        "quantiles": [dict(zip(("level", "corrected", "low", "high"), map(float, row), strict=True)) for row in found],
        "longest": float(group.fit.longest),
    }


def _usual(rows: DelayRows) -> list[str]:
    return ["100", "500", "1000", "2000", "5000"] if rows.tick_seconds is None else ["1h", "1d", "7d", "30d"]


def _parsed(window: str | int, rows: DelayRows) -> tuple[str, float, float | None]:
    """Return a window as written, in ticks, and in rounds."""
    text = str(window).strip()
    known = bool(np.isfinite(rows.rate))
    try:
        rounds = float(int(text))
    except ValueError:
        if rows.tick_seconds is None:
            raise ParameterError(
                f"--windows {text}: this log counts rounds, not time.", hint="give windows in rounds: 2000."
            ) from None
        ticks = parse_duration(text) / rows.tick_seconds
        return text, ticks, ticks * rows.rate if known else None
    if rounds < 1:
        raise ParameterError(f"--windows {text} is out of range.", hint="take at least one round.")
    if known:
        return text, rounds / rows.rate, rounds
    if rows.tick_seconds is None:
        return text, rounds, rounds
    raise ParameterError(
        f"--windows {text}: rounds have no length here, as the traffic rate is unknown.",
        hint="give windows as durations: 7d.",
    )


def _quantiles(fit: NonparametricFit) -> tuple[Quantile, ...]:
    at = np.minimum(np.searchsorted(fit.naive, LEVELS), fit.delays.size - 1)
    low, high = fit.quantile_intervals(LEVELS)
    found = zip(LEVELS, fit.delays[at], fit.quantiles(LEVELS), low, high, strict=True)
    return tuple(Quantile(*map(float, row)) for row in found)


def _laws(rows: DelayRows, options: DelayOptions, missing: dict[str, str]) -> FamilyChoice | None:
    n = len(rows.delay)
    if n < FEWEST:
        missing["laws"] = f"{n} conversions say nothing of a law's shape; {FEWEST} are the fewest"
        return None
    kept: npt.NDArray[np.int64] | slice = slice(None)
    if n > LAW_ROWS:
        kept = np.random.default_rng(options.seed).choice(n, LAW_ROWS, replace=False)
    return choose_family(
        rows.delay[kept], None if rows.limit is None else rows.limit[kept],
        families=options.families, bootstraps=options.bootstraps, seed=options.seed,
    )  # fmt: skip


def _believed(choice: FamilyChoice | None, rows: DelayRows) -> DelayFit | None:
    """Return the best law if it fits and hardly extrapolates: a mean is mostly made of delays that no one has seen."""
    if choice is None or not choice.fits:
        return None
    law = choice.comparison.best_fit
    return law if rows.limit is None or law.cdf(law.longest) >= BELIEVED else None


def _groups(
    rows: DelayRows, options: DelayOptions, missing: dict[str, str]
) -> tuple[tuple[GroupDelays, ...], Heterogeneity | None]:
    if rows.group is None:
        missing["groups"] = "no groups were asked for: --by names a column"
        return (), None
    sizes = np.sort(np.unique(rows.group, return_counts=True)[1])[::-1]
    # Of groups as large as the last that may stand alone, those that come with it stand alone too.
    smallest = max(FEWEST, int(sizes[options.groups - 1]) if len(sizes) >= options.groups else 0)
    found = fit_groups(rows.delay, rows.limit, groups=rows.group, smallest=smallest, confidence=options.level)
    try:
        test = heterogeneity(
            rows.delay, rows.limit, groups=rows.group, smallest=FEWEST, compared=options.groups, seed=options.seed
        )
    except DataError as error:
        missing["heterogeneity"] = error.what
        return found, None
    return found, test


def _drift(rows: DelayRows, options: DelayOptions, missing: dict[str, str]) -> DelayDrift | None:
    if rows.periods is None:
        missing["drift"] = "the displays have no times"
        return None
    if len(rows.delay) < FEWEST:
        missing["drift"] = f"{len(rows.delay)} conversions; {FEWEST} are the fewest"
        return None
    # Young periods could show short delays only: half of the conversions could show as much as this.
    longest = None if rows.limit is None else float(np.median(rows.limit))
    return delay_drift(
        rows.delay, rows.limit, days=rows.periods.of, longest=longest, rows=DRIFT_ROWS, seed=options.seed
    )  # fmt: skip


def _rates(rows: DelayRows, fit: NonparametricFit) -> tuple[PeriodRate, ...]:
    if rows.periods is None:
        return ()
    of, displays = rows.periods.of, rows.periods.displays
    seen = np.bincount(of, minlength=len(displays))
    chance = np.ones(len(of)) if rows.limit is None else fit(rows.limit)
    least = np.ones(len(displays))
    np.minimum.at(least, of, chance)
    corrected = np.bincount(of, 1.0 / np.maximum(chance, 1e-9), minlength=len(displays))
    return tuple(
        PeriodRate(p, n, c, c / n, total / n if low >= LEAST_SEEN else None)
        for p, (n, c, total, low) in enumerate(
            zip(displays.tolist(), seen.tolist(), corrected.tolist(), least.tolist(), strict=True)
        )
        if n
    )
