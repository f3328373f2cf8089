"""A bucket of an S3 server on this machine, and the credentials of the environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evaluator.reading.sources import stores
from tests.reading.object_stores.server import KEYS, Bucket, s3_server


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
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION", *stores.ENDPOINTS["s3"]):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
