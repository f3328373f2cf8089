"""Whether a fitted delay law can have brought forth the delays seen, and which family to name, if any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evaluator.delays.families import DelayFit, Rounding
from evaluator.delays.nonparametric import fit_nonparametric
from evaluator.delays.product_limit import Observed, Ticks, checked_delays
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayWorkers
from evaluator.delays.study.fitting import MIXTURE, FamilyComparison, beyond_note, compare_families, fit_sample
from evaluator.delays.study.likelihood import TruncatedSample, sample_of
from evaluator.errors import ParameterError
from evaluator.results.json_documents import Level, NotNegative, Positive, Share, at_least
from evaluator.streams import StreamState, seed_stream, state_of, stream_from

# Conversions that are tested at most.
ROWS = 2000
# Bootstraps of a job, some half a second of work: a mixture takes a tenth of a second, other laws a fifth of that.
_OF_MIXTURES, _OF_OTHERS = 8, 32
# Anderson-Darling p-value below which no family is said to fit.
_LEVEL = 0.05
# Parameters that are delays.
SCALES = ("scale", "mean", "minimum")


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
    rows, conversions
        Number of conversions that were tested, and of those there are.
    levels, observed, fitted
        Points of the Q-Q plot: levels, product-limit quantiles at these, and quantiles of the law given the same range,
        in ticks.
    """

    family: str
    kolmogorov_smirnov: NotNegative
    kolmogorov_smirnov_p: Share
    anderson_darling: float
    anderson_darling_p: Share
    bootstraps: Annotated[int, at_least(19)]
    rows: Positive
    conversions: Positive
    levels: tuple[Share, ...]
    observed: tuple[float, ...]
    fitted: tuple[float, ...]


class DelaysUnderTest(NamedTuple):
    """Delays that laws are tested on, of all `conversions`: `state` is where the stream is that draws from a law."""

    seen: Observed
    rounding: Rounding
    conversions: int
    state: StreamState

    def sample(self, delay: Ticks) -> TruncatedSample:
        """Return delays under the limits of these, aggregated for fitting."""
        return sample_of(delay, self.seen.limit, rounding=self.rounding)


def delays_under_test(
    delays: ArrayLike, limits: ArrayLike | None, *, rounding: Rounding | None = None, rows: int = ROWS, seed: int = 0
) -> DelaysUnderTest:
    """Return the delays that `goodness_of_fit` tests a law on; delays, limits and rounding are as of `fit_family`.

    Of more than `rows` conversions these are a random subsample of that size: with enough data every simple law is
    rejected, and the question is whether it is off by more than `rows` conversions can show.
    """
    if rows < 1:
        raise ParameterError(f"rows is {rows}.", remedy="at least 1.")
    seen = checked_delays(delays, limits, whole=rounding == "floor")
    if rounding is None:
        rounding = "floor" if seen.delay.dtype == np.int64 else "none"
    rng = seed_stream(seed)
    conversions = seen.delay.size
    if conversions > rows:
        seen = seen.take(rng.choice(conversions, rows, replace=False))
    return DelaysUnderTest(seen, rounding, conversions, state_of(rng))


@dataclass(frozen=True)
class BootstrapsJob(DelayJob):
    """Bootstraps of the goodness of a fit, from one number up to another, counted from 0."""

    of: ClassVar[str] = "bootstraps"

    fit: DelayFit
    first: int
    stop: int

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"Bootstraps {self.first + 1:,} to {self.stop:,} of the goodness of fit"

    @property
    def threads(self) -> bool:
        """Whether fits of the family spend their time in compiled functions.

        Of other laws threads wait for each other: two take 1.5 to 2 times as long as one
        (``python -m tests.bench.delays_fitting``).
        """
        return self.fit.family == "gamma" or self.fit.family.startswith(MIXTURE)

    @property
    def items(self) -> range:
        """Numbers of the bootstraps."""
        return range(self.first, self.stop)

    def compute(self, opened: DelaysUnderTest, item: int) -> tuple[float, float]:
        """Return the two distances of the law that is fitted to delays drawn from the fit."""
        # Every bootstrap draws as many numbers from one stream, one after the other.
        size, limit = opened.seen.delay.size, opened.seen.limit
        drawn = self.fit.draw(stream_from(opened.state, after=item * size), limit, size)
        start = tuple(self.fit.parameters.values())
        return _distances(fit_sample(opened.sample(drawn), self.fit.family, start=start), drawn, limit)


