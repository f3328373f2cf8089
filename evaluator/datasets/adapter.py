"""From the tables of a spec, files or frames, to a `Log`, in memory or on disk, in one pass over them.

source -> chunks -> (sorted by time) -> checked and reduced -> set aside -> numbered, encoded -> log
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from evaluator.datasets.action_vectors import vector_columns
from evaluator.datasets.assembly import (
    DisplayBatches,
    DisplayNumbers,
    choose_displays,
    context_vectors,
    in_memory,
    in_parts,
    on_disk,
)
from evaluator.datasets.attribution import asked_window
from evaluator.datasets.canonical import open_canonical
from evaluator.datasets.cells import Kind, merged_kinds
from evaluator.datasets.contexts import ContextCodes
from evaluator.datasets.conversions import event_columns
from evaluator.datasets.event_kinds import REWARDS, EventKind, event_kinds
from evaluator.datasets.event_tables import event_tables
from evaluator.datasets.features import Features, choose_features
from evaluator.datasets.frames import Chunks, missing_values, number_columns
from evaluator.datasets.identity import SeenIds, repeated
from evaluator.datasets.intake import TIME, Intake
from evaluator.datasets.joined_intake import DisplayFiles, joined_intake
from evaluator.datasets.joined_spool import JoinedSpool
from evaluator.datasets.keeping import columns_to_keep
from evaluator.datasets.labels import Labels
from evaluator.datasets.left_out import left_out_note, refuse_many
from evaluator.datasets.metadata import log_meta, propensity_kind, tick_of
from evaluator.datasets.options import ReadingOptions, share_of
from evaluator.datasets.outcomes import Outcomes, find_outcomes
from evaluator.datasets.row_breaches import Breaches
from evaluator.datasets.row_rules import TimeOrder
from evaluator.datasets.second_table import SecondTable
from evaluator.datasets.set_readers import find_sets, set_breaches
from evaluator.datasets.set_sources import SetSource
from evaluator.datasets.shuffled_ties import whole_ties
from evaluator.datasets.sorting import SortedChunks
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spool import Spool, spools
from evaluator.datasets.target import target_columns
from evaluator.datasets.writing import write_rest
from evaluator.errors import LogError
from evaluator.log import Log, Outcome

# Of a first pass, which knows of no id that an earlier display has.
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Reading:
    """A log and what was left out of it.

    Parameters
    ----------
    log
        The log that was read.
    quarantine
        Breaches of the rows left out, one a line: file, line (row for Parquet and IPC), column, value, problem.
    """

    log: Log
    quarantine: pa.Table


def read_tables(
    spec: FileSpec,
    tables: Sequence[TablePart],
    others: Mapping[str, Sequence[TablePart]],
    of_sets: Sequence[TablePart],
    asked: ReadingOptions,
    *,
    into: Path | None,
    contexts: bool,
    advance: Callable[[int], None],
    fingerprint: Callable[[], str],
    jobs: int = 1,
) -> Reading:
    """Return the log in some tables, whatever holds them.

    Parameters
    ----------
    spec, asked, into, contexts, advance, jobs
        Spec, options, folder, and the rest, as `evaluator.datasets.opening.read_spec_tables` takes them.
    tables, others, of_sets
        Tables of the displays, of each kind of events that has its own, by the spec's name of the kind, and of the
        calendar or the candidates.
    fingerprint
        Function that gives the hash of the tables, once they are read.
    """
    events = event_kinds(spec, asked.deduplicate, asked.attributed_only)
    asked_window(asked.attribution_window, tick_of(spec))
    plan = _Plan(
        spec=spec,
        events=events,
        features=choose_features(spec, asked.features),
        files=list(tables),
        target=target_columns(spec, tables),
        vectors=vector_columns(spec, tables),
        others={table: list(of) for table, of in others.items()},
        of_sets=list(of_sets),
        limit=asked.limit,
        sort=spec.source.sort if asked.sort is None else asked.sort,
        attribution_window=asked.attribution_window,
        listed=asked.on_error == "quarantine",
        most_left_out=share_of(asked.quarantine_at_most),
        kept=columns_to_keep(spec, asked.keep),
        fingerprint=fingerprint,
        jobs=1 if into is None else jobs,
    )
    with _waiting_room(into) as new_spool:
        seconds = {
            kind.table: SecondTable(kind, spec.time, plan.others[kind.table], listed=plan.listed, new_spool=new_spool)
            for kind in events
            if kind.table in plan.others
        }
        intake = _take_in(plan, seconds, find_sets(spec, plan.of_sets, listed=plan.listed), new_spool, advance)
        log, quarantine = _finish(plan, intake, seconds, asked.actions, into=into, contexts=contexts)
    # Verified when nothing of its making is in memory any more.
    return Reading(open_canonical(log) if isinstance(log, Path) else log, quarantine)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is read, and how."""

    spec: FileSpec
    events: list[EventKind]
    features: Features
    files: list[TablePart]
    others: Mapping[str, list[TablePart]]
    of_sets: list[TablePart]
    target: dict[str, str]
    vectors: list[dict[str, str]]
    limit: int | None
    sort: bool
    attribution_window: str | int | None
    listed: bool
    most_left_out: float
    kept: dict[str, str]
    fingerprint: Callable[[], str]
    jobs: int

    @property
    def in_stretches(self) -> bool:
        """Whether several stretches of time are read at once: what is left out of a log, or beyond its end, is not."""
        return self.jobs > 1 and len(self.files) > 1 and not self.listed and self.limit is None

    @property
    def notes(self) -> list[str]:
        """What the log must say of where its rows are from."""
        parts = [*self.files, *(part for of in self.others.values() for part in of), *self.of_sets]
        return list(dict.fromkeys(part.note for part in parts if part.note is not None))


