"""What the displays of a log are made of, once all of a source is known, as plain values that workers assemble by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluator.datasets.actions import KeptPropensities, by_design
from evaluator.datasets.assembly import DisplayBatches, DisplayNumbers, KeptDisplays
from evaluator.datasets.contexts import ContextVectors
from evaluator.datasets.metadata import propensity_kind
from evaluator.datasets.reading_plan import ReadingPlan
from evaluator.datasets.spool import MemorySpool
from evaluator.datasets.stretches.taken import Taken
from evaluator.datasets.stretches.taken_files import TakenFiles, as_files

# Labels of a column in the order of their dimensions; None stands for a missing one.
OneHot = tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class Assembly:
    """The displays of a log, all of which stay.

    Parameters
    ----------
    taken
        What passes over stretches of the source found, in their order.
    labels
        Labels of the K actions.
    new_action
        Index of the action of each action code, shape (codes,).
    one_hot
        Labels of each one-hot column of the context; None where the log gets no contexts.
    scales
        Mean and deviation of each number of the context that is scaled.
    """

    taken: tuple[TakenFiles, ...]
    labels: tuple[str, ...]
    new_action: npt.NDArray[np.int32]
    one_hot: OneHot | None
    scales: tuple[tuple[str, tuple[float, float]], ...] = ()


def assembly_of(made: DisplayBatches, taken: Sequence[Taken]) -> Assembly:
    """Return what some displays are made of, which passes over stretches set aside in files."""
    kept, vectors = made.kept, made.vectors
    return Assembly(
        taken=tuple(as_files(one, Path()) for one in taken),
        labels=tuple(kept.labels),
        new_action=kept.new_action,
        one_hot=None if vectors is None else tuple(vectors.one_hot.items()),
        scales=() if vectors is None else tuple(vectors.scales.items()),
    )


def assembled(plan: ReadingPlan, assembly: Assembly) -> DisplayBatches:
    """Return the displays that are made so."""
    whole = plan.intake(MemorySpool, {})
    whole.join_displays([one.displays_alone() for one in assembly.taken])
    kind = propensity_kind(plan.spec)
    labels, design = list(assembly.labels), plan.spec.display.design
    propensities = KeptPropensities(kind, None if design is None else by_design(design, labels))
    kept = KeptDisplays(whole, labels, assembly.new_action, whole.sound, propensities)
    one_hot = assembly.one_hot
    vectors = None if one_hot is None else ContextVectors.known(whole.codes, dict(one_hot), dict(assembly.scales))
    return DisplayBatches(kept, vectors, DisplayNumbers(np.zeros(0, np.int64)), uniform=kind == "uniform")
