"""Notebooks are committed whole, and run from top to bottom, with few runs where they simulate. Run by `.ci/run`."""

from __future__ import annotations

import ast
import json
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
# Statements that no sentence of prose is.
CODE = (ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.Assert, ast.FunctionDef, ast.For, ast.With, ast.If)
# Calls that are made for what they do.
SILENT = ("alt.renderers.enable", "alt.data_transformers.disable_max_rows")


def test_every_paper_has_its_notebook() -> None:
    assert {path.stem for path in NOTEBOOKS} > PAPERS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size < 300_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_stored_notebook_is_whole(path: Path) -> None:
    assert defects(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("kind", "source", "outputs", "defect"),
    [
        ("markdown", "horizon = 9_000\nrows = []", [], "code in Markdown"),
        ("markdown", "So it is:\n\nreplay(log, policy)", [], "code in Markdown"),
        ("markdown", "So it is:\n\n```python\nreplay(log)\n```", [], "code in Markdown"),
        ("code", "x = 1\nx", [], "no output"),
        ("code", "x", [{"output_type": "error", "ename": "NameError"}], "NameError"),
        ("code", "pass", [], "twice"),
        ("code", "x = 2", [], "executed as"),
    ],
)
def test_what_is_no_whole_notebook(kind: str, source: str, outputs: list[dict[str, Any]], defect: str) -> None:
    cells = [{"cell_type": "code", "source": "pass", "execution_count": 1, "outputs": []}]
    cells.append(
        {"cell_type": "markdown", "source": "# Title\n\nProse (with words), and\n\n```sh\nevaluate replay\n```"}
    )
    assert defects({"cells": cells}) == []
    cells.append(
        {"cell_type": kind, "source": source, "execution_count": 3 if "as" in defect else 2, "outputs": outputs}
    )
    found = defects({"cells": cells})
    assert len(found) == 1
    assert defect in found[0]


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
    assert defects(notebook) == []
    if path.stem in PAPERS:
        assert _outputs(notebook) == stored
        assert stored[-1] == ["paper says", "we measure", "agrees?"]


def defects(notebook: dict[str, Any]) -> list[str]:
    """Say what a notebook lacks: code that stands as prose, cells that ran out of order, failed or show nothing."""
    found, seen, ran = [], set(), 0
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found += [f"cell {number}: code in Markdown"] * _holds_code(source)
            continue
        ran += 1
        if source in seen:
            found.append(f"cell {number}: there twice")
        seen.add(source)
        if cell["execution_count"] != ran:
            found.append(f"cell {number}: executed as {cell['execution_count']}, but is the {ran}.")
        failed = [output["ename"] for output in cell["outputs"] if output["output_type"] == "error"]
        found += [f"cell {number}: {name}" for name in failed]
        if _shows(source) and not cell["outputs"]:
            found.append(f"cell {number}: no output")
    return found


def _holds_code(markdown: str) -> bool:
    if re.search(r"^```\s*(python|py)\b", markdown, re.MULTILINE):
        return True
    prose = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return any(_is_code(paragraph) for paragraph in re.split(r"\n\s*\n", prose))


def _is_code(text: str) -> bool:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return any(
        isinstance(part, CODE) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Call)) for part in body
    )


def _shows(code: str) -> bool:
    """Whether the last line is an expression, which a notebook shows."""
    body = ast.parse(code).body
    last = body[-1] if body else None
    return isinstance(last, ast.Expr) and not ast.unparse(last).startswith(SILENT)


def _outputs(notebook: Any) -> list[list[str]]:
    """Return what does not depend on the number of runs: each table's columns, and for a chart its type."""
    data = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    return [re.findall("<th>(.*?)</th>", shown.get("text/html", "")) or sorted(shown) for shown in data]
