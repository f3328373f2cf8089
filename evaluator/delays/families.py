"""Families of delay laws on x > 0, and a law fitted to delays: what a study finds, a file holds, and a replay takes.

Every function takes x in ticks, of any shape and >= 0, and the family's parameters in their order; scales are in ticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evaluator.delays.product_limit import Floats
from evaluator.errors import UnknownNameError, nearest
from evaluator.results.json_documents import Count, JsonPart, NotNegative, NotNegativeOrNull, Positive

Parameters = tuple[float, ...]
Rounding = Literal["floor", "none"]


class StartingMoments(NamedTuple):
    """What starting values are made of: mean of x, mean and standard deviation of log x, the smallest delay."""

    mean: float
    log_mean: float
    log_sd: float
    smallest: float


@dataclass(frozen=True)
class Family:
    """A parametric family of delay laws, by functions of x in ticks and of the parameters in their order.

    Each parameter that is `positive` is fitted on the log scale. `log_density` takes x, log x and parameters; `cdf` and
    `survival`, P(X <= x) and P(X > x), are each without cancellation; `quantile` takes u in (0, 1); all keep the shape.
    `mean` is inf where there is none. `start` gives parameters near the likely ones, of which the last `given` ones are
    read off the data rather than fitted (support, not law).
    """

    name: str
    parameters: tuple[str, ...]
    positive: tuple[bool, ...]
    log_density: Callable[[Floats, Floats, Parameters], Floats]
    cdf: Callable[[Floats, Parameters], Floats]
    survival: Callable[[Floats, Parameters], Floats]
    quantile: Callable[[Floats, Parameters], Floats]
    mean: Callable[[Parameters], float]
    start: Callable[[StartingMoments], Parameters]
    given: int = 0


def _exponential() -> Family:
    return Family(
        name="exponential",
        parameters=("scale",),
        positive=(True,),
        log_density=lambda x, _, p: -x / p[0] - math.log(p[0]),
        cdf=lambda x, p: -np.expm1(-x / p[0]),
        survival=lambda x, p: np.exp(-x / p[0]),
        quantile=lambda u, p: -p[0] * np.log1p(-u),
        mean=lambda p: p[0],
        start=lambda m: (m.mean,),
    )


def _geometric() -> Family:
    """Return whole delays on {start, start + 1, ...}, as the whole part of start plus an exponential variable."""

    def rate(p: Parameters) -> float:
        return math.log1p(1.0 / (p[0] - p[1])) if p[0] > p[1] else math.inf

    return Family(
        name="geometric",
        parameters=("mean", "start"),
        positive=(True, True),
        log_density=lambda x, _, p: np.where(x >= p[1], math.log(rate(p)) - rate(p) * (x - p[1]), -np.inf),
        cdf=lambda x, p: -np.expm1(-rate(p) * np.maximum(x - p[1], 0.0)),
        survival=lambda x, p: np.exp(-rate(p) * np.maximum(x - p[1], 0.0)),
        quantile=lambda u, p: p[1] - np.log1p(-u) / rate(p),
        mean=lambda p: p[0],
        start=lambda m: (max(m.mean, 1.001 if m.smallest >= 1 else 0.001), float(m.smallest >= 1)),
        given=1,
    )


def _weibull() -> Family:
    def hazard(x: Floats, p: Parameters) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((x / p[1]) ** p[0])

    def log_density(x: Floats, log_x: Floats, p: Parameters) -> Floats:
        z = p[0] * (log_x - math.log(p[1]))
        with np.errstate(over="ignore"):
            return np.asarray(math.log(p[0]) + z - log_x - np.exp(z))

    return Family(
        name="weibull",
        parameters=("shape", "scale"),
        positive=(True, True),
        log_density=log_density,
        cdf=lambda x, p: -np.expm1(-hazard(x, p)),
        survival=lambda x, p: np.exp(-hazard(x, p)),
        quantile=lambda u, p: p[1] * (-np.log1p(-u)) ** (1.0 / p[0]),
        mean=lambda p: p[1] * float(special.gamma(1.0 + 1.0 / p[0])),
        start=lambda m: (
            math.pi / (math.sqrt(6.0) * m.log_sd),
            math.exp(m.log_mean + 0.5772 * math.sqrt(6.0) * m.log_sd / math.pi),
        ),
    )


def _gamma() -> Family:
    def start(m: StartingMoments) -> Parameters:
        # Minka (2002), "Estimating a gamma distribution": the first approximation.
        s = max(math.log(m.mean) - m.log_mean, 1e-6)
        shape = (3.0 - s + math.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
        return shape, m.mean / shape

    return Family(
        name="gamma",
        parameters=("shape", "scale"),
        positive=(True, True),
        log_density=lambda x, log_x, p: (p[0] - 1.0) * log_x - x / p[1] - (math.lgamma(p[0]) + p[0] * math.log(p[1])),
        cdf=lambda x, p: special.gammainc(p[0], x / p[1]),
        survival=lambda x, p: special.gammaincc(p[0], x / p[1]),
        quantile=lambda u, p: p[1] * special.gammaincinv(p[0], u),
        mean=lambda p: p[0] * p[1],
        start=start,
    )


def _lognormal() -> Family:
    def score(x: Floats, p: Parameters) -> Floats:
        with np.errstate(divide="ignore"):
            return (np.log(x) - p[0]) / p[1]

    return Family(
        name="lognormal",
        parameters=("mu", "sigma"),
        positive=(False, True),
        log_density=lambda _, log_x, p: (
            -0.5 * ((log_x - p[0]) / p[1]) ** 2 - log_x - (math.log(p[1]) + 0.5 * math.log(2.0 * math.pi))
        ),
        cdf=lambda x, p: special.ndtr(score(x, p)),
        survival=lambda x, p: special.ndtr(-score(x, p)),
        quantile=lambda u, p: np.exp(p[0] + p[1] * special.ndtri(u)),
        mean=lambda p: math.exp(p[0] + 0.5 * p[1] ** 2),
        start=lambda m: (m.log_mean, m.log_sd),
    )


def _pareto() -> Family:
    """Return Pareto I: P(X > x) = (x / minimum)^-alpha from the minimum on."""

    def above(x: Floats, p: Parameters) -> Floats:
        return np.log(np.maximum(x, p[1]) / p[1])

    return Family(
        name="pareto",
        parameters=("alpha", "minimum"),
        positive=(True, True),
        log_density=lambda x, log_x, p: np.where(
            x >= p[1], math.log(p[0]) + p[0] * math.log(p[1]) - (p[0] + 1.0) * log_x, -np.inf
        ),
        cdf=lambda x, p: -np.expm1(-p[0] * above(x, p)),
        survival=lambda x, p: np.exp(-p[0] * above(x, p)),
        quantile=lambda u, p: p[1] * np.exp(-np.log1p(-u) / p[0]),
        mean=lambda p: p[0] * p[1] / (p[0] - 1.0) if p[0] > 1.0 else math.inf,
        start=lambda m: (1.0 / max(m.log_mean - math.log(m.smallest), 1e-3), m.smallest),
        given=1,
    )


def _lomax() -> Family:
    return Family(
        name="lomax",
        parameters=("alpha", "scale"),
        positive=(True, True),
        log_density=lambda x, _, p: math.log(p[0] / p[1]) - (p[0] + 1.0) * np.log1p(x / p[1]),
        cdf=lambda x, p: -np.expm1(-p[0] * np.log1p(x / p[1])),
        survival=lambda x, p: np.exp(-p[0] * np.log1p(x / p[1])),
        quantile=lambda u, p: p[1] * np.expm1(-np.log1p(-u) / p[0]),
        mean=lambda p: p[1] / (p[0] - 1.0) if p[0] > 1.0 else math.inf,
        start=lambda m: (1.0, math.exp(m.log_mean)),
    )


def _loglogistic() -> Family:
    def odds(x: Floats, p: Parameters) -> Floats:
        with np.errstate(divide="ignore"):
            return p[0] * (np.log(x) - math.log(p[1]))

    def log_density(_: Floats, log_x: Floats, p: Parameters) -> Floats:
        z = p[0] * (log_x - math.log(p[1]))
        return math.log(p[0]) - log_x - np.abs(z) - 2.0 * np.log1p(np.exp(-np.abs(z)))

    return Family(
        name="loglogistic",
        parameters=("shape", "scale"),
        positive=(True, True),
        log_density=log_density,
        cdf=lambda x, p: special.expit(odds(x, p)),
        survival=lambda x, p: special.expit(-odds(x, p)),
        quantile=lambda u, p: p[1] * np.exp(special.logit(u) / p[0]),
        mean=lambda p: p[1] * math.pi / p[0] / math.sin(math.pi / p[0]) if p[0] > 1.0 else math.inf,
        start=lambda m: (math.pi / (math.sqrt(3.0) * m.log_sd), math.exp(m.log_mean)),
    )


def _lognormal_mixture(components: int) -> Family:
    """Return sum of w_j LogNormal(mu_j, sigma_j); parameters (w_1..w_k, mu_1..mu_k, sigma_1..sigma_k)."""
    k = components

    def log_density(_: Floats, log_x: Floats, p: Parameters) -> Floats:
        parts = zip(p[:k], p[k : 2 * k], p[2 * k :], strict=True)
        total = sum(w / sigma * np.exp(-0.5 * ((log_x - mu) / sigma) ** 2) for w, mu, sigma in parts)
        # A delay that no component reaches in floating point is unlikely, not impossible.
        out: Floats = np.log(np.maximum(total, 1e-300)) - log_x - 0.5 * math.log(2.0 * math.pi)
        return out

    def cdf(x: Floats, p: Parameters, sign: float = 1.0) -> Floats:
        with np.errstate(divide="ignore"):
            y = np.log(x)
        parts = zip(p[:k], p[k : 2 * k], p[2 * k :], strict=True)
        return np.asarray(sum(w * special.ndtr(sign * (y - mu) / sigma) for w, mu, sigma in parts))

    def quantile(u: Floats, p: Parameters) -> Floats:
        # A quantile of the mixture lies between the smallest and the largest of its components'.
        z = special.ndtri(u)
        each = [mu + sigma * z for mu, sigma in zip(p[k : 2 * k], p[2 * k :], strict=True)]
        low, high = np.minimum.reduce(each), np.maximum.reduce(each)
        for _ in range(64):
            middle = 0.5 * (low + high)
            short = cdf(np.exp(middle), p) < u
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        out: Floats = np.exp(high)
        return out

    names = [f"{name}_{j + 1}" for name in ("weight", "mu", "sigma") for j in range(k)]
    return Family(
        name=f"lognormal-mixture-{k}",
        parameters=tuple(names),
        positive=(True,) * k + (False,) * k + (True,) * k,
        log_density=log_density,
        cdf=cdf,
        survival=lambda x, p: cdf(x, p, -1.0),
        quantile=quantile,
        mean=lambda p: sum(
            w * math.exp(m + 0.5 * s * s) for w, m, s in zip(p[:k], p[k : 2 * k], p[2 * k :], strict=True)
        ),
        start=lambda m: (
            *((1.0 / k,) * k),
            *(m.log_mean + m.log_sd * z for z in special.ndtri((np.arange(k) + 0.5) / k)),
            *((m.log_sd / k,) * k),
        ),
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        _exponential(),
        _geometric(),
        _weibull(),
        _gamma(),
        _lognormal(),
        _pareto(),
        _lomax(),
        _loglogistic(),
        _lognormal_mixture(2),
        _lognormal_mixture(3),
        _lognormal_mixture(4),
    )
}


def family_named(name: str) -> Family:
    """Return a family by its word; raises UnknownNameError where no family has this name.

    >>> family_named("weibull").parameters
    ('shape', 'scale')
    """
    if name not in FAMILIES:
        raise UnknownNameError(f"No delay family is called {name!r}.", remedy=nearest(name, FAMILIES))
    return FAMILIES[name]


@dataclass(frozen=True)
class DelayFit(JsonPart):
    """A delay law fitted by maximum likelihood (`evaluator.delays.study.fitting.fit_family`). Delays in ticks.

    Parameters
    ----------
    family
        Name of the family (`evaluator.delays.families.FAMILIES`).
    parameters, standard_errors
        Value and standard error of each parameter by its name, scales in ticks; errors from the observed information,
        nan where it is singular and 0 for parameters read off the data.
    covariance
        Covariance matrix of the parameters, rows in their order.
    log_likelihood, aic, bic
        Logarithm of the truncated likelihood, and the criteria of Akaike and Schwarz. Likelihoods are of probabilities
        of whole ticks if `rounding` is ``"floor"``, else of densities: comparable among fits of one sample.
    free_parameters
        Number of parameters that the criteria count; the support counts.
    conversions
        Number of delays that the law was fitted to.
    rounding
        Rounding of the delays: ``"floor"`` or ``"none"`` (`evaluator.delays.study.likelihood.TruncatedSample`).
    longest
        Longest limit, in ticks, beyond which the law is extrapolated; inf when nothing was cut off.
    converged
        Whether the maximum was found and is a strict one.
    notes
        Sentences that the reader of the fit should know.
    width
        Ticks that time stamps tell apart: a floored delay of d stands for [d, d + width).
    """

    family: str
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    covariance: tuple[tuple[float, ...], ...]
    log_likelihood: float
    aic: float
    bic: float
    free_parameters: Count
    conversions: Positive
    rounding: Rounding
    longest: NotNegativeOrNull
    converged: bool
    notes: tuple[str, ...] = ()
    width: NotNegative = 1.0

    @property
    def law(self) -> tuple[Family, Parameters]:
        """The family's functions and the fitted parameters in their order."""
        return family_named(self.family), tuple(self.parameters.values())

    @property
    def mean(self) -> float:
        """Mean delay of the law in ticks, not conditional on any limit; inf where there is none."""
        return self.law[0].mean(self.law[1])

    def cdf(self, ages: ArrayLike, *, given: float | None = None) -> Floats:
        """Return P(D <= age), same shape as `ages` (ticks), given a delay of at most `given` ticks if not None."""
        width = self.width if self.rounding == "floor" else 0.0
        family, parameters = self.law

        def seen(age: Floats) -> Floats:
            whole = np.floor(age / width) * width if width else age
            return family.cdf(np.maximum(whole + width, 0.0), parameters)

        age = np.asarray(ages, dtype=np.float64)
        tau = seen(age)
        if given is None or math.isinf(given):
            return tau
        return np.minimum(tau / seen(np.asarray(given, dtype=np.float64)), 1.0)

    def quantiles(self, levels: ArrayLike, *, given: float | None = None) -> Floats:
        """Return the delay at each level in (0, 1), in ticks (whole for rounded delays): smallest one to reach it."""
        level = np.asarray(levels, dtype=np.float64)
        family, parameters = self.law
        if given is not None and not math.isinf(given):
            level = level * self.cdf(given)
        x = family.quantile(level, parameters)
        return np.maximum(np.ceil(x / self.width) - 1.0, 0.0) * self.width if self.rounding == "floor" else x

    def draw(self, rng: np.random.Generator, limits: ArrayLike | None, size: int) -> Floats:
        """Return delays of shape (size,), in ticks, each from the law given a delay of at most its limit."""
        family, parameters = self.law
        u = rng.random(size)
        if limits is not None:
            u = u * self.cdf(limits)
        # A uniform variable can be 0; no exact delay is.
        x = family.quantile(np.maximum(u, 1e-300), parameters)
        if self.rounding == "floor":
            x = np.floor(x / self.width) * self.width
        # The quantile of a CDF rounded to the limit's can fall beyond the limit by rounding.
        return x if limits is None else np.minimum(x, limits)