def goodness_of_fit(
    tested: DelaysUnderTest, *, family: str, bootstraps: int = 199, seed: int = 0, workers: DelayWorkers = HERE
) -> GoodnessOfFit:
    """Test a family by Kolmogorov-Smirnov and Anderson-Darling distances under right truncation.

    Given its limit, F(D) / F(L) is uniform when F is the law of the delays, whatever the limits. For rounded delays the
    middle of [F(d), F(d + 1)] takes the place of F(D). p-values by the parametric bootstrap with refitting (Stute,
    Gonzalez Manteiga, Presedo Quindimil 1993): delays are drawn from the fitted law under the same limits, rounded and
    fitted alike, p = (1 + number of distances at least as large) / (bootstraps + 1).

    Costs as many fits as bootstraps, at least 1; the smallest p-value is 1 / (bootstraps + 1). The seed is that of the
    starting points of a mixture. Raises UnknownNameError where there is no such family, and ParameterError where it
    does not allow such delays.
    """
    if bootstraps < 1:
        raise ParameterError(f"bootstraps is {bootstraps}.", remedy="at least 1.")
    delay, limit = tested.seen
    fit = fit_sample(tested.sample(delay), family, seed=seed)
    smirnov, darling = _distances(fit, delay, limit)
    size = _OF_MIXTURES if family.startswith(MIXTURE) else _OF_OTHERS
    jobs = [BootstrapsJob(fit, at, min(at + size, bootstraps)) for at in range(0, bootstraps, size)]
    distances = [pair for results in workers.found(jobs, tested) for pair in results]
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
        conversions=tested.conversions,
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
    comparison, goodness
        Fits of all families, by AIC, and tests of the one with the smallest.
    level, fits
        Anderson-Darling p-value below which no family is said to fit, and whether the best one does.
    verdict
        Sentence for reports that names the family, or says that none fits.
    """

    comparison: FamilyComparison
    goodness: GoodnessOfFit
    level: Level
    fits: bool
    verdict: str


def choose_family(
    sample: TruncatedSample,
    tested: Callable[[], DelaysUnderTest],
    *,
    families: Iterable[str] | None = None,
    bootstraps: int = 199,
    seed: int = 0,
    workers: DelayWorkers = HERE,
) -> FamilyChoice:
    """Name the family with the smallest AIC, its margin, and whether it fits at all.

    Families are fitted to `sample`, and the best is tested on what `tested` returns; other parameters are those of
    `compare_families` and `goodness_of_fit`. With an Anderson-Darling p-value below 5 % the verdict is that none fits.

    >>> delays = np.random.default_rng(0).geometric(0.05, 400) - 1
    >>> named = {"families": ["exponential", "lognormal"], "bootstraps": 39}
    >>> choose_family(sample_of(delays), lambda: delays_under_test(delays, None), **named).verdict
    'exponential fits best (AIC 71.7 below lognormal; Anderson-Darling p = 0.62 with 400 conversions)'
    """
    comparison = compare_families(sample, families=families, seed=seed, workers=workers)
    found = goodness_of_fit(tested(), family=comparison.best, bootstraps=bootstraps, seed=seed, workers=workers)
    fits = found.anderson_darling_p >= _LEVEL
    rival = f"AIC {comparison.margin:,.1f} below {comparison.fits[1].family}; " if len(comparison.fits) > 1 else ""
    evidence = f"{rival}Anderson-Darling p = {found.anderson_darling_p:.2g} with {found.rows:,} conversions"
    verdict = f"{comparison.best} fits best ({evidence})"
    if not fits:
        verdict = f"none fits; {comparison.best} comes nearest ({evidence})"
    return FamilyChoice(comparison=comparison, goodness=found, level=_LEVEL, fits=fits, verdict=verdict)


def choice_in_ticks(choice: FamilyChoice, stamp: int) -> FamilyChoice:
    """Return laws of delays counted in stamps of so many ticks as laws in ticks; the geometric law has none."""
    if stamp == 1:
        return choice
    fits = tuple(fit_in_ticks(fit, stamp) for fit in choice.comparison.fits)
    tested = choice.goodness
    return replace(
        choice,
        comparison=replace(choice.comparison, fits=fits),
        goodness=replace(
            tested,
            observed=tuple(stamp * delay for delay in tested.observed),
            fitted=tuple(stamp * delay for delay in tested.fitted),
        ),
    )


def fit_in_ticks(fit: DelayFit, stamp: int) -> DelayFit:
    """Return one of them: scales times `stamp`, means of log delays plus its logarithm; probabilities stay."""
    factor = np.array([stamp if name in SCALES else 1.0 for name in fit.parameters])
    shift = np.array([math.log(stamp) if name.startswith("mu") else 0.0 for name in fit.parameters])
    values = np.array(list(fit.parameters.values())) * factor + shift
    errors = np.array(list(fit.standard_errors.values())) * factor
    covariance = np.array(fit.covariance) * np.outer(factor, factor)
    longest = fit.longest * stamp
    notes = tuple(beyond_note(longest) if note == beyond_note(fit.longest) else note for note in fit.notes)
    return replace(
        fit,
        parameters=dict(zip(fit.parameters, values.tolist(), strict=True)),
        standard_errors=dict(zip(fit.parameters, errors.tolist(), strict=True)),
        covariance=tuple(map(tuple, covariance.tolist())),
        longest=longest,
        width=fit.width * stamp,
        notes=notes,
    )
