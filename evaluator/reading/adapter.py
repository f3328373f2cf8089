"""From the tables of a spec, files or frames, to a `Log`, in memory or on disk, in one pass over them.

source -> chunks -> (sorted by time) -> checked and reduced -> set aside -> numbered, encoded -> log
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.errors import LogError
from evaluator.log import Log, PropensityKind
from evaluator.log.eligible import Bits, as_one, members, packed, sizes, width
from evaluator.log.fingerprint import content_hash
from evaluator.log.log_tables import CONVERSION, LogMeta, mark_kind
from evaluator.log.schema import ACTION_SET, BATCH, ELIGIBLE, POSITION, uneven_lists
from evaluator.log.schema import COST as OWN_COST
from evaluator.log.schema import WEIGHT as OWN_WEIGHT
from evaluator.log.times import summed
from evaluator.reading.candidate_sets import SET, SetSource, find_sets, set_breaches
from evaluator.reading.canonical import DisplayWriter, Reading, displays_table, open_canonical, write_rest
from evaluator.reading.contexts import CODE, ContextVectors
from evaluator.reading.event_rows import REWARDS, EventRules
from evaluator.reading.frames import missing_values
from evaluator.reading.intake import ACTION, TIME, Intake
from evaluator.reading.join_by_id import SecondTable, repeated
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
from evaluator.reading.options import ReadingOptions
from evaluator.reading.outcomes import Outcomes, event_table, find_outcomes
from evaluator.reading.per_action_columns import PolicyActions, policy_actions
from evaluator.reading.reading_plan import ReadingPlan, plan_reading
from evaluator.reading.roles import COST, PROPENSITY, WEIGHT
from evaluator.reading.row_breaches import FILE, LINE, Breaches
from evaluator.reading.row_rules import left_out_note, refuse_many
from evaluator.reading.sorting import FILE_ROWS, SPOOL, Spool, spools
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec
from evaluator.threads import ahead, in_threads

# Rows whose display was listed before, of a first pass, which knows of none.
_NONE = pl.DataFrame(schema={"row": pl.Int64, FILE: pl.Int32, LINE: pl.Int64})
# How often, and after how many seconds, a folder is removed again that others write in.
_TRIES, _PAUSE = 100, 0.1
# Displays of a part of a log: whole row groups, so that parts hold what one file would.
PART_ROWS = FILE_ROWS
# Bytes of the sets of displays that are encoded at a time.
_SET_BYTES = 1 << 26


def read_tables(
    spec: FileSpec,
    tables: Sequence[TablePart],
    others: Mapping[str, Sequence[TablePart]],
    of_sets: Sequence[TablePart],
    asked: ReadingOptions,
    *,
    into: Path | None = None,
    contexts: bool = True,
    advance: Callable[[int], None] = lambda rows: None,
    jobs: int = 1,
) -> Reading:
    """Return the log in some tables, whatever holds them.

    Arguments are as of `evaluator.reading.spec_tables.read_file_spec`. `others` are the tables of events and targets
    by the spec's name, `of_sets` those of the calendar or the candidates. With several `jobs`, threads write the log in
    parts, where all displays stay.
    """
    plan = plan_reading(spec, tables, others, of_sets, asked)
    with _waiting_room(into) as new_spool:
        seconds = {
            rules.table: SecondTable(
                rules, plan.spec.time, plan.others[rules.table], plan.zones, listed=plan.listed, new_spool=new_spool
            )
            for rules in plan.events
            if rules.table in plan.others
        }
        sets = find_sets(plan.spec, plan.of_sets, plan.zones, listed=plan.listed) if plan.spec.sets else None
        of_targets = {} if plan.per_action is None else policy_actions(plan.spec, plan.others)
        intake = _take_in(plan, seconds, sets, of_targets, new_spool, advance)
        log, quarantine = _finish(plan, intake, seconds, into=into, contexts=contexts, jobs=jobs)
    # Verified when nothing of its making is in memory any more.
    return Reading(open_canonical(log) if isinstance(log, Path) else log, quarantine)


@contextmanager
def _waiting_room(into: Path | None) -> Iterator[Callable[[], Spool]]:
    """Give what makes spools, in a folder inside `into` that vanishes when all is read, or in memory."""
    if into is None:
        yield spools(None)
        return
    folder = into / SPOOL
    folder.mkdir()
    try:
        yield spools(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a folder in which abandoned workers may still write; none of them can begin a file in it anew."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)
    shutil.rmtree(folder)


def _take_in(
    plan: ReadingPlan,
    seconds: Mapping[str, SecondTable],
    sets: SetSource | None,
    tables: Mapping[str, PolicyActions],
    new_spool: Callable[[], Spool],
    advance: Callable[[int], None],
) -> Intake:
    """Pass over the displays; again if an id is repeated."""
    chunks = plan.chunks(new_spool)

    def one_pass(again: pl.DataFrame = _NONE) -> Intake:
        ids = {table: second.display_ids() for table, second in seconds.items()}
        intake = Intake(plan, new_spool, ids, sets=sets, tables=tables, repeated=again)
        intake.see(chunks(), advance)
        return intake

    intake = one_pass()
    of_id = plan.spec.display.id
    if of_id is None or intake.ids is None or len(suspects := intake.ids.suspects()) == 0:
        return intake
    again = repeated((chunk.select(of_id, FILE, LINE) for chunk in chunks()), of_id, suspects)
    if again.height == 0:
        return intake
    intake.discard()
    return one_pass(again)


def _finish(
    plan: ReadingPlan,
    intake: Intake,
    seconds: Mapping[str, SecondTable],
    *,
    into: Path | None,
    contexts: bool,
    jobs: int,
) -> tuple[Log | Path, pa.Table]:
    """Return the log, or the folder that it was written into, and the rows left out."""
    spec, breaches = plan.spec, [intake.breaches]
    passed_over = plan.passed_over_note()
    if intake.rows == 0:
        header = " below the header" if plan.files[0].is_text else ""
        more = f" {passed_over}" if passed_over else ""
        raise LogError(f"{plan.files[0].name}: the log is empty, no rows{header}.{more}", remedy="check the export.")
    plan.zones.refuse_mixture()
    if not plan.listed:
        intake.breaches.refuse()
    if intake.sets is not None:
        breaches += set_breaches(intake.sets, limited=plan.limit is not None, listed=plan.listed)
    counts: dict[str, float] = {"rows_read": intake.rows, "quarantined": 0}
    if passed_over:
        counts["lines_passed_over"] = sum(of.total() for of in plan.passed_over.values())
    found = intake.found()
    for number, table in enumerate(rules.table for rules in plan.events):
        if table in seconds:
            found[number] = iter([seconds[table].named(pl.concat(found[number]), intake.display_ids[table])])
    if REWARDS in seconds:
        # A display that the second table names counts as one with a conversion.
        first = pl.concat(found[0])
        found[0] = iter([first])
        named = int((~first["sound"]).sum()), int(first["sound"].sum())
        others = intake.breaches.rows - named[0], intake.rows - intake.breaches.rows - named[1]
        intake.left_out.rows += np.array([others, named]).T
        del first
    by_outcome = intake.left_out.refuse(intake.breaches, plan.most_left_out) if plan.listed else ""
    if by_outcome:
        counts["quarantined_by_outcome"] = intake.breaches.rows
    counted = []
    for rules in plan.events:
        events, said = _count_events(plan, intake, rules, seconds.get(rules.table), found.pop(0), breaches)
        counted.append(events)
        counts |= {} if rules.kind.name else said
    outcomes = counted[0]
    counts["quarantined"] = sum(b.rows for b in breaches)
    kept = choose_displays(intake, plan.asked.actions, spec.logged_propensities, judged_until=outcomes.judged_until)
    if intake.ties.sharing:
        counts["ties_shuffled" if spec.time.ties == "shuffle" else "ties_in_file_order"] = intake.ties.sharing
    counts["displays_dropped_by_actions"] = intake.sound - kept.displays
    counts["share_of_displays_kept"] = kept.displays / intake.sound if intake.sound else 0.0
    vectors = context_vectors(kept)
    all_stay = kept.displays == intake.sound
    numbers = DisplayNumbers(np.concatenate([of.events["display"].to_numpy() for of in counted]), all_stay=all_stay)
    waiting = [of.events.select("time", "value") for of in counted]
    kinds, of_events = [of.kind for of in counted], [note for of in counted for note in of.notes]
    converted = outcomes.events.height
    del counted, outcomes, events
    made = DisplayBatches(kept, vectors if contexts else None, numbers, uniform=spec.logged_propensities == "uniform")
    if into is None:
        displays = in_memory(made.all(), kept.displays, kept.kept_labels())
    elif jobs > 1 and all_stay:
        write_parts(made, into, jobs)
    else:
        on_disk(made.all(), into, kept.kept_labels())
    every = event_table([kind.name for kind in kinds], waiting, numbers.found())
    conversions = int(mark_kind(every, CONVERSION).sum())
    counts["conversions_dropped_by_actions"] = converted - conversions
    counts |= {"displays": kept.displays, "conversions": conversions}
    counts |= {"events_of_other_outcomes": every.num_rows - conversions} if spec.outcomes else {}
    k = len(kept.labels)
    tables = {
        "events": every,
        "actions": pa.table({"action": pa.array(range(k), pa.int32()), "label": pa.array(kept.labels, pa.string())}),
    }
    notes = (
        *spec.notes,
        *_design_note(spec),
        *plan.notes,
        *(note for table in seconds.values() for note in table.notes),
        *of_events,
        *filter(None, [passed_over, left_out_note(breaches, by_outcome)]),
        *kept.propensities.notes,
    )
    meta = LogMeta(
        name=spec.name,
        tick=spec.tick,
        observed_until=kinds[0].observed_until,
        attribution_window=kinds[0].attribution_window,
        propensity=kept.propensities.kind,
        reward_max=kinds[0].value_max,
        reward_min=kinds[0].value_min,
        objective=spec.log.objective,
        sampling_rate=spec.log.sampling_rate,
        kept_share=kept.propensities.kept_share,
        counts=counts,
        notes=notes,
        encoder=None if vectors is None else vectors.encoder(lambda column: missing_values(spec.source, column)),
        outcomes=tuple(kinds[1:]),
        timezone=spec.time.zone_of(spec.display.time) if spec.time.unit == "datetime" else None,
        deployment=spec.deployment.asked,
    )
    quarantine = pl.concat([b.table() for b in breaches]).to_arrow()
    if into is None:
        log = Log(displays=displays, meta=meta, **tables).validated()
        return log.with_meta(fingerprint=content_hash(log)), quarantine
    write_rest(into, meta=meta, quarantine=quarantine, **tables)
    return into, quarantine


def _count_events(
    plan: ReadingPlan,
    intake: Intake,
    rules: EventRules,
    second: SecondTable | None,
    found: Iterator[pl.DataFrame],
    breaches: list[Breaches],
) -> tuple[Outcomes, dict[str, float]]:
    """Return the events of a kind that count, and what was counted on the way; adds to `breaches`."""
    counts: dict[str, float] = {}
    beyond = 0
    if second is not None:
        table, beyond = second.converted(pl.concat(found), limited=plan.limit is not None)
        breaches.append(second.breaches)
        if plan.limit is not None:
            counts["conversion_rows_beyond_limit"] = beyond
        if not plan.listed:
            second.breaches.refuse()
        refuse_many(second.breaches.rows, second.rows, second.breaches, plan.most_left_out, f"rows of {rules.word}s")
        sound = table if table["sound"].all() else table.filter("sound")
        found = iter([sound])
    counts["conversion_rows_of_quarantined"] = 0 if second is None else table.height - sound.height
    intake.order.refuse()
    late = Breaches(plan.others.get(rules.table, plan.files), listed=plan.listed)
    events = find_outcomes(
        found, plan.spec, rules, late,
        times=lambda: (frame[TIME].to_numpy() for frame in intake.spool.frames()),
        last=intake.last_time, window=None if rules.kind.name else plan.asked.attribution_window, without=beyond,
    )  # fmt: skip
    if not plan.listed:
        late.refuse()
    refuse_many(late.rows, events.rows, late, plan.most_left_out, f"{rules.word}s")
    breaches.append(late)
    return events, counts | events.counts


def _design_note(spec: FileSpec) -> list[str]:
    """Return the sentence that tells a reader that propensities were stated, not logged; none where they were not."""
    design = spec.display.design
    if design is None:
        return []
    each = [f"{label} {p:g}" for label, p in design.items()] if isinstance(design, dict) else [f"{design:g} each"]
    more = f" and {len(each) - 8} more" if len(each) > 8 else ""
    return [f"Propensities are those that the spec states, by design: {', '.join(each[:8])}{more}."]


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
                # Of the actions that were eligible, kept or not, unless the propensities are those of the kept ones.
                bits = found.bits if kept.propensities.kind == "uniform" else _every(source, sets, kept)
                batch["propensity"] = 1.0 / sizes(bits)
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
