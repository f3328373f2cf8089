"""Logs in object stores are read as the same files are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator.datasets import convert, load
from evaluator.errors import SourceError
from evaluator.reading.sources.databases import Databases
from evaluator.reading.sources.files import staging
from evaluator.reading.spec import FileSpec, read_spec
from evaluator.reading.spec_sections import Storage, Table
from evaluator.reading.spec_tables import SpecTable, files_read, find_parts
from evaluator.reading.summary import show, validate
from tests.cli.runs import evaluate
from tests.reading.object_stores.buckets import SECRET, N, displays, same, spec_of, write
from tests.reading.object_stores.server import KEYS, PAGE, Bucket
from tests.reading.sources import write_spec


@pytest.mark.parametrize("suffix", ["parquet", "ipc", "csv", "csv.gz", "tsv", "jsonl"])
@pytest.mark.parametrize("files", ["logs/**/*.{}", "logs", "logs/", "logs/day=*/part-[0-9].{}", "logs/*/part-?.{}"])
def test_a_log_in_a_bucket_is_that_of_the_same_files(suffix: str, files: str, bucket: Bucket, tmp_path: Path) -> None:
    here = tmp_path / "files"
    for day in (2, 10, 1):
        write(displays(start=1000 * day), here / "logs" / f"day={day}" / f"part-0.{suffix}")
    write(displays(1), here / "logs" / "day=3" / f".part-0.{suffix}.{suffix}")
    bucket.put_folder(here)
    bucket.put("logs/day=1/", b"")
    there = spec_of(tmp_path / "there", bucket, files.format(suffix))
    local = write_spec(here, source={"files": files.format(suffix)})
    log = load(there, keep="day")
    same(log, load(local, keep="day"))
    assert len(log) == 3 * N
    assert log.displays["day"].to_pylist()[::N] == ["1", "2", "10"]


def test_single_objects_keep_odd_names(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("a log.parquet", "a%20log.parquet", "log[1].parquet", "log[1].ipc", "lög+1.csv", "#1.csv.gz"):
        write(displays(), tmp_path / name)
        bucket.put(name, tmp_path / name)
        assert len(load(spec_of(tmp_path / "spec", bucket, name))) == N


def test_globs_and_folders_leave_out_what_those_of_files_do(bucket: Bucket, tmp_path: Path) -> None:
    here = tmp_path / "files"
    names = ["a.csv", "b/a.csv", "b/c/a.csv", "_a.csv", ".a.csv", ".b/a.csv", "b/notes.md", "b/x.csv", "logs/a.csv"]
    for i, name in enumerate(names):
        write(displays(10, start=100 * i), here / name)
    bucket.put_folder(here)
    for files in (
        "*.csv",
        "**/*.csv",
        "b/**/a.csv",
        "b/**/*.csv",
        "b",
        "[!a]/*.csv",
        ".b/*.csv",
        "lo*/*.csv",
        "b/?.csv",
    ):
        one, two = (
            load(spec_of(tmp_path / "spec", bucket, files), sort=True),
            load(write_spec(here, source={"files": files}), sort=True),
        )
        same(one, two)
    with pytest.raises(SourceError, match=r"s3://.*notes.md: unknown suffix\."):
        load(spec_of(tmp_path / "spec", bucket, "b/*"))
    with pytest.raises(SourceError, match=r"No object matches s3://.*/none/\*\.csv\."):
        load(spec_of(tmp_path / "spec", bucket, "none/*.csv"))
    with pytest.raises(SourceError, match=r"No object matches s3://.*/none\.csv\."):
        load(spec_of(tmp_path / "spec", bucket, "none.csv"))


def test_conversions_and_displays_may_lie_in_different_places(bucket: Bucket, tmp_path: Path) -> None:
    here = tmp_path / "files"
    frame = displays().with_row_index("id")
    write(frame.drop("sold"), here / "shown.parquet")
    sales = frame.filter(pl.col("sold").is_not_null()).select("id", pl.col("sold").alias("at")).sort("at")
    write(sales, here / "sales.csv.gz")
    bucket.put_folder(here)
    sections: dict[str, Any] = {"display": {"id": "id"}}
    of = {"display": "id"}
    local = write_spec(
        here, source={"files": "shown.parquet"}, conversion={"time": "at", "source": {"files": "sales.csv.gz", **of}},
        **sections,
    )  # fmt: skip
    expected = load(local)
    address = f"s3://{bucket.name}/sales.csv.gz"
    there = spec_of(
        tmp_path / "there", bucket, "shown.parquet",
        conversion={"time": "at", "source": {"files": address, **of}}, **sections,
    )  # fmt: skip
    same(load(there), expected)
    mixed = spec_of(
        here, bucket, "shown.parquet",
        conversion={"time": "at", "source": {"files": "sales.csv.gz", **of}}, **sections,
    )  # fmt: skip
    same(load(mixed), expected)
    read = read_spec(mixed)
    assert isinstance(read, FileSpec)
    assert files_read(read, here) == [here / "sales.csv.gz"]


def test_every_way_to_read_takes_it(bucket: Bucket, tmp_path: Path) -> None:
    write(displays(), tmp_path / "log.csv.gz")
    address = bucket.put("log.csv.gz", tmp_path / "log.csv.gz")
    spec = spec_of(tmp_path / "spec", bucket, "log.csv.gz")
    facts = show(spec)
    assert facts["log"]["displays"] == N
    assert validate(spec)["ok"]
    assert facts["log"]["fingerprint"] == load(spec).meta.fingerprint
    convert(spec, tmp_path / "out")
    same(load(tmp_path / "out"), load(spec))
    write_spec(tmp_path, source={"storage": bucket.storage})
    same(load(tmp_path / "spec.toml", path=address), load(spec))
    replayed = evaluate("replay", "-d", str(spec), "--policy", "random", "--json", "--out", str(tmp_path / "result"))
    assert replayed.code == 0, replayed.err
    at_path = evaluate("datasets", "show", str(tmp_path / "spec.toml"), "--path", address, "--json")
    assert at_path.json["log"]["displays"] == N
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"manifest.json", "meta.json"} <= {path.name for path in made}
    assert not [path for path in made if SECRET.encode() in path.read_bytes()]
    assert SECRET not in replayed.out + replayed.err + at_path.out + at_path.err + json.dumps(facts)


def test_the_fingerprint_is_that_of_the_objects(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("log.csv", "log.parquet"):
        write(displays(), tmp_path / name)
        bucket.put(name, tmp_path / name)
        spec = spec_of(tmp_path / "spec", bucket, name)
        first = load(spec).meta.fingerprint
        assert first == load(spec).meta.fingerprint
        write(displays(N, start=1), tmp_path / name)
        bucket.put(name, tmp_path / name)
        assert first != load(spec).meta.fingerprint


def test_more_objects_than_a_page_are_listed(bucket: Bucket, tmp_path: Path) -> None:
    for i in range(2 * PAGE + 20):
        bucket.put(f"logs/{i}.parquet", b"x")
    table = Table(files=f"s3://{bucket.name}/logs", storage=Storage(**bucket.storage))
    with staging(tmp_path) as place, Databases() as databases:
        found = find_parts(SpecTable(table, (), "source"), tmp_path, staging=place, databases=databases)
    assert [part.name for part in found] == [f"s3://{bucket.name}/logs/{i}.parquet" for i in range(2 * PAGE + 20)]


def test_a_public_bucket_needs_none(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    storage = {**bucket.storage, "anonymous": True}
    for name in ("log.csv", "log.parquet"):
        write(displays(), tmp_path / name)
        bucket.put(name, tmp_path / name)
        spec = spec_of(tmp_path / "spec", bucket, name, source={"storage": storage})
        with pytest.raises(SourceError, match=r"no permission to read it \(403\)\. Hint: check AWS_ACCESS_KEY_ID"):
            load(spec)
        bucket.publish(name)
        assert len(load(spec)) == N


def test_the_client_of_google_is_asked_likewise(bucket: Bucket, tmp_path: Path) -> None:
    """The XML interface of Google's store, which both libraries use, lists and gives objects in the words of S3."""
    storage = {"endpoint": bucket.endpoint, "anonymous": True}
    for name in ("log.csv", "log.parquet"):
        write(displays(), tmp_path / "logs" / name)
        bucket.put(f"logs/{name}", tmp_path / "logs" / name)
        bucket.publish(f"logs/{name}")
        for files in (f"logs/{name}", f"logs/*{name[3:]}"):
            spec = write_spec(tmp_path, source={"files": f"gs://{bucket.name}/{files}", "storage": storage})
            assert len(load(spec)) == N
