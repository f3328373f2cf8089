"""Every notebook runs from top to bottom, with few runs where it simulates. Run by `.ci/run`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
PAPERS = {
    "manegueu2020_arm_dependent_delays",
    "pikeburke2018_anonymous_feedback",
    "vernade2017_delayed_conversions",
    "vernade2018_contextual_delayed",
    "vernade2020_linear_delayed",
}


def test_every_paper_has_its_notebook() -> None:
    assert {path.stem for path in NOTEBOOKS} > PAPERS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < 300_000


@pytest.mark.filterwarnings("ignore")  # of the notebook machinery, not ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.config.getoption("--run-notebooks"):
        pytest.skip("needs --run-notebooks: .ci/run gives it")
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("EVALUATOR_RUNS", "2")
    notebook = nbformat.read(path, as_version=4)
    stored = _outputs(notebook)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    if path.stem in PAPERS:
        assert _outputs(notebook) == stored
        assert stored[-1] == ["paper says", "we measure", "agrees?"]


def _outputs(notebook: Any) -> list[list[str]]:
    """Return what does not depend on the number of runs: each table's columns, and for a chart its type."""
    data = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    return [re.findall("<th>(.*?)</th>", shown.get("text/html", "")) or sorted(shown) for shown in data]
