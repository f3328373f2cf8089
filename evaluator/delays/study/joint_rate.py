"""Conversion rate of a log once all conversions will have come, from a joint model on context (Chapelle 2014).

Whether the model holds is told by the conversions expected by now beside those seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from evaluator.delays.nonparametric import two_sided_quantile
from evaluator.delays.study.joint import JointFit, check_conversions, check_follow_up, fit_joint
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.log.times import Periods, stamp_of
from evaluator.results.json_documents import Count, NotNegative, Positive, Share, called, in_document, omitted

# The fit's standard errors are small long before; beyond this an evenly spaced sample is fitted, and the study says so.
JOINT_ROWS = 200_000
# Numbers in the contexts of a sample: 160 MB, and a few times that while fitting.
_MOST_NUMBERS = 20_000_000
# Of the largest variance of the contexts, below which a direction is none: float32 features carry 7 digits.
_FLAT = 1e-10
# No more is still to come than so many times its error.
_MOST_WIDTHS = 20.0
Floats = npt.NDArray[np.float64]
_PARTS = 10
# Below this level of the test the model is said not to hold.
_LEVEL = 0.05
_POWER = 0.8


@dataclass(frozen=True)
class CorrectedRate:
    """Conversion rate of some displays: nan without any.

    Parameters
    ----------
    displays
        Number of displays that the rate is of.
    naive, corrected
        Share that has converted so far, and share that will have once each display has been followed for the
        attribution window, or for ever where the log names none.
    error
        Standard error of `corrected`, from that of the coefficients and from the luck of the displays still open.
    low, high
        Interval of `corrected`: normal for the logarithm of what is still to come, so that it lies above `naive`.
    """

    displays: Count
    naive: float
    corrected: float
    error: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class CohortRate(CorrectedRate):
    """Conversion rate of the displays of one period, by its number."""

    period: Count


@dataclass(frozen=True, eq=False)
class JointStudy:
    """The joint model of conversion and delay on a log (`study_joint`). Times in ticks.

    Parameters
    ----------
    displays
        Number of displays of the log.
    fit
        Model fitted on contexts as p independent directions of unit variance, about the average context, with a ridge
        of p: log odds, and log rates of delay, that differ among displays by a standard deviation of 1 a priori. No
        unit of a context or of time changes it, and the constants are free.
    rate
        Conversion rate of all sampled displays; its error is that of the log's rate, sampling included.
    immature
        Conversion rate of the sampled displays followed for less than the attribution window or, where the log names
        none, for less than the longest delay seen.
    window
        Attribution window in ticks; None where the log names none, and rates are those of conversions however late.
    mean_delay
        Mean delay at the average context in ticks, by the exponential law, conversions beyond the window included.
    cohorts
        Conversion rate of the displays of each period; empty where no periods were given.
    calibration
        Comparison of expected and seen conversions, which tells whether the model holds.
    notes
        Sentences that the reader of the study should know.
    """

    displays: Count
    fit: Annotated[JointFit, *omitted]
    rate: CorrectedRate
    immature: CorrectedRate
    window: Annotated[Count | None, called("attribution_window")]
    mean_delay: float
    cohorts: tuple[CohortRate, ...]
    calibration: Calibration
    notes: tuple[str, ...]

    @in_document
    @property
    def sampled(self) -> Positive:
        """Number of displays that the model was fitted to."""
        return self.fit.displays

    @in_document
    @property
    def conversions(self) -> Count:
        """Number of them that converted."""
        return self.fit.conversions

    @in_document
    @property
    def converged(self) -> bool:
        """Whether the maximum of the likelihood was found and is a strict one."""
        return self.fit.converged

    @in_document
    @property
    def log_likelihood(self) -> float:
        """Logarithm of the likelihood, without the ridge."""
        return self.fit.log_likelihood


def study_joint(
    log: Log, periods: Periods | None = None, *, since: int | None = None, confidence: float = 0.95
) -> JointStudy:
    """Fit conversion and delay jointly on the contexts of a log (`evaluator.delays.study.joint.fit_joint`).

    On all displays, or on an evenly spaced sample of at most 200,000 (fewer if contexts are longer than 100 numbers);
    the first conversion of a display counts. A display has been followed for min(observed_until - time,
    attribution_window).

    Where the log names an attribution window, later conversions are never recorded. The corrected rate then is the one
    that the log will show once every display is as old as the window: conversions later than that are neither in it nor
    known. Without a window it counts every conversion that ever comes, as far beyond the oldest display as the
    exponential law goes.

    Parameters
    ----------
    log
        Log with contexts, and with displays still open.
    periods
        Periods of `evaluator.log.delay_rows`, for rates period by period; None for no such rates.
    since
        Number of the first period after a change of delays (`evaluator.delays.study.window_advice`): whether a display
        is of it or later is then one more context, so that both parts have a law of their own. None without a change.
    confidence
        Confidence level of the intervals, in (0, 1).

    Raises
    ------
    DataError
        All displays of the sample have converted, or none has; too few conversions for the contexts, or too short a
        follow-up (`evaluator.delays.study.joint`).
    ParameterError
        The log has no contexts, or follows every display to its end.
    """
    check_joint(log)
    until, window = log.meta.observed_until, log.meta.attribution_window
    assert until is not None
    most = min(JOINT_ROWS, max(_MOST_NUMBERS // max(log.schema.field("context").type.list_size, 1), 1))
    n = min(len(log), most)
    numbers = np.arange(n) * len(log) // n
    taken = log.take(numbers, ["context", "time"])
    time = to_numpy(taken["time"])
    elapsed = until - time
    if window is not None:
        elapsed = np.minimum(elapsed, window)
    delay = _first_delays(log, numbers, time)
    period = np.empty(0, np.int64) if periods is None else periods.at(time, numbers)
    new = np.zeros(n, np.bool_) if since is None else period >= since
    contexts = _directions(
        np.column_stack((to_numpy(taken["context"]), new)) if new.any() else to_numpy(taken["context"])
    )
    converted = int((delay >= 0).sum())
    if 0 < converted < n:
        check_conversions(converted, contexts.shape[1])
    stamp = stamp_of(delay[delay >= 0], time - time[0])
    fit = fit_joint(contexts, delay, elapsed, ridge=float(contexts.shape[1]), width=stamp)
    if not fit.converged:
        raise DataError(f"`joint`: {fit.notes[0]}.", remedy="wait until displays are older, or take fewer contexts.")
    notes = ["delays are taken as exponential given the context, whatever the action"]
    if new.any():
        notes.append("displays since delays changed along the log have a rate and a delay of their own")
    if n < len(log):
        notes.append(f"fitted to {n:,} of the displays, evenly spaced")
    longest = float(delay.max()) if window is None else window
    within = np.inf if window is None else window
    z = two_sided_quantile(confidence)

    def rate(of: npt.NDArray[np.bool_], sampling: float = 0.0) -> CorrectedRate:
        if not of.any():
            return CorrectedRate(0, *[math.nan] * 5)
        rows = contexts[of], delay[of], elapsed[of]
        naive, corrected = float((delay[of] >= 0).mean()), fit.corrected_rate(*rows, within=within)
        error = fit.corrected_error(*rows, within=within)
        low, high = _interval(naive, corrected, z * error, z * sampling)
        return CorrectedRate(int(of.sum()), naive, corrected, math.hypot(error, sampling), low, high)

    everything = np.ones(n, np.bool_)
    whole = rate(everything)
    if window is None:
        followed = np.where(new, float(elapsed[new].max(initial=0)), float(elapsed.max()))
        late = fit.conversion_probability(contexts) * np.exp(-followed / fit.mean_delay(contexts))
        check_follow_up(float(late.mean()) / whole.corrected)
    sampling = math.sqrt(whole.corrected * (1.0 - whole.corrected) / n * (1.0 - n / len(log)))
    cohorts = [(number, rate(period == number)) for number in np.unique(period).tolist()]
    mean = fit.mean_delay(contexts)
    # A conversion of the last stamp is in the log; `fit_joint` rounds down alike.
    share = -np.expm1(-(elapsed + stamp) / mean)
    return JointStudy(
        displays=len(log),
        fit=fit,
        rate=rate(everything, sampling),
        immature=rate(elapsed < longest),
        window=window,
        mean_delay=float(fit.mean_delay(np.zeros((1, contexts.shape[1])))[0]),
        cohorts=tuple(CohortRate(period=number, **vars(found)) for number, found in cohorts),
        calibration=calibrate(fit.conversion_probability(contexts), share, elapsed, delay >= 0),
        notes=(*notes, *fit.notes),
    )


def _interval(naive: float, corrected: float, width: float, sampling: float) -> tuple[float, float]:
    """Return the interval of a rate of which `corrected - naive` is still to come; `width`s as for a normal law.

    Lognormal for what is still to come; where that is next to nothing, and its error many times as large, no more than
    so many times that error.
    """
    pending = corrected - naive
    if pending <= 0:
        return max(corrected - sampling, 0.0), min(corrected + sampling, 1.0)
    factor = math.exp(min(width / pending, 700.0))
    more = min(pending * (factor - 1.0), _MOST_WIDTHS * width)
    low, high = math.hypot(pending - pending / factor, sampling), math.hypot(more, sampling)
    return max(corrected - low, 0.0), min(corrected + high, 1.0)


def check_joint(log: Log) -> None:
    """Raise `ParameterError` unless the log has contexts and displays still open."""
    name = log.meta.name
    if "context" not in log.schema.names:
        raise ParameterError(
            f"`joint`: log {name!r} has no contexts.",
            remedy="name context columns in its spec, or leave `joint` out: rates by period are corrected without.",
        )
    if WEIGHT in log.schema.names:
        raise ParameterError(
            f"`joint`: the displays of log {name!r} have weights, which the joint model does not know.",
            remedy="leave `joint` out: rates by period are corrected without.",
        )
    if log.meta.observed_until is None:
        raise ParameterError(
            f"`joint`: log {name!r} follows every display to its end, so its conversion rate needs no correction.",
            remedy="if it stopped looking at some time, say so in its spec: observed_until.",
        )


def _first_delays(log: Log, numbers: npt.NDArray[np.int64], time: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the delay of each display's first conversion in ticks, -1 where there is none."""
    display = to_numpy(log.conversions["display_id"])
    at = np.minimum(np.searchsorted(display, numbers), len(display) - 1)
    return np.where(display[at] == numbers, to_numpy(log.conversions["time"])[at] - time, -1)


