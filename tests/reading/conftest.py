"""Databases, started once a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluator.reading.sources.stores import ALLOWED_ENDPOINTS
from tests.reading.databases import KINDS, MISSING, SECRET, VARIABLE, Shop, programs, server


@pytest.fixture(autouse=True)
def _may_ask_servers_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let specs name the stores that tests start, and one that does not exist."""
    monkeypatch.setenv(ALLOWED_ENDPOINTS, "http://127.0.0.1,http://no-such-host.invalid")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URI of a server; tests that need one are skipped where none can be started."""
    if programs() is None:
        pytest.skip(MISSING)
    with server() as uri:
        yield uri


@pytest.fixture
def shop_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Shop]:
    """What fills a database of some kind, and sets the variable of its URI."""

    def filled(kind: str) -> Shop:
        for module in ("adbc_driver_manager", f"adbc_driver_{kind}"):
            pytest.importorskip(module, reason="pip install 'delayed-replay[sql]'")
        folder = tmp_path / SECRET
        folder.mkdir(exist_ok=True)
        uri = request.getfixturevalue("postgresql") if kind == "postgresql" else str(folder / f"shop.{kind}")
        monkeypatch.setenv(VARIABLE, uri)
        return Shop(kind, uri).fill()

    return filled


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, shop_of: Callable[[str], Shop]) -> Shop:
    """The shop in each database."""
    return shop_of(request.param)
