"""A table of Delta Lake, at one version."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from evaluator.datasets.sources.lakes import LakeTable, lake_table, not_installed, store_options
from evaluator.datasets.sources.part import first_line
from evaluator.datasets.sources.store_environment import refuse_unusable_environment
from evaluator.datasets.spec_sections import Table
from evaluator.errors import SourceError

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.table import ProtocolVersions

ENDPOINT = "AWS_ENDPOINT_URL"
# What a table asks of those who read its log, and of nobody who reads its files.
OF_THE_LOG = ("v2Checkpoint", "vacuumProtocolCheck")
# What marks causes of causes, each on a line of its own, as on a terminal.
_MARKS = re.compile(r"\x1b\[\d*m|↳")


def open_delta(table: Table, folder: Path, *, key: Sequence[str]) -> LakeTable:
    """Return a Delta table at the version that a spec names, or at its last one.

    Its files are read in the order in which they were written; so are those that one commit wrote.

    Parameters
    ----------
    table
        Section of the spec that says where it lies.
    folder
        Folder that a path is relative to.
    key
        Columns that identify a row, as far as the spec tells.

    Raises
    ------
    SourceError
        There is no such table or version, or it cannot be reached, or needs what Polars cannot read; or the environment
        says of its store what cannot be used.
    EvaluatorError
        The extra `delta` is not installed.
    """
    assert table.delta is not None
    name = table.delta if "://" in table.delta else str(folder / table.delta)
    options = store_options(name, table.storage, endpoint=ENDPOINT, region="AWS_REGION")
    if name.startswith(("s3://", "s3a://")):
        refuse_unusable_environment("s3", of_spec=ENDPOINT in options)
    if {**os.environ, **options}.get(ENDPOINT, "").startswith("http://"):
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