def _directions(contexts: npt.NDArray[Any]) -> Floats:
    """Return contexts as independent directions of mean 0 and variance 1, shape (n, rank).

    One-hot columns that add up to the intercept would leave the coefficients, though no prediction, undetermined.
    """
    x = contexts.astype(np.float64)
    centre, scale = x.mean(axis=0), x.std(axis=0)
    kept = scale > _FLAT * np.abs(centre)
    x = (x[:, kept] - centre[kept]) / scale[kept]
    variance, axes = np.linalg.eigh(x.T @ x / len(x))
    wide = variance > _FLAT * max(float(variance.max(initial=0.0)), 1e-300)
    return np.asarray(x @ (axes[:, wide] / np.sqrt(variance[wide])))


@dataclass(frozen=True)
class CalibrationPart:
    """Some displays, and how many of them should have converted by now.

    Parameters
    ----------
    low, high
        Range of what the displays were sorted by: predicted conversion rate, or ticks followed.
    displays, seen
        Number of displays in the part, and of those that have converted.
    expected, error
        Number that should have converted by now, by the model, and the standard deviation of `seen` if it holds.
    """

    low: float
    high: float
    displays: Count
    seen: Count
    expected: NotNegative
    error: NotNegative


@dataclass(frozen=True)
class Calibration:
    """Goodness of fit of the joint model (`calibrate`).

    Parameters
    ----------
    by_rate, by_age
        Tenths of the displays by predicted conversion rate, and by how long they were followed, those of equal age
        together.
    p
        Bonferroni's p-value of the part that is furthest off, normal: cautious, as the model was fitted to the same
        displays.
    """

    by_rate: tuple[CalibrationPart, ...]
    by_age: tuple[CalibrationPart, ...]
    p: Share

    @in_document
    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.p > _LEVEL

    @in_document
    @property
    def detectable(self) -> float:
        """By how much of its expected conversions a middling part must be off to be found on 4 of 5 logs.

        Of the parts' (z + .84) errors / expected the median, z the two-sided normal quantile at Bonferroni's level; inf
        where a middling part expects no conversion.
        """
        from scipy.special import ndtri

        parts = (*self.by_rate, *self.by_age)
        width = float(-ndtri(0.5 * _LEVEL / len(parts)) + ndtri(_POWER))
        return float(np.median([width * part.error / part.expected if part.expected else math.inf for part in parts]))

    @property
    def worst(self) -> tuple[str, CalibrationPart]:
        """The part furthest off, in standard deviations, and what it is of: ``rate`` or ``age``."""
        parts = [("rate", part) for part in self.by_rate] + [("age", part) for part in self.by_age]
        return max(parts, key=lambda named: _distance(named[1]))


