"""Logs in object stores, read from an S3 server on this machine as the same files are."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import convert, load
from evaluator.datasets.opening import files_read
from evaluator.datasets.sources import objects, stores
from evaluator.datasets.sources.databases import Databases
from evaluator.datasets.sources.places import find_parts
from evaluator.datasets.sources.staging import staging
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_file import parse_spec, read_spec
from evaluator.datasets.spec_sections import Storage, Table
from evaluator.datasets.spec_tables import SpecTable
from evaluator.datasets.summary import show, validate
from evaluator.errors import EvaluatorError, SourceError, SpecError, UsageError
from evaluator.log import Log
from tests.cli.runs import evaluate
from tests.datasets.object_store import KEYS, Bucket, free_port, s3_server
from tests.datasets.sources import spec_data, write_spec

N = 300
SECRET = KEYS["AWS_SECRET_ACCESS_KEY"]


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("moto") / "server.txt") as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, request: pytest.FixtureRequest) -> Bucket:
    """A new bucket."""
    return Bucket(endpoint, f"b{abs(hash(request.node.nodeid))}")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", *stores._ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def displays(n: int = N, start: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(start)
    t = start + np.arange(n)
    sold = np.where(rng.random(n) < 0.3, t + rng.integers(0, 50, n), -1)
    ads = [("a", "b", "c")[k] for k in rng.integers(0, 3, n)]
    return pl.DataFrame({"t": t, "ad": ads, "sold": sold, "other": ["x" * 50] * n}).with_columns(
        pl.when(pl.col("sold") >= 0).then("sold").alias("sold")
    )


def write(frame: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".ipc":
        frame.write_ipc(path)
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    else:
        text = frame.write_csv(separator="\t" if ".tsv" in path.name else ",").encode()
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def spec_of(folder: Path, bucket: Bucket, files: str, **sections: Any) -> Path:
    """Write the spec of a log in a bucket."""
    folder.mkdir(parents=True, exist_ok=True)
    source = {"files": f"s3://{bucket.name}/{files}", "storage": bucket.storage, **sections.pop("source", {})}
    return write_spec(folder, source=source, **sections)


def same(one: Log, two: Log) -> None:
    assert one.displays.equals(two.displays)
    assert one.conversions.equals(two.conversions)
    assert (one.labels, one.meta.counts, one.meta.notes) == (two.labels, two.meta.counts, two.meta.notes)


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
    for i in range(2_000):
        bucket.put(f"logs/{i}.parquet", b"x")
    table = Table(files=f"s3://{bucket.name}/logs", storage=Storage(**bucket.storage))
    with staging(tmp_path) as place, Databases() as databases:
        found = find_parts(SpecTable(table, (), "source"), tmp_path, staging=place, databases=databases)
    assert [part.name for part in found] == [f"s3://{bucket.name}/logs/{i}.parquet" for i in range(2_000)]


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_an_object_that_changes_or_vanishes_while_it_is_read(
    name: str, gone: bool, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(displays(), tmp_path / name)
    bucket.put(name, tmp_path / name)

    def meddle() -> None:
        if gone:
            bucket.delete(name)
        else:
            write(displays(N + 5), tmp_path / name)
            bucket.put(name, tmp_path / name)

    target, method = (objects.ObjectPart, "scan") if name == "log.parquet" else (stores.Store, "get")
    read = getattr(target, method)
    done = []

    def meddled(self: Any, *given: Any, **options: Any) -> Any:
        if not done and options.get("rows") != 0:
            done.append(meddle())
        return read(self, *given, **options)

    monkeypatch.setattr(target, method, meddled)
    word = "vanished" if gone else "changed"
    with pytest.raises(SourceError, match=rf"^s3://{bucket.name}/{name}: it {word} while it was read\."):
        load(spec_of(tmp_path / "spec", bucket, name))
    assert done


def test_damaged_objects_are_told_by_their_address(bucket: Bucket, tmp_path: Path) -> None:
    write(displays(), tmp_path / "log.parquet")
    write(displays(), tmp_path / "log.csv.gz")
    bucket.put("log.parquet", (tmp_path / "log.parquet").read_bytes()[:-100])
    bucket.put("log.csv.gz", (tmp_path / "log.csv.gz").read_bytes()[:-100])
    bucket.put("no.csv.gz", b"t,ad,sold\n1,a,2\n")
    bucket.put("bad.csv", b"t,ad,sold\n1,a,2\nx,b,3\n")
    for name in ("log.parquet", "log.csv.gz", "no.csv.gz", "bad.csv"):
        with pytest.raises(EvaluatorError) as told:
            load(spec_of(tmp_path / "spec", bucket, name))
        assert f"s3://{bucket.name}/{name}" in str(told.value)
        assert "evaluate-" not in str(told.value)


@contextmanager
def answering(status: int, code: str, *, seconds: float = 0.0) -> Iterator[str]:
    """Give the address of a server that gives every question the same answer, with the secret among its words."""

    stopped = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stopped.wait(seconds)
            body = f"<Error><Code>{code}</Code><Message>{SECRET} a-key</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            with suppress(OSError):  # who asked has left
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        do_HEAD = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as address:
        try:
            yield address
        finally:
            stopped.set()


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Give the address of a server that answers as `handler` does."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "code", "told"),
    [
        (403, "AccessDenied", "no permission to read it (403"),
        (403, "InvalidAccessKeyId", "no permission to read it (403"),
        (401, "Unauthorized", "no permission to read it (401"),
        (400, "ExpiredToken", "the credentials of the environment have expired (400"),
        (404, "NoSuchBucket", "there is no bucket 'somewhere'"),
        (301, "PermanentRedirect", "the bucket is in another region"),
        (400, "AuthorizationHeaderMalformed", "the bucket is in another region (400"),
        (500, "InternalError", "failed (500"),
        (503, "SlowDown", "failed (503"),
    ],
)
@pytest.mark.parametrize("files", ["logs/*.parquet", "logs/log.csv"])
def test_refusals_of_a_store_are_one_line_without_secrets(
    status: int, code: str, told: str, files: str, tmp_path: Path
) -> None:
    with answering(status, code) as endpoint:
        spec = write_spec(tmp_path, source={"files": f"s3://somewhere/{files}", "storage": {"endpoint": endpoint}})
        if "*" in files:
            with pytest.raises(SourceError) as error:
                load(spec)
            assert told in str(error.value)
        for command in ("show", "validate"):
            run = evaluate("datasets", command, str(spec))
            assert (run.code, run.out) == (3, "")
            assert "s3://somewhere/logs" in run.err
            assert SECRET not in run.err
            assert "a-key" not in run.err


def test_nobody_listens(tmp_path: Path) -> None:
    for endpoint in (f"http://127.0.0.1:{free_port()}", "http://no-such-host.invalid"):
        spec = write_spec(tmp_path, source={"files": "s3://somewhere/*.csv", "storage": {"endpoint": endpoint}})
        with pytest.raises(SourceError, match=rf"the object store at {endpoint} does not answer\."):
            load(spec)


def test_a_store_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "SILENCE", "300ms")
    with answering(200, "", seconds=60.0) as endpoint:
        for files in ("*.csv", "log.csv"):
            spec = write_spec(tmp_path, source={"files": f"s3://somewhere/{files}", "storage": {"endpoint": endpoint}})
            with pytest.raises(SourceError, match="does not answer"):
                load(spec)


def test_a_connection_that_breaks_within_an_object(tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "Range" in self.headers:  # the rest of it
                return
            self.send_response(200)
            for name, value in {
                "Content-Length": "1000",
                "ETag": '"1"',
                "Last-Modified": formatdate(usegmt=True),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"t,ad,sold\n1,a,2\n")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    with serving(Handler) as endpoint:
        spec = write_spec(tmp_path, source={"files": "s3://somewhere/log.csv", "storage": {"endpoint": endpoint}})
        with pytest.raises(SourceError, match=r"^s3://somewhere/log.csv: the object store at .* does not answer\."):
            load(spec)


def test_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    with answering(404, "NotFound") as nobody:
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", nobody)
        spec = write_spec(tmp_path, source={"files": "s3://somewhere/*.csv", "storage": {"endpoint": nobody}})
        with pytest.raises(
            SourceError, match=r"the environment holds no credentials\. Hint: set AWS_ACCESS_KEY_ID and"
        ):
            load(spec)


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


def test_settings_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", f"no base64: {SECRET}")
    spec = write_spec(tmp_path, source={"files": "az://somewhere/log.csv", "storage": {"account": "mine"}})
    with pytest.raises(SourceError, match=r"^az://somewhere/: what is said of its store cannot be used\.") as told:
        load(spec)
    assert SECRET not in str(told.value)


def test_a_store_fails_after_the_listing(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(displays(), tmp_path / "log.parquet")
    bucket.put("log.parquet", tmp_path / "log.parquet")
    with answering(403, "AccessDenied") as elsewhere:
        monkeypatch.setattr(
            stores.Store, "polars_options",
            property(lambda self: {"aws_endpoint_url": elsewhere, "aws_allow_http": "true", "aws_region": "x"}),
        )  # fmt: skip
        with pytest.raises(SourceError, match=r"log.parquet: no permission to read it \(403 AccessDenied\)"):
            load(spec_of(tmp_path / "spec", bucket, "log.parquet"))


def test_settings_of_other_stores_are_refused(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, source={"files": "s3://somewhere/log.csv", "storage": {"account": "mine"}})
    with pytest.raises(SourceError, match=r"`storage.account` does not apply to s3://"):
        load(spec)
    spec = write_spec(tmp_path, source={"files": "ftp://somewhere/log.csv"})
    with pytest.raises(SourceError, match=r"ftp://somewhere/log.csv: no address of an object store"):
        load(spec)


@pytest.mark.parametrize(
    "key",
    ["secret", "secret_access_key", "access_key_id", "aws_access_key_id", "token", "session_token", "password",
     "account_key", "sas_key", "connection_string", "credentials", "service_account_key"],
)  # fmt: skip
def test_a_spec_that_holds_a_secret_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(SpecError) as told:
        parse_spec(spec_data(source={"files": "s3://b/log.csv", "storage": {key: SECRET}}))
    assert f"`{key}` is a secret, and a spec holds none" in str(told.value)
    assert "AWS_SECRET_ACCESS_KEY" in str(told.value)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    "address",
    [f"s3://me:{SECRET}@b/log.csv", f"https://b.s3.amazonaws.com/log.csv?X-Amz-Signature={SECRET}",
     f"az://b/log.csv?sv=1&sig={SECRET}"],
)  # fmt: skip
def test_an_address_that_holds_a_secret_is_refused_without_repeating_it(address: str, tmp_path: Path) -> None:
    for source in ({"files": address}, {"files": "s3://b/log.csv", "storage": {"endpoint": address}}):
        with pytest.raises(SpecError, match="the address holds a secret, and a spec holds none") as told:
            parse_spec(spec_data(source=source))
        assert SECRET not in str(told.value)
    with pytest.raises(UsageError, match="address holds a secret") as given:
        load(write_spec(tmp_path), path=address)
    assert SECRET not in str(given.value)
    show_at = ["datasets", "show", str(write_spec(tmp_path)), "--path"]
    for words in (["datasets", "validate"], ["datasets", "init"], show_at, ["delays"]):
        run = evaluate(*words, address)
        assert run.code == 2
        assert SECRET not in run.out + run.err
    with pytest.raises(UsageError, match="address holds a secret"):
        load(write_spec(tmp_path), path=Path(address))
    with pytest.raises(SpecError) as odd:
        parse_spec(spec_data(source={"files": "s3://b/log.csv", "storage": SECRET}))  # type: ignore[dict-item]
    assert SECRET not in str(odd.value)
