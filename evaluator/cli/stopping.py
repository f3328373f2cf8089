"""Ctrl-C is answered within a second, also where Python hears of it later: in the compiler, or waiting for threads.

Handlers of signals run between two steps of Python's main thread, and leave it by an exception. Where that comes to
nothing for a while, a thread that the system tells of the signal itself ends the process, and clears up before.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.cli import options
from evaluator.outputs.signals import undo_all

# Seconds that the main thread has for an orderly end.
GRACE = 0.6
_STOPPING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@contextmanager
def answered() -> Iterator[None]:
    """Have the block end within a second of a signal to stop, with one line that says what is kept."""
    speaking = threading.Lock()
    ours, systems = socket.socketpair()
    systems.setblocking(False)
    before = signal.set_wakeup_fd(systems.fileno(), warn_on_full_buffer=False)
    ended = threading.Event()

    def watch() -> None:
        while number := next(iter(ours.recv(1)), 0):
            # Under nohup a closed terminal is no reason to stop.
            if number in _STOPPING and signal.getsignal(number) is not signal.SIG_IGN:
                if not ended.wait(GRACE):
                    _abandon(number, speaking)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        # Whatever the libraries made of the exception that stopped them.
        if options.stopped_by is None:
            raise
        if speaking.acquire(blocking=False):
            _say(options.stopped_by)
        sys.exit(128 + options.stopped_by)
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        systems.close()
        watcher.join()
        ours.close()


def _abandon(number: int, speaking: threading.Lock) -> None:
    """End the process from beside its main thread."""
    if speaking.acquire(blocking=False):
        undo_all()
        _say(number)
        os._exit(128 + number)


def _say(number: int) -> None:
    """Write the line past the streams of Python, which the main thread may hold."""
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    what = _kept() or "outputs are as they were; the same command starts anew"
    cursor = "\x1b[?25h\r\x1b[K" if sys.stderr.isatty() else ""  # the cursor, which a progress bar hides
    os.write(2, f"{cursor}Stopped by {name}: {what}.\n".encode(errors="backslashreplace"))


def _kept() -> str:
    """Return what is kept of a study; empty where nothing is."""
    folder = options.kept_in
    if folder is None:
        return ""
    finished, parts = (len(list(folder.glob(f"[!.]*.{kind}"))) for kind in ("kept", "part"))
    counted = [f"{finished:,} finished variant{'s' * (finished > 1)}"] if finished else []
    counted += [f"{parts:,} part{'s' * (parts > 1)} of results"] if parts else []
    are = "are" if finished + parts > 1 else "is"
    return f"{' and '.join(counted)} {are} kept in {folder}; the same command goes on there" if counted else ""