def calibrate(probability: Floats, share: Floats, elapsed: Floats, converted: npt.NDArray[np.bool_]) -> Calibration:
    """Return the number of conversions that the model expects beside the number seen.

    A display that was followed for e ticks (`elapsed`) should have converted by now with probability p (1 - exp(-r e)),
    where p is the probability that it ever converts, by the model, and 1 - exp(-r e) is the `share` of its conversions
    that come within e ticks. The number of displays that have converted is a sum of independent indicators. All arrays
    have a number for each display, shape (n,).

    >>> half = np.full(100, 0.5)
    >>> found = calibrate(half, np.ones(100), np.full(100, 9.0), np.arange(100) < 80)
    >>> found.by_age[0].seen, found.by_age[0].expected, found.holds
    (80, 50.0, False)
    """
    now = probability * share
    parts = [_parts(by, now, converted) for by in (probability, np.asarray(elapsed, np.float64))]
    furthest = max(_distance(part) for of in parts for part in of)
    p = min(1.0, sum(map(len, parts)) * math.erfc(furthest / math.sqrt(2.0)))
    return Calibration(parts[0], parts[1], p)


def _parts(by: Floats, now: Floats, converted: npt.NDArray[np.bool_]) -> tuple[CalibrationPart, ...]:
    edges = np.unique(np.quantile(by, np.arange(1, _PARTS) / _PARTS, method="higher"))
    of = np.searchsorted(edges, by, side="left")
    out = []
    for part in np.unique(of).tolist():
        mine = of == part
        chance = now[mine]
        out.append(
            CalibrationPart(
                low=float(by[mine].min()),
                high=float(by[mine].max()),
                displays=int(mine.sum()),
                seen=int(converted[mine].sum()),
                expected=float(chance.sum()),
                error=math.sqrt(float((chance * (1.0 - chance)).sum())),
            )
        )
    return tuple(out)


def _distance(part: CalibrationPart) -> float:
    return abs(part.seen - part.expected) / part.error if part.error > 0 else 0.0
