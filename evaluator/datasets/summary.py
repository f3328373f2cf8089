"""Facts about a dataset, for the command line."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from evaluator.datasets.adapter import Reading
from evaluator.datasets.canonical import open_canonical, remarks, verify
from evaluator.datasets.files import find_files
from evaluator.datasets.promotions.promotion_scenario import PromotionsScenario
from evaluator.datasets.promotions.true_values import true_values
from evaluator.datasets.resolve import dataset_spec, read, spec_path
from evaluator.datasets.set_facts import set_facts
from evaluator.datasets.spec import FileSpec, ScenarioSpec, Spec
from evaluator.errors import SourceError
from evaluator.log import Log, Outcome
from evaluator.log.costs import has_costs
from evaluator.log.running_sums import extremes
from evaluator.log.schema import ACTION_SET, COST, kept_columns, to_numpy
from evaluator.options.keywords import ReadingKeywords
from evaluator.outputs.failures import writing

QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.99)
TOP = 10


def show(dataset: str | Path, **options: Unpack[ReadingKeywords]) -> dict[str, Any]:
    """Return facts about a dataset as a plain dict.

    Parameters
    ----------
    dataset, **options
        Name or path of the dataset, and options of reading, as in `evaluator.datasets.load`.

    Returns
    -------
    dict
        Facts by name: ``name``, ``spec`` (what the spec says, None for a converted folder), and ``log``: displays,
        conversions, rate, actions, time range, delay quantiles, most shown actions, how the sets of eligible actions
        vary, and counts; None where the files are absent, with ``missing`` saying so. For a log of promotions also
        ``truth``: what each way to choose them brings a display on average, as
        `evaluator.datasets.promotions.true_values.true_values` says.
    """
    where = spec_path(dataset)
    spec = dataset_spec(dataset)
    facts: dict[str, Any] = {"name": spec.name if spec else where.name, "spec": _spec_facts(spec), "log": None}
    if isinstance(spec, FileSpec):
        try:
            find_files(spec.source, where.parent, override=options.get("path"))
        except SourceError as error:
            # Only an absent file leaves the facts of the spec alone; one given by the caller must be there.
            if options.get("path") is not None or not str(error).startswith("No file matches"):
                raise
            made = f" Or make it: evaluate datasets make {spec.name} -o {spec.source.files}" if spec.twin else ""
            return {**facts, "missing": f"{error}{made}"}
    log = open_canonical(where) if spec is None and not options else read(dataset, **options).log
    facts["log"] = log_facts(log)
    if isinstance(spec, ScenarioSpec) and isinstance(spec.scenario, PromotionsScenario):
        facts["truth"] = true_values(spec.scenario, log, where.parent)
    if spec is None:
        facts["log"]["notes"] += remarks(where)
    return facts


def validate(dataset: str | Path, **options: Unpack[ReadingKeywords]) -> dict[str, Any]:
    """Return whether a dataset is sound, with its ``name``, ``counts`` and ``notes``, or raise what is wrong with it.

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
        ``ok``, ``name``, ``counts``, ``notes``, and ``eligible``: how the sets of eligible actions vary, None where all
        actions always are.

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
    return {
        "ok": reading.quarantine.num_rows == 0,
        "name": log.meta.name,
        "counts": dict(log.meta.counts),
        "eligible": set_facts(log),
        "notes": notes,
    }


def log_facts(log: Log) -> dict[str, Any]:
    """Return the facts of a log: counts, rate, times and delays in ticks."""
    time = log.column("time").astype(np.int64)
    of = to_numpy(log.conversions["display_id"]).astype(np.int64)
    when = to_numpy(log.conversions["time"]).astype(np.int64)
    value = to_numpy(log.conversions["value"]).astype(np.float64)
    delay = (when - time[of])[value >= 0.0]
    action = log.column("action").astype(np.int64)
    shown = np.bincount(action, minlength=log.n_actions)
    converted = np.bincount(action[of], minlength=log.n_actions)
    top = np.argsort(-shown, kind="stable")[:TOP]
    return {
        "displays": len(log),
        "conversions": len(of),
        "conversions_per_display": len(of) / len(log),
        "reward_per_display": float(value.sum()) / len(log),
        "actions": log.n_actions,
        "tick": log.meta.tick,
        "time_range": [int(time[0]), int(time[-1])],
        "observed_until": log.meta.observed_until,
        "attribution_window": log.meta.attribution_window,
        "propensity": log.meta.propensity,
        "refunds": _refunds(of, value, len(log)),
        "costs": _costs(log),
        "delay_quantiles": _delay_quantiles(delay),
        "outcomes": [_outcome_facts(log, outcome, time) for outcome in log.meta.outcomes],
        "top_actions": [
            {"label": log.labels[k], "displays": int(shown[k]), "conversions": int(converted[k])} for k in top
        ],
        "context_dimensions": log.schema.field("context").type.list_size if "context" in log.schema.names else None,
        "action_vector_dimensions": _action_vector_dimensions(log),
        "kept_columns": kept_columns(log.schema.names),
        "eligible": set_facts(log),
        "counts": dict(log.meta.counts),
        "fingerprint": log.meta.fingerprint,
        "notes": list(log.meta.notes),
    }


def _action_vector_dimensions(log: Log) -> int | None:
    """Return the d numbers that a display has about each action, None where it has none."""
    if ACTION_SET not in log.schema.names:
        return None
    of_display = log.schema.field(ACTION_SET).type
    dimensions: int = of_display.value_type.list_size
    return dimensions


def _refunds(of: npt.NDArray[np.int64], value: npt.NDArray[np.float64], displays: int) -> dict[str, float | int] | None:
    """Return facts about conversions below 0, None without."""
    back = value < 0.0
    if not back.any():
        return None
    smallest = float(extremes(of, value)[1].min())
    return {"conversions": int(back.sum()), "per_display": float(value[back].sum()) / displays, "smallest": smallest}


def _costs(log: Log) -> dict[str, float] | None:
    """Return facts about what displays cost, None where the log does not say."""
    if not has_costs(log):
        return None
    cost = log.column(COST)
    return {"per_display": float(cost.mean()), "smallest": float(cost.min()), "largest": float(cost.max())}


def _outcome_facts(log: Log, outcome: Outcome, shown: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the facts of a kind of events beside the conversions; `shown` are the times of the displays."""
    events = log.of_outcome(outcome.name).conversions
    of, when, value = (to_numpy(events[name]) for name in ("display_id", "time", "value"))
    return {
        "name": outcome.name,
        "events": len(of),
        "value_per_display": float(value.sum()) / len(log),
        "observed_until": outcome.observed_until,
        "attribution_window": outcome.attribution_window,
        "value_max": outcome.value_max,
        "delay_quantiles": _delay_quantiles(when - shown[of]),
    }


def _delay_quantiles(delay: npt.NDArray[np.int64]) -> dict[str, float]:
    return {f"p{q * 100:g}": float(np.quantile(delay, q)) for q in QUANTILES} if len(delay) else {}


def _spec_facts(spec: Spec | None) -> dict[str, Any] | None:
    return None if spec is None else spec.model_dump(mode="json", exclude_none=True, by_alias=True)
