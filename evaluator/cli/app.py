"""The command ``evaluate``: its commands, its exit codes, its errors, each in one line, and how it stops.

A message that cannot be written, because a standard stream is closed or full, never loses a computed result.

Ctrl-C ends a command within a second, also in the compiler or while the main thread waits for other threads. Python
runs signal handlers between two steps of its main thread, where they raise an exception. Where this takes too long, a
second thread, which the system notifies of the signal, cleans up and ends the process.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, cast

import typer
import typer.main
from typer.core import TyperCommand

from evaluator.cli import options
from evaluator.cli.command_parameters import option
from evaluator.cli.help import App, Group
from evaluator.errors import EvaluatorError, OutputError, refuse_no_utf8
from evaluator.escape import escape
from evaluator.options.declaration import Option
from evaluator.outputs.locks import undo_all
from evaluator.threads import one_blas_thread_from_the_start

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


# The commands, each in a module of its name, in the order of the help; and the groups among them.
COMMANDS = (
    "replay", "compare", "audit", "simulate", "delays", "check", "report", "explain", "datasets", "policies",
)  # fmt: skip
_GROUPS = ("datasets", "policies")


class _Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is asked for: all of them take longer than a short one runs."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _load(name: str) -> Any:
    module = import_module(f"evaluator.cli.{name}")
    if name in _GROUPS:
        part = module.app
    else:
        part = App()
        part.command(name, epilog=module.EXAMPLES)(getattr(module, f"{name}_command"))
    loaded = typer.main.get_command(part)
    loaded.name = name
    return loaded


def _describe(name: str) -> str:
    """Return what a command says it does, from its compiled module, which is not run."""
    spec: Any = find_spec(f"evaluator.cli.{name}")
    code: CodeType = spec.loader.get_code(spec.name)
    for part in code.co_consts:
        if isinstance(part, CodeType) and part.co_name == f"{name}_command":
            code = part
    return str(code.co_consts[0])


class _Root(Group):
    """The command ``evaluate`` itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(Any, _Commands())  # never changed

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, of which none is loaded."""
        return list(COMMANDS)

    def summary(self, ctx: Any, name: str) -> str:
        """Return the sentence that says what a command does."""
        return TyperCommand(name, help=_describe(name)).get_short_help_str(limit=1000)


app = App(
    cls=_Root,
    add_completion=True,
    name="evaluate",
    help="Offline evaluation of bandit policies under delayed, censored feedback.\n\n"
    "The result goes to stdout, all else to stderr. Exit codes: 0 result, 2 usage, 3 bad data or a missing file, "
    "4 not fit (check, --fail-on), 130 Ctrl-C, 1 the rest.",
    epilog="Example: evaluate replay --policy otflinucb --window 2000",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

# Seconds that the main thread has to end by itself.
GRACE = 0.6
# The allocator of Polars keeps freed memory for ten seconds, not for half a second: a conversion needs it again.
_KEEP_FREED_MEMORY = ("_RJEM_MALLOC_CONF", "dirty_decay_ms:10000")
_STOPPING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


def _version(wanted: bool) -> None:
    if wanted:
        from evaluator.version import __version__

        typer.echo(f"delayed-replay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, option("version", Option(default=False, help="Print the version"), callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def _stop(signum: int, frame: FrameType | None) -> None:
    is_second = options.stopped_by is not None
    options.stopped_by = signum
    if is_second or not options.signals_wait:
        # An exception lets every block remove its half-written output.
        sys.exit(128 + signum)


def main() -> None:
    """Run the command line; every error is one line on stderr, and ``--debug`` adds the traceback."""
    guard_streams()
    one_blas_thread_from_the_start()
    os.environ.setdefault(*_KEEP_FREED_MEMORY)
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, _stop)
    # A closed terminal stops a command, too, unless nohup started it. Windows has no such signal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _stop)
    try:
        with answered():
            for word in sys.argv[1:]:
                refuse_no_utf8(word)
            app()
    except EvaluatorError as error:
        from evaluator.reports.command_words import use_command_words

        # Errors of the library name options as Python does; only here their names become those of the command line.
        line = str(error) if error.quotes_keys else use_command_words(str(error))
        _fail(error, line, error.exit_code)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}." if error.filename and error.strerror else f"{error}."
        _fail(error, f"{what} Hint: check that the file is there and may be used; --debug shows where.", 3)
    except MemoryError as error:
        _fail(
            error, f"Not enough memory ({error or 'no size known'}). Hint: ask for less, or take a larger machine.", 1
        )
    except Exception as error:
        _fail(error, f"{type(error).__name__}: {error} Hint: --debug shows where; this may be a bug.", 1)


def _fail(error: Exception, line: str, code: int) -> NoReturn:
    if options.debug:
        raise error
    typer.echo(f"error: {escape(line)}", err=True)
    sys.exit(code)


class SafeStream(io.FileIO):
    """A standard stream that outlives its reader: text that can no longer be written is dropped.

    Its file descriptor, open or not, stays open. Where the text is the result of the command, failing to write it is an
    error, which is raised once.
    """

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._needed = needed
        self._gone = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the data, or drop them if they cannot be written.

        OutputError if the text is needed, and the cause is not that its reader closed the pipe.
        """
        if not self._gone:
            try:
                return super().write(data)
            except BrokenPipeError:
                self._gone = True
            except OSError as error:
                self._gone = True
                if self._needed:
                    raise OutputError(
                        f"stdout: cannot be written ({os.strerror(error.errno or 0)}).",
                        remedy="make room, or send it elsewhere; what --out names is written.",
                    ) from None
        return memoryview(data).nbytes


def guard_streams() -> None:
    """Replace stdout and stderr by safe streams, if they are the process's own."""
    _occupy_closed()
    sys.stdout = _safe(sys.stdout, 1, needed=True)
    sys.stderr = _safe(sys.stderr, 2, needed=False)


def _occupy_closed() -> None:
    """Occupy the numbers of closed standard streams, so that no file opened later receives the text of a stream."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)


def _is_own(stream: TextIO, descriptor: int) -> bool:
    """Whether a stream is the process's own, and not a test's, a notebook's, or a Windows console, which needs text."""
    try:
        return stream.fileno() == descriptor and not (os.name == "nt" and stream.isatty())
    except OSError:
        return False


def _safe(stream: TextIO | None, descriptor: int, *, needed: bool) -> TextIO:
    if stream is not None and not _is_own(stream, descriptor):
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    raw = SafeStream(descriptor, needed=needed)
    # Letters that the encoding lacks are escaped: they must not end the command.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=raw.isatty() or not needed
    )


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
