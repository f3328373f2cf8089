"""Every notebook runs from top to bottom. Run by `.ci/run`."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.filterwarnings("ignore")  # of the notebook machinery, not ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--run-notebooks"):
        pytest.skip("needs --run-notebooks: .ci/run gives it")
    import nbformat
    from nbclient import NotebookClient

    NotebookClient(nbformat.read(path, as_version=4), timeout=600, kernel_name="python3").execute()
