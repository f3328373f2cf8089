"""A process that has imported all and forks one that runs a command: a command at the cost of its work alone.

Run as ``python -m tests.crash.nursery``: a request a line on stdin, an answer a line on stdout, both JSON.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import evaluator
from tests.crash import calls

PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, ctypes.c_ulong(-1)


def main() -> None:
    for module in pkgutil.walk_packages(evaluator.__path__, "evaluator."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    calls.prepare()
    assert "polars-0" not in threads(), "polars does not survive a fork"
    printed: dict[int, tuple[int, int]] = {}
    answer({})
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            code = wait(request["wait"], request["timeout"])
            out, err = map(drain, printed.pop(request["wait"]))
            answer({"code": code, "out": out, "err": err})
        else:
            (out, their_out), (err, their_err) = os.pipe(), os.pipe()
            child = os.fork()
            if child == 0:
                live(their_out, their_err, **request)
            os.close(their_out)
            os.close(their_err)
            printed[child] = (out, err)
            answer({"pid": child})


def threads() -> list[str]:
    """Return the names of the threads of this process."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def answer(said: dict[str, Any]) -> None:
    print(json.dumps(said), flush=True)


def wait(pid: int, timeout: float) -> int | None:
    """Return how a child ended, as `subprocess` says it; None if it did not, and had to be killed."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def drain(pipe: int) -> str:
    with open(pipe, encoding="utf-8") as stream:
        return stream.read()


def live(
    out: int, err: int, *, words: list[str], traced: bool, start: float, pid: int | None, room: int | None
) -> NoReturn:
    """Run a command in this process once it is traced, or when it is time.

    Its id may be one that it shares, as in two containers; files may be of up to `room` bytes, as on a full disk.
    """
    code = 70
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        if pid is not None:
            os.getpid = lambda: pid
        if room is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        if traced:
            until_traced()
        time.sleep(max(0.0, start - time.monotonic()))
        code = ended(words)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def until_traced() -> None:
    # Where only ancestors may trace (Yama), others have to be allowed to; elsewhere this fails and is not needed.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    status = os.open("/proc/self/status", os.O_RDONLY)
    while b"TracerPid:\t0\n" in os.pread(status, 4096, 0):
        time.sleep(0.001)
    os.close(status)
    time.sleep(0.01)  # a tracer stops what it seized before it lets it go on


def ended(words: list[str]) -> int:
    """Return the exit code that the interpreter would give."""
    try:
        calls.call(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


if __name__ == "__main__":
    main()
