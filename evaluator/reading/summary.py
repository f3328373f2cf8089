"""Facts about a dataset and its eligible sets, for the command line."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.errors import SourceError
from evaluator.log import EventKind, Log
from evaluator.log.eligible import EligibleByPart, distinct_bits, members, packed
from evaluator.log.reward_kinds import extremes, has_costs
from evaluator.log.schema import ACTION_SET, COST, ELIGIBLE, kept_columns, to_numpy
from evaluator.options.keywords import ReadingKeywords
from evaluator.outputs.staging import writing
from evaluator.reading.canonical import Reading, open_canonical, remarks, verify
from evaluator.reading.facts import (
    NAMED,
    TOP,
    ActionFacts,
    CostFacts,
    DatasetFacts,
    DatasetKind,
    DatasetList,
    DatasetRow,
    DelayQuantiles,
    LogFacts,
    NamedActions,
    OutcomeFacts,
    PromotionsFacts,
    QuantileName,
    RefundFacts,
    SetFacts,
    SpecFacts,
    Validation,
)
from evaluator.reading.resolve import dataset_spec, names, read, spec_path
from evaluator.reading.sources.files import find_files
from evaluator.reading.spec import FileSpec, ScenarioSpec, Spec
from evaluator.store_addresses import is_address
from evaluator.worlds.scenarios.promotions import true_values
from evaluator.worlds.scenarios.scenario import PromotionsScenario

Ints = npt.NDArray[np.int64]

QUANTILES: dict[QuantileName, float] = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}
# An action is hardly ever eligible at less than this share of the displays.
HARDLY = 1e-3


def bundled() -> DatasetList:
    """Return the bundled datasets."""

    def row(spec: Spec) -> DatasetRow:
        kind: DatasetKind = "synthetic"
        if isinstance(spec, FileSpec):
            kind = "your own copy of the files" if spec.twin is None else "evaluate datasets make"
        return DatasetRow(name=spec.name, title=spec.title, licence=spec.licence, kind=kind)

    return DatasetList(tuple(row(spec) for spec in map(dataset_spec, names()) if spec is not None))


def show(dataset: str | Path, **options: Unpack[ReadingKeywords]) -> dict[str, Any]:
    """Return facts about a dataset as a JSON document.

    Parameters
    ----------
    dataset, **options
        Name or path of the dataset, and options of reading, as in `evaluator.datasets.load`.

    Returns
    -------
    dict
        Facts by name, as `evaluator.reading.facts.DatasetFacts` has them: ``name``, ``spec`` (what the spec says, None
        for a converted folder), and ``log``; None where the files are absent, with ``missing`` saying so. For a log of
        promotions also ``truth``: what each way to choose them brings a display on average, as
        `evaluator.worlds.scenarios.promotions.true_values` says.

    Raises
    ------
    OutputError
        The folder of temporary files is full.
    """
    where = spec_path(dataset)
    spec = dataset_spec(dataset)
    name = spec.name if spec else where.name
    said = None if spec is None else spec.model_dump(mode="json", exclude_none=True, by_alias=True)
    path = options.get("path")
    beside = where.parent if isinstance(where, Path) else Path()  # of what a store holds there is no spec
    if isinstance(spec, FileSpec) and (spec.source.is_on_disk if path is None else not is_address(str(path))):
        try:
            find_files(spec.source, beside, override=path)
        except SourceError as error:
            # Only an absent file leaves the facts of the spec alone; one given by the caller must be there.
            if path is not None or not str(error).startswith("No file matches"):
                raise
            made = f" Or make it: evaluate datasets make {spec.name} -o {spec.source.files}" if spec.twin else ""
            return SpecFacts(name=name, spec=said or {}, missing=f"{error}{made}").to_dict()
    if isinstance(spec, FileSpec):  # however large: nothing of its displays stays in memory
        with TemporaryDirectory(prefix="evaluate-") as folder, writing(Path(folder)):
            facts = log_facts(read(dataset, into=Path(folder), **options).log)
            return DatasetFacts(name=name, spec=said, log=facts).to_dict()
    log = open_canonical(where) if spec is None and not options else read(dataset, **options).log
    facts = log_facts(log)
    if isinstance(spec, ScenarioSpec) and isinstance(spec.scenario, PromotionsScenario):
        truth = tuple(true_values(spec.scenario, log, beside))
        return PromotionsFacts(name=name, spec=said, log=facts, truth=truth).to_dict()
    if spec is None:
        facts = replace(facts, notes=(*facts.notes, *remarks(where)))
    return DatasetFacts(name=name, spec=said, log=facts).to_dict()


def validate(dataset: str | Path, **options: Unpack[ReadingKeywords]) -> dict[str, Any]:
    """Return whether a dataset is sound as a JSON document, or raise what is wrong with it.

    Of a converted folder every byte is checked. Files of any size need little memory, and about 15 bytes a display in
    the folder of temporary files.

    Parameters
    ----------
    dataset, **options
        Name or path of the dataset, and options of reading, as in `evaluator.datasets.load`. With
        ``on_error="quarantine"``, ``ok`` is false if rows were left out.

    Returns
    -------
    dict
        ``ok``, ``name``, ``counts``, ``notes`` and ``eligible``, as `evaluator.reading.facts.Validation` has them.

    Raises
    ------
    OutputError
        The folder of temporary files is full.
    """
    spec = dataset_spec(dataset)
    if isinstance(spec, FileSpec):
        with TemporaryDirectory(prefix="evaluate-") as folder, writing(Path(folder)):
            return _verdict(read(dataset, into=Path(folder), contexts=False, **options), [])
    notes = verify(spec_path(dataset)) if spec is None else []
    reading = read(dataset, **options)
    if spec is None:
        reading.log.validated()
    return _verdict(reading, notes)


def _verdict(reading: Reading, notes: list[str]) -> dict[str, Any]:
    log = reading.log
    return Validation(
        ok=reading.quarantine.num_rows == 0,
        name=log.meta.name,
        counts=dict(log.meta.counts),
        eligible=set_facts(log),
        notes=tuple(notes),
    ).to_dict()


def log_facts(log: Log) -> LogFacts:
    """Return the facts of a log: counts, rate, times and delays in ticks.

    Memory: some numbers an event, and the displays of a batch.
    """
    outcomes = [log.of_outcome(outcome.name).conversions for outcome in log.meta.outcomes]
    events = [_Events(of) for of in (log.conversions, *outcomes)]
    passed = _pass_over(log, events)
    rewards = events[0]
    of, value = rewards.display, rewards.value
    counted = [of for one, of in zip(log.meta.outcomes, events[1:], strict=True) if one.reward]
    shown, converted = passed.shown, np.bincount(rewards.action, minlength=log.n_actions)
    top = np.argsort(-shown, kind="stable")[:TOP]
    return LogFacts(
        displays=len(log),
        conversions=len(of),
        conversions_per_display=len(of) / len(log),
        reward_per_display=float(value.sum() + sum(of.value.sum() for of in counted)) / len(log),
        actions=log.n_actions,
        tick=log.meta.tick,
        time_range=(passed.first, passed.last),
        observed_until=log.meta.observed_until,
        attribution_window=log.meta.attribution_window,
        propensity=log.meta.propensity,
        refunds=_refunds(of, value, len(log)),
        costs=passed.costs,
        delay_quantiles=_delay_quantiles(rewards.delay[value >= 0.0]),
        outcomes=tuple(_outcome_facts(log, *of) for of in zip(log.meta.outcomes, events[1:], strict=True)),
        top_actions=tuple(
            ActionFacts(label=log.labels[k], displays=int(shown[k]), conversions=int(converted[k])) for k in top
        ),
        context_dimensions=log.schema.field("context").type.list_size if "context" in log.schema.names else None,
        action_vector_dimensions=_action_vector_dimensions(log),
        kept_columns=tuple(kept_columns(log.schema.names)),
        eligible=set_facts(log),
        counts=dict(log.meta.counts),
        fingerprint=log.meta.fingerprint,
        notes=tuple(log.meta.notes),
    )


class _Events:
    """Events of one kind and, once the displays have gone by, when and with which action theirs was shown."""

    def __init__(self, table: pa.Table) -> None:
        self.display: Ints = to_numpy(table["display_id"]).astype(np.int64)
        self.time: Ints = to_numpy(table["time"]).astype(np.int64)
        self.value: npt.NDArray[np.float64] = to_numpy(table["value"]).astype(np.float64)
        self.shown, self.action = np.zeros((2, len(self.display)), np.int64)

    def see(self, first: int, time: Ints, action: Ints) -> None:
        """Look at the next displays, from number `first` on."""
        low, high = np.searchsorted(self.display, [first, first + len(time)])
        at = self.display[low:high] - first
        self.shown[low:high], self.action[low:high] = time[at], action[at]

    @property
    def delay(self) -> Ints:
        """Ticks from each event's display to the event, shape (n,)."""
        return self.time - self.shown


