"""What a dataset's name means: a bundled spec, a spec file, or a converted folder; and how it is read.

What reads a spec, its files and its scenario is loaded when there is one: a converted log needs none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from evaluator.errors import SourceError, UnknownNameError, UsageError, nearest, nearest_file
from evaluator.log import Log
from evaluator.options.declaration import shows
from evaluator.options.keywords import ReadingKeywords
from evaluator.reading.canonical import Reading, is_canonical, open_canonical, write_canonical
from evaluator.reading.locate import bundled_logs, bundled_names, needs_spec
from evaluator.reading.log_folders import LogFolder, ObjectFolder, folder_at
from evaluator.reading.options import MADE, ReadingOptions
from evaluator.store_addresses import as_given, is_address, refuse_secret

if TYPE_CHECKING:
    from evaluator.reading.spec import ScenarioSpec, Spec

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
    if isinstance(where, ObjectFolder) or where.is_dir():
        return None
    from evaluator.reading.spec import read_spec

    return read_spec(where)


def sources(dataset: str | Path, *, path: str | Path | None = None) -> list[Path]:
    """Return what `read` reads on disk: files, or the folder of a converted log.

    Raises SourceError if files of the dataset are missing.
    """
    where = spec_path(dataset)
    if isinstance(where, ObjectFolder):
        return []
    spec = _spec_at(where)
    if spec is None:
        return [where]
    from evaluator.reading.spec import FileSpec
    from evaluator.reading.spec_tables import files_read
    from evaluator.worlds.scenarios.problem import delay_files

    if isinstance(spec, FileSpec):
        return [where, *files_read(spec, where.parent, override=path)]
    return [where, *delay_files(spec.scenario, where.parent)]


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
        Destination and extent of reading, as in `evaluator.reading.spec_tables.read_file_spec`.
    **options
        See below.
    """
    asked = ReadingOptions(**options)
    where = spec_path(dataset)
    reading_rules = {
        name: getattr(asked, name) for name in ("features", "deduplicate", "attributed_only", "sort", "path")
    }
    spec = _spec_at(where)
    log: Log
    if spec is None:
        _refuse({**reading_rules, "seed": asked.seed}, "a converted dataset: apply it when converting")
        log = open_canonical(where, limit=asked.limit, actions=asked.actions)
    else:
        from evaluator.reading.spec import FileSpec

        assert isinstance(where, Path)
        if isinstance(spec, FileSpec):
            from evaluator.reading.spec_tables import read_file_spec

            return read_file_spec(spec, where, asked, into=into, contexts=contexts, advance=advance, jobs=jobs)
        _refuse({**reading_rules, "actions": asked.actions}, f"the synthetic dataset {spec.name}")
        log = _drawn(spec, displays=asked.limit, seed=asked.seed, folder=where.parent)
    if asked.sampling_rate is not None:
        log = log.with_meta(sampling_rate=asked.sampling_rate)
    if asked.attribution_window is not None:
        from evaluator.reading.outcomes import cut_log

        log = cut_log(log, asked.attribution_window)
    if asked.keep:
        from evaluator.log.column import check_kept

        check_kept(log, asked.keep)
    if into is not None:
        write_canonical(log, into)
        log = open_canonical(into)
    return Reading(log)


def _drawn(spec: ScenarioSpec, *, displays: int | None, seed: int | None, folder: Path) -> Log:
    """Return a log drawn from a scenario."""
    from evaluator.worlds.scenarios.problem import generate
    from evaluator.worlds.scenarios.promotions import generate_promotions
    from evaluator.worlds.scenarios.scenario import PromotionsScenario

    scenario = spec.scenario
    if isinstance(scenario, PromotionsScenario):
        log = generate_promotions(scenario, displays=displays, seed=seed, name=spec.name, folder=folder)
    else:
        log = generate(scenario, displays=displays, seed=seed, name=spec.name, folder=folder)
    return log.with_meta(deployment=spec.deployment.asked) if spec.deployment.asked else log


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
