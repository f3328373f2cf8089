"""What fails while an output is written is named: the output, or what was read."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.errors import OutputError, SourceError
from evaluator.outputs.staging import writing


@pytest.mark.parametrize(
    "named",
    [None, "here/out", "here/out/meta.json", "here/.out.partial-1f/out/x.parquet", "here/.out.evaluate-lock", "here"],
)
def test_an_error_about_the_output_names_the_output(named: str | None, tmp_path: Path) -> None:
    target = tmp_path / "here" / "out"
    with pytest.raises(OutputError, match=r"here/out: cannot be written \(No space left on device\)"), writing(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), named and str(tmp_path / named))


@pytest.mark.parametrize("named", ["here/log.csv", "here/outer", "elsewhere/out"])
def test_an_error_about_what_is_read_is_passed_on(named: str, tmp_path: Path) -> None:
    with pytest.raises(PermissionError, match=r"log\.csv|outer|elsewhere"), writing(tmp_path / "here" / "out"):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / named))


def test_what_a_library_says_of_a_file_it_reads_is_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "read.parquet"
    pq.write_table(pa.table({"x": np.arange(10_000)}), file)
    file.write_bytes(b"\xff" * 4 + file.read_bytes()[4:100] + b"\xff" * 4000 + file.read_bytes()[4100:])
    with pytest.raises(OSError, match=r"[Cc]orrupt|thrift|decompress|page") as said, writing(tmp_path / "out"):
        pq.read_table(file)
    assert not isinstance(said.value, OutputError)


def test_a_library_that_writes_to_a_full_disk_says_so(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OutputError, match="File too large"), writing(tmp_path / "out"):
            pq.write_table(pa.table({"x": np.random.default_rng(0).random(10_000)}), tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_source_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.reading.sources import files

    class Unreadable(type(tmp_path)):  # type: ignore[misc]
        def open(self, *_: object, **__: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    with pytest.raises(SourceError, match=r"log\.csv: cannot be read \(Permission denied\)"), writing(tmp_path / "out"):
        files.compression_of(Unreadable(tmp_path / "log.csv"))
