"""From what a pass over the displays left to the tables of a log, in memory or in a canonical folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.log import PropensityKind
from evaluator.log.eligible import Bits, as_one, members, packed, sizes, width
from evaluator.log.schema import ACTION_SET, BATCH, ELIGIBLE, POSITION, uneven_lists
from evaluator.log.schema import COST as OWN_COST
from evaluator.log.schema import WEIGHT as OWN_WEIGHT
from evaluator.log.times import summed
from evaluator.reading.candidate_sets import SET, SetSource
from evaluator.reading.canonical import DisplayWriter, displays_table
from evaluator.reading.contexts import CODE, ContextVectors
from evaluator.reading.intake import ACTION, TIME, Intake
from evaluator.reading.kept_actions import (
    USED,
    KeptPropensities,
    ShownActions,
    by_design,
    check_design,
    choose_actions,
    kept_propensities,
)
from evaluator.reading.labels import KEPT
from evaluator.reading.log_folders import DISPLAYS, part_name
from evaluator.reading.roles import COST, PROPENSITY, WEIGHT
from evaluator.reading.sorting import FILE_ROWS
from evaluator.threads import ahead, in_threads

# Displays of a part of a log: whole row groups, so that parts hold what one file would.
PART_ROWS = FILE_ROWS
# Bytes of the sets of displays that are encoded at a time.
_SET_BYTES = 1 << 26


@dataclass(frozen=True)
class KeptDisplays:
    """The displays that stay when some actions are chosen.

    Parameters
    ----------
    intake
        All sound displays of the source.
    labels
        Labels of the K actions that are kept.
    new_action
        Index of the action among those kept, for each action code of `intake`, shape (codes,); -1 where it is dropped.
    displays
        Number of displays that stay.
    propensities
        Propensities of the displays that stay.
    designed
        Propensity of each action code where the spec states them and displays have sets, shape (codes,): a display's
        are in these proportions among those of its set. None elsewhere.
    """

    intake: Intake
    labels: list[str]
    new_action: npt.NDArray[np.int32]
    displays: int
    propensities: KeptPropensities
    designed: npt.NDArray[np.float64] | None = None

    def kept_labels(self) -> dict[str, pa.Array]:
        """Return the labels of each column of words that the log keeps as it is, by name."""
        return {column: pa.array(found.names, pa.string()) for column, found in self.intake.keep.items()}

    def batches(
        self, first: int = 0, end: int | None = None
    ) -> Iterator[tuple[npt.NDArray[np.bool_], dict[str, Any], pl.Series | None]]:
        """Yield sound displays in order, some at a time: which stay, and the columns and the sets of those that do.

        All of them, or where all stay those from number `first` to before `end`. Where some do not, the others keep
        their numbers among all in `POSITION`, in displays of the traffic.
        """
        traffic = 0.0
        # As Arrow, which tells a whole number that is missing.
        numbers = {KEPT + column for column in self.intake.numbers}
        dropped = {SET, WEIGHT} if self.intake.weighs_alike else {SET}
        for frame in self.intake.spool.frames(first, end):
            for part in frame.iter_slices(_batch_rows(self.intake)):
                columns: dict[str, Any] = {
                    name: part[name].to_arrow() if name in numbers else part[name].to_numpy()
                    for name in part.columns
                    if name not in dropped
                }
                if self.displays < self.intake.sound and part.height:
                    total = summed(traffic, _as_traffic(self.intake, part, self.new_action, len(self.labels)))
                    traffic, columns[POSITION] = float(total[-1]), np.rint(total).astype(np.int64) - 1
                columns[ACTION] = self.new_action[columns[ACTION]]
                stay = columns[ACTION] >= 0
                sets = part[SET] if SET in part.columns else None
                if not stay.all():
                    columns = {
                        name: array.filter(pa.array(stay)) if name in numbers else array[stay]
                        for name, array in columns.items()
                    }
                    sets = None if sets is None else sets.filter(pl.Series(stay))
                yield stay, columns, sets


def choose_displays(
    intake: Intake, wanted: str | Sequence[str] | None, kind: PropensityKind, *, judged_until: int | None
) -> KeptDisplays:
    """Return the displays of the wanted actions; errors as of `choose_actions`, `kind` as of `kept_propensities`.

    Later displays than `judged_until` (ticks; None: of any time) cannot be judged.
    """
    names = intake.labels.names
    shown = intake.shown
    if wanted == USED and judged_until is not None:
        mature = (frame[ACTION].filter(frame[TIME] <= judged_until).to_numpy() for frame in intake.spool.frames())
        shown = sum((np.bincount(action, minlength=len(names)) for action in mature), np.zeros(len(names), np.int64))
    # Among all actions are those that were eligible and never shown: a display's set has them.
    known = intake.offered.astype(np.int64) if wanted is None and intake.sets is not None else shown
    order = choose_actions(names, known, wanted)
    new_action = np.full(len(names), -1, dtype=np.int32)
    new_action[order] = np.arange(len(order), dtype=np.int32)
    displays = int(intake.shown[order].sum())
    design = intake.plan.spec.display.design
    designed = None if design is None else by_design(design, names)
    if designed is not None and intake.sets is None:
        check_design(designed, intake.shown)
    seen = ShownActions(len(names))
    for frame in intake.spool.frames() if kind != "absent" and displays < intake.sound else ():
        propensity, weight = (frame[c].to_numpy() if c in frame.columns else None for c in (PROPENSITY, WEIGHT))
        action = frame[ACTION].to_numpy()
        seen.read(action, propensity if designed is None else designed[action], weight)
    propensities = KeptPropensities(kind)
    if displays < intake.sound:
        choosable = _choosable(intake, new_action, len(order))
        propensities = kept_propensities(kind, seen, np.array(order, np.int64), choosable=choosable)
    if designed is not None and intake.sets is None and propensities.of_action is None:
        propensities = propensities._replace(of_action=designed[order])
    of_sets = designed if intake.sets is not None else None
    return KeptDisplays(intake, [names[i] for i in order], new_action, displays, propensities, of_sets)


def _choosable(intake: Intake, new_action: npt.NDArray[np.int32], n_actions: int) -> float | None:
    """Return the weight of the displays at which a kept action is eligible; None where displays have no sets."""
    if intake.sets is None:
        return None
    parts = (part for frame in intake.spool.frames() for part in frame.iter_slices(_batch_rows(intake)))
    return float(sum(_as_traffic(intake, part, new_action, n_actions).sum() for part in parts))


def _batch_rows(intake: Intake) -> int:
    """Return how many displays are encoded at a time: fewer where there are so many actions that sets are large."""
    size = 0 if intake.sets is None else width(len(intake.labels.names))
    return max(min(BATCH, _SET_BYTES // max(size, 1)), 1)


def _as_traffic(
    intake: Intake, part: pl.DataFrame, new_action: npt.NDArray[np.int32], n_actions: int
) -> npt.NDArray[np.float64]:
    """Return how many displays of the traffic each one stands for: none where no kept action is eligible."""
    of = part[WEIGHT].to_numpy() if WEIGHT in part.columns else np.ones(part.height)
    if intake.sets is None:
        return of
    return np.where(intake.sets.kept(part[SET], new_action, n_actions).bits.any(axis=1), of, 0.0)


def context_vectors(kept: KeptDisplays) -> ContextVectors | None:
    """Return the encoder of the context vectors, or None for a log without context; errors as of `ContextVectors`."""
    codes = kept.intake.codes
    if not codes.features.kinds:
        return None
    return ContextVectors(codes, (columns for _, columns, _ in kept.batches()), kept.displays)


class DisplayNumbers:
    """The numbers that some displays get among those that stay.

    `asked` are their places among the sound displays, shape (n,), which are their numbers where all of them stay.
    """

    def __init__(self, asked: npt.NDArray[np.int64], *, all_stay: bool) -> None:
        self._order = None if all_stay else np.argsort(asked, kind="stable")
        self._asked = asked if self._order is None else asked[self._order]
        self._found = np.full(0 if all_stay else len(asked), -1, dtype=np.int64)
        self._seen = self._given = 0

    def see(self, stay: npt.NDArray[np.bool_]) -> None:
        """Learn which of the next displays stay."""
        if self._order is None:
            return
        low, high = np.searchsorted(self._asked, [self._seen, self._seen + len(stay)])
        place = self._asked[low:high] - self._seen
        self._found[low:high] = np.where(stay[place], (self._given + np.cumsum(stay) - 1)[place], -1)
        self._seen += len(stay)
        self._given += int(stay.sum())

    def found(self) -> npt.NDArray[np.int64]:
        """Return the number of each, -1 where it was dropped."""
        if self._order is None:
            return self._asked
        found = np.empty_like(self._found)
        found[self._order] = self._found
        return found


@dataclass(frozen=True)
class DisplayBatches:
    """The displays that stay, some at a time, as the contract has them: NumPy, or Arrow where sets differ.

    `vectors` gives their context vectors, None without contexts; `numbers` learns the numbers of the displays asked
    for; `uniform` says whether all propensities are 1/K, or one over the size of the display's set.
    """

    kept: KeptDisplays
    vectors: ContextVectors | None
    numbers: DisplayNumbers
    uniform: bool

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield all of them."""
        for stay, columns, sets in self.kept.batches():
            self.numbers.see(stay)
            yield self._batch(columns, sets)

    def between(self, first: int, end: int) -> Iterator[dict[str, Any]]:
        """Yield those from number `first` to before `end`, where all displays stay."""
        for _, columns, sets in self.kept.batches(first, end):
            yield self._batch(columns, sets)

    def _batch(self, columns: dict[str, Any], sets: pl.Series | None) -> dict[str, Any]:
        kept, uniform = self.kept, self.uniform
        per_action = kept.intake.plan.per_action
        targets = {} if per_action is None else per_action.probabilities(columns, kept.labels)
        vectors = None if per_action is None else per_action.action_vectors(columns, kept.labels)
        source = kept.intake.sets
        batch: dict[str, Any] = {"time": columns[TIME], "action": columns[ACTION]}
        if kept.propensities.of_action is not None:
            batch["propensity"] = kept.propensities.of_action[columns[ACTION]]
        elif PROPENSITY in columns:
            batch["propensity"] = columns[PROPENSITY]
        elif uniform and sets is None:
            batch["propensity"] = np.full(len(columns[TIME]), 1 / max(len(kept.labels), 1))
        if source is not None and sets is not None:
            found = source.kept(sets, kept.new_action, len(kept.labels))
            batch[ELIGIBLE] = packed(found.bits)
            if uniform:
                batch["propensity"] = 1.0 / (
                    sizes(found.bits) if kept.propensities.kind == "uniform" else _whole(source, sets, kept)
                )
            if kept.designed is not None:
                batch["propensity"] = _among(kept.designed, source, sets, kept, columns[ACTION])
            if found.vectors is not None:
                batch[ACTION_SET] = uneven_lists(found.vectors, sizes(found.bits))
        if POSITION in columns:
            batch[POSITION] = columns[POSITION]
        if WEIGHT in columns:
            batch[OWN_WEIGHT] = columns[WEIGHT]
        if COST in columns:
            batch[OWN_COST] = columns[COST]
        if self.vectors is not None:
            batch["context"] = self.vectors.build({n: array for n, array in columns.items() if n.startswith(CODE)})
        if vectors is not None:
            batch[ACTION_SET] = vectors
        batch |= {n.removeprefix(KEPT): array for n, array in columns.items() if n.startswith(KEPT)}
        return batch | targets


