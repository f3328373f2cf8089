"""Tables of lakes in an object store: the log of the same tables on disk, found by what the environment says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from evaluator import load
from evaluator.errors import SourceError
from tests.reading.lakes import KINDS, append, catalog, place
from tests.reading.object_stores.server import KEYS, Bucket, s3_server
from tests.reading.sources import write_spec
from tests.reading.test_lakes import everything

# What the store's clients find in the environment: none of them may look elsewhere.
ENVIRONMENT = {
    **KEYS, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}  # fmt: skip
BUCKET = "logs"
ROWS = pa.table({"t": range(30), "ad": list("abc") * 10, "sold": pa.array([None, 40, None] * 10, pa.int64())})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("moto") / "server.txt") as address:
        yield Bucket(address, BUCKET).endpoint


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def tables(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Write a table of each kind; return where it lies."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        store = {"AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        for first in range(0, 30, 10):
            write_deltalake(f"s3://{BUCKET}/log", ROWS.slice(first, 10), mode="append", storage_options=store)
        told = {"s3.endpoint": server, "s3.region": "us-east-1"}
        with catalog(tmp_path_factory.mktemp("catalog"), f"s3://{BUCKET}", **told) as found:
            table = found.create_table("ns.log", ROWS.schema)
            for first in range(0, 30, 10):
                table.append(ROWS.slice(first, 10))
            return {
                "delta": f"s3://{BUCKET}/log",
                "iceberg": f"s3://{BUCKET}/ns/log",
                "metadata": table.metadata_location,
            }


def spec_of(folder: Path, kind: str, location: str, **storage: Any) -> Path:
    said = {"storage": storage} if storage else {}
    return write_spec(folder, source={"files": None, kind: location, **said})


@pytest.mark.parametrize("name", ["delta", "iceberg", "metadata"])
@pytest.mark.parametrize("told", ["spec", "environment"])
def test_a_table_in_a_store_is_the_log_that_it_is_on_disk(
    tmp_path: Path, tables: dict[str, str], server: str, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "iceberg" if name == "metadata" else name
    append(kind, tmp_path, "log", ROWS, commits=3)
    on_disk = load(write_spec(tmp_path, source=place(kind, "log")))
    if told == "environment":
        monkeypatch.setenv("AWS_ENDPOINT_URL", server)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        found = load(spec_of(tmp_path, kind, tables[name]))
    else:
        found = load(spec_of(tmp_path, kind, tables[name], endpoint=server, region="us-east-1"))
    assert everything(found) == everything(on_disk)
    assert found.meta.notes[0].startswith(f"{kind} table {tables[name]} at ")


def test_the_place_of_a_table_may_be_any_text(tmp_path: Path, server: str) -> None:
    store = {"AWS_ENDPOINT_URL": server, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    location = f"s3://{BUCKET}/Läden & mehr/log"
    rows = ROWS.append_column("shop", [["b c/%d", "ü"] * 15])
    write_deltalake(location, rows, partition_by=["shop"], storage_options=store)
    spec = write_spec(
        tmp_path, source={"files": None, "delta": location, "sort": True, "storage": {"endpoint": server}},
        keep={"shop": "shop"},
    )  # fmt: skip
    assert load(spec).displays["shop"].to_pylist() == rows["shop"].to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_not_there_is_said_in_a_line(tmp_path: Path, server: str, kind: str) -> None:
    for location, said in (
        (f"s3://{BUCKET}/lag", "no Delta table|holds no metadata"),
        ("s3://lags/lag", "NoSuchBucket|holds no"),
    ):
        with pytest.raises(SourceError, match=rf"^{location}.*({said})") as raised:
            load(spec_of(tmp_path, kind, location, endpoint=server))
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_does_not_answer_is_said_in_a_line(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SourceError, match=rf"^s3://{BUCKET}/log: cannot be opened: .*[Cc]onnect") as raised:
        load(spec_of(tmp_path, kind, f"s3://{BUCKET}/log", endpoint="http://127.0.0.1:9"))
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("value", ["127.0.0.1:5999", ""])
def test_an_endpoint_of_the_environment_that_cannot_be_used_is_said_in_a_line(
    tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    spec = write_spec(tmp_path, source={"files": None, "delta": f"s3://{BUCKET}/log"})
    with pytest.raises(SourceError, match="The variable AWS_ENDPOINT_URL of the environment is"):
        load(spec)
    assert capfd.readouterr() == ("", "")
