"""From the tables of a spec, files or frames, to a `Log`, in memory or on disk, in one pass over them.

source -> chunks -> (sorted by time) -> checked and reduced -> set aside -> numbered, encoded -> log
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from evaluator.errors import LogError
from evaluator.log import Log
from evaluator.log.encoder import ContextEncoder
from evaluator.log.fingerprint import content_hash
from evaluator.log.log_tables import CONVERSION, EventKind, LogMeta, mark_kind
from evaluator.reading.assembly import (
    DisplayBatches,
    DisplayNumbers,
    choose_displays,
    context_vectors,
    in_memory,
    on_disk,
    write_parts,
)
from evaluator.reading.candidate_sets import SetSource
from evaluator.reading.canonical import Reading, open_canonical, write_rest
from evaluator.reading.event_rows import REWARDS, EventRules
from evaluator.reading.frames import missing_values
from evaluator.reading.intake import TIME, Intake
from evaluator.reading.join_by_id import SecondTable, repeated
from evaluator.reading.kept_actions import KeptPropensities
from evaluator.reading.options import ReadingOptions
from evaluator.reading.outcomes import Outcomes, event_table, find_outcomes
from evaluator.reading.per_action_columns import PolicyActions, policy_actions
from evaluator.reading.reading_plan import ReadingPlan, plan_reading
from evaluator.reading.row_breaches import FILE, LINE, Breaches
from evaluator.reading.row_rules import left_out_note, refuse_many
from evaluator.reading.set_readers import find_sets, set_breaches
from evaluator.reading.sorting import SPOOL, Spool, spools
from evaluator.reading.sources.part import TablePart
from evaluator.reading.spec import FileSpec

# Rows whose display was listed before, of a first pass, which knows of none.
_NONE = pl.DataFrame(schema={"row": pl.Int64, FILE: pl.Int32, LINE: pl.Int64})
# How often, and after how many seconds, a folder is removed again that others write in.
_TRIES, _PAUSE = 100, 0.1


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

    Arguments are as of `evaluator.reading.spec_tables.read_spec_tables`. `others` are the tables of events and targets
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
    meta = _log_meta(
        spec,
        counts=counts,
        kinds=kinds,
        notes=[
            *plan.notes,
            *(note for table in seconds.values() for note in table.notes),
            *of_events,
            *filter(None, [passed_over, left_out_note(breaches, by_outcome)]),
        ],
        propensities=kept.propensities,
        encoder=None if vectors is None else vectors.encoder(lambda column: missing_values(spec.source, column)),
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


def _log_meta(
    spec: FileSpec,
    *,
    counts: Mapping[str, float],
    kinds: Sequence[EventKind],
    notes: Sequence[str] = (),
    propensities: KeptPropensities,
    encoder: ContextEncoder | None = None,
) -> LogMeta:
    """Return the metadata of a log read by `spec`.

    The conversions are first among the `kinds`, which say how long they were followed. `encoder` says how context
    columns became vectors, None for a log without.
    """
    notes = [*spec.notes, *_design_note(spec), *notes, *propensities.notes]
    return LogMeta(
        name=spec.name,
        tick=spec.tick,
        observed_until=kinds[0].observed_until,
        attribution_window=kinds[0].attribution_window,
        propensity=propensities.kind,
        reward_max=kinds[0].value_max,
        reward_min=kinds[0].value_min,
        objective=spec.log.objective,
        sampling_rate=spec.log.sampling_rate,
        kept_share=propensities.kept_share,
        counts=dict(counts),
        notes=tuple(notes),
        encoder=encoder,
        outcomes=tuple(kinds[1:]),
        timezone=spec.time.zone_of(spec.display.time) if spec.time.unit == "datetime" else None,
        deployment=spec.deployment.asked,
    )
