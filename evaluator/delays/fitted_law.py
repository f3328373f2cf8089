"""A delay law fitted to delays: what a study finds, a file holds, and a replay takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.families import Family, Parameters, family_named
from evaluator.delays.usable import Floats
from evaluator.results.json_documents import Count, JsonPart, NotNegative, NotNegativeOrNull, Positive

Rounding = Literal["floor", "none"]


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
