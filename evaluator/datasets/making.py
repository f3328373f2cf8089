"""Write a generated dataset with its truth: a twin of a real file, or the made-up shop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evaluator.datasets.make_options import MADE, MadeFiles, MakeOptions
from evaluator.datasets.resolve import dataset_spec
from evaluator.datasets.spec import FileSpec
from evaluator.errors import UnknownNameError, UsageError, nearest
from evaluator.worlds.criteo.make import make_twin
from evaluator.worlds.shop import make_shop


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
