"""The built wheel: what is in it, and that the main job runs from it, away from the sources. Run by `.ci/run`."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def wheel(request: pytest.FixtureRequest) -> Path:
    path = request.config.getoption("--wheel")
    if path is None:
        pytest.skip("needs --wheel: .ci/run builds one")
    return Path(path)


@pytest.fixture
def installed(request: pytest.FixtureRequest) -> Path:
    path = request.config.getoption("--installed")
    if path is None:
        pytest.skip("needs --installed: .ci/run installs the wheel elsewhere")
    return Path(path)


def test_wheel_holds_the_package_and_the_specs_and_nothing_else_on_top(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {n.split("/")[0].split("-")[0] for n in names} == {"evaluator", "delayed_replay"}
    assert "evaluator/datasets/_bundled/synthetic/spec.toml" in names
    assert "evaluator/datasets/_bundled/synthetic/vernade2017-low.toml" in names
    assert "evaluator/datasets/_bundled/criteo_attribution/README.md" in names
    assert "evaluator/worlds/shop/spec.toml" in names
    assert not [n for n in names if "test" in n]


@pytest.mark.parametrize("script", ["evaluate", "delayed-replay"])
def test_main_job_runs_from_the_wheel(installed: Path, tmp_path: Path, script: str) -> None:
    done = subprocess.run(
        [installed / "bin" / script, "replay", "--policy", "otflinucb", "--window", "2000", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["dataset"] == "synthetic"
    assert "bundled synthetic log" in done.stderr
    assert result["value"]["low"] < result["value"]["estimate"] < result["value"]["high"]


def test_no_test_dependency_is_needed(installed: Path) -> None:
    done = subprocess.run([installed / "bin" / "pip", "list"], capture_output=True, text=True, check=True)
    assert not {"pytest", "hypothesis", "ruff", "mypy"} & {line.split()[0] for line in done.stdout.splitlines() if line}
