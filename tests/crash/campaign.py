"""One command, cut off at every call that changes the folder of its outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals
from typing import Any

from tests.crash.commands import Command, words
from tests.crash.folders import Contents, contents, fresh, left, neighbours, torn
from tests.crash.runs import Call, Ended, Nursery

FILLING = 8
# What a full disk or a read-only one refuses.
_CREATING = ("open", "openat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat", "ftruncate",
             "fallocate", "fsync", "fdatasync")  # fmt: skip
_WRITES = ("write", "pwrite64", "writev", "pwritev", "sendfile", "copy_file_range")
_OPENED_TO_WRITE = re.compile(r"O_(CREAT|WRONLY|RDWR|TRUNC)")
_FILE = re.compile(r"\d+<([^>]*)>")


@dataclass(frozen=True)
class Scene:
    """A command, the folder it finds, and what it makes of it when nothing disturbs it."""

    command: Command
    log: Path
    out: Path
    before: Path
    found: Contents
    made: Contents
    calls: tuple[Call, ...]

    def words(self, more: str = "") -> list[str]:
        """Return the command as typed."""
        return words(f"{self.command.words} {more}", self.log, self.out)

    def anew(self) -> None:
        """Restore the folder that the command finds."""
        fresh(self.out, self.before)

    def wrong_when_cut_off(self) -> list[str]:
        """Return what a command that was killed may not leave."""
        command, now = self.command, contents(self.out)
        torn_now = torn(now, command.targets, self.found, self.made, together=command.together)
        visible = [x for x in left(now, command.targets, self.found) if not x.startswith(".")]
        kept = [x for x in visible if command.kept is not None and x.split("/")[0] == command.kept]
        return torn_now + [f"{x} is left, and not hidden" for x in visible if x not in kept]

    def wrong_when_stopped(self, *, kept: bool = False) -> list[str]:
        """Return what a command that could clean up may not leave; `kept`: what an interrupted one keeps."""
        command, now = self.command, contents(self.out)
        remains = left(now, command.targets, self.found)
        if kept:
            remains = [x for x in remains if x.split("/")[0] != command.kept]
        torn_now = torn(now, command.targets, self.found, self.made, together=command.together)
        return torn_now + [f"{x} is left" for x in remains]

    def wrong_when_run_again(self, again: Ended) -> list[str]:
        """Return what is wrong after the next undisturbed run: it wrote all, or refused what was whole already."""
        now = contents(self.out)
        # What was kept for the output is wanted no more, whether this run wrote the output or found it whole.
        wrong = [f"{x} is left" for x in left(now, self.command.targets, self.found)]
        if again.code == 0:
            wrong += torn(now, self.command.targets, self.made)
        elif again.refused and "exists" in again.err and now != self.found:
            wrong += torn(now, self.command.targets, self.found, self.made, together=self.command.together)
        else:
            wrong.append(f"the next run ended with {again.code}: {again.err.strip()[-300:]}")
        return wrong


def scene(nursery: Nursery, command: Command, log: Path, folder: Path, more: str = "") -> Scene:
    """Run a command undisturbed twice, the second time with its calls listed, and return what there is to know."""
    before, out = folder / "before", folder / "at"
    if not before.exists():
        before.mkdir(parents=True)
        neighbours(before)
        if command.old is not None:
            old = nursery.run(words(command.old, log, before))
            assert old.code == 0, old
        if command.link is not None:
            (before / command.link[0]).symlink_to(command.link[1])
    found, asked, made = contents(before), words(f"{command.words} {more}", log, out), []
    for traced in (False, True):
        fresh(out, before)
        done = nursery.run(asked, traced=traced)
        assert done.code == 0, done
        made.append(contents(out))
        # Nothing is left, and nothing beside the outputs has changed.
        assert left(made[-1], command.targets, found) == []
        assert torn(made[-1], command.targets, found, made[0]) == []
    return Scene(command, log, out, before, found, made[0], done.calls)


def points(scene: Scene) -> list[Call]:
    """Return the calls before which the folder is in a state of its own.

    These are all that follow a call which changed it; of the writes to a file in a row, the last; of those that fill
    a folder with file after file, some.
    """
    touching = [
        replace(call, said=call.said.replace(f"{scene.out}/", ""))
        for call in scene.calls
        if str(scene.out) in call.said and _may_change(call)
    ]
    chosen = []
    for at, call in enumerate(touching):
        in_a_row = (
            at + 1 < len(touching) and _written(call) is not None and _written(touching[at + 1]) == _written(call)
        )
        if not in_a_row and (at == 0 or _changed(touching[at - 1])):
            chosen.append(call)
    filling = [call for call in chosen if call.name in ("open", "openat", *_WRITES)]
    kept = {len(filling) * k // FILLING for k in range(FILLING)}
    return [call for call in chosen if call not in filling or filling.index(call) in kept]


def of_main_thread(scene: Scene) -> list[Call]:
    """Return the points that stand for one moment: each thread counts its calls, and all that come so far are hit."""
    return [point for point in points(scene) if point.main]


def _may_change(call: Call) -> bool:
    return call.name not in ("open", "openat") or _OPENED_TO_WRITE.search(call.said) is not None


def _changed(call: Call) -> bool:
    return call.name not in ("fsync", "fdatasync", "flock") and " = -1 " not in call.said


def _written(call: Call) -> str | None:
    match = _FILE.match(call.said) if call.name in _WRITES else None
    return None if match is None else match[1]


def _at(point: Call, what: str) -> dict[str, Any]:
    """Return how to disturb a run at a point."""
    return {"inject": f"{point.name}:{what}:when={point.number}", "threads": not point.main}


def killed(nursery: Nursery, scene: Scene) -> list[str]:
    """Kill a command before each point, run it again, and return what went wrong."""
    wrong = []
    for point in points(scene):
        scene.anew()
        cut = nursery.run(scene.words(), **_at(point, "signal=KILL"))
        if cut.code != -9:
            wrong.append(f"{point}: not killed but {cut.code}")
        wrong += [f"killed before {point}: {x}" for x in scene.wrong_when_cut_off()]
        again = nursery.run(scene.words())
        wrong += [f"run again after a kill before {point}: {x}" for x in scene.wrong_when_run_again(again)]
    return wrong


def signalled(nursery: Nursery, scene: Scene, sent: Signals, *, every: int = 1) -> list[str]:
    """Send a signal at points and return what went wrong: a command ends as it should, or cleans up."""
    wrong = []
    for point in of_main_thread(scene)[::every]:
        scene.anew()
        cut = nursery.run(scene.words(), **_at(point, f"signal={sent.name[3:]}"))
        complaints = scene.wrong_when_stopped(kept=cut.code != 0)
        if cut.code not in (0, 128 + sent) or "Traceback" in cut.err:
            complaints.append(f"ended with {cut.code} and said: {cut.err.strip()[-300:]}")
        if cut.code == 0 and contents(scene.out) != scene.made:
            complaints.append("said to have succeeded, and did not write")
        wrong += [f"{sent.name} at {point}: {x}" for x in complaints]
    return wrong


def failing(nursery: Nursery, scene: Scene, error: str, *, every: int = 1) -> list[str]:
    """Let calls fail and return what went wrong: all is written, or one line says why not.

    Other threads are left alone: they write to pipes of their own, too. A point is the nth call of its kind, and on a
    busy machine that may be another one now and then: what is wrong twice is wrong.
    """
    wrong = []
    for point in [point for point in of_main_thread(scene) if point.name in (*_CREATING, *_WRITES)][::every]:
        found: list[str] = []
        for _ in range(2):
            scene.anew()
            found = _failed(scene, nursery.run(scene.words(), **_at(point, f"error={error}")))
            if not found:
                break
        wrong += [f"{error} at {point}: {x}" for x in found]
    return wrong


def without_room(nursery: Nursery, scene: Scene, room: int) -> list[str]:
    """Let no file grow beyond `room` bytes and return what went wrong."""
    scene.anew()
    done = nursery.run(scene.words(), room=room)
    return [f"files of at most {room} bytes: {x}" for x in _failed(scene, done)]


def _failed(scene: Scene, done: Ended) -> list[str]:
    wrong = scene.wrong_when_stopped(kept=done.code != 0)
    if done.code == 0:
        if contents(scene.out) != scene.made:
            wrong.append("said to have succeeded, and did not write")
    elif done.code != 1 or not done.refused:
        wrong.append(f"ended with {done.code} and said: {done.err.strip()[-300:]}")
    return wrong


def overtaken(nursery: Nursery, scene: Scene, other: Scene, pid: int | None, *, every: int = 1) -> list[str]:
    """Stop a command at points while another one writes the same output, and return what went wrong."""
    wrong = []
    for point in of_main_thread(scene)[::every]:
        scene.anew()
        first = nursery.start(scene.words(), pid=pid, **_at(point, "signal=STOP"))
        if not first.stopped():
            wrong.append(f"{point}: not stopped")
        second = nursery.run(scene.words(scene.command.other), pid=pid)
        first.go_on()
        wrong += [f"overtaken at {point}: {x}" for x in raced(scene, other, first.ended(), second)]
    return wrong


def raced(scene: Scene, other: Scene, first: Ended, second: Ended) -> list[str]:
    """Return what is wrong after two commands wrote one output: one whole result is there, its writer's."""
    command = scene.command
    now = contents(scene.out)
    wrong = [f"{x} is left" for x in left(now, command.targets, scene.found)]
    succeeded = [whole.made for whole, done in ((scene, first), (other, second)) if done.code == 0]
    if not succeeded:
        wrong.append("both failed")
    elif all(torn(now, command.targets, whole) for whole in succeeded):
        wrong += [x for whole in succeeded for x in torn(now, command.targets, whole)]
    if len(succeeded) == 2 and command.old is None:
        wrong.append("both said to have written a new output")
    failed = [done for done in (first, second) if done.code != 0 and not done.refused]
    return wrong + [f"ended with {done.code} and said: {done.err.strip()[-300:]}" for done in failed]
