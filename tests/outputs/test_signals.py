from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.outputs import locks, staging
from evaluator.outputs.atomic import whole_folder
from evaluator.outputs.locks import held_back


@pytest.fixture(autouse=True)
def raising() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    known = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, known)


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    done = []

    def work() -> None:
        with held_back():
            signal.raise_signal(signal.SIGTERM)
            done.append("work")
        done.append("not reached")

    with pytest.raises(SystemExit, match="143"):
        work()
    assert done == ["work"]
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_need_nothing() -> None:
    done = []

    def work() -> None:
        with held_back():
            done.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["work"]


def test_a_lock_file_just_made_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = locks.os.open

    def open_and_stop(file: Path, *arguments: int) -> int:
        handle = known(file, *arguments)
        if file.name == ".out.evaluate-lock":
            signal.raise_signal(signal.SIGTERM)
        return handle

    monkeypatch.setattr(locks.os, "open", open_and_stop)
    with pytest.raises(SystemExit), whole_folder(tmp_path / "out"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_old_output_is_removed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(content: str) -> None:
        with whole_folder(tmp_path / "out", check_old=lambda old: None) as folder:
            (folder / "a").write_text(content)

    def stop_and_remove(folder: Path) -> None:
        signal.raise_signal(signal.SIGTERM)
        known(folder)

    write("old")
    known = staging.shutil.rmtree
    monkeypatch.setattr(staging.shutil, "rmtree", stop_and_remove)
    with pytest.raises(SystemExit):
        write("new")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "a").read_text() == "new"
