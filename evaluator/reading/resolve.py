"""What a dataset's name means: a bundled spec, a spec file, or a converted folder; and how it is read.

The tables of a spec are found, wherever they lie, and read as one source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import NamedTuple, Unpack

from evaluator.errors import EvaluatorError, SourceError, UnknownNameError, UsageError, nearest, nearest_file
from evaluator.log import Log
from evaluator.options.declaration import shows
from evaluator.options.keywords import ReadingKeywords
from evaluator.reading.adapter import Reading, read_tables
from evaluator.reading.canonical import is_canonical, open_canonical, write_canonical
from evaluator.reading.locate import bundled_logs, bundled_names, needs_spec
from evaluator.reading.log_folders import LogFolder, ObjectFolder, folder_at
from evaluator.reading.options import MADE, ReadingOptions
from evaluator.reading.outcomes import cut_log
from evaluator.reading.reading_plan import check_kept
from evaluator.reading.row_breaches import QUARANTINE
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.files import SourceFile, Staging, find_files, staging
from evaluator.reading.sources.lakes import lake_paths, open_delta, open_iceberg
from evaluator.reading.sources.objects import find_objects
from evaluator.reading.sources.part import TablePart, unchanged
from evaluator.reading.sources.queries import ask
from evaluator.reading.spec import FileSpec, ScenarioSpec, Spec
from evaluator.reading.spec_file import read_spec
from evaluator.reading.spec_sections import Table
from evaluator.store_addresses import as_given, is_address, refuse_secret
from evaluator.worlds.scenarios.problem import delay_files, generate
from evaluator.worlds.scenarios.promotions import generate_promotions
from evaluator.worlds.scenarios.scenario import PromotionsScenario

# Names of columns that say what they hold, the surest first.
_NAMES = {
    "time": (
        "time", "timestamp", "ts", "datetime", "shown_at", "displayed_at", "shown", "impression_time", "event_time",
        "created_at", "date", "t",
    ),
    "action": (
        "action", "arm", "banner", "banner_id", "ad", "ad_id", "variant", "item", "item_id", "campaign", "campaign_id",
        "treatment",
    ),
    "propensity": ("propensity", "propensity_score", "pscore", "probability", "prob"),
    "conversion_time": (
        "conversion_time", "conversion_timestamp", "converted_at", "sold_at", "sold", "purchased_at", "purchase_time",
        "reward_time",
    ),
}  # fmt: skip
_NEEDED = ("time", "action", "conversion_time")
_SHOWN = 8
DISPLAYS, SETS = "source", ("calendar", "candidates")


def names() -> list[str]:
    """Return the names of the bundled datasets, scenarios among them."""
    return sorted(bundled_names())


def spec_path(dataset: str | Path) -> LogFolder:
    """Return the ``spec.toml`` of a dataset, or the folder of a converted one, on disk or in an object store.

    Raises UnknownNameError if no bundled dataset has this name; SourceError if it is the path of a folder that is not
    there, or holds neither a spec nor a converted log, or an address whose store cannot be reached; UsageError if it is
    a frame, or nothing that names a dataset, or an address that holds a secret.
    """
    if not isinstance(dataset, str | PathLike):
        raise no_log(dataset)
    refuse_secret(str(dataset))
    path = folder_at(dataset) if is_address(as_given(dataset)) else Path(dataset)
    if isinstance(path, ObjectFolder):
        return _stored(path)
    bundled = bundled_names()
    if str(dataset) in bundled:
        return bundled[str(dataset)]
    if not str(dataset):  # not the working folder, as Path would have it
        raise UnknownNameError("No dataset ''.", remedy="name a bundled dataset, a spec.toml or a converted folder.")
    if path.suffix == ".toml" or (path.is_dir() and is_canonical(path)):
        return path
    if path.is_dir() and (path / "spec.toml").is_file():
        return path / "spec.toml"
    if unread := needs_spec(dataset):
        raise unread
    if path.is_dir():
        raise SourceError(f"{dataset} holds no spec.toml and no converted log.", remedy="name the folder of one.")
    names = "name a bundled dataset, a spec.toml or a converted folder."
    if re.search(r"[/\\]", str(dataset)):
        raise SourceError(f"{dataset}: no such folder.", remedy=nearest_file(path, names))
    if str(dataset) in MADE:
        raise UnknownNameError(
            f"No dataset {str(dataset)!r} here.", remedy=f"make it: evaluate datasets make {dataset} -o {dataset}."
        )
    near = nearest(str(dataset), bundled, listed=bundled_logs())
    near = near if near.startswith("did you") else nearest_file(path, near)
    raise UnknownNameError(
        f"No dataset {str(dataset)!r}.",
        remedy=f"{near} `evaluate datasets list` names all; a path to a spec.toml or to a converted folder works too.",
    )


def _stored(folder: ObjectFolder) -> ObjectFolder:
    """Return a folder of an object store, if it is a converted log."""
    if is_canonical(folder):
        return folder
    if folder.name.endswith(".toml"):
        raise SourceError(
            f"{folder}: a spec is read from disk, whose files may be in an object store.", remedy="copy it here."
        )
    what = "holds no converted log" if folder.objects else "there is nothing"
    raise SourceError(f"{folder}: {what}.", remedy="name the folder that `evaluate datasets convert` wrote there.")


def dataset_spec(dataset: str | Path) -> Spec | None:
    """Return the spec of a dataset; None for a converted folder."""
    return _spec_at(spec_path(dataset))


def _spec_at(where: LogFolder) -> Spec | None:
    return None if isinstance(where, ObjectFolder) or where.is_dir() else read_spec(where)


def sources(dataset: str | Path, *, path: str | Path | None = None) -> list[Path]:
    """Return what `read` reads on disk: files, or the folder of a converted log.

    Raises SourceError if files of the dataset are missing.
    """
    where = spec_path(dataset)
    if isinstance(where, ObjectFolder):
        return []
    spec = _spec_at(where)
    if isinstance(spec, FileSpec):
        return [where, *files_read(spec, where.parent, override=path)]
    return [where, *(delay_files(spec.scenario, where.parent) if isinstance(spec, ScenarioSpec) else [])]


@shows(ReadingOptions)
def read(
    dataset: str | Path,
    *,
    into: Path | None = None,
    contexts: bool = True,
    advance: Callable[[int], None] = lambda rows: None,
    jobs: int = 1,
    **options: Unpack[ReadingKeywords],
) -> Reading:
    """Return the log of a dataset and the rows left out of it.

    Parameters
    ----------
    dataset
        Name of the dataset, as in `evaluator.datasets.load`.
    into, contexts, advance, jobs
        Destination and extent of reading, as in `evaluator.reading.resolve.read_spec_tables`.
    **options
        See below.
    """
    asked = ReadingOptions(**options)
    where = spec_path(dataset)
    reading_rules = {
        name: getattr(asked, name) for name in ("features", "deduplicate", "attributed_only", "sort", "path")
    }
    spec = _spec_at(where)
    if isinstance(spec, FileSpec):
        assert isinstance(where, Path)
        if asked.seed is not None:
            raise UsageError(
                f"seed={asked.seed}, but {spec.name} is read from files.", remedy="seed goes with synthetic datasets."
            )
        if asked.sampling_rate is not None:
            spec = spec.model_copy(update={"log": spec.log.model_copy(update={"sampling_rate": asked.sampling_rate})})
        _refuse_queries(spec, where, asked, written=into is not None)
        return read_spec_tables(spec, where.parent, asked, into=into, contexts=contexts, advance=advance, jobs=jobs)
    if isinstance(spec, ScenarioSpec):
        assert isinstance(where, Path)
        _refuse({**reading_rules, "actions": asked.actions}, f"the synthetic dataset {spec.name}")
        log = _drawn(spec, displays=asked.limit, seed=asked.seed, folder=where.parent)
    else:
        _refuse({**reading_rules, "seed": asked.seed}, "a converted dataset: apply it when converting")
        log = open_canonical(where, limit=asked.limit, actions=asked.actions)
    if asked.sampling_rate is not None:
        log = log.with_meta(sampling_rate=asked.sampling_rate)
    if asked.attribution_window is not None:
        log = cut_log(log, asked.attribution_window)
    check_kept(log, asked.keep)
    if into is not None:
        write_canonical(log, into)
        log = open_canonical(into)
    import polars as pl

    return Reading(log, pl.DataFrame(schema=QUARANTINE).to_arrow())


def _refuse_queries(spec: FileSpec, where: Path, asked: ReadingOptions, *, written: bool) -> None:
    """Refuse a log that a database answers with unless it is written: the next answer may be another one."""
    asking = queries(spec)
    if asking and not written:
        raise UsageError(
            f"{where}: [{asking[0]}] is a query, whose rows may be others the next time: only `convert`, `validate` "
            "and `show` read it.",
            remedy=f"convert it first: evaluate datasets convert {quote(str(where))} {quote(spec.name)}-log.",
        )
    if asking and asked.path is not None and spec.source.files is None:
        raise UsageError(
            f"`path` names other files than the spec, where [source] of {spec.name} is a query.", remedy="leave it out."
        )


def _drawn(spec: ScenarioSpec, *, displays: int | None, seed: int | None, folder: Path) -> Log:
    """Return a log drawn from a scenario."""
    scenario = spec.scenario
    if isinstance(scenario, PromotionsScenario):
        return generate_promotions(scenario, displays=displays, seed=seed, name=spec.name, folder=folder)
    return generate(scenario, displays=displays, seed=seed, name=spec.name, folder=folder)


def _refuse(options: dict[str, object], dataset: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"`{name}` does not apply to {dataset}.", remedy="leave it out.")


def no_log(given: object) -> UsageError:
    """Return the error that says how what is given becomes a log; of a frame, with the columns that its names tell.

    >>> import pyarrow
    >>> print(no_log(pyarrow.table({"shown_at": [1], "Banner": ["red"], "gain": [2]})).remedy)
    write Log.from_frames(frame, time='shown_at', action='Banner', conversion_time=...); columns: shown_at, Banner, gain
    """
    kind = type(given)
    lazy = hasattr(given, "collect")
    if not (lazy or hasattr(given, "__arrow_c_stream__")):
        return UsageError(
            f"A {kind.__name__} is no log.",
            remedy="give a Log, the name of a dataset, the path of a spec.toml or of a converted folder; of a frame of "
            "polars, pandas or pyarrow, Log.from_frames makes one.",
        )
    named = getattr(given, "column_names", getattr(given, "columns", ())) if not lazy else ()
    names = [str(name) for name in named]
    roles = ", ".join(f"{role}={column}" for role, column in _guessed(names).items())
    shown = f"{', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"
    said = f"; columns: {shown}" if shown and "=..." in roles else ""
    library = kind.__module__.partition(".")[0].removeprefix("_")
    return UsageError(
        f"A {kind.__name__} of {library} is no log yet: it does not say which columns are times and actions.",
        remedy=f"write Log.from_frames(frame{'.collect()' if lazy else ''}, {roles}){said}",
    )


def _guessed(names: list[str]) -> dict[str, str]:
    """Return each role with its column, as Python writes it; ``...`` where one is needed and no name tells."""
    known = {name.lower(): name for name in reversed(names)}
    found = {}
    for role, usual in _NAMES.items():
        column = next((known[name] for name in usual if name in known), None)
        if column is not None or role in _NEEDED:
            found[role] = "..." if column is None else repr(column)
    return found


def read_spec_tables(
    spec: FileSpec,
    folder: Path,
    asked: ReadingOptions,
    *,
    into: Path | None,
    contexts: bool,
    advance: Callable[[int], None],
    jobs: int = 1,
) -> Reading:
    """Return the log in the tables of a spec, which is in `folder`.

    Files take neither `seed` nor `sampling_rate` from `asked`. `into` is an existing folder that gets the canonical
    form of the log. Its displays then never are in memory; conversions, rows left out and one-hot labels are. None
    keeps all in memory. With `contexts`, context vectors become part of the log; they are checked in any case.
    `advance` is called with the number of rows read since the last call, and `jobs` threads write the displays in parts
    (`into`).
    """
    with staging(into) as place:
        with Databases() if queries(spec) else nullcontext() as databases:
            parts = {}
            for name, of in spec_tables(spec).items():
                # What is read in place of the displays' table is so for others that lie there, too.
                override = asked.path if of.table.place == spec.source.place else None
                parts[name] = find_parts(of, folder, staging=place, databases=databases, override=override)
        whole = [part for of in parts.values() for part in of]
        displays = parts.pop(DISPLAYS)
        of_sets = next((parts.pop(name) for name in SETS if name in parts), [])
        try:
            with unchanged(whole):
                return read_tables(
                    spec, displays, parts, of_sets, asked, into=into, contexts=contexts, advance=advance,
                    jobs=jobs,
                )  # fmt: skip
        except EvaluatorError as error:
            raise type(error)(_by_name(error.what, whole), remedy=_by_name(error.remedy, whole)) from None


def queries(spec: FileSpec) -> list[str]:
    """Return the names of those tables of a spec that a database answers with, as its sections are called."""
    return [of.section for of in spec_tables(spec).values() if of.table.database is not None]


def _by_name(message: str, parts: Sequence[TablePart]) -> str:
    """Return a message that calls copies by the name of what they are copies of."""
    for part in parts:
        if isinstance(part, SourceFile) and part.name != str(part.path):
            message = message.replace(str(part.path), part.name)
    return message


def files_read(spec: FileSpec, folder: Path, *, override: str | Path | None = None) -> list[Path]:
    """Return the files and tables on disk that a spec's log is read from; `override` as of `ReadingOptions.path`."""
    found: list[Path] = []
    for of in spec_tables(spec).values():
        given = override if of.table.place == spec.source.place else None
        if of.table.is_on_disk if given is None else not is_address(str(given)):
            found += [file.path for file in find_files(of.table, folder, override=given)]
        else:
            found += lake_paths(of.table, folder)
    return found


