"""Tables of a lake, Delta at one version or Iceberg at one snapshot: pinned to the state in which they were opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from evaluator.errors import EvaluatorError, SourceError
from evaluator.reading.sources.part import KeyedPart, first_line
from evaluator.reading.sources.stores import refuse_unlisted_endpoint, refuse_unusable_environment
from evaluator.reading.spec_sections import Storage, Table

if TYPE_CHECKING:
    import polars as pl
    from deltalake import DeltaTable
    from deltalake.table import ProtocolVersions
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as IcebergTable
    from pyiceberg.table.snapshots import Snapshot
DELTA_ENDPOINT = "AWS_ENDPOINT_URL"
# What a table asks of those who read its log, and of nobody who reads its files.
OF_THE_LOG = ("v2Checkpoint", "vacuumProtocolCheck")
# What marks causes of causes, each on a line of its own, as on a terminal.
_MARKS = re.compile(r"\x1b\[\d*m|↳")
ICEBERG_ENDPOINT, ICEBERG_REGION = "s3.endpoint", "s3.region"
METADATA = ".metadata.json"
_IN_CATALOG = re.compile(r"(?!.*\.json$)[^./\\]+(\.[^./\\]+){2,}")
_OF_STORES = ("s3.", "gcs.", "adls.")
_NUMBER = re.compile(r"v?(\d+)")


@dataclass(frozen=True, eq=False)
class LakeTable(KeyedPart):
    """A table of a lake as it was in one state: what is written to it later is not seen.

    `identity` is that of the table, the same wherever it lies; `pinned` the state of it that is read, ``version 7`` or
    ``snapshot 123``; `rows` has all columns of that state, in an order of rows that is the same each time they are
    read.
    """

    kind: str
    identity: str
    pinned: str
    rows: pl.LazyFrame

    @property
    def note(self) -> str:
        """What was read, so that it can be read again."""
        return f"{self.kind} table {self.name} at {self.pinned}"

    def names(self) -> list[str]:
        """Return its columns."""
        return self.rows.collect_schema().names()

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns, read when they are asked for."""
        found = self.rows.select(list(columns))
        return found if rows is None else found.head(rows)

    def state(self) -> object:
        """Return which state is read: nobody changes it."""
        return self.identity, self.pinned

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read."""
        return SourceError(
            f"{self.name}: {self.pinned} cannot be read: {first_line(error)}.",
            remedy="its files may have been removed since: name a later state of the table, or restore them.",
        )


def lake_table(
    rows: pl.LazyFrame, name: str, key: Iterable[str], *, kind: str, identity: str, pinned: str
) -> LakeTable:
    """Return a table of a lake, whose rows are known by those columns of `key` that it has."""
    columns = rows.collect_schema().names()
    return LakeTable(name, {}, tuple(dict.fromkeys(c for c in key if c in columns)), kind, identity, pinned, rows)


def lake_paths(table: Table, folder: Path) -> list[Path]:
    """Return where on disk a table of a lake lies; nothing where it lies elsewhere, or only a catalog knows."""
    given = table.delta or table.iceberg
    path = None if given is None or "://" in given else folder / given
    return [path] if path is not None and path.exists() else []


def not_installed(extra: str, library: str) -> EvaluatorError:
    """Return the error that says how to install what reads a kind of table."""
    return EvaluatorError(
        f"Tables of {extra.capitalize()} are read with {library}, which is not installed.",
        remedy=f"pip install 'delayed-replay[{extra}]'.",
    )


def store_options(location: str, storage: Storage | None, *, endpoint: str, region: str) -> dict[str, str]:
    """Return where an object store answers, in the words of a library.

    `endpoint` and `region` are what the library calls the address of a store of the kind S3, and its region. Raises
    SourceError if the store is of another kind, where an address is not needed, or not known how to give; or if more is
    said of it than a library can be told.
    """
    for key in ("account", "anonymous"):
        if storage is not None and getattr(storage, key):
            raise SourceError(
                f"{location}: storage.{key} is of files alone.",
                remedy="take it out: the environment says who asks the store of a table.",
            )
    given = {endpoint: storage.endpoint, region: storage.region} if storage is not None else {}
    said = {name: value for name, value in given.items() if value is not None}
    if said and "://" in location and not location.startswith(("s3://", "s3a://")):
        raise SourceError(
            f"{location}: storage says where an S3 store answers, and this is none.",
            remedy="take storage out: the environment says what its store needs.",
        )
    if storage is not None and "://" in location:
        refuse_unlisted_endpoint("s3", storage)
    return said


def open_delta(table: Table, folder: Path, *, key: Sequence[str]) -> LakeTable:
    """Return a Delta table at the version that a spec names, or at its last one.

    Its files are read in the order in which they were written; so are those that one commit wrote. A path is relative
    to `folder`; `key` are the columns that identify a row, as far as the spec tells. Raises SourceError if there is no
    such table or version, if it cannot be reached, needs what Polars cannot read, or if the environment says of its
    store what cannot be used; EvaluatorError if the extra `delta` is not installed.
    """
    assert table.delta is not None
    name = table.delta if "://" in table.delta else str(folder / table.delta)
    options = store_options(name, table.storage, endpoint=DELTA_ENDPOINT, region="AWS_REGION")
    if name.startswith(("s3://", "s3a://")):
        refuse_unusable_environment("s3", of_spec=DELTA_ENDPOINT in options)
    if {**os.environ, **options}.get(DELTA_ENDPOINT, "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    found = _opened(name, table.version, options)
    import polars as pl

    try:
        part = lake_table(
            pl.scan_delta(found), name, key, kind="delta", identity=str(found.metadata().id),
            pinned=f"version {found.version()}",
        )  # fmt: skip
        _check_folders(found, name)
        if "://" not in name and (lost := _lost(found)) is not None:
            raise part.unreadable(lost)
        return part
    except SourceError:
        raise
    except Exception as error:  # of deltalake, by way of Polars: what the table asks of its readers
        raise SourceError(
            f"{name}: cannot be read: {first_line(error)}.", remedy="write the table anew without that feature."
        ) from None


def _opened(name: str, version: int | None, options: dict[str, str]) -> DeltaTable:
    try:
        import deltalake
    except ImportError:
        raise not_installed("delta", "deltalake") from None

    class InOrder(deltalake.DeltaTable):
        """A table as Polars is to find it.

        Its files are listed as they were written: its log lists the last first, or in any order. It asks of its readers
        what concerns the files alone: the log is read.
        """

        def file_uris(self, *args: Any, **keywords: Any) -> list[str]:
            import polars as pl

            uris = super().file_uris(*args, **keywords)
            written = pl.DataFrame(self.get_add_actions())["modification_time"].to_list()
            return [self.found(uri) for _, uri in sorted(zip(written, uris, strict=True))]

        def deletion_vectors(self) -> Any:
            import polars as pl

            vectors = pl.DataFrame(super().deletion_vectors())
            paths = pl.Series("filepath", [self.found(uri) for uri in vectors["filepath"]], dtype=pl.String)
            if unknown := set(paths) - set(self.file_uris()):  # Polars would read the rows of that file all the same
                raise deltalake.exceptions.DeltaError(
                    f"rows of {min(unknown)} are deleted, which is no file of the table"
                )
            return vectors.with_columns(paths)

        def found(self, uri: str) -> str:
            """Return where Polars finds a file: deltalake writes the root of the table as in a URL."""
            root, path = self.table_uri.removeprefix("file://"), uri.removeprefix("file://")
            return unquote(root) + path.removeprefix(root) if path.startswith(root) else uri

        def protocol(self) -> ProtocolVersions:
            found = super().protocol()
            asked = found.reader_features
            return found._replace(reader_features=None if asked is None else [f for f in asked if f not in OF_THE_LOG])

    if "://" not in name and not Path(name).is_dir():
        raise SourceError(f"{name}: no such folder.", remedy="name the folder of a Delta table.")
    try:
        return InOrder(name, version=version, storage_options=options)
    except deltalake.exceptions.TableNotFoundError:
        raise SourceError(f"{name}: no Delta table.", remedy="name the folder that holds its _delta_log.") from None
    except Exception as error:  # the library's own, or of any of the stores that it speaks to
        last = None if version is None else _last_version(name, options)
        if last is not None:
            what = f"{name}: no version {version} of the table is left; its last is {last}."
            raise SourceError(what, remedy="name another version, or none for the last.") from None
        causes = ": ".join(filter(None, (_MARKS.sub("", line).strip() for line in str(error).split("\n"))))
        raise SourceError(
            f"{name}: cannot be opened: {causes.rstrip('.')}.",
            remedy="check where it lies, and whether this version of deltalake reads what it holds.",
        ) from None


def _lost(table: DeltaTable) -> OSError | None:
    """Return what is wrong with a file on disk that is gone or cut off: of the latter Polars may leave out the rows."""
    import polars as pl

    sizes = {
        Path(path).name: size for path, size in pl.DataFrame(table.get_add_actions())[["path", "size_bytes"]].rows()
    }
    for path in (Path(uri.removeprefix("file://")) for uri in table.file_uris()):
        if not path.is_file():
            return FileNotFoundError(f"{path} is gone")
        if path.stat().st_size < sizes.get(path.name, 0):
            return OSError(f"{path} has been cut off")
    return None


def _check_folders(table: DeltaTable, name: str) -> None:
    """Refuse files in other folders than those of their partitions: Polars reads the values of partitions there.

    The log has them too, and allows any folder: with random prefixes, say, all values would be missing.
    """
    import deltalake
    import polars as pl

    if not table.metadata().partition_columns:
        return
    values = pl.DataFrame(table.get_add_actions())["partition"].to_list()
    for uri, partition in zip(deltalake.DeltaTable.file_uris(table), values, strict=True):
        folders = dict(unquote(part).split("=", 1) for part in uri.split("/")[:-1] if "=" in part)
        for column, value in partition.items():
            told = folders.get(column)
            # Other types than text are written in more than one way.
            if told is None or (isinstance(value, str) and told != value):
                raise SourceError(
                    f"{name}: {uri.rsplit('/', 1)[-1]} lies in no folder that says {column}={value}: "
                    "the column cannot be read.",
                    remedy="write the table anew, in folders of its partitions.",
                )


def _last_version(name: str, options: dict[str, str]) -> int | None:
    """Return the last version of a table, or None if the table cannot be opened."""
    import deltalake

    try:
        return deltalake.DeltaTable(name, storage_options=options).version()
    except Exception:  # as above
        return None


def open_iceberg(table: Table, folder: Path, *, key: Sequence[str]) -> LakeTable:
    """Return an Iceberg table at the snapshot that a spec names, or at its current one.

    Its files are read in the order in which they were committed, those of one commit by name; deleted rows are not. The
    spec names its folder, one of its metadata files, or ``catalog.namespace.name`` of a catalog that the configuration
    of PyIceberg knows. Raises SourceError if there is no such table or snapshot, or if it cannot be reached or read;
    EvaluatorError if the extra `iceberg` is not installed.
    """
    try:
        import pyiceberg.table  # noqa: F401
    except ImportError:
        raise not_installed("iceberg", "pyiceberg") from None
    import polars as pl

    given = str(table.iceberg)
    in_catalog = bool(_IN_CATALOG.fullmatch(given)) and not (folder / given).exists()
    name = given if in_catalog or "://" in given else str(folder / given)
    # Another planner of Polars lists files in an order of its own, and warns where it is not installed.
    os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"
    try:
        found = _of_catalog(name) if in_catalog else _of_metadata(name, table.storage)
        snapshot = _snapshot(found, table.snapshot, name)
        rows = pl.scan_iceberg(
            _in_order(found, snapshot), snapshot_id=table.snapshot,
            # Polars reads files by itself: it is told of what answers for their store, secrets of a catalog among it.
            storage_options={word: of for word, of in found.io.properties.items() if word.startswith(_OF_STORES)},
        )  # fmt: skip
        return lake_table(
            rows, name, key, kind="iceberg", identity=str(found.metadata.table_uuid),
            pinned="no snapshot" if snapshot is None else f"snapshot {snapshot.snapshot_id}",
        )  # fmt: skip
    except SourceError:
        raise
    except Exception as error:  # the library's own, or of any of the catalogs and stores that it speaks to
        raise SourceError(
            f"{name}: cannot be opened: {first_line(error)}.",
            remedy="name a table folder, a metadata.json or catalog.namespace.name.",
        ) from None


def _snapshot(table: IcebergTable, number: int | None, name: str) -> Snapshot | None:
    """Return the snapshot of a table that is asked for, or its current one; None where it never had one."""
    current = table.current_snapshot()
    found = current if number is None else table.snapshot_by_id(number)
    if found is None and number is not None:
        raise SourceError(
            f"{name}: no snapshot {number} of the table is left"
            + ("." if current is None else f"; its current one is {current.snapshot_id}."),
            remedy="name another snapshot, or none for the current one.",
        )
    return found


def _of_catalog(name: str) -> IcebergTable:
    """Return a table of a catalog, whose configuration says where its store answers, too."""
    from pyiceberg.catalog import load_catalog

    catalog, _, rest = name.partition(".")
    with closing(load_catalog(catalog)) as found:
        return found.load_table(rest)


def _of_metadata(name: str, storage: Storage | None) -> IcebergTable:
    from pyiceberg.table import StaticTable

    options = _with_environment(name, store_options(name, storage, endpoint=ICEBERG_ENDPOINT, region=ICEBERG_REGION))
    return StaticTable.from_metadata(name if name.endswith(METADATA) else _last_metadata(name, options), options)


def _last_metadata(name: str, options: dict[str, str]) -> str:
    """Return the metadata file of a table folder that its hint names, or else the one with the highest number."""
    import pyarrow.fs
    from pyiceberg.io.pyarrow import PyArrowFileIO

    within = f"{name.rstrip('/')}/metadata"
    scheme, netloc, path = PyArrowFileIO.parse_location(within, options)
    store = PyArrowFileIO(options).fs_by_scheme(scheme, netloc)
    files = [file.base_name for file in store.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))]
    if "version-hint.text" in files:
        return name
    numbers = {file: int(found[1]) for file in files if file.endswith(METADATA) and (found := _NUMBER.match(file))}
    last = sorted(file for file, number in numbers.items() if number == max(numbers.values()))
    if len(last) != 1:
        found_here = f"both {last[0]} and {last[1]}" if last else "no metadata.json"
        raise SourceError(
            f"{within} holds {found_here}.", remedy="name the metadata file, or the table in its catalog."
        )
    return f"{within}/{last[0]}"


def _with_environment(location: str, options: dict[str, str]) -> dict[str, str]:
    """Return what PyIceberg must be told of an S3 store, with what the environment says, as other libraries read it."""
    if not location.startswith(("s3://", "s3a://")):
        return options
    words = {
        "s3.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        "s3.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    said = {key: os.environ[word] for key, of in words.items() for word in reversed(of) if word in os.environ}
    said |= options
    # Without a region PyIceberg asks Amazon for that of the bucket.
    return {"s3.region": "us-east-1", **said} if "s3.endpoint" in said else said


def _in_order(table: IcebergTable, snapshot: Snapshot | None) -> IcebergTable:
    """Return a table whose files are planned as they were committed: its manifests list the last first."""
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.table import DataScan
    from pyiceberg.table import Table as IcebergTable

    order: dict[str, tuple[int, int]] = {}
    at = {of.snapshot_id: of.timestamp_ms for of in table.snapshots()}
    for manifest in [] if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.content == DataFileContent.DATA:
                # Tables of the first format have no sequence numbers.
                committed = entry.sequence_number or 0, at.get(entry.snapshot_id or 0, 0)
                order[entry.data_file.file_path] = committed
    found = () if snapshot is None else table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    planned = sorted(found, key=lambda task: (order[task.file.file_path], task.file.file_path))

    class InOrder(DataScan):
        def plan_files(self) -> Iterable[FileScanTask]:
            return planned

    class Pinned(IcebergTable):
        def scan(self, *args: Any, **keywords: Any) -> DataScan:
            scan = super().scan(*args, **keywords)
            scan.__class__ = InOrder
            return scan

    return Pinned(table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config)