class _Passed(NamedTuple):
    """What one pass over the displays finds: first and last time, displays by action (K,), and facts about costs."""

    first: int
    last: int
    shown: Ints
    costs: CostFacts | None


def _pass_over(log: Log, events: Sequence[_Events]) -> _Passed:
    """Read the displays once, and let the events see them."""
    ends: list[int] = []
    shown = np.zeros(log.n_actions, np.int64)
    total, least, most = 0.0, np.inf, -np.inf
    with_costs = has_costs(log)
    for first, batch in log.batches(["time", "action", *[COST] * with_costs]):
        time, action = batch["time"].astype(np.int64), batch["action"].astype(np.int64)
        ends = [ends[0] if ends else int(time[0]), int(time[-1])]
        shown += np.bincount(action, minlength=log.n_actions)
        for of in events:
            of.see(first, time, action)
        if with_costs:
            cost = batch[COST]
            total, least, most = total + float(cost.sum()), min(least, cost.min()), max(most, cost.max())
    costs = CostFacts(per_display=total / len(log), smallest=float(least), largest=float(most))
    return _Passed(ends[0], ends[-1], shown, costs if with_costs else None)


def _action_vector_dimensions(log: Log) -> int | None:
    """Return the number d of values that a display has about each action, or None if it has none."""
    if ACTION_SET not in log.schema.names:
        return None
    of_display = log.schema.field(ACTION_SET).type
    dimensions: int = of_display.value_type.list_size
    return dimensions


