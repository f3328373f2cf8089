"""Long work that is killed at any moment, again and again, ends with the bits of an uninterrupted run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.commands import small_log
from tests.crash.runs import Nursery, no_strace

pytestmark = pytest.mark.skipif(no_strace() is not None, reason=str(no_strace()))
# A hundred kills, of whatever is cut into units.
KILLS = 20
COMMANDS = {
    "compare": "compare -d {log} -p ucb1 -p delayed-klucb -w 20,none --repeats 2 --bootstrap 60",
    "audit": "audit -d {log} -p ucb1 -p random --twins 30",
    "replay": "replay -d {log} -p delayed-klucb -w 20 --repeats 2 --bootstrap 200",
    "delays": "delays {log} --families lognormal,lognormal-mixture-3 --bootstraps 40",
    "simulate": "simulate vernade2017-low -p ucb1 -p delayed-klucb -n 60 --horizon 20000",
}


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    warm = Nursery(tmp_path_factory.mktemp("nursery"))
    yield warm
    warm.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_moment(name: str, nursery: Nursery, tmp_path: Path) -> None:
    log = small_log(tmp_path / "log")
    words = ["evaluate", *COMMANDS[name].format(log=log).split(), "--out"]
    begun = time.monotonic()
    assert nursery.run([*words, str(tmp_path / "whole")]).code == 0
    took = time.monotonic() - begun
    whole = contents(tmp_path / "whole")
    draw = random.Random(1)
    out, killed, went_on = tmp_path / "run", 0, 0
    while killed < KILLS:
        running = nursery.start([*words, str(out)])
        time.sleep(draw.uniform(0, took))
        if not out.exists():
            os.kill(running.pid, signal.SIGKILL)
        ended = running.ended()
        went_on += "Took up" in ended.err or any(out.with_name("run.partial").glob("*.part"))
        killed += ended.code == -signal.SIGKILL
        if out.exists():
            assert contents(out) == whole
            for file in out.iterdir():
                file.unlink()
            out.rmdir()
        else:
            assert ended.code == -signal.SIGKILL, ended.err
    assert nursery.run([*words, str(out)]).code == 0
    assert contents(out) == whole
    assert went_on > KILLS / 10
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(("run", ".run"))) == ["run"]
