"""Writers killed before each of their calls to the file system; a module of its own, for forks need a light process."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from evaluator.errors import OutputExistsError
from evaluator.outputs import staging
from evaluator.outputs.atomic import whole_file, whole_files, whole_folder

# What Python tells of, but for calls that only look.
CALLS = ("open", "fcntl.flock", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "tests.exchange")
State = dict[str, str]


def state(folder: Path) -> State:
    """All files below a folder, hidden ones too, and empty folders."""
    below = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else ""
        for path in below
        if path.is_file() or not any(path.iterdir())
    }


def write_folder(folder: Path, content: str | None) -> None:
    with whole_folder(folder / "out", check_old=lambda old: None) as out:
        (out / "inner").mkdir()
        for name in ("a", "inner/b"):
            (out / name).write_text(content)


def write_files(folder: Path, content: str | None) -> None:
    with whole_files([folder / "out.truth", folder / "out.more", folder / "out"]) as parts:
        for part in parts:
            part.write_text(content)


def write_file(folder: Path, content: str | None) -> None:
    with whole_file(folder / "out") as part:
        part.write_text(content)


def killed(point: int, work: Callable[[], None]) -> bool:
    """Do the work in a fork that is killed before the call number `point`; return whether there was such a call."""
    child = os.fork()
    if child:
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL), ended
        return ended != 0
    calls = 0

    def before(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal calls
        if event in CALLS:
            calls += 1
            if calls > point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(before)
    try:
        with contextlib.suppress(OutputExistsError):
            work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@contextlib.contextmanager
def without_exchange() -> Iterator[None]:
    known, staging.exchange = staging.exchange, lambda one, other: False
    try:
        yield
    finally:
        staging.exchange = known


def kill_everywhere(write: Callable[[Path, str | None], None], old: str | None, *, gap: bool = False) -> int:
    """Kill a writer before every call, then the next one somewhere, let one fail and one end; return the first's calls.

    Parameters
    ----------
    write
        Writes content into a folder.
    old
        What it wrote there before.
    gap
        Whether a kill may leave nothing where there was something.
    """
    with tempfile.TemporaryDirectory() as name:
        reference = {}
        for content in (old, "new", "next"):
            inside = Path(name, content or "nothing")
            inside.mkdir()
            if content is not None:
                write(inside, content)
            reference[content] = state(inside)
    rng = random.Random(0)
    point = 0
    while True:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if old is not None:
                write(folder, old)
            more = killed(point, lambda folder=folder: write(folder, "new"))
            seen = {name: text for name, text in state(folder).items() if not name.startswith(".")}
            whole = [reference[old], reference["new"], *([{}] if gap else [])]
            # Of several new files the last is the mark: without it there is no output yet.
            unmarked = old is None and "out" in reference["new"] and "out" not in seen
            assert seen in whole or unmarked, (point, seen)
            killed(rng.randrange(40), lambda folder=folder: write(folder, "next"))
            with contextlib.suppress(OutputExistsError, TypeError):
                write(folder, None)
            assert state(folder) in reference.values(), point
            with contextlib.suppress(OutputExistsError):
                write(folder, "next")
            assert state(folder) in (reference["next"], *([reference["new"]] if old is None else [])), point
        if not more:
            return point
        point += 1


def main() -> None:
    # What the disk keeps is not tested: only the order of calls.
    os.fsync = lambda handle: None
    known = staging.exchange

    def seen_exchange(one: Path, other: Path) -> bool:
        sys.audit("tests.exchange")
        done = known(one, other)
        assert done
        return done

    staging.exchange = seen_exchange
    points = {
        "new folder": kill_everywhere(write_folder, None),
        "replaced folder": kill_everywhere(write_folder, "old"),
        "new files": kill_everywhere(write_files, None),
        "replaced file": kill_everywhere(write_file, "old"),
    }
    with without_exchange():
        points["folder replaced in two steps"] = kill_everywhere(write_folder, "old", gap=True)
    print(json.dumps(points))


if __name__ == "__main__":
    main()
