"""Conversion probability and delay at once, on context, from displays too young to be judged (Chapelle 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from evaluator.delays.product_limit import Floats, checked_delays
from evaluator.delays.study.likelihood import maximise
from evaluator.engine.kernels.solving import inverted
from evaluator.errors import DataError, ParameterError

# Measured by ``python -m tests.bench.delays_truth joint``: with fewer conversions, or where much is still to come
# after the longest follow-up, intervals hold on clearly fewer logs than they say.
FEWEST_CONVERSIONS = 100
CONVERSIONS_A_DIRECTION = 10
# Of the conversions that the model expects: those later than any display was followed rest on the law alone.
MOST_UNSEEN = 0.15


@dataclass(frozen=True, eq=False)
class JointFit:
    """Logistic conversion probability and exponential delay with log-linear rate (`fit_joint`).

    Parameters
    ----------
    conversion, conversion_errors
        Coefficients of the log odds that a display ever converts, and their standard errors, shape (p,).
    rate, rate_errors
        Coefficients of the log rate of the delay (per tick), and their standard errors, shape (p,).
    covariance
        Covariance of both sets of coefficients, `conversion` first, shape (2p, 2p); nan where not identified.
    intercept
        Whether a constant was appended to the contexts; its coefficient is the last.
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
    intercept: bool
    log_likelihood: float
    displays: int
    conversions: int
    width: float
    converged: bool
    notes: tuple[str, ...] = ()

    def conversion_probability(self, contexts: ArrayLike) -> Floats:
        """Return P(the display ever converts), shape (n,), of contexts of shape (n, p)."""
        return np.asarray(expit(self._design(contexts) @ self.conversion))

    def mean_delay(self, contexts: ArrayLike) -> Floats:
        """Return the mean delay of a conversion in ticks (before rounding down), shape (n,)."""
        return np.asarray(np.exp(-(self._design(contexts) @ self.rate)))

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
        design = self._design(contexts)
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

    def _design(self, contexts: ArrayLike) -> Floats:
        return _with_intercept(contexts) if self.intercept else np.asarray(contexts, np.float64)


def fit_joint(
    contexts: ArrayLike,
    delays: ArrayLike,
    elapsed: ArrayLike,
    *,
    intercept: bool = True,
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

    Parameters
    ----------
    contexts
        Features of the displays, shape (n, p).
    delays, elapsed
        Delay of each display's conversion in ticks, shape (n,), nan, or below 0, where no conversion has come; and
        ticks for which each has been followed, shape (n,) or (), at least the delay.
    intercept
        Whether a constant is appended to the contexts.
    ridge
        Strength of the penalty: ridge / 2 times the sum of squared coefficients but those of an appended constant is
        subtracted, for many or collinear features. The inverse of a prior variance.
    width
        Number of ticks, of whose multiples delays were rounded down to one; 0 for exact delays.

    Raises
    ------
    DataError
        There are no displays, no conversions, or none that did not convert; delays are impossible, shapes differ, or
        contexts are not finite.
    ParameterError
        The ridge or the width is below 0.

    Examples
    --------
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
    # Without a constant, no coefficient takes up the unit of time.
    scale = mean if intercept and mean > 0 else 1.0
    penalty = np.full(design.shape[1] + intercept, ridge)
    if intercept:
        penalty[-1] = 0.0
    rows = _Rows(_with_intercept(design) if intercept else design, converted, time / scale, width / scale,
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
    if intercept:
        rate[-1] -= np.log(scale)
    # Densities are per tick, probabilities of cells have no unit.
    per_tick = 0.0 if width else float(converted.sum() * np.log(scale))
    return JointFit(
        conversion=best.theta[:p],
        conversion_errors=errors[:p],
        rate=rate,
        rate_errors=errors[p:],
        covariance=covariance,
        intercept=intercept,
        log_likelihood=_value(rows, best.theta) - per_tick,
        displays=n,
        conversions=int(converted.sum()),
        width=float(width),
        converged=best.converged,
        notes=notes,
    )


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


def _parts(rows: _Rows, theta: Floats) -> tuple[Floats, Floats]:
    p = rows.design.shape[1]
    # Beyond these rates floating point has no delays left; only first steps from a bad start get there.
    return rows.design @ theta[:p], np.exp(np.clip(rows.design @ theta[p:], -300.0, 300.0))


def _value(rows: _Rows, theta: Floats) -> float:
    odds, rate = _parts(rows, theta)
    with np.errstate(over="ignore", divide="ignore"):
        density = np.log(-np.expm1(-rate * rows.width) if rows.width else rate) - rate * rows.time
        late = np.log1p(expit(odds) * np.expm1(-rate * rows.time))
    value = np.where(rows.converted, log_expit(odds) + density, late).sum()
    return float(value) if np.isfinite(value) else -np.inf


def _slopes(rows: _Rows, theta: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return first and second derivatives by log odds (a) and log rate (b) of every row: a, b, aa, ab, bb."""
    odds, rate = _parts(rows, theta)
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


def check_conversions(conversions: int, directions: int) -> None:
    """Raise `DataError` where the conversions are too few for contexts of so many directions."""
    needed = max(FEWEST_CONVERSIONS, CONVERSIONS_A_DIRECTION * directions)
    if conversions < needed:
        raise DataError(
            f"`joint`: {conversions:,} of the displays converted; the model needs {needed:,} for contexts of "
            f"{directions} independent columns ({CONVERSIONS_A_DIRECTION} each, {FEWEST_CONVERSIONS} at least).",
            remedy="give the log fewer context columns, or wait for more conversions.",
        )


def check_follow_up(unseen: float) -> None:
    """Raise `DataError` where too many of the conversions expected are later than any display was followed."""
    if not unseen <= MOST_UNSEEN:
        raise DataError(
            f"`joint`: {unseen:.0%} of the conversions that the model expects are later than any display was followed: "
            f"their number rests on the law alone (at most {MOST_UNSEEN:.0%} may).",
            remedy="wait until displays are older, or name an attribution window in the spec.",
        )
