"""Write a dataset once: in canonical form, on disk or in a store; or a generated one, with the truth that it has."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Unpack

from evaluator.errors import OutputExistsError, OutputInUseError, ParameterError, UnknownNameError, UsageError, nearest
from evaluator.log import StoredLog
from evaluator.options.keywords import ReadingKeywords
from evaluator.outputs.atomic import refuse_existing, refuse_sources, whole_folder
from evaluator.outputs.locks import undone_if_abandoned
from evaluator.outputs.staging import writing
from evaluator.reading.canonical import Reading, open_canonical, refuse_other
from evaluator.reading.log_folders import FILES, META, ObjectFolder, folder_at, is_part
from evaluator.reading.options import MADE, MadeFiles, MakeOptions
from evaluator.reading.resolve import dataset_spec, read, sources
from evaluator.reading.spec import FileSpec
from evaluator.units import is_whole


def convert(
    dataset: str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    jobs: int = 1,
    advance: Callable[[int], None] = lambda rows: None,
    **options: Unpack[ReadingKeywords],
) -> Reading:
    """Write a dataset to the canonical folder `out` and return it, with rows left out in ``quarantine.parquet``.

    Memory does not grow with the number of displays (`evaluator.reading.spec_tables.read_file_spec` says what it
    holds); the log returned reads them from `out`. Until it is done the folder takes some 30 bytes a display more, 46
    where they have ids, what is read of a second table, and twice the columns read if it sorts.

    Parameters
    ----------
    dataset, **options
        Name or path of the dataset, and options of reading, as in `evaluator.datasets.load`.
    out
        Folder to write; its parents are made. The address of one in an object store (``s3://bucket/shop-log``) gets the
        log when it is whole, from the folder of temporary files, which has to hold it.
    overwrite
        Whether a converted log that is there already is replaced: a folder on disk that holds nothing else, and nothing
        that is read.
    jobs
        Number of threads. With two or more, a log of more than 4 million displays is written in parts, several at once,
        which are the log in one file: the same rows, the same fingerprint. A choice of actions is written in one file.
    advance
        Function called with the number of rows read since the last call.

    Raises
    ------
    ParameterError
        The number of jobs is out of range.
    UsageError
        A log in an object store is to be replaced, which no store does in one step.
    OutputExistsError
        The folder `out` exists and `overwrite` is false, or it may not be replaced.
    OutputInUseError
        Another process writes the folder `out`.
    OutputError
        The folder `out` cannot be written; what was there before is left as it was.
    """
    if not is_whole(jobs, 1):
        raise ParameterError(f"jobs={jobs}.", remedy="take a number of threads, at least 1.")
    target = folder_at(out)
    if isinstance(target, ObjectFolder):
        return _uploaded(dataset, target, overwrite=overwrite, jobs=jobs, advance=advance, options=options)
    read_here = sources(dataset, path=options.get("path")) if overwrite else []

    def check_old(folder: Path) -> None:
        refuse_other(folder)
        refuse_sources(folder, read_here)

    may_replace = check_old if overwrite else None
    refuse_existing(target, check_old=may_replace, remedy="name another folder, or overwrite it (`overwrite`).")
    with whole_folder(target, check_old=may_replace) as folder, writing(target):
        done = read(dataset, into=folder, advance=advance, jobs=jobs, **options)
    log = done.log
    assert isinstance(log, StoredLog)
    paths = tuple(target / path.name for path in log.paths)
    return Reading(log.changed(paths=paths).as_sound_as(log), done.quarantine)


def _uploaded(
    dataset: str | Path,
    folder: ObjectFolder,
    *,
    overwrite: bool,
    jobs: int,
    advance: Callable[[int], None],
    options: ReadingKeywords,
) -> Reading:
    """Write a dataset to a folder of an object store, and return the log there."""
    if overwrite:
        raise UsageError(
            f"`overwrite`: {folder} is in an object store, which cannot replace a log in one step.",
            remedy="convert to another folder, and remove the old one when nobody reads it.",
        )
    refuse_taken(folder)
    with (
        TemporaryDirectory(prefix="evaluate-") as place,
        undone_if_abandoned(partial(shutil.rmtree, place, ignore_errors=True)),  # while a store takes a large file
        writing(Path(place)),
    ):
        local = Path(place) / "log"
        local.mkdir()
        done = read(dataset, into=local, advance=advance, jobs=jobs, **options)
        upload(local, folder)
    return Reading(open_canonical(folder.listed_anew()), done.quarantine)


def refuse_taken(folder: ObjectFolder) -> None:
    """Raise before the work is done if a log cannot be written there. What a killed conversion left is no hindrance.

    Raises OutputExistsError if a log is there, or something else, or if the folder would lie in a converted log.
    """
    names = set(folder.objects)
    if META in names:
        raise OutputExistsError(f"Output {folder} exists.", remedy="name another folder, or remove this one.")
    if foreign := [name for name in names if name not in FILES and not is_part(name)]:
        raise OutputExistsError(
            f"Output {folder} holds {min(foreign)}, which is not of a converted log.", remedy="name another folder."
        )
    for above in PurePosixPath(folder.key).parents:
        meta = META if str(above) == "." else f"{above}/{META}"
        if folder.store.head(meta) is not None:
            place = folder.store.url(meta).removesuffix(f"/{META}")
            raise OutputExistsError(
                f"Output {folder} would lie in {place}, which is a converted log.", remedy="name a place beside it."
            )


def upload(log: Path, folder: ObjectFolder) -> None:
    """Write the files of a converted log, ``meta.json`` last, by which it is one: who is killed before leaves no log.

    Raises OutputExistsError if another command has written a log there meanwhile, and OutputInUseError if one is
    writing one, too: no log is there then, and the same command goes on.
    """
    refuse_taken(folder := folder.listed_anew())
    files = {path.name: path for path in sorted(log.iterdir())}
    folder.store.delete([found.key for name, found in folder.objects.items() if name not in files])
    key = {name: f"{folder.key}/{name}".lstrip("/") for name in files}
    tags: dict[str, str] = {}
    for name in (name for name in files if name != META):
        if folder.store.head(key[META]) is not None:
            raise OutputExistsError(f"Output {folder} exists.", remedy="name another folder, or remove this one.")
        tags[name] = folder.store.write(key[name], files[name])
    _refuse_others(folder, tags)
    folder.store.write(key[META], files[META], new=True)
    try:
        _refuse_others(folder, tags)
    except OutputInUseError:
        folder.store.delete([key[META]])
        raise


def _refuse_others(folder: ObjectFolder, tags: Mapping[str, str]) -> None:
    """Raise if an object is not the one that was written, by its tag; one that a store gave no tag is not told."""
    there = folder.listed_anew().objects
    for name, tag in tags.items():
        if tag and (name not in there or there[name].tag != tag):
            raise OutputInUseError(
                f"Output {folder}: another command is writing a log there.", remedy="wait until it is done, and look."
            )


def make(
    dataset: str | Path,
    out: str | Path,
    *,
    rows: int = 1_000_000,
    seed: int = 0,
    jobs: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> MadeFiles:
    """Write a generated dataset and the truth it was drawn from: a shop's small folder, or the twin of a real file.

    Parameters
    ----------
    dataset
        Name ``shop`` or ``criteo_twin``, or path of a ``spec.toml`` with a ``[twin]`` section.
    out
        Folder to write, of the shop: tables of displays and sales as CSV, their ``spec.toml``, a ``study.toml``, a file
        of delays, and the truth. File to write, of a twin: gzipped; ``<out>.truth.json`` and ``<out>.truth.parquet`` go
        beside it.
    rows
        Number of displays of a twin, from 1,000 to the size of the real file.
    seed
        Seed of a twin's draws: the same seed and rows give the same bytes. The shop is always the same.
    jobs
        Number of threads; None takes all processors, up to 4. The bytes do not depend on it.
    advance
        Function called with the number of rows after each chunk; None for no progress.

    Returns
    -------
    MadeFiles
        Paths and counts of what was written. Memory: up to 0.7 GB for a twin at full size, less than half of it for a
        tenth of the rows.

    Raises
    ------
    UnknownNameError
        Nothing of this name can be made.
    UsageError
        The dataset has no ``[twin]`` section, the output's folder is missing, or the shop was given an option of twins.
    ParameterError
        One of `rows`, `seed` and `jobs` is out of range.
    OutputExistsError
        The folder or one of the three files exists.
    OutputInUseError
        Another process writes there.
    OutputError
        The output cannot be written; nothing of it is left.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = make("shop", folder + "/shop")
    ...     print(made.counts, sorted(file.name for file in made.path.iterdir()))
    {'displays': 20000, 'sales': 3520, 'delays': 3520} ['README.md', 'delays.csv', 'displays.csv', 'sales.csv', \
'spec.toml', 'study.toml', 'truth.csv', 'truth.json']
    """
    # What generates loads more than what converts.
    from evaluator.worlds.criteo.make import make_twin
    from evaluator.worlds.shop import make_shop

    path = Path(out)
    if dataset == "shop":
        plain = MakeOptions().to_dict()
        for name, value in {"rows": rows, "seed": seed, "jobs": jobs}.items():
            if value != plain[name]:
                raise UsageError(f"`{name}={value}` is of twins: the shop is always the same.", remedy="leave it out.")
        return MadeFiles(path, path / "truth.json", path / "truth.csv", make_shop(path))
    try:
        spec = dataset_spec(dataset)
    except UnknownNameError as unknown:
        hint = f"{nearest(str(dataset), MADE)} A path to a spec.toml with a [twin] section works too."
        raise UnknownNameError(unknown.what, remedy=hint) from None
    if not isinstance(spec, FileSpec) or spec.twin is None:
        raise UsageError(
            f"{dataset} cannot be made: its spec has no [twin] section.", remedy="criteo_twin can; others are read."
        )
    truth, table = (path.with_name(f"{path.name}.truth.{ending}") for ending in ("json", "parquet"))
    counts = make_twin(
        spec.twin, spec.name, path, truth=truth, table=table, rows=rows, seed=seed, jobs=jobs, advance=advance
    )
    return MadeFiles(path, truth, table, counts)