def _whole(source: SetSource, sets: pl.Series, kept: KeptDisplays) -> npt.NDArray[np.int64]:
    """Return how many actions were eligible at each display, kept or not, shape (n,)."""
    return sizes(_every(source, sets, kept))


def _every(source: SetSource, sets: pl.Series, kept: KeptDisplays) -> Bits:
    """Return which actions were eligible at each display by their codes, kept or not."""
    every = np.arange(len(kept.new_action), dtype=np.int32)
    return source.kept(sets, every, len(every)).bits


def _among(
    designed: npt.NDArray[np.float64], source: SetSource, sets: pl.Series, kept: KeptDisplays,
    action: npt.NDArray[np.int32],
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Return the propensities (n,) of displays' actions: in designed proportions among all that were eligible."""
    stay = kept.new_action >= 0
    own = np.empty(len(kept.labels))
    own[kept.new_action[stay]] = designed[stay]
    begin, code = members(_every(source, sets, kept))
    return own[action] / np.add.reduceat(designed[code], begin[:-1])


def in_memory(batches: Iterator[dict[str, Any]], n: int, labels: Mapping[str, pa.Array]) -> pa.Table:
    """Return `n` displays as one table; `labels` as of `displays_table`."""
    whole: dict[str, Any] = {"time": np.zeros(n, np.int64), "action": np.zeros(n, np.int32)}
    arrow: dict[str, list[pa.Array]] = {}
    first = 0
    for batch in batches:
        for name, array in batch.items():
            if isinstance(array, pa.Array):
                arrow.setdefault(name, []).append(array)
                continue
            if name not in whole:
                whole[name] = np.empty((n, *array.shape[1:]), array.dtype)
            whole[name][first : first + len(array)] = array
        first += len(batch["time"])
    whole |= {name: as_one(pa.chunked_array(chunks)) for name, chunks in arrow.items()}
    return displays_table(whole, labels=labels)


def on_disk(
    batches: Iterator[dict[str, Any]],
    folder: Path,
    labels: Mapping[str, pa.Array],
    *,
    name: str = DISPLAYS,
    number: int = 0,
) -> None:
    """Write displays, from number `number` on, into `folder`; the next ones are made while some are written."""
    none: dict[str, Any] = {"time": np.zeros(0, np.int64), "action": np.zeros(0, np.int32)}
    first = next(batches, none)
    with DisplayWriter(folder, displays_table(first, labels=labels).schema, name) as writer:
        for batch in ahead(chain([first], batches)):
            writer.add(displays_table(batch, first=number, labels=labels))
            number += len(batch["time"])


def write_parts(made: DisplayBatches, folder: Path, jobs: int) -> None:
    """Write displays, all of which stay, into `folder`, in parts of `PART_ROWS` each; few are one file."""
    n, labels = made.kept.displays, made.kept.kept_labels()
    starts = range(0, n, PART_ROWS)
    made.kept.intake.spool.close()

    def write(number: int) -> None:
        first = starts[number]
        name = DISPLAYS if len(starts) == 1 else part_name(number + 1)
        on_disk(made.between(first, min(first + PART_ROWS, n)), folder, labels, name=name, number=first)

    for _ in in_threads(write, range(len(starts)), jobs, ready=jobs):
        pass
