"""The README's promises: its first block sets everything up, it is short, and nothing names a registry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.tables import TABLES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# A table may stand in the README or on a page of the docs.
LINES = {
    line
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    for line in page.read_text(encoding="utf-8").splitlines()
}


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
    for row in TABLES["policies"]():
        assert row in LINES, f"README.md lacks this row of its table: {row}"


def test_the_table_of_policies_has_no_row_that_the_registry_lacks() -> None:
    page = (ROOT / "docs" / "why" / "policies.md").read_text(encoding="utf-8")
    rows = TABLES["policies"]()
    assert [line for line in page.splitlines() if line.startswith("|") and line not in rows] == []


def test_every_dataset_is_named() -> None:
    for row in TABLES["datasets"]()[2:]:
        name = row.split("|")[1].strip()
        assert any(name in line for line in LINES), (
            f"README.md does not name the bundled dataset {name}: say what it is"
        )


@pytest.mark.parametrize("name", TABLES)
def test_the_command_prints_a_table_of_a_registry(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.tables", name], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == TABLES[name]()
    assert len({row.count("|") for row in done.stdout.splitlines()}) == 1


def test_it_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 140


def test_its_numbers_are_those_of_the_pages_that_commands_print() -> None:
    clocks = (ROOT / "docs" / "why" / "two-clocks.md").read_text(encoding="utf-8")
    printed = [float(x) for x in re.findall(r"^(?:live|replayed, .*?) +([\d.]+) ±", clocks, re.M)]
    shown = re.search(r"live (\d+), replayed on the traffic clock (\d+), replayed on the log's own clock (\d+)", README)
    assert shown is not None
    assert [int(x) for x in shown.groups()] == [round(x) for x in printed]
    flattered = re.search(r"([\d.]+)% too good$", clocks.split("own clock  ")[1], re.M)
    assert flattered is not None
    assert f"looks {float(flattered[1]):.0f} % too good" in README
    speed = (ROOT / "docs" / "why" / "speed.md").read_text(encoding="utf-8")
    for number in re.findall(r"([\d.]+) million", README):
        assert f"{number} million" in speed
    for number in re.findall(r"([\d.]+) s\b", README):
        assert f"| {number} |" in speed


def test_nothing_names_a_package_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    hosts = re.compile(r"https?://[^\s\"']*(pypi|pythonhosted|npmjs|registry|debian)[^\s\"']*", re.I)
    for name in tracked.stdout.splitlines():
        file = ROOT / name
        if file.suffix in (".py", ".toml", ".md", ".txt", ".json", ".ipynb", "") and file.is_file():
            assert not hosts.search(file.read_text(encoding="utf-8", errors="ignore")), name
