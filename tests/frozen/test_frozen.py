"""Commands say what they said when their snapshots were written."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.frozen.commands import COMMANDS, LATER
from tests.frozen.normal import same
from tests.frozen.running import SNAPSHOTS, Runs

# Lines of a difference that a failure shows.
SHOWN = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("frozen").resolve())


def difference(kept: str, now: str) -> list[str]:
    """Return a unified difference, without lines that differ by the rounding of a number."""
    old, new = kept.splitlines(), now.splitlines()
    if len(old) == len(new):
        new = [a if same(a, b) else b for a, b in zip(old, new, strict=True)]
    return list(difflib.unified_diff(old, new, "snapshot", "now", n=1, lineterm=""))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in LATER])
def test_a_command_says_what_its_snapshot_says(name: str, runs: Runs) -> None:
    kept = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8")
    lines = difference(kept, runs.snapshot(name))
    more = f"\n... {len(lines) - SHOWN:,} more lines" if len(lines) > SHOWN else ""
    assert not lines, (
        "\n".join(lines[:SHOWN]) + more + f"\nIf that is meant: python -m tests.frozen --write {name}, "
        "and say in the commit why each of these lines changes."
    )


def test_every_snapshot_has_its_command() -> None:
    assert {file.stem for file in Path(SNAPSHOTS).iterdir()} == set(COMMANDS)


def test_a_difference_is_shown_but_for_rounding() -> None:
    kept = '"value": 0.123456789,\n"rounds": 17\nsaid so'
    assert not difference(kept, kept.replace("789", "788"))
    assert difference(kept, kept.replace("17", "18"))[-2:] == ['+"rounds": 18', " said so"]
    assert difference(kept, kept.replace("0.123456789", "0.123457789"))
    assert difference(kept, kept + "\nand more")
