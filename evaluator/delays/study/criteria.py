"""Which family of delay laws a log speaks for, by information criteria."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from numpy.typing import ArrayLike

from evaluator.delays.families import FAMILIES
from evaluator.delays.fitted_law import DelayFit, Rounding
from evaluator.delays.study.delay_jobs import HERE, DelayJob, DelayWorkers
from evaluator.delays.study.fitting import fit_sample, inapplicable
from evaluator.delays.study.likelihood import TruncatedSample, sample_of
from evaluator.errors import ParameterError
from evaluator.results.json_documents import several


@dataclass(frozen=True)
class FamilyComparison:
    """Fits of several families to one sample (`compare_families`).

    Parameters
    ----------
    fits
        Fits of the families in order of AIC, best first.
    best
        Name of the family with the smallest AIC.
    margin
        Difference of its AIC to the next one above it; inf if alone. Below about 2 the two are hardly told apart
        (Burnham, Anderson 2002, Section 2.6).
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


def compare_families(
    delays: ArrayLike,
    limits: ArrayLike | None = None,
    *,
    families: Iterable[str] | None = None,
    rounding: Rounding | None = None,
    seed: int = 0,
) -> FamilyComparison:
    """Return the fits of families, ordered by AIC (Akaike 1974).

    Parameters
    ----------
    delays, limits, rounding, seed
        Delays and limits, shape (n,), in ticks, and options, as for `evaluator.delays.study.fitting.fit_family`.
    families
        Names of the families to fit; None takes all. Families that cannot have brought forth such delays are skipped,
        with the reason; so is the geometric law where it is the exponential one (rounded down delays from 0 on).

    Raises
    ------
    DataError
        There are no delays, or impossible ones.
    ParameterError
        No family is left to fit.
    UnknownNameError
        There is no such family.

    Examples
    --------
    >>> comparison = compare_families([1, 4, 2, 30, 0, 7], families=["exponential", "lomax", "pareto"])
    >>> comparison.best, comparison.skipped
    ('exponential', {'pareto': 'a Pareto delay is never 0 (lomax is the Pareto law from 0 on)'})
    """
    return compare_sample(sample_of(delays, limits, rounding=rounding), families=families, seed=seed)


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


def compare_sample(
    sample: TruncatedSample, *, families: Iterable[str] | None = None, seed: int = 0, workers: DelayWorkers = HERE
) -> FamilyComparison:
    """Return what `compare_families` returns, from an aggregated sample, fitted by some workers."""
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
