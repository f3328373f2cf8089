"""Commands run in forks of a warm process: undisturbed, traced, killed or stopped at a call, on a full disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0
# What may change a folder; a question mark: not on every architecture.
CHANGING = (
    "?open,?creat,openat,?mkdir,mkdirat,?rename,?renameat,renameat2,?link,linkat,?symlink,symlinkat,?unlink,unlinkat,"
    "?rmdir,fsync,fdatasync,?truncate,ftruncate,fallocate,write,pwrite64,writev,pwritev,?sendfile,copy_file_range,"
    "flock,?chmod,fchmod,fchmodat,utimensat"
)
_CALL = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\((?P<said>.*)")


@dataclass(frozen=True)
class Call:
    """A call to the kernel, the `number`-th of its name in its thread, which is the `main` one or another."""

    name: str
    number: int
    main: bool
    said: str

    def __str__(self) -> str:
        return f"{self.name} {self.number}{'' if self.main else ' of a thread'}: {self.said[:160]}"


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (minus the signal that killed it; None if it hung), what it said and called."""

    code: int | None
    out: str
    err: str
    calls: tuple[Call, ...]

    @property
    def refused(self) -> bool:
        """Whether it failed in one line for a user."""
        lines = self.err.strip().splitlines()
        one = [line.startswith("error: ") for line in lines].count(True) == 1
        return self.code in (1, 2) and one and "Traceback" not in self.err and "may be a bug" not in self.err


class Nursery:
    """The warm process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2", "COLUMNS": "120"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.nursery"], cwd=ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            self._heard()
        except ValueError as error:
            self.close()
            raise RuntimeError("the warm process did not start") from error

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, words: list[str], **how: Any) -> Ended:
        return self.start(words, **how).ended()

    def start(
        self, words: list[str], *, inject: str | None = None, threads: bool = True, traced: bool = False,
        start: float = 0.0, pid: int | None = None, room: int | None = None,
    ) -> Running:  # fmt: skip
        """Start a command; `inject` and `traced` put it, or its main thread only, under strace."""
        traced = traced or inject is not None
        request = {"words": words, "traced": traced, "start": start, "pid": pid, "room": room}
        child = self.asked(request)["pid"]
        if not traced:
            return Running(self, child, None, None)
        self._count += 1
        log = self._folder / f"{self._count}.calls"
        options = [*(["-f"] if threads else []), *([] if inject is None else ["-e", f"inject={inject}"])]
        tracer = subprocess.Popen(
            ["strace", "-qq", "-y", "-s", "0", "-e", f"trace={CHANGING}", "-e", "signal=stop", *options,
             "-o", str(log), "-p", str(child)], stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        return Running(self, child, tracer, log)

    def asked(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@dataclass
class Running:
    """A command that was started."""

    nursery: Nursery
    pid: int
    tracer: subprocess.Popen[str] | None
    log: Path | None

    def ended(self) -> Ended:
        """Wait for its end."""
        said = self.nursery.asked({"wait": self.pid, "timeout": LIMIT_S})
        calls: tuple[Call, ...] = ()
        if self.tracer is not None and self.log is not None:
            _, complaint = self.tracer.communicate(timeout=LIMIT_S)
            assert "invalid" not in complaint, complaint
            calls = _read(self.log, self.pid)
            self.log.unlink()
        return Ended(said["code"], said["out"], said["err"], calls)

    def stopped(self) -> bool:
        """Wait until SIGSTOP stopped it; False if it ended before."""
        assert self.log is not None
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if self.log.exists() and "stopped by SIGSTOP" in self.log.read_text(errors="replace"):
                return True
            if "State:\tZ" in Path(f"/proc/{self.pid}/status").read_text():
                return False
            time.sleep(0.005)
        raise TimeoutError(f"{self.pid} neither stopped nor ended")

    def go_on(self) -> None:
        """Let it go on after `stopped`."""
        os.kill(self.pid, signal.SIGCONT)


def _read(log: Path, main: int) -> tuple[Call, ...]:
    numbers: dict[tuple[str, str], int] = {}
    calls = []
    for line in log.read_text(errors="replace").splitlines():
        # Without -f there is one thread, and its id is left out.
        match = _CALL.match(line) or _CALL.match(f"{main} {line}")
        if match is not None:
            key = (match["thread"], match["name"])
            numbers[key] = numbers.get(key, 0) + 1
            calls.append(Call(match["name"], numbers[key], int(match["thread"]) == main, match["said"]))
    return tuple(calls)


def no_strace() -> str | None:
    """Return why calls cannot be traced here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()}"
