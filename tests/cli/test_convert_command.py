"""``evaluate datasets convert`` as a user meets it: what it says, and what it leaves when the disk is full."""

from __future__ import annotations

import os
import pty
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runs import evaluate
from tests.cli.test_commands import command
from tests.reading.sources import dataset
from tests.reading.test_integrity import VERSION_1

N = 150_000
ROWS = ["t,ad,sold,user", *[f"{i},{i * i % 7},,{i * 7919 % 10007}" for i in range(N)]]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dataset(tmp_path_factory.mktemp("log"), ROWS, context={"columns": ["user"]})


def words(spec: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "evaluator", "datasets", "convert", str(spec), str(out)]


def test_says_what_it_wrote_and_nothing_else(spec: Path, tmp_path: Path) -> None:
    run = evaluate("datasets", "convert", str(spec), str(tmp_path / "out"))
    assert run.code == 0
    assert run.out == f"{tmp_path}/out: 150,000 displays, 0 conversions, 4 actions.\n"
    assert run.err == ""


def test_shows_the_rows_so_far_on_a_terminal(spec: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    running = subprocess.Popen(words(spec, tmp_path / "out"), stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65_536):
            shown += piece
    except OSError:
        pass  # how Linux says that the other side of a terminal is closed
    out, _ = running.communicate(timeout=60)
    os.close(ours)
    assert running.returncode == 0
    assert out.decode().startswith(f"{tmp_path}/out: 150,000 displays")
    assert re.search(rb"Converting.*\d rows", shown)


@pytest.mark.parametrize(
    ("rows", "said"),
    [(["t,ad,sold", "3,a,", "2,b,"], "line 3: time 2 is earlier than 3"), (["t,ad,sold", "3,a,2"], "line 2: '2'")],
)
def test_hints_name_options_that_exist(tmp_path: Path, rows: list[str], said: str) -> None:
    run = evaluate("datasets", "convert", str(dataset(tmp_path, rows)), str(tmp_path / "out"))
    assert run.code == 3
    assert len(run.err.splitlines()) == 1
    assert said in run.err
    flags = re.findall(r"--[a-z-]+", run.err)
    options = {o for p in command("datasets convert").params for o in p.opts}
    assert flags
    assert set(flags) <= options


def refused(done: subprocess.CompletedProcess[str], out: Path, reason: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"error: {out}: cannot be written ({reason}). Hint: make room, or choose another place.\n"
    assert list(out.parent.iterdir()) == []


def test_no_room_for_a_file(spec: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        words(spec, tmp_path / "out"), capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )  # fmt: skip
    refused(done, tmp_path / "out", "File too large")


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    size = f"size={request.param}k"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


# The rows set aside take 620 kB, the displays 320 kB.
@pytest.mark.parametrize("small_disk", [300, 750], indirect=True)
def test_full_disk(spec: Path, small_disk: Path) -> None:
    done = subprocess.run(words(spec, small_disk / "out"), capture_output=True, text=True)
    refused(done, small_disk / "out", "No space left on device")


@pytest.mark.parametrize("small_disk", [300], indirect=True)
def test_validate_with_a_full_disk(spec: Path, small_disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evaluator", "datasets", "validate", str(spec)],
        capture_output=True, text=True, env={**os.environ, "TMPDIR": str(small_disk)},
    )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(rf"error: {small_disk}/\S+: cannot be written \(No space left on device\)\..*\n", done.stderr)
    assert list(small_disk.iterdir()) == []


def test_a_damaged_log_is_refused_by_name(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert evaluate("datasets", "convert", "synthetic", str(out), "--limit", "500").code == 0
    assert evaluate("datasets", "validate", str(out)).err == ""
    displays = out / "displays.parquet"
    content = bytearray(displays.read_bytes())
    content[len(content) // 2] ^= 1
    displays.write_bytes(content)
    for words in (("datasets", "validate", str(out)), ("replay", "-p", "linucb", "-w", "50", "-d", str(out))):
        run = evaluate(*words)
        assert run.code == 3
        assert f"{displays}: missing or damaged" in run.err
        assert "convert the dataset again" in run.err


def test_a_log_without_checksums_is_said_to_have_none() -> None:
    run = evaluate("datasets", "validate", str(VERSION_1))
    assert run.code == 0
    assert "earlier format without checksums" in run.err
    assert "earlier format without checksums" in evaluate("datasets", "show", str(VERSION_1)).out
