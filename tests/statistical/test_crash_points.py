"""Every command that writes, cut off at every call that changes a folder: the old output, or the new one, and no rest.

A command is killed before each call that finds the folder in a state of its own, and run again; it is sent signals,
its calls fail, its files cannot grow, and another command writes the same output while it stands still. Needs strace.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.campaign import Scene, failing, killed, overtaken, raced, scene, signalled, without_room
from tests.crash.commands import COMMANDS, Command, small_log
from tests.crash.folders import contents
from tests.crash.runs import Nursery, no_strace

pytestmark = pytest.mark.skipif(no_strace() is not None, reason=str(no_strace()))
NAMED = {command.name: command for command in COMMANDS}
# One for each way to put an output in place: a new folder, one exchanged, files, a file replaced, kept results.
WAYS = ("convert", "convert-over", "convert-link", "make", "save-fit", "replay-both", "compare")
SHARED_ID = 4242
RACES = 8


class Stage:
    """The warm process, the log, and the scene of each command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.nursery = Nursery(folder)
        self._log = small_log(folder / "log")
        self._scenes: dict[tuple[str, str], Scene] = {}

    def scene(self, command: Command, more: str = "") -> Scene:
        key = (command.name, more)
        if key not in self._scenes:
            self._scenes[key] = scene(self.nursery, command, self._log, self._folder / command.name, more)
        return self._scenes[key]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("stage"))
    yield stage
    stage.nursery.close()


def fail_if(wrong: list[str]) -> None:
    assert not wrong, "\n".join([f"{len(wrong)} wrong:", *wrong])


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_killed_and_run_again(stage: Stage, command: Command) -> None:
    fail_if(killed(stage.nursery, stage.scene(command)))


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.on_command_line], ids=str)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP], ids=lambda sent: sent.name)
def test_stopped_by_a_signal(stage: Stage, command: Command, sent: signal.Signals) -> None:
    every = 1 if command.name in ("convert-over", "replay-both") else 4
    fail_if(signalled(stage.nursery, stage.scene(command), sent, every=every))


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_no_room(stage: Stage, command: Command) -> None:
    fail_if([x for room in (0, 200, 2_000) for x in without_room(stage.nursery, stage.scene(command), room)])


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("error", ["ENOSPC", "EROFS"])
def test_calls_that_fail(stage: Stage, name: str, error: str) -> None:
    fail_if(failing(stage.nursery, stage.scene(NAMED[name]), error, every=1 if error == "ENOSPC" else 3))


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("pid", [None, SHARED_ID], ids=["here", "in two containers"])
def test_overtaken(stage: Stage, name: str, pid: int | None) -> None:
    command = NAMED[name]
    ours, theirs = stage.scene(command), stage.scene(command, command.other)
    fail_if(overtaken(stage.nursery, ours, theirs, pid, every=2 if pid is None else 5))


@pytest.mark.parametrize("name", WAYS)
def test_races(stage: Stage, name: str) -> None:
    command = NAMED[name]
    ours, theirs = stage.scene(command), stage.scene(command, command.other)
    offsets = random.Random(7)
    wrong = []
    for race in range(RACES):
        ours.anew()
        soon = time.monotonic() + 0.1
        pid = SHARED_ID if race % 2 else None
        first, second = (
            stage.nursery.start(words, start=soon + offsets.uniform(0, 0.1), pid=pid)
            for words in (ours.words(), ours.words(command.other))
        )
        wrong += [f"race {race}: {x}" for x in raced(ours, theirs, first.ended(), second.ended())]
    fail_if(wrong)


def test_the_campaign_sees_a_torn_output(stage: Stage) -> None:
    ours = stage.scene(NAMED["convert"])
    ours.anew()
    assert stage.nursery.run(ours.words()).code == 0
    assert ours.wrong_when_cut_off() == []
    (ours.out / "out" / "events.parquet").write_bytes(b"")
    (ours.out / "notes.txt").unlink()
    assert contents(ours.out) != ours.made
    assert ours.wrong_when_cut_off() == [
        "out is torn: out/events.parquet other bytes", "notes.txt beside it was changed or removed",
    ]  # fmt: skip
