"""Conversion rate of a log once all conversions will have come, from a joint model on context (Chapelle 2014).

Whether the model holds is told by the conversions expected by now beside those seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from evaluator.delays.nonparametric import two_sided_quantile
from evaluator.delays.product_limit import Floats, checked_delays
from evaluator.delays.study.likelihood import maximise
from evaluator.engine.kernels.solving import inverted
from evaluator.errors import DataError, ParameterError
from evaluator.log import Log
from evaluator.log.schema import WEIGHT, to_numpy
from evaluator.log.times import Periods, stamp_of
from evaluator.results.json_documents import Count, NotNegative, Positive, Share, called, in_document, omitted

# Measured by ``python -m tests.bench.delays_truth joint``: with fewer conversions, or where much is still to come
# after the longest follow-up, intervals hold on clearly fewer logs than they say.
FEWEST_CONVERSIONS = 100
CONVERSIONS_A_DIRECTION = 10
# Of the conversions that the model expects: those later than any display was followed rest on the law alone.
MOST_UNSEEN = 0.15
# The fit's standard errors are small long before; beyond this an evenly spaced sample is fitted, and the study says so.
JOINT_ROWS = 200_000
# Numbers in the contexts of a sample: 160 MB, and a few times that while fitting.
_MOST_NUMBERS = 20_000_000
# Of the largest variance of the contexts, below which a direction is none: float32 features carry 7 digits.
_FLAT = 1e-10
# No more is still to come than so many times its error.
_MOST_WIDTHS = 20.0
_PARTS = 10
# Below this level of the test the model is said not to hold.
_LEVEL = 0.05
_POWER = 0.8


@dataclass(frozen=True)
class CorrectedRate:
    """Conversion rate of some displays.

    Parameters
    ----------
    displays
        Number of displays that the rate is of.
    naive
        Share that has converted so far; nan without displays.
    corrected
        Share that will have converted once each has been followed for the attribution window, or for ever where the log
        names none; nan without displays.
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
    """Fit conversion and delay jointly on the contexts of a log (`evaluator.delays.study.joint_rate.fit_joint`).

    On all displays, or on an evenly spaced sample of at most 200,000 (fewer if contexts are longer than 100 numbers);
    the first conversion of a display counts. A display has been followed for min(observed_until - time,
    attribution_window).

    Where the log names an attribution window, later conversions are never recorded. The corrected rate then is the one
    that the log will show once every display is as old as the window: conversions later than that are neither in it nor
    known. Without a window it counts every conversion that ever comes, as far beyond the oldest display as the
    exponential law goes.

    Rates are given period by period too, where there are `periods` (`evaluator.log.delay_rows`). `since` is the first
    period after a change of delays (`evaluator.delays.study.window_advice`): whether a display is of it or later is
    then one more context, so that both parts have a law of their own. Intervals have the level `confidence`.

    Raises DataError where all displays of the sample have converted, or none has; with too few conversions for the
    contexts, or too short a follow-up. Raises ParameterError where the log has no contexts, or follows every display to
    its end.
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
    # Of each display's first conversion, -1 where there is none.
    display = to_numpy(log.conversions["display_id"])
    at = np.minimum(np.searchsorted(display, numbers), len(display) - 1)
    delay = np.where(display[at] == numbers, to_numpy(log.conversions["time"])[at] - time, -1)
    period = np.empty(0, np.int64) if periods is None else periods.at(time, numbers)
    new = np.zeros(n, np.bool_) if since is None else period >= since
    context = to_numpy(taken["context"])
    contexts = _directions(np.column_stack((context, new)) if new.any() else context)
    converted, directions = int((delay >= 0).sum()), contexts.shape[1]
    needed = max(FEWEST_CONVERSIONS, CONVERSIONS_A_DIRECTION * directions)
    if 0 < converted < min(needed, n):
        raise DataError(
            f"`joint`: {converted:,} of the displays converted; the model needs {needed:,} for contexts of "
            f"{directions} independent columns ({CONVERSIONS_A_DIRECTION} each, {FEWEST_CONVERSIONS} at least).",
            remedy="give the log fewer context columns, or wait for more conversions.",
        )
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
        unseen = float(late.mean()) / whole.corrected
        if not unseen <= MOST_UNSEEN:
            raise DataError(
                f"`joint`: {unseen:.0%} of the conversions that the model expects are later than any display was "
                f"followed: their number rests on the law alone (at most {MOST_UNSEEN:.0%} may).",
                remedy="wait until displays are older, or name an attribution window in the spec.",
            )
    sampling = math.sqrt(whole.corrected * (1.0 - whole.corrected) / n * (1.0 - n / len(log)))
    cohorts = [(number, rate(period == number)) for number in np.unique(period).tolist()]
    mean = fit.mean_delay(contexts)
    # A conversion of the last stamp is in the log; `fit_joint` rounds down alike.
    share = -np.expm1(-(elapsed + stamp) / mean)
    return JointStudy(
        displays=len(log), fit=fit, rate=rate(everything, sampling), immature=rate(elapsed < longest), window=window,
        mean_delay=float(fit.mean_delay(np.zeros((1, contexts.shape[1])))[0]),
        cohorts=tuple(CohortRate(period=number, **vars(found)) for number, found in cohorts),
        calibration=calibrate(fit.conversion_probability(contexts), share, elapsed, delay >= 0),
        notes=(*notes, *fit.notes),
    )  # fmt: skip


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
    displays
        Number of displays in the part.
    seen
        Number of them that have converted.
    expected
        Number of them that should have converted by now, by the model.
    error
        Standard deviation of `seen` if the model holds, in displays.
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


@dataclass(frozen=True, eq=False)
class JointFit:
    """Logistic conversion probability and exponential delay with log-linear rate (`fit_joint`).

    Parameters
    ----------
    conversion, conversion_errors
        Coefficients of the log odds that a display ever converts, and their standard errors, shape (p,), the
        last that of a constant.
    rate, rate_errors
        Coefficients of the log rate of the delay (per tick), and their standard errors, shape (p,).
    covariance
        Covariance of both sets of coefficients, `conversion` first, shape (2p, 2p); nan where not identified.
    log_likelihood, converged
        Logarithm of the likelihood, without the ridge, and whether its maximum was found and is a strict one.
    displays, conversions
        Numbers of displays, and of those that converted.
    width
        Ticks that the time stamps tell apart: a delay of d stands for [d, d + width). 0 for exact delays.
    notes
        Sentences that the reader of the fit should know.
    """

    conversion: Floats
    conversion_errors: Floats
    rate: Floats
    rate_errors: Floats
    covariance: Floats
    log_likelihood: float
    displays: int
    conversions: int
    width: float
    converged: bool
    notes: tuple[str, ...] = ()

    def conversion_probability(self, contexts: ArrayLike) -> Floats:
        """Return P(the display ever converts), shape (n,), of contexts of shape (n, p)."""
        return np.asarray(expit(_with_intercept(contexts) @ self.conversion))

    def mean_delay(self, contexts: ArrayLike) -> Floats:
        """Return the mean delay of a conversion in ticks (before rounding down), shape (n,)."""
        return np.asarray(np.exp(-(_with_intercept(contexts) @ self.rate)))

    def pending_probability(self, contexts: ArrayLike, elapsed: ArrayLike, *, within: float = np.inf) -> Floats:
        """Return P(the display will convert), of displays without a conversion after `elapsed` ticks; shape (n,).

        p (S - S') / (1 - p + p S), S the probability of a delay beyond `elapsed`, S' of one beyond `within` ticks.
        """
        ever, in_time, _ = self._pending(contexts, elapsed, within)
        return ever * in_time

    def corrected_rate(
        self, contexts: ArrayLike, delays: ArrayLike, elapsed: ArrayLike, *, within: float = np.inf
    ) -> float:
        """Return the conversion rate of displays once all conversions will have come.

        Mean of 1 for those that converted and `pending_probability` for the others; `delays` is nan (or below 0)
        where no conversion has come. A log with an attribution window never records later conversions: with `within`
        that window the rate is the one that such a log will show, without it one that extrapolates beyond.
        """
        pending = self.pending_probability(contexts, elapsed, within=within)
        return float(np.where(_converted(delays), 1.0, pending).mean())

    def corrected_error(
        self, contexts: ArrayLike, delays: ArrayLike, elapsed: ArrayLike, *, within: float = np.inf
    ) -> float:
        """Return the standard error of `corrected_rate` against the rate that these displays will have.

        From the coefficients, by the delta method, and from the luck of the displays without a conversion.
        """
        ever, in_time, left = self._pending(contexts, elapsed, within)
        silent = ~_converted(delays)
        bend = np.where(silent, ever * (1.0 - ever) * in_time, 0.0)
        time = self._time(elapsed) / self.mean_delay(contexts)
        # The log odds of a conversion ever are those of the display less its time in means.
        by_rate = np.where(silent, ever * left, 0.0) - bend * time
        design = _with_intercept(contexts)
        slope = np.concatenate((design.T @ bend, design.T @ by_rate))
        pending = (ever * in_time)[silent]
        variance = float(slope @ self.covariance @ slope) + float((pending * (1.0 - pending)).sum())
        return float(np.sqrt(variance)) / silent.size

    def _pending(self, contexts: ArrayLike, elapsed: ArrayLike, within: float) -> tuple[Floats, Floats, Floats]:
        """Return P(will ever convert), P(in time | will), and the latter's slope by the log rate, shape (n,) each."""
        p, mean = self.conversion_probability(contexts), self.mean_delay(contexts)
        late = p * np.exp(-self._time(elapsed) / mean)
        ever = late / (1.0 - p + late)
        if np.isinf(within):
            return ever, np.ones_like(ever), np.zeros_like(ever)
        rest = np.maximum(within - np.asarray(elapsed, np.float64), 0.0) / mean
        return ever, -np.expm1(-rest), rest * np.exp(-rest)

    def _time(self, elapsed: ArrayLike) -> Floats:
        return np.asarray(elapsed, np.float64) + self.width


def fit_joint(
    contexts: ArrayLike,
    delays: ArrayLike,
    elapsed: ArrayLike,
    *,
    ridge: float = 0.0,
    width: float = 1.0,
) -> JointFit:
    """Fit conversion probability and delay rate by maximum likelihood of what is known of every display so far.

    With p = 1 / (1 + exp(-w'x)) and rate r = exp(v'x), a display that converted after d contributes log p + log r - r
    d, one without a conversion after e log(1 - p + p exp(-r e)) (Chapelle 2014, Section 3); delays rounded down to
    multiples of h have log(1 - exp(-r h)) for log r, and e + h for e. Maximised by Newton's method on the marginal
    likelihood, whose maximum is EM's, with time in mean delays, so that the unit of time changes no more than the
    intercept of the rate. The likelihood is not concave: where no display is old against its delay, p and r trade off,
    and the standard errors say so. A delay that is not exponential given the context biases both. O(n p^2) a step.

    Contexts x are features of the displays, shape (n, p), to which a constant is appended. `delays`, shape (n,), are
    those of the displays' conversions in ticks, nan, or below 0, where no conversion has come, rounded down to
    multiples h of `width` ticks, 0 for exact ones; `elapsed`, shape (n,) or (), is for how many ticks each display has
    been followed, at least the delay. For many or collinear features ridge / 2 times the sum of squared coefficients
    but those of the constant is subtracted: the ridge is the inverse of a prior variance.

    Raises DataError where there are no displays, no conversions, or none that did not convert; delays are impossible,
    shapes differ, or contexts are not finite. Raises ParameterError where the ridge or the width is below 0.

    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(0, 100, 20_000)
    >>> delay = np.where(rng.random(20_000) < 0.3, rng.geometric(0.02, 20_000) - 1, 10**9)
    >>> seen = np.where(delay <= age, delay, -1)
    >>> fit = fit_joint(np.empty((20_000, 0)), seen, age)
    >>> round(float((seen >= 0).mean()), 2), round(float(fit.conversion_probability(np.empty((1, 0)))[0]), 2)
    (0.17, 0.29)
    """
    if not (ridge >= 0 and width >= 0):
        raise ParameterError(f"ridge is {ridge}, width is {width}.", remedy="neither may be below 0.")
    design = np.asarray(contexts, np.float64)
    converted = _converted(delays)
    n = converted.size
    if design.ndim != 2 or design.shape[0] != n:
        raise DataError(f"There are {n} displays but contexts of shape {design.shape}.", remedy="pass shape (n, p).")
    if not np.isfinite(design).all():
        row, column = np.argwhere(~np.isfinite(design))[0]
        raise DataError(f"Context {row}, feature {column} is {design[row, column]}.", remedy="encode what is missing.")
    age = (
        np.broadcast_to(np.asarray(elapsed, np.float64), (n,))
        if np.ndim(elapsed) == 0
        else np.asarray(elapsed, np.float64)
    )
    if age.shape != (n,) or not (age >= 0).all():
        raise DataError(f"There are {n} displays but elapsed times of shape {age.shape}, some below 0 or missing.",
                        remedy="pass one time >= 0 a display.")  # fmt: skip
    if not 0 < converted.sum() < n:
        raise DataError(
            f"{converted.sum()} of {n} displays converted.", remedy="the fit needs some that did and some that did not."
        )
    time = age + width
    checked, _ = checked_delays(np.asarray(delays)[converted], age[converted], whole=width > 0)
    time[converted] = checked
    mean = float(time[converted].mean()) + 0.5 * width
    # The coefficient of the constant takes up the unit of time.
    scale = mean if mean > 0 else 1.0
    penalty = np.append(np.full(design.shape[1], ridge), 0.0)
    rows = _Rows(_with_intercept(design), converted, time / scale, width / scale,
                 np.concatenate((penalty, penalty)))  # fmt: skip
    p = rows.design.shape[1]
    odds = np.log(converted.sum() / (n - converted.sum()))
    speed = -np.log(mean / scale) if mean > 0 else 0.0
    constant = np.linalg.lstsq(rows.design, np.ones(n), rcond=None)[0]
    best = maximise(
        lambda t: _value(rows, t) - 0.5 * float(rows.penalty @ t**2),
        np.concatenate((odds * constant, speed * constant)),
        gradient=lambda t: _gradient(rows, t),
        curvature=lambda t: _hessian(rows, t),
        tolerance=1e-12,
    )
    covariance = np.full((2 * p, 2 * p), np.nan)
    if best.converged:
        covariance = inverted(-best.hessian)
    errors = np.sqrt(np.diag(covariance))
    notes = () if best.converged else ("no strict maximum: probability and rate are not identified on these displays",)
    rate = best.theta[p:].copy()
    rate[-1] -= np.log(scale)
    # Densities are per tick, probabilities of cells have no unit.
    per_tick = 0.0 if width else float(converted.sum() * np.log(scale))
    return JointFit(
        conversion=best.theta[:p], conversion_errors=errors[:p], rate=rate, rate_errors=errors[p:],
        covariance=covariance, log_likelihood=_value(rows, best.theta) - per_tick, displays=n,
        conversions=int(converted.sum()), width=float(width), converged=best.converged, notes=notes,
    )  # fmt: skip


class _Rows(NamedTuple):
    """Design (n, p), which converted, delay or time without a conversion (n,), width of a cell, ridges (2p,)."""

    design: Floats
    converted: NDArray[np.bool_]
    time: Floats
    width: float
    penalty: Floats


def _converted(delays: ArrayLike) -> NDArray[np.bool_]:
    delay = np.asarray(delays)
    if delay.ndim != 1:
        raise DataError(f"Delays have shape {delay.shape}.", remedy="pass shape (n,).")
    return delay >= 0


def _with_intercept(contexts: ArrayLike) -> Floats:
    design = np.asarray(contexts, np.float64)
    return np.column_stack((design, np.ones(design.shape[0])))


def _odds_and_rate(rows: _Rows, theta: Floats) -> tuple[Floats, Floats]:
    p = rows.design.shape[1]
    # Beyond these rates floating point has no delays left; only first steps from a bad start get there.
    return rows.design @ theta[:p], np.exp(np.clip(rows.design @ theta[p:], -300.0, 300.0))


def _value(rows: _Rows, theta: Floats) -> float:
    odds, rate = _odds_and_rate(rows, theta)
    with np.errstate(over="ignore", divide="ignore"):
        density = np.log(-np.expm1(-rate * rows.width) if rows.width else rate) - rate * rows.time
        late = np.log1p(expit(odds) * np.expm1(-rate * rows.time))
    value = np.where(rows.converted, log_expit(odds) + density, late).sum()
    return float(value) if np.isfinite(value) else -np.inf


def _slopes(rows: _Rows, theta: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return first and second derivatives by log odds (a) and log rate (b) of every row: a, b, aa, ab, bb."""
    odds, rate = _odds_and_rate(rows, theta)
    p = expit(odds)
    q = p * (1.0 - p)
    z = rate * rows.time
    s = np.exp(-z)
    u = 1.0 - p * (1.0 - s)
    by_a = np.where(rows.converted, 1.0 - p, -q * (1.0 - s) / u)
    by_aa = np.where(rows.converted, -q, -q * (1.0 - 2.0 * p) * (1.0 - s) / u - (q * (1.0 - s) / u) ** 2)
    slope = -z * s
    by_ab = np.where(rows.converted, 0.0, q * slope / u + q * (1.0 - s) * p * slope / u**2)
    with np.errstate(over="ignore", invalid="ignore"):
        cell = rate * rows.width
        # cell / (exp(cell) - 1), and the rest of its derivative; 1 and -1 where cells have no width.
        more = cell / np.expm1(cell) if rows.width else np.ones_like(rate)
        bent = -more * (cell + more) if rows.width else -more
        seen = more - z
        by_b = np.where(rows.converted, seen, p * slope / u)
        by_bb = np.where(rows.converted, seen + np.nan_to_num(bent), p * s * (z * z - z) / u - (p * slope / u) ** 2)
    return by_a, by_b, by_aa, by_ab, by_bb


def _gradient(rows: _Rows, theta: Floats) -> Floats:
    by_a, by_b, *_ = _slopes(rows, theta)
    return np.concatenate((rows.design.T @ by_a, rows.design.T @ by_b)) - rows.penalty * theta


def _hessian(rows: _Rows, theta: Floats) -> Floats:
    _, _, by_aa, by_ab, by_bb = _slopes(rows, theta)
    x = rows.design
    cross = (x.T * by_ab) @ x
    out: Floats = np.block([[(x.T * by_aa) @ x, cross], [cross, (x.T * by_bb) @ x]])
    return out - np.diag(rows.penalty)
