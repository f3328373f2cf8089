"""Standard streams that are closed, full or gone: the result that was asked for in a file is there all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator.cli.app import SafeStream
from evaluator.errors import OutputError

SIMULATE = f"{sys.executable} -m evaluator simulate -s vernade2017-low -p random --runs 2 --horizon 50 --out out"


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("| true", 0, ""),
        (">/dev/full", 1, "error: stdout: cannot be written (No space left on device)."),
        (">&- 2>&-", 1, ""),
    ],
)
def test_a_lost_stream_costs_no_result(tmp_path: Path, redirected: str, code: int, said: str) -> None:
    script = f"set -o pipefail; {SIMULATE} {redirected}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "chapter.json", "curves.parquet", "manifest.json", "report.html", "report.txt", "result.json",
    ]  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if not line.startswith("Wrote ")]
    assert len(errors) == bool(said)
    assert "".join(errors).startswith(said)


def test_what_nobody_reads_is_dropped() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with SafeStream(writer, needed=True) as stream:
            assert stream.write(b"said") == 4
            assert stream.write(b"more") == 4
    finally:
        os.close(writer)


def test_what_cannot_be_written_is_said_once_if_it_is_needed() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        with SafeStream(full, needed=True) as stream:
            with pytest.raises(OutputError, match="No space left on device"):
                stream.write(b"said")
            assert stream.write(b"more") == 4
        with SafeStream(full, needed=False) as stream:
            assert stream.write(b"said") == 4
    finally:
        os.close(full)
