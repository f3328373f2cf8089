"""The README's promises: its first block sets everything up, and nothing in the repository names a registry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("job", "line"),
    [
        ("run", "pip install . && evaluate replay --policy otflinucb --window 2000"),
        ("test", "pip install -e '.[test]' && pytest"),
    ],
)
def test_first_block_holds_the_two_commands(job: str, line: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/readme_line.py", job], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == line


def test_every_policy_is_in_the_table() -> None:
    from evaluator.policies.registry import table

    pages = [README, *(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))]
    for row in table():
        assert any(row in page.splitlines() for page in pages), f"README.md lacks this row of its table: {row}"


def test_evaluate_commands_in_the_readme_parse() -> None:
    from typer.testing import CliRunner

    from evaluator.cli.app import app

    commands = {line.split("evaluate ", 1)[1].split()[0] for line in re.findall(r"^.*\bevaluate .*$", README, re.M)}
    named = {c for c in commands if c in ("replay", "datasets", "policies")}
    assert named == {"replay", "datasets", "policies"}
    for command in named:
        assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_nothing_names_a_package_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    hosts = re.compile(r"https?://[^\s\"']*(pypi|pythonhosted|npmjs|registry|debian)[^\s\"']*", re.I)
    for name in tracked.stdout.splitlines():
        file = ROOT / name
        if file.suffix in (".py", ".toml", ".md", ".txt", ".json", ".ipynb", "") and file.is_file():
            assert not hosts.search(file.read_text(encoding="utf-8", errors="ignore")), name