def _refunds(of: npt.NDArray[np.int64], value: npt.NDArray[np.float64], displays: int) -> RefundFacts | None:
    """Return facts about conversions below 0, None without."""
    back = value < 0.0
    if not back.any():
        return None
    smallest = float(extremes(of, value)[1].min())
    of_all = float(value[back].sum()) / displays
    return RefundFacts(conversions=int(back.sum()), per_display=of_all, smallest=smallest)


def _outcome_facts(log: Log, outcome: EventKind, events: _Events) -> OutcomeFacts:
    """Return the facts of a kind of events beside the conversions."""
    return OutcomeFacts(
        name=outcome.name,
        events=len(events.display),
        value_per_display=float(events.value.sum()) / len(log),
        reward=outcome.reward,
        told=outcome.told,
        observed_until=outcome.observed_until,
        attribution_window=outcome.attribution_window,
        value_max=outcome.value_max,
        delay_quantiles=_delay_quantiles(events.delay),
    )


def _delay_quantiles(delay: npt.NDArray[np.int64]) -> DelayQuantiles:
    return {name: float(np.quantile(delay, q)) for name, q in QUANTILES.items()} if len(delay) else {}


def set_facts(log: Log) -> SetFacts | None:
    """Return how the sets of a log vary, None where every action always is eligible.

    One pass. Memory: 8 bytes for each distinct set, and some numbers for each action; a set that repeats within a batch
    is looked at once.
    """
    if ELIGIBLE not in log.schema.names:
        return None
    n, k = len(log), log.n_actions
    seen: set[bytes] = set()
    by_part, logged = EligibleByPart(n, k), np.zeros(k, np.int64)
    total, smallest, largest, changes = 0, k, 0, 0
    before = b""
    for start, batch in log.batches([ELIGIBLE, "action"]):
        sets = packed(batch[ELIGIBLE])
        bits, of = distinct_bits(sets), sets.indices.to_numpy()
        seen.update(hashlib.blake2b(row, digest_size=8).digest() for row in sets.dictionary.to_pylist())
        displays = np.bincount(of, minlength=len(bits))
        begin, action = members(bits)
        size = np.diff(begin)
        by_part.add(start, of, begin, action)
        logged += np.bincount(batch["action"], minlength=k)
        total += int((size * displays).sum())
        smallest, largest = min(smallest, int(size.min())), max(largest, int(size.max()))
        changes += int((np.diff(of) != 0).sum()) + (before not in (b"", sets.dictionary[int(of[0])].as_py()))
        before = sets.dictionary[int(of[-1])].as_py()
    offered = by_part.displays
    return SetFacts(
        distinct=len(seen),
        mean=total / n,
        smallest=smallest,
        largest=largest,
        changes=changes,
        vary="never" if len(seen) == 1 else "with time" if by_part.moving() >= 0 else "otherwise",
        never_eligible=_named(log, offered == 0),
        never_logged=_named(log, (offered > 0) & (logged == 0)),
        hardly_eligible=_named(log, (offered > 0) & (offered < HARDLY * n)),
    )


def _named(log: Log, which: Any) -> NamedActions:
    found = np.flatnonzero(which)
    labels = log.labels
    return NamedActions(count=len(found), labels=tuple(labels[i] for i in found[:NAMED].tolist()))
