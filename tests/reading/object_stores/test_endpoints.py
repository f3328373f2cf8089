"""Credentials of the environment go where their owner sends them, not where a spec does."""

from __future__ import annotations

import http.server
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.datasets import load
from evaluator.errors import EvaluatorError, SourceError
from evaluator.reading.sources.stores import ALLOWED_ENDPOINTS, refuse_unlisted_endpoint
from evaluator.reading.spec_sections import Storage
from tests.reading.object_stores.buckets import SECRET, serving
from tests.reading.sources import write_spec

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SECRET,
    "AZURE_STORAGE_ACCOUNT_NAME": "mine", "AZURE_STORAGE_SAS_TOKEN": f"sv=1&sig={SECRET}",
}  # fmt: skip


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[str]]]:
    """Address of a server that nobody allowed, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers}")
            self.send_error(403)

        do_PUT = do_HEAD = do_GET  # noqa: N815

        def log_message(self, *words: Any) -> None:
            pass

    monkeypatch.delenv(ALLOWED_ENDPOINTS)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with serving(Handler) as address:
        yield address, asked


@pytest.mark.parametrize(
    "where",
    [{"files": "s3://b/log.csv"}, {"files": "s3://b/*.csv"}, {"files": "az://b/log.csv"}, {"files": "s3://b/log.parquet"},
     {"files": None, "delta": "s3://b/log"}, {"files": None, "iceberg": "s3://b/log"}],
)  # fmt: skip
def test_a_spec_sends_nothing_to_an_endpoint_that_nobody_listed(
    where: dict[str, Any], listener: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = listener
    spec = write_spec(tmp_path, source={**where, "storage": {"endpoint": address}})
    with pytest.raises(SourceError) as told:
        load(spec)
    assert f"storage.endpoint {address} would get the credentials of the environment" in str(told.value)
    assert f"set {ALLOWED_ENDPOINTS}={address}" in str(told.value)
    assert not asked
    # The remedy is the one that the line names: the store is asked then, which is what it is for.
    monkeypatch.setenv(ALLOWED_ENDPOINTS, f"https://minio.example.org, {address}")
    with pytest.raises(EvaluatorError):
        load(spec)
    assert asked


def test_an_endpoint_of_the_environment_is_its_word(
    listener: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, asked = listener
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    with pytest.raises(SourceError, match="no permission"):
        load(write_spec(tmp_path, source={"files": "s3://b/log.csv", "storage": {"endpoint": address}}))
    assert asked


@pytest.mark.parametrize(
    ("scheme", "endpoint", "own"),
    [
        ("s3", "https://s3.amazonaws.com", True),
        ("s3", "https://s3.eu-central-1.amazonaws.com", True),
        ("s3", "https://s3-fips.dualstack.us-gov-west-1.amazonaws.com", True),
        ("s3", "https://s3.cn-north-1.amazonaws.com.cn", True),
        ("s3", "http://s3.eu-central-1.amazonaws.com", False),
        ("s3", "https://x1.execute-api.us-east-1.amazonaws.com", False),
        ("s3", "https://s3.amazonaws.com.evil.example", False),
        ("s3", "https://s3.amazonaws.com@evil.example", False),
        ("s3", "https://evil.example/s3.amazonaws.com", False),
        ("gs", "https://storage.googleapis.com", True),
        ("gs", "https://storage.googleapis.com.evil.example", False),
        ("gs", "http://127.0.0.1:18997", False),
        ("az", "https://mine.blob.core.windows.net", True),
        ("az", "https://mine.blob.core.windows.net.evil.example", False),
        ("az", "http://mine.blob.core.windows.net", False),
    ],
)
def test_the_provider_s_own_is_known_by_its_host(
    scheme: str, endpoint: str, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ALLOWED_ENDPOINTS)
    storage = Storage.model_construct(endpoint=endpoint)
    if own:
        refuse_unlisted_endpoint(scheme, storage)
        return
    with pytest.raises(SourceError, match="is not the provider's own"):
        refuse_unlisted_endpoint(scheme, storage)


def test_without_credentials_any_endpoint_may_be_asked_but_by_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOWED_ENDPOINTS)
    for endpoint in ("https://data.example.org", "http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"):
        refuse_unlisted_endpoint("s3", Storage(endpoint=endpoint, anonymous=True))
    with pytest.raises(SourceError, match="would be asked by plain http"):
        refuse_unlisted_endpoint("s3", Storage(endpoint="http://data.example.org", anonymous=True))


@pytest.mark.parametrize(
    ("listed", "endpoint", "covered"),
    [
        ("http://minio:9000", "http://minio:9000", True),
        ("http://minio", "http://minio:9000", True),
        ("HTTP://MINIO:9000", "http://minio:9000/path", True),
        ("http://minio:9000", "http://minio:9001", False),
        ("https://minio:9000", "http://minio:9000", False),
        ("http://minio:9000", "http://minio.evil.example:9000", False),
        ("minio:9000", "http://minio:9000", False),
        ("", "http://minio:9000", False),
    ],
)
def test_a_list_covers_what_it_names(
    listed: str, endpoint: str, covered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED_ENDPOINTS, listed)
    storage = Storage(endpoint=endpoint)
    if covered:
        refuse_unlisted_endpoint("s3", storage)
    else:
        with pytest.raises(SourceError):
            refuse_unlisted_endpoint("s3", storage)