@contextmanager
def _waiting_room(into: Path | None) -> Iterator[Callable[[], Spool]]:
    """Give what makes spools, in a folder inside `into` that vanishes when all is read, or in memory."""
    if into is None:
        yield spools(None)
        return
    folder = into / "spool"
    folder.mkdir()
    try:
        yield spools(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _take_in(
    plan: _Plan,
    seconds: Mapping[str, SecondTable],
    sets: SetSource | None,
    new_spool: Callable[[], Spool],
    advance: Callable[[int], None],
) -> Intake:
    """Pass over the displays, at once over stretches of time where there are; again if an id is repeated."""
    spec = plan.spec
    wide = [name for of in (plan.target, *plan.vectors) for name in of.values()]
    kinds = merged_kinds(_display_kinds(spec, plan.features), dict.fromkeys(wide, "float"))
    for kind in plan.events:
        kinds = kinds if kind.table in seconds else merged_kinds(kinds, event_columns(kind, spec.time))
    # What has another role, too, is kept as text, but for numbers of the context.
    free = [c for c in plan.kept.values() if c not in kinds or plan.features.kinds.get(c) == "number"]
    numbers = number_columns(plan.files, spec.source, free)
    kinds = {**dict.fromkeys(plan.kept.values(), "category"), **numbers, **kinds}

    def read(limit: int | None) -> Iterable[pl.DataFrame]:
        # Sorting needs every row before the first n are known.
        found = Chunks(
            plan.files, spec.source, kinds, None if plan.sort else limit, spec.time, spec.display.eligible_separator
        )
        return SortedChunks(found, spec.display.time, limit, new_spool) if plan.sort else found

    # Which displays of one time are the first n is known when all of them are.
    whole = plan.limit is not None and spec.time.ties == "shuffle"
    all_rows = read(None if whole else plan.limit)

    def chunks() -> Iterable[pl.DataFrame]:
        if plan.limit is None or not whole:
            return all_rows
        return whole_ties((lambda limit: all_rows) if plan.sort else read, spec.display.time, plan.limit)

    def new(ids: SeenIds | None = None, before: int = 0, again: npt.NDArray[np.int64] = _NONE) -> Intake:
        return Intake(
            spec=spec,
            kinds=kinds,
            breaches=Breaches(plan.files, listed=plan.listed),
            order=TimeOrder(plan.files, spec.display.time),
            codes=ContextCodes(plan.features),
            events=plan.events,
            seconds=seconds,
            sets=sets,
            repeated=again,
            target=plan.target,
            vectors=plan.vectors,
            spool=new_spool(),
            kept=plan.kept,
            keep={name: Labels() for name, column in plan.kept.items() if column not in numbers},
            numbers=tuple(name for name, column in plan.kept.items() if column in numbers),
            limit=plan.limit,
            before=before,
            ids=ids,
        )

    def one_pass(ids: SeenIds | None = None, again: npt.NDArray[np.int64] = _NONE) -> Intake:
        for second in seconds.values():
            second.begin()
        intake = new(ids, again=again)
        intake.see(chunks(), advance)
        return intake

    if plan.in_stretches and sets is None:
        source = DisplayFiles(plan.files, spec, kinds, new_spool)
        for second in seconds.values():
            second.begin()
        if (joined := joined_intake(source, new, sort=plan.sort, jobs=plan.jobs, advance=advance)) is not None:
            return joined
    intake = one_pass(ids := SeenIds(new_spool))
    suspects = ids.suspects()
    if spec.display.id is None or len(suspects) == 0:
        return intake
    again = repeated((chunk[spec.display.id] for chunk in chunks()), suspects)
    if len(again) == 0:
        return intake
    intake.spool.discard()
    return one_pass(again=again)


def _finish(
    plan: _Plan,
    intake: Intake,
    seconds: Mapping[str, SecondTable],
    actions: str | Sequence[str] | None,
    *,
    into: Path | None,
    contexts: bool,
) -> tuple[Log | Path, pa.Table]:
    """Return the log, or the folder that it was written into, and the rows left out."""
    spec, breaches = plan.spec, [intake.breaches]
    if intake.rows == 0:
        header = " below the header" if plan.files[0].is_text else ""
        raise LogError(f"{plan.files[0].name}: the log is empty, no rows{header}.", hint="check the export.")
    if not plan.listed:
        intake.breaches.refuse()
    breaches += set_breaches(intake.sets, limited=plan.limit is not None, listed=plan.listed)
    counts: dict[str, float] = {"rows_read": intake.rows, "quarantined": 0}
    found = intake.found()
    if REWARDS in seconds:
        # A display that the second table names counts as one with a conversion.
        named = int((~found[0]["sound"]).sum()), int(found[0]["sound"].sum())
        others = intake.breaches.rows - named[0], intake.rows - intake.breaches.rows - named[1]
        intake.left_out.rows += np.array([others, named]).T
    by_outcome = intake.left_out.refuse(intake.breaches, plan.most_left_out) if plan.listed else ""
    if by_outcome:
        counts["quarantined_by_outcome"] = intake.breaches.rows
    counted = []
    for kind in plan.events:
        events, said = _count_events(plan, intake, kind, seconds.get(kind.table), found.pop(0), breaches)
        counted.append(events)
        counts |= {} if kind.outcome else said
    outcomes = counted[0]
    counts["quarantined"] = sum(b.rows for b in breaches)
    kept = choose_displays(intake, actions, propensity_kind(spec), judged_until=outcomes.judged_until)
    if intake.ties.sharing:
        counts["ties_shuffled" if spec.time.ties == "shuffle" else "ties_in_file_order"] = intake.ties.sharing
    counts["displays_dropped_by_actions"] = intake.sound - kept.displays
    counts["share_of_displays_kept"] = kept.displays / intake.sound if intake.sound else 0.0
    vectors = context_vectors(kept)
    numbers = DisplayNumbers(np.concatenate([of.events["display"].to_numpy() for of in counted]))
    made = DisplayBatches(kept, vectors if contexts else None, numbers, uniform=propensity_kind(spec) == "uniform")
    if into is None:
        displays = in_memory(made.all(), kept.displays, kept.kept_labels())
    elif isinstance(intake.spool, JoinedSpool) and kept.displays == intake.sound:
        in_parts(made, intake.spool, into, jobs=plan.jobs)
    else:
        on_disk(made.all(), into, kept.kept_labels())
    conversions, others = event_tables(plan.events, counted, numbers.found())
    counts["conversions_dropped_by_actions"] = outcomes.events.height - conversions.num_rows
    counts |= {"displays": kept.displays, "conversions": conversions.num_rows}
    counts |= {"events_of_other_outcomes": others.num_rows} if spec.outcomes else {}
    k = len(kept.labels)
    tables = {
        "conversions": conversions,
        "actions": pa.table({"action": pa.array(range(k), pa.int32()), "label": pa.array(kept.labels, pa.string())}),
        "outcomes": others,
    }
    meta = log_meta(
        spec,
        counts=counts,
        fingerprint=plan.fingerprint(),
        observed_until=outcomes.observed_until,
        attribution_window=outcomes.attribution_window,
        notes=[*plan.notes, *outcomes.notes, *filter(None, [left_out_note(breaches, by_outcome)])],
        propensities=kept.propensities,
        outcomes=[
            Outcome(
                name=kind.outcome,
                attribution_window=of.attribution_window,
                observed_until=of.observed_until,
                value_max=kind.most,
            )
            for kind, of in zip(plan.events[1:], counted[1:], strict=True)
        ],
        encoder=None if vectors is None else vectors.encoder(lambda column: missing_values(spec.source, column)),
    )
    quarantine = pl.concat([b.table() for b in breaches]).to_arrow()
    if into is None:
        return Log(displays=displays, meta=meta, **tables).validated(), quarantine
    write_rest(into, meta=meta, quarantine=quarantine, **tables)
    return into, quarantine


def _count_events(
    plan: _Plan,
    intake: Intake,
    kind: EventKind,
    second: SecondTable | None,
    found: pl.DataFrame,
    breaches: list[Breaches],
) -> tuple[Outcomes, dict[str, float]]:
    """Return the events of a kind that count, and what was counted on the way; adds to `breaches`."""
    counts: dict[str, float] = {}
    if second is not None:
        found, beyond = second.converted(found, limited=plan.limit is not None)
        breaches.append(second.breaches)
        if plan.limit is not None:
            counts["conversion_rows_beyond_limit"] = beyond
        if not plan.listed:
            second.breaches.refuse()
        refuse_many(second.breaches.rows, second.rows, second.breaches, plan.most_left_out, f"rows of {kind.word}s")
    sound = found if second is None or found["sound"].all() else found.filter("sound")
    counts["conversion_rows_of_quarantined"] = found.height - sound.height
    intake.order.refuse()
    late = Breaches(plan.others.get(kind.table, plan.files), listed=plan.listed)
    events = find_outcomes(
        sound, plan.spec, kind, late,
        times=lambda: (frame[TIME].to_numpy() for frame in intake.spool.frames()),
        last=intake.last_time, window=None if kind.outcome else plan.attribution_window,
    )  # fmt: skip
    if not plan.listed:
        late.refuse()
    refuse_many(late.rows, sound.height, late, plan.most_left_out, f"{kind.word}s")
    breaches.append(late)
    return events, counts | events.counts


def _display_kinds(spec: FileSpec, features: Features) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {c: "float" if kind == "number" else "category" for c, kind in features.kinds.items()}
    roles: list[tuple[str | None, Kind]] = [
        (spec.display.time, "datetime" if spec.time.unit == "datetime" else "int"),
        (spec.display.action, "category"),
        (spec.display.propensity, "float"),
        (spec.display.weight, "float"),
        (spec.display.cost, "float"),
        (spec.display.id, "text"),
        (spec.display.eligible, "labels"),
    ]
    for column, kind in roles:
        if column is not None:
            kinds = merged_kinds(kinds, {column: kind})
    return kinds
