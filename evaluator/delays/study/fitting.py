"""Maximum likelihood of families of delay laws under right truncation, which one a log speaks for, and spikes.

A spike is a delay at which many conversions come at once: the rule of a system, a timeout, a nightly job, and no law.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from math import exp
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.families import FAMILIES, DelayFit, Family, Parameters, Rounding, family_named
from evaluator.delays.product_limit import Floats, Ints, tally
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayWorkers
from evaluator.delays.study.likelihood import (
    SMALLEST_SIGMA,
    Optimum,
    TruncatedSample,
    maximise,
    mixture_score,
    mixture_start,
    sample_of,
)
from evaluator.engine.kernels.solving import inverted
from evaluator.errors import ParameterError
from evaluator.results.json_documents import several

# A sample of four times as many terms is fitted in so many bins before: where components of a mixture overlap, Newton's
# method takes a hundred steps along a ridge, for which it need not go over all rows.
_BINS = (1024, 32_768)
# Where these rise for ever, so does the likelihood of all: a few steps show it.
_STEPS, _STEPS_ON_A_RIDGE = 100, 3
MIXTURE = "lognormal-mixture"
# Less of the law than this within what the log can see tells nothing of the rest.
_LEAST_SEEN, _FAR = 1e-6, 0.1
_FLAT = "no strict maximum: parameters are not identified, standard errors are left out"
_RIDGE = (
    "no maximum: the likelihood rises as the law moves beyond what the log can see, so that its parameters are not "
    "identified; its shape within the log, and the AIC, are those of the limit"
)
# A delay of fewer stamps is shared by many for no other reason than that stamps are coarse.
_TOLD_APART = 50
_FEWEST = 10
# Beside a spike: delays that differ by a tenth at most.
_NEAR = 0.1


def fit_family(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    family: str,
    rounding: Rounding | None = None,
    seed: int = 0,
) -> DelayFit:
    """Return the law of a family under which the delays seen are most likely, given that each was at most its limit.

    Maximises sum_i log P(D_i) - log F(L_i). Whole ticks are rounded down delays: tick d has probability F(d + 1) -
    F(d), and L is then L + 1, so that a delay of 0, ties and coarse clocks need no repair. Newton's method on log
    scales, of many rows first in a thousand and in 33 thousand bins of log delay, then on all rows; mixtures start from
    EM on about a thousand points (`mixture_start`). Standard errors from the observed information by the delta method.
    Consistent when delays do not depend on limits. O(n) a step after counting, some ten steps.

    Parameters
    ----------
    delays, limits
        Delays, shape (n,), and their limits, shape (n,) or (), in ticks; None where nothing was cut off
        (`evaluator.delays.nonparametric.fit_nonparametric`).
    family
        Name of one of `evaluator.delays.families.FAMILIES`, such as weibull or lognormal-mixture-2.
    rounding
        Rounding of the delays. ``"floor"``: whole ticks, rounded down. ``"none"``: exact delays > 0 with their density.
        None takes ``"floor"`` for whole numbers.
    seed
        Seed of the starting points of a mixture.

    Raises
    ------
    DataError
        There are no delays, or impossible ones.
    ParameterError
        The family does not allow such delays: Pareto a delay of 0, the geometric law fractions.
    UnknownNameError
        There is no such family.

    Examples
    --------
    >>> fit = fit_family([0, 2, 1, 7, 3], [9, 9, 5, 9, 30], family="geometric")
    >>> round(fit.parameters["mean"], 3), round(fit.standard_errors["mean"], 3)
    (3.441, 2.553)
    """
    return fit_sample(sample_of(delays, limits, rounding=rounding), family, seed=seed)


def fit_sample(sample: TruncatedSample, name: str, *, seed: int = 0, start: Parameters | None = None) -> DelayFit:
    """Return the fit of a family to a sample, from `start` where a good one is known."""
    family = family_named(name)
    reason = inapplicable(sample, name)
    if reason:
        raise ParameterError(f"Family {name} does not fit these delays: {reason}.", remedy="choose another family.")
    fixed = family.start(sample.moments())[len(family.parameters) - family.given :] if family.given else ()
    components = len(family.parameters) // 3 if name.startswith(MIXTURE) else 0
    transform = _Mixture(components) if components else _Logarithms(family, fixed)
    if start is None:
        start = (
            tuple(mixture_start(sample, components, seed=seed).ravel())
            if components
            else family.start(sample.moments())
        )
    theta = transform.free(start)
    hessian, steps = None, _STEPS
    for bins in _BINS:
        if sample.size > 4 * bins:
            theta, _, hessian, strict = _climb(sample.binned(bins), family, transform, theta, hessian)
            steps = _STEPS if strict else _STEPS_ON_A_RIDGE
    best = _climb(sample, family, transform, theta, hessian, steps=steps)
    return _described(sample, family, transform, best)


def beyond_note(longest: float) -> str:
    """Return what is said of a law beyond the longest limit, in ticks."""
    return f"delays beyond {longest:,.0f} ticks are extrapolated"


def inapplicable(sample: TruncatedSample, name: str) -> str:
    """Return why a family cannot have brought forth such delays, or nothing."""
    if name == "pareto" and sample.smallest <= 0:
        return "a Pareto delay is never 0 (lomax is the Pareto law from 0 on)"
    if name == "geometric" and sample.rounding == "none":
        return "a geometric delay is a whole number"
    return ""


class _Logarithms:
    """Free parameters of a plain family: logarithms of the positive ones; those read off the data left out."""

    def __init__(self, family: Family, fixed: Parameters) -> None:
        self.positive = np.array(family.positive[: len(family.positive) - len(fixed)])
        self.fixed = fixed
        # A geometric mean lies above its start.
        self.shift = fixed[0] if family.name == "geometric" else 0.0

    def free(self, parameters: Parameters) -> Floats:
        given = np.array(parameters[: self.positive.size]) - self.shift
        return np.where(self.positive, np.log(np.where(self.positive, given, 1.0)), given)

    def parameters(self, theta: Floats) -> Parameters:
        with np.errstate(over="ignore"):
            values = np.where(self.positive, np.exp(np.where(self.positive, theta, 0.0)), theta) + self.shift
        return (*values.tolist(), *self.fixed)

    def jacobian(self, theta: Floats) -> Floats:
        """Return d parameters / d theta, shape (parameters, free)."""
        slopes = np.where(self.positive, np.exp(np.where(self.positive, theta, 0.0)), 1.0)
        return np.vstack((np.diag(slopes), np.zeros((len(self.fixed), slopes.size))))

    gradient = None


class _Mixture:
    """Free parameters of a mixture: log weight ratios to the last component, means, log (sigma - its floor)."""

    def __init__(self, components: int) -> None:
        self.k = components

    def free(self, parameters: Parameters) -> Floats:
        w, mu, sigma = np.maximum(
            np.array(parameters).reshape(3, self.k), [[1e-12], [-np.inf], [1.01 * SMALLEST_SIGMA]]
        )
        return np.concatenate((np.log(w[:-1] / w[-1]), mu, np.log(sigma - SMALLEST_SIGMA)))

    def parameters(self, theta: Floats) -> Parameters:
        k = self.k
        logits = np.append(theta[: k - 1], 0.0)
        w = np.exp(logits - logits.max())
        return tuple(
            np.concatenate((w / w.sum(), theta[k - 1 : 2 * k - 1], SMALLEST_SIGMA + np.exp(theta[2 * k - 1 :])))
        )

    def jacobian(self, theta: Floats) -> Floats:
        """Return d parameters / d theta, shape (3 k, 3 k - 1)."""
        k = self.k
        w = np.array(self.parameters(theta)[:k])
        out = np.zeros((3 * k, 3 * k - 1))
        out[:k, : k - 1] = (np.diag(w) - np.outer(w, w))[:, : k - 1]
        out[k : 2 * k, k - 1 : 2 * k - 1] = np.eye(k)
        out[2 * k :, 2 * k - 1 :] = np.diag(np.exp(theta[2 * k - 1 :]))
        return out

    def gradient(self, sample: TruncatedSample, theta: Floats) -> Floats:
        score = mixture_score(sample, np.array(self.parameters(theta)).reshape(3, self.k))
        out: Floats = score.ravel() @ self.jacobian(theta)
        return out


def _climb(
    sample: TruncatedSample,
    family: Family,
    transform: _Logarithms | _Mixture,
    theta: Floats,
    hessian: Floats | None = None,
    *,
    steps: int = _STEPS,
) -> Optimum:
    gradient = transform.gradient
    return maximise(
        lambda free: sample.log_likelihood(family, transform.parameters(free)),
        theta,
        gradient=None if gradient is None else lambda free: gradient(sample, free),
        hessian=hessian,
        tolerance=1e-14 if gradient is None else 1e-8,
        iterations=steps,
    )


def _described(sample: TruncatedSample, family: Family, transform: _Logarithms | _Mixture, best: Optimum) -> DelayFit:
    parameters = np.array(transform.parameters(best.theta))
    jacobian = transform.jacobian(best.theta)
    covariance = np.full((parameters.size, parameters.size), np.nan)
    if best.converged:
        covariance = jacobian @ inverted(-best.hessian) @ jacobian.T
    if isinstance(transform, _Mixture):
        # Components in order of their medians, so that the same law always has the same words.
        order = np.argsort(parameters[transform.k : 2 * transform.k], kind="stable")
        order = np.concatenate([order + block * transform.k for block in range(3)])
        parameters, covariance = parameters[order], covariance[np.ix_(order, order)]
    # On a ridge that goes on for ever a flat top is rounding, not a maximum.
    seen = 1.0 if np.isinf(sample.longest) else float(family.cdf(np.array(sample.longest), tuple(parameters)))
    converged = best.converged and seen >= _LEAST_SEEN
    if not converged:
        covariance = np.full_like(covariance, np.nan)
    # The geometric law's start is 0 or 1 by design; the Pareto law's minimum is estimated.
    free = best.theta.size + (1 if family.name == "pareto" else 0)
    notes = [] if converged else [_RIDGE if seen < _FAR else _FLAT]
    if sample.limits.size:
        notes.append(beyond_note(sample.longest))
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(covariance))
    return DelayFit(
        family=family.name,
        parameters=dict(zip(family.parameters, parameters.tolist(), strict=True)),
        standard_errors=dict(zip(family.parameters, errors.tolist(), strict=True)),
        covariance=tuple(map(tuple, covariance.tolist())),
        log_likelihood=best.value,
        aic=2.0 * free - 2.0 * best.value,
        bic=free * math.log(sample.conversions) - 2.0 * best.value,
        free_parameters=free,
        conversions=sample.conversions,
        rounding=sample.rounding,
        longest=sample.longest,
        converged=converged,
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class FamilyComparison:
    """Fits of several families to one sample (`compare_families`).

    Parameters
    ----------
    fits
        Fits of the families in order of AIC, best first.
    best, margin
        Name of the family with the smallest AIC, and the difference to the next one above it; inf if alone. Below about
        2 the two are hardly told apart (Burnham, Anderson 2002, Section 2.6).
    skipped
        Families left out, each with the reason.
    """

    fits: Annotated[tuple[DelayFit, ...], several]
    best: str
    margin: float
    skipped: dict[str, str]

    @property
    def best_fit(self) -> DelayFit:
        """The fit with the smallest AIC."""
        return self.fits[0]


@dataclass(frozen=True)
class LawJob(DelayJob):
    """The fit of a family, with the seed of the starting points of a mixture."""

    of: ClassVar[str] = "laws"
    items: ClassVar[tuple[int, ...]] = (0,)

    family: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"The fit of the {self.family} law"

    def compute(self, opened: TruncatedSample, item: int) -> DelayFit:
        """Return the fit."""
        return fit_sample(opened, self.family, seed=self.seed)


def compare_families(
    sample: TruncatedSample, *, families: Iterable[str] | None = None, seed: int = 0, workers: DelayWorkers = HERE
) -> FamilyComparison:
    """Return the fits of families to a sample (`sample_of`), ordered by AIC (Akaike 1974); all, where none are named.

    Families that cannot have brought forth such delays are skipped, with the reason; so is the geometric law where it
    is the exponential one (rounded down delays from 0 on). Errors are those of `fit_family`; ParameterError is also
    raised where no family is left to fit. The seed is that of the starting points of mixtures.

    >>> sample = sample_of([1, 4, 2, 30, 0, 7])
    >>> comparison = compare_families(sample, families=["exponential", "lomax", "pareto"])
    >>> comparison.best, comparison.skipped
    ('exponential', {'pareto': 'a Pareto delay is never 0 (lomax is the Pareto law from 0 on)'})
    """
    names = list(FAMILIES if families is None else families)
    skipped = {}
    applicable = []
    for name in names:
        reason = inapplicable(sample, name)
        if name == "geometric" and "exponential" in names and sample.smallest < 1 and not reason:
            reason = "the exponential law on whole ticks"
        if reason:
            skipped[name] = reason
        else:
            applicable.append(name)
    if not applicable:
        raise ParameterError(f"No family is left of {', '.join(names)}.", remedy="; ".join(skipped.values()))
    found: list[DelayFit] = [fit for (fit,) in workers.found([LawJob(name, seed) for name in applicable], sample)]
    # Stable: of equal ones the first named, which has fewer parameters.
    fits = sorted(found, key=lambda fit: fit.aic)
    margin = fits[1].aic - fits[0].aic if len(fits) > 1 else float("inf")
    return FamilyComparison(fits=tuple(fits), best=fits[0].family, margin=margin, skipped=skipped)


class Spike(NamedTuple):
    """A delay (ticks), and the share of the conversions seen that have exactly it, or that a mixture gives it."""

    delay: float
    share: float


def spikes(delays: Ints, stamp: int) -> tuple[Spike, ...]:
    """Return delays that ten conversions or more share, and more than have any other delay within a tenth of it.

    Delays are in ticks, shape (n,). The time stamps tell `stamp` ticks apart; only delays of at least fifty times as
    many are looked at.

    >>> import numpy as np
    >>> spikes(np.concatenate((np.full(40, 3600), np.arange(1, 61) * 97)), 1)
    (Spike(delay=3600.0, share=0.4),)
    """
    support, counts = tally(delays)
    below = counts.cumsum()
    found = []
    for at in (counts >= _FEWEST).nonzero()[0].tolist():
        delay = float(support[at])
        low, high = support.searchsorted([(1.0 - _NEAR) * delay, (1.0 + _NEAR) * delay], side="right")
        near = int(below[high - 1] - (below[low - 1] if low else 0)) - int(counts[at])
        if delay >= _TOLD_APART * stamp and counts[at] > near:
            found.append(Spike(delay, float(counts[at] / delays.size)))
    return tuple(found)


def narrow_components(fit: DelayFit) -> tuple[Spike, ...]:
    """Return the components of a mixture that are as narrow as the fit lets them be: ties, no subpopulation.

    Those with a sigma of log delay below twice the least one, or narrower than a time stamp.
    """
    if not fit.family.startswith(MIXTURE):
        return ()
    k = len(fit.parameters) // 3
    of = list(fit.parameters.values())
    return tuple(
        Spike(exp(mu), weight)
        for weight, mu, sigma in zip(of[:k], of[k : 2 * k], of[2 * k :], strict=True)
        if sigma < 2.0 * SMALLEST_SIGMA or sigma * exp(mu) < fit.width
    )
