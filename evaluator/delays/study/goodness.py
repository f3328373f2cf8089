"""Whether a fitted delay law can have brought forth the delays seen, and which family to name, if any."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.study.criteria import FamilyComparison, compare_families
from evaluator.delays.study.fitting import fit_sample
from evaluator.delays.study.likelihood import sample_of
from evaluator.delays.usable import Ticks, checked_delays
from evaluator.errors import ParameterError
from evaluator.streams import seed_stream
from evaluator.threads import in_threads


@dataclass(frozen=True)
class GoodnessOfFit:
    """Tests of one family (`goodness_of_fit`).

    Parameters
    ----------
    family
        Name of the family that was tested.
    kolmogorov_smirnov, anderson_darling
        Distances of the probability integral transforms from the uniform law.
    kolmogorov_smirnov_p, anderson_darling_p
        P-values of the two distances, from `bootstraps` logs drawn from the fitted law.
    bootstraps
        Number of logs drawn from the fitted law.
    rows
        Number of conversions that were tested.
    conversions
        Number of conversions that there are.
    levels, observed, fitted
        Points of the Q-Q plot: levels, product-limit quantiles at these, and quantiles of the law given the same range,
        in ticks.
    """

    family: str
    kolmogorov_smirnov: float
    kolmogorov_smirnov_p: float
    anderson_darling: float
    anderson_darling_p: float
    bootstraps: int
    rows: int
    conversions: int
    levels: tuple[float, ...]
    observed: tuple[float, ...]
    fitted: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.__dict__.items()}


def goodness_of_fit(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    family: str,
    rounding: str | None = None,
    bootstraps: int = 199,
    rows: int = 2000,
    seed: int = 0,
) -> GoodnessOfFit:
    """Test a family by Kolmogorov-Smirnov and Anderson-Darling distances under right truncation.

    Given its limit, F(D) / F(L) is uniform when F is the law of the delays, whatever the limits. For rounded delays the
    middle of [F(d), F(d + 1)] takes the place of F(D). p-values by the parametric bootstrap with refitting (Stute,
    Gonzalez Manteiga, Presedo Quindimil 1993): delays are drawn from the fitted law under the same limits, rounded
    and fitted alike, p = (1 + number of distances at least as large) / (bootstraps + 1).

    Of more than `rows` conversions a random subsample of that size is fitted and tested: with enough data every
    simple law is rejected, and the question is whether it is off by more than `rows` conversions can show. Costs
    `bootstraps` fits of `rows` conversions.

    Parameters
    ----------
    delays, limits, family, rounding
        Delays and limits, shape (n,), in ticks, and options, as for `evaluator.delays.study.fitting.fit_family`.
    bootstraps
        Number of logs to draw, at least 1; the smallest p-value is 1 / (bootstraps + 1).
    rows
        Number of conversions to test at most.
    seed
        Seed of the subsample and of the bootstrap.

    Raises
    ------
    DataError, UnknownNameError
        The delays are impossible, or there is no such family, as for `fit_family`.
    ParameterError
        The family does not allow such delays; fewer than 1 bootstrap or row.
    """
    if bootstraps < 1 or rows < 1:
        raise ParameterError(f"bootstraps is {bootstraps}, rows is {rows}.", hint="both are at least 1.")
    delay, limit = checked_delays(delays, limits, whole=rounding == "floor")
    if rounding is None:
        rounding = "floor" if delay.dtype == np.int64 else "none"
    rng = seed_stream(seed)
    conversions = delay.size
    if conversions > rows:
        chosen = rng.choice(conversions, rows, replace=False)
        delay, limit = delay[chosen], None if limit is None else limit[chosen]
    fit = fit_sample(sample_of(delay, limit, rounding=rounding), family, seed=seed)
    smirnov, darling = _distances(fit, delay, limit)
    start = tuple(fit.parameters.values())

    def refitted(drawn: Ticks) -> tuple[float, float]:
        return _distances(fit_sample(sample_of(drawn, limit, rounding=rounding), family, start=start), drawn, limit)

    samples = [fit.draw(rng, limit, delay.size) for _ in range(bootstraps)]
    distances = list(in_threads(refitted, samples, os.cpu_count() or 1))
    above_smirnov = sum(one >= smirnov for one, _ in distances)
    above_darling = sum(other >= darling for _, other in distances)
    observed = fit_nonparametric(delay, limit)
    levels = np.arange(1, 100) / 100
    return GoodnessOfFit(
        family=family,
        kolmogorov_smirnov=smirnov,
        kolmogorov_smirnov_p=(1 + above_smirnov) / (bootstraps + 1),
        anderson_darling=darling,
        anderson_darling_p=(1 + above_darling) / (bootstraps + 1),
        bootstraps=bootstraps,
        rows=delay.size,
        conversions=conversions,
        levels=tuple(levels.tolist()),
        observed=tuple(observed.quantiles(levels).tolist()),
        fitted=tuple(fit.quantiles(levels, given=None if limit is None else observed.longest).tolist()),
    )


def _distances(fit: DelayFit, delays: Ticks, limits: Ticks | None) -> tuple[float, float]:
    """Return the Kolmogorov-Smirnov and the Anderson-Darling distance of the transforms from the uniform law."""
    u = fit.cdf(delays)
    if fit.rounding == "floor":
        u = 0.5 * (u + fit.cdf(delays - 1))
    if limits is not None:
        u = u / fit.cdf(limits)
    u = np.sort(np.clip(u, 1e-15, 1.0 - 1e-15))
    n = u.size
    i = np.arange(1, n + 1)
    smirnov = max(float((i / n - u).max()), float((u - (i - 1) / n).max()))
    darling = -n - float(((2 * i - 1) * (np.log(u) + np.log1p(-u[::-1]))).sum()) / n
    return smirnov, darling


@dataclass(frozen=True)
class FamilyChoice:
    """Which family to name (`choose_family`).

    Parameters
    ----------
    comparison
        Fits of all families, by AIC.
    goodness
        Tests of the family with the smallest AIC.
    level
        Anderson-Darling p-value below which no family is said to fit.
    fits
        Whether the best family fits.
    verdict
        Sentence for reports that names the family, or says that none fits.
    """

    comparison: FamilyComparison
    goodness: GoodnessOfFit
    level: float
    fits: bool
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {**self.__dict__, "comparison": self.comparison.to_dict(), "goodness": self.goodness.to_dict()}


def choose_family(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    families: Iterable[str] | None = None,
    rounding: str | None = None,
    level: float = 0.05,
    bootstraps: int = 199,
    rows: int = 2000,
    seed: int = 0,
) -> FamilyChoice:
    """Name the family with the smallest AIC, its margin, and whether it fits at all.

    Parameters are those of `compare_families` and `goodness_of_fit`; with an Anderson-Darling p-value below `level` the
    verdict is that none fits.

    Examples
    --------
    >>> import numpy as np
    >>> delays = np.random.default_rng(0).geometric(0.05, 400) - 1
    >>> choose_family(delays, families=["exponential", "lognormal"], bootstraps=39).verdict
    'exponential fits best (AIC 71.7 below lognormal; Anderson-Darling p = 0.62 with 400 conversions)'
    """
    comparison = compare_families(delays, limits, families=families, rounding=rounding, seed=seed)
    tested = goodness_of_fit(
        delays, limits, family=comparison.best, rounding=rounding, bootstraps=bootstraps, rows=rows, seed=seed
    )
    fits = tested.anderson_darling_p >= level
    rival = f"AIC {comparison.margin:,.1f} below {comparison.fits[1].family}; " if len(comparison.fits) > 1 else ""
    evidence = f"{rival}Anderson-Darling p = {tested.anderson_darling_p:.2g} with {tested.rows:,} conversions"
    verdict = f"{comparison.best} fits best ({evidence})"
    if not fits:
        verdict = f"none fits; {comparison.best} comes nearest ({evidence})"
    return FamilyChoice(comparison=comparison, goodness=tested, level=level, fits=fits, verdict=verdict)
