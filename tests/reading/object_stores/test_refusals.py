"""Stores that refuse, fail, or change what they hold: one clear line."""

from __future__ import annotations

import http.server
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from evaluator.datasets import load
from evaluator.errors import EvaluatorError, SourceError
from evaluator.reading.sources import files, stores
from tests.cli.runs import evaluate
from tests.reading.object_stores.buckets import SECRET, N, answering, displays, serving, spec_of, write
from tests.reading.object_stores.server import KEYS, Bucket, free_port
from tests.reading.sources import write_spec


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


def test_settings_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", f"no base64: {SECRET}")
    spec = write_spec(tmp_path, source={"files": "az://somewhere/log.csv", "storage": {"account": "mine"}})
    with pytest.raises(SourceError, match=r"^az://somewhere/: what is said of its store cannot be used\.") as told:
        load(spec)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    ("address", "variable", "value", "told"),
    [
        ("s3://b/log", "AWS_ENDPOINT_URL", "127.0.0.1:5999", "is no address of a store"),
        ("s3://b/log", "AWS_ENDPOINT_URL", "", "is empty"),
        ("s3://b/log", "AWS_ENDPOINT_URL_S3", "http://127.0.0.1:5999 ", "is no address of a store"),
        ("s3://b/log", "AWS_ENDPOINT_URL", "http://", "is no address of a store"),
        ("s3://b/log", "AWS_SECRET_ACCESS_KEY", f"{SECRET}\n", "has a blank or a line break"),
        ("s3://b/log", "AWS_SESSION_TOKEN", f"{SECRET}\n", "has a blank or a line break"),
        ("s3://b/log", "AWS_REGION", "eu west\n1", "has a blank or a line break"),
        ("az://b/log", "AZURE_STORAGE_ACCOUNT_NAME", "me\n", "has a blank or a line break"),
        ("gs://b/log", "GOOGLE_BASE_URL", "localhost", "is no address of a store"),
    ],
)
def test_an_environment_that_cannot_be_used_is_one_line(
    address: str, variable: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv(variable, value)
    for words in (("datasets", "show", address), ("replay", "-p", "ucb1", "-d", address)):
        run = evaluate(*words)
        assert (run.code, run.out) == (3, "")
        assert run.err.startswith(f"error: The variable {variable} of the environment {told}")
        assert run.err.count("\n") == 1
        assert SECRET not in run.err
    assert capfd.readouterr() == ("", "")


def test_an_endpoint_of_the_spec_needs_none_of_the_environment(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(displays(), tmp_path / "log.parquet")
    bucket.put("log.parquet", (tmp_path / "log.parquet").read_bytes())
    spec = spec_of(tmp_path / "spec", bucket, "log.parquet")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "")
    assert len(load(spec)) == N


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

    target, method = (files.ObjectPart, "scan") if name == "log.parquet" else (stores.Store, "get")
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
