"""Options and settings of the whole test run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.drawing import KeptDrawing, own_process

# The first call of a compiled function compiles it, which no deadline should count.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A new counterexample is for whoever works on the code to find, not for whoever's change happens to be checked.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# For the processes that run the tests, which import NumPy later: two of them with two spinning threads each, on two
# cores, fit models in twice the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

STATISTICAL = Path(__file__).parent / "statistical"
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-notebooks", action="store_true", help="run every notebook")
    parser.addoption("--wheel", help="built wheel to look into")
    parser.addoption("--installed", help="environment the wheel is installed in")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the long proofs on known truth to those who name them: ``pytest tests/statistical``, as .ci/run does."""
    if collection_path == STATISTICAL and not any("statistical" in argument for argument in config.args):
        return True
    return None


def pytest_collection_finish() -> None:
    """Refuse to compile while tests are collected, which every process does: half a minute that no test is blamed for.

    Raises
    ------
    pytest.UsageError
        A module replays something when it is imported.
    """
    loop = sys.modules.get("evaluator.engine.loop")
    if getattr(getattr(loop, "replay", None), "signatures", ()):
        raise pytest.UsageError("a test module replays when it is imported: put what it needs into a fixture")


@pytest.fixture(scope="session", autouse=True)
def redirected_at_its_own_width() -> Iterator[None]:
    """Have reports as wide as they are where no terminal says how wide: those who run tests in processes say so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_without_helpers() -> Iterator[None]:
    """Have a worker compile what it calls alone: the other one is busy, and finds it in the cache that both share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluator.engine.kernels.compiling._processors", lambda: 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """Leave out what only a machine without power would see: thousands of waits, some milliseconds each.

    That files are forced to disk, and in which order, `tests.outputs.test_atomic` and the campaign of crash points say.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _charts_by_one_process() -> Iterator[None]:
    """Draw the charts of all tests in one process, which half a second begins; see `drawn_alone`."""
    with pytest.MonkeyPatch.context() as patch, KeptDrawing() as kept:
        patch.setattr("evaluator.reports.html._answers", kept)
        yield


@pytest.fixture
def drawn_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw in a process of its own, as the package does: for tests of how it begins, fails, and is ended."""
    monkeypatch.setattr("evaluator.reports.html._answers", own_process)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data that may not be copied into the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data is not beside the project")
    return SHARED_DATA
