"""The command ``evaluate``: its commands, its exit codes, and its errors, each in one line."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer

from evaluator.blas import one_blas_thread_from_the_start
from evaluator.cli import audit, check, compare, datasets, delays, explain, options, policies, replay, report, simulate
from evaluator.cli.help import App
from evaluator.cli.lending import offered
from evaluator.cli.standard_streams import guard_streams
from evaluator.cli.stopping import answered
from evaluator.errors import EvaluatorError, refuse_no_utf8
from evaluator.options.declaration import Option
from evaluator.reports.command_words import use_command_words
from evaluator.visible import visible

app = App(
    name="evaluate",
    help="Offline evaluation of bandit policies under delayed, censored feedback.\n\n"
    "The result goes to stdout, all else to stderr. Exit codes: 0 result, 2 usage, 3 bad data or a missing file, "
    "4 not fit (check, --fail-on), 130 Ctrl-C, 1 the rest.",
    epilog="Example: evaluate replay --policy otflinucb --window 2000",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        from evaluator.version import __version__

        typer.echo(f"delayed-replay {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        offered("version", Option(default=False, help="Print the version"), callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


app.command("replay", epilog=replay.EXAMPLES)(replay.replay_command)
app.command("compare", epilog=compare.EXAMPLES)(compare.compare_command)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit_command)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate_command)
app.command("delays", epilog=delays.EXAMPLES)(delays.delays_command)
app.command("check", epilog=check.EXAMPLES)(check.check_command)
app.command("report", epilog=report.EXAMPLES)(report.report_command)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain_command)
app.add_typer(datasets.app, name="datasets")
app.add_typer(policies.app, name="policies")


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
    typer.echo(f"error: {visible(line)}", err=True)
    sys.exit(code)