def find_parts(
    of: SpecTable, folder: Path, *, staging: Staging, databases: Databases | None, override: str | Path | None = None
) -> list[TablePart]:
    """Return the parts of a table, in the order of their rows.

    Paths are relative to `folder`; an `override`, path, glob or folder to read instead, is relative to the working
    folder, or the address of objects. What cannot be read in place is copied to `staging`. Raises SourceError if there
    is no such table, or if it cannot be reached.
    """
    table = of.table
    if override is None and table.delta is not None:
        return [open_delta(table, folder, key=of.key)]
    if override is None and table.iceberg is not None:
        return [open_iceberg(table, folder, key=of.key)]
    if table.database is not None:
        assert databases is not None
        return [ask(table, of.section, key=of.key, staging=staging, databases=databases)]
    named = str(override) if override is not None else table.files or ""
    if is_address(named):
        return find_objects(table, named, staging)
    return [*find_files(table, folder, override=override)]


class SpecTable(NamedTuple):
    """A table of a spec.

    The object store of a `table` is that of the displays unless it has one; its `key` are the columns that identify a
    row, as far as the spec tells; `section` is the name of its section.
    """

    table: Table
    key: tuple[str, ...]
    section: str


def spec_tables(spec: FileSpec) -> dict[str, SpecTable]:
    """Return the tables of a spec: `DISPLAYS`, those of events (``conversion``, ``outcomes.NAME``), one of `SETS`.

    And those of targets (``target.NAME.source``).
    """
    found: dict[str, SpecTable] = {}
    found[DISPLAYS] = SpecTable(spec.source, tuple(filter(None, [spec.display.id])), DISPLAYS)
    for name, of in spec.events().items():
        if of.source is not None:
            found[name] = SpecTable(of.source, (*of.source.joined, *of.key), f"{name}.source")
    for name, policy in ({} if spec.target is None else spec.target.named).items():
        if policy.source is not None:
            section = f"target.{name}.source"
            found[section] = SpecTable(policy.source, (policy.source.display,), section)
    if spec.calendar is not None:
        found["calendar"] = SpecTable(spec.calendar, (spec.calendar.action,), "calendar")
    if spec.candidates is not None:
        key = (spec.candidates.display, spec.candidates.action)
        found["candidates"] = SpecTable(spec.candidates, key, "candidates")
    return {name: of._replace(table=_with_storage(of.table, spec.source)) for name, of in found.items()}


def _with_storage(table: Table, displays: Table) -> Table:
    return table if table.storage is not None else table.model_copy(update={"storage": displays.storage})
