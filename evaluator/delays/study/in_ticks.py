"""Laws that were fitted in the stamps of a log, said in its ticks: no unit of time changes what is found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evaluator.delays.fitted_law import DelayFit
from evaluator.delays.study.fitting import beyond_note
from evaluator.delays.study.goodness import FamilyChoice

# Parameters that are delays.
SCALES = ("scale", "mean", "minimum")


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
