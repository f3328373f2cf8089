"""What is named by ``--cluster``: refused in one line where it cannot be had."""

from __future__ import annotations

import sys

import pytest

from tests.cli.runs import evaluate


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--limit", "2000"),
        ("audit", "--limit", "2000"),
        ("replay", "--limit", "2000", "--bootstrap", "20"),
        ("simulate", "vernade2017-low"),
    ],
)
def test_without_dask_it_says_what_to_install(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = evaluate(*command, "-p", "ucb1", "--cluster", "local:2")
    assert (done.code, done.out) == (2, "")
    line = "error: A cluster needs Dask, which is not installed. Hint: pip install 'delayed-replay[cluster]'."
    assert done.err.splitlines()[-1] == line
