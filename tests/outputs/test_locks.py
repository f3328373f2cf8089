from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.errors import OutputInUseError
from evaluator.outputs.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from evaluator.outputs.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_who_comes_second_is_told_and_nothing_stays_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked(out) as held:
        assert held
        with (
            pytest.raises(OutputInUseError, match=r"out is being written by another process\. Hint") as raised,
            locked(out),
        ):
            pass
        assert raised.value.exit_code == 2
        # Its refusal leaves the lock with who came first.
        with pytest.raises(OutputInUseError), locked(out):
            pass
    assert list(tmp_path.iterdir()) == []
    with locked(out):
        pass


def test_a_link_and_what_it_points_to_are_one_output(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere" / "out")
    with locked(link), pytest.raises(OutputInUseError), locked(tmp_path / "elsewhere" / "out"):
        pass


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    out = tmp_path / "out"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(OutputInUseError), locked(out):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=60)
    assert len(list(tmp_path.iterdir())) == 1
    with locked(out):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_removed_while_it_was_being_locked_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, inodes = fcntl.flock, []

    def removed_first(handle: int, how: int) -> None:
        inodes.append(os.fstat(handle).st_ino)
        if len(inodes) == 1:
            next(tmp_path.iterdir()).unlink()
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    with locked(tmp_path / "out"):
        assert len(inodes) == 2
        assert next(tmp_path.iterdir()).stat().st_ino == inodes[1]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_there_are_no_locks_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def absent(handle: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", absent)
    with locked(tmp_path / "out") as held:
        assert not held
    assert list(tmp_path.iterdir()) == []


def test_no_two_hold_it_at_a_time(tmp_path: Path) -> None:
    out, counter = tmp_path / "out", tmp_path / "counter"
    counter.write_text("0")

    def work(rounds: int) -> int:
        refused = 0
        while rounds:
            try:
                with locked(out):
                    count = int(counter.read_text())
                    time.sleep(0.001)
                    counter.write_text(str(count + 1))
                rounds -= 1
            except OutputInUseError:
                refused += 1
        return refused

    # Locks are those of open files: threads refuse each other like processes do.
    with ThreadPoolExecutor(2) as pool:
        refused = sum(pool.map(work, [50, 50]))
    assert counter.read_text() == "100"
    assert refused


@pytest.mark.parametrize("removable", [True, False])
def test_a_lock_file_that_another_user_left_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removable: bool
) -> None:
    (tmp_path / ".out.evaluate-lock").touch(0o644)
    known = os.open

    def refused(file: Path, flags: int, *mode: int) -> int:
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return known(file, flags, *mode)

    def kept(self: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(self))

    monkeypatch.setattr(os, "open", refused)
    if not removable:
        monkeypatch.setattr(Path, "unlink", kept)
    with locked(tmp_path / "out") as held:
        assert held
        with pytest.raises(OutputInUseError), locked(tmp_path / "out"):
            pass
    assert bool(list(tmp_path.iterdir())) is not removable


def test_where_no_lock_file_can_be_made_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = os.open

    def refused(file: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return known(file, flags, *mode)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PermissionError), locked(tmp_path / "out"):
        pass


@pytest.mark.parametrize("locks", [True, False])
def test_a_file_that_holds_anything_is_no_lock_file_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    def absent(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if not locks:
        monkeypatch.setattr(fcntl, "flock", absent)
    mine = tmp_path / ".out.evaluate-lock"
    mine.write_text("thesis")
    with locked(tmp_path / "out") as held:
        assert held is locks
    assert mine.read_text() == "thesis"
