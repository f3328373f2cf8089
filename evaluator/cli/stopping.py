"""Ctrl-C ends a command within a second, also in the compiler or while the main thread waits for other threads.

Python runs signal handlers between two steps of its main thread, where they raise an exception. Where this takes too
long, a second thread, which the system notifies of the signal, cleans up and ends the process.
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
from evaluator.outputs.locks import undo_all

# Seconds that the main thread has to end by itself.
GRACE = 0.6
_STOPPING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@contextmanager
def answered() -> Iterator[None]:
    """End the block within a second of a stopping signal, with one line that says which results are kept."""
    speaking = threading.Lock()
    ours, systems = socket.socketpair()
    systems.setblocking(False)
    before = signal.set_wakeup_fd(systems.fileno(), warn_on_full_buffer=False)
    ended = threading.Event()

    def watch() -> None:
        while number := next(iter(ours.recv(1)), 0):
            # Under nohup the signal of a closed terminal is ignored.
            if number in _STOPPING and signal.getsignal(number) is not signal.SIG_IGN:
                if not ended.wait(GRACE):
                    _abandon(number, speaking)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        # Libraries may have turned the exception that stopped them into any other.
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
    """End the process from another thread than its main thread."""
    if speaking.acquire(blocking=False):
        undo_all()
        _say(number)
        os._exit(128 + number)


def _say(number: int) -> None:
    """Write the line directly to the file descriptor: the main thread may hold the locks of Python's streams."""
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    what = _describe_kept() or "outputs are as they were; the same command starts anew"
    cursor = "\x1b[?25h\r\x1b[K" if sys.stderr.isatty() else ""  # the cursor, which a progress bar hides
    os.write(2, f"{cursor}Stopped by {name}: {what}.\n".encode(errors="backslashreplace"))


def _describe_kept() -> str:
    """Return a clause that says which results are kept; empty if no results are kept."""
    folder = options.kept_in
    if folder is None:
        return ""
    finished, parts = (len(list(folder.glob(f"[!.]*.{kind}"))) for kind in ("kept", "part"))
    counted = [f"{finished:,} finished variant{'s' * (finished > 1)}"] if finished else []
    counted += [f"{parts:,} part{'s' * (parts > 1)} of results"] if parts else []
    are = "are" if finished + parts > 1 else "is"
    return f"{' and '.join(counted)} {are} kept in {folder}; the same command goes on there" if counted else ""
