"""Dependencies point one way: cli -> report -> evaluation -> replayer -> policies -> kernels."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evaluator

PACKAGE = Path(evaluator.__file__).parent

# What each folder may import of the package; errors, units and outputs serve all.
ALLOWED = {
    "outputs": set(),
    "kernels": set(),
    "delays": {"kernels"},
    "log": set(),
    "datasets": {"log", "delays"},
    "policies": {"kernels", "delays"},
    "rounds": {"log", "delays"},
    "replayer": {"rounds", "policies", "kernels", "delays"},
    "simulator": {"policies", "kernels", "delays"},
    "estimates": set(),
    "evaluation": {"log", "delays", "rounds", "policies", "replayer", "estimates", "kernels"},
    "checking": {"log", "delays", "rounds", "estimates", "evaluation"},
    "auditor": {"log", "delays", "rounds", "policies", "estimates", "evaluation", "simulator"},
    "report": {"checking", "auditor", "evaluation", "estimates", "simulator", "delays"},
    "cli": None,
}
# Third parties that only these folders touch.
FENCES = {
    "polars": {"datasets"},
    "pyarrow": {"outputs", "datasets", "log", "evaluation", "simulator", "auditor", "report"},
    "typer": {"cli"},
    "rich": {"cli", "report"},
    "altair": {"report"},
    "vl_convert": {"report"},
    "numba": {"kernels"},
    "pydantic": {"datasets", "delays"},
}


def imports(file: Path) -> set[str]:
    """Modules a file imports when it runs; imports for type checkers do not count."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if node.module != "evaluator" else {f"evaluator.{a.name}" for a in node.names}
    return found


@pytest.mark.parametrize("folder", ALLOWED)
def test_folders_import_only_what_comes_before_them(folder: str) -> None:
    files = list((PACKAGE / folder).rglob("*.py"))
    assert files
    allowed = ALLOWED[folder]
    for file in files:
        for module in imports(file):
            parts = module.split(".")
            if parts[0] == "evaluator" and len(parts) > 1 and (PACKAGE / parts[1]).is_dir():
                assert allowed is None or parts[1] in allowed | {folder, "outputs"}, f"{file.name} imports {module}"
                assert folder == "cli" or parts[1] != "cli", f"{file.name} imports {module}"
            if parts[0] in FENCES:
                assert folder in FENCES[parts[0]], f"{folder}/{file.name} imports {module}"


def test_every_folder_is_fenced() -> None:
    folders = {f.name for f in PACKAGE.iterdir() if f.is_dir() and list(f.glob("*.py"))}
    assert folders == set(ALLOWED)


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("\n")[-2].split())


def test_help_imports_nothing_heavy() -> None:
    code = "sys.argv = ['evaluate', '--help']\ntry:\n import evaluator.cli.app as a; a.main()\nexcept SystemExit: pass"
    modules = loaded_by(f"exec({code!r})")
    assert not modules & {"polars", "pyarrow", "numpy", "numba", "scipy", "altair", "pydantic"}


def test_replay_does_not_import_scipy_stats() -> None:
    code = "from evaluator import load, replay; replay(load('synthetic', limit=2000), 'delayed-klucb', window=50)"
    modules = loaded_by(code)
    assert "evaluator.replayer.loop" in modules
    assert not modules & {"scipy.stats", "altair", "vl_convert", "sklearn"}


def test_a_study_of_delays_draws_only_when_asked_to() -> None:
    code = "from evaluator.cli import app as a; import sys; sys.argv = ['evaluate', 'delays', '--limit', '2000']"
    run = f"{code}\ntry:\n a.main()\nexcept SystemExit: pass\nprint()"
    assert not loaded_by(f"exec({run!r})") & {"altair", "vl_convert"}
