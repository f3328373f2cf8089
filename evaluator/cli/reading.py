"""The options of commands that read a log, the reading itself, and the log as the source of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluator.cli.command_parameters import options_of
from evaluator.cli.options import at_work, doing, note
from evaluator.datasets.options import ReadingOptions
from evaluator.errors import UsageError

if TYPE_CHECKING:
    from evaluator.datasets import Reading

# Commands keep the columns that they need by themselves; generated logs have a seed in their spec.
_takes_reading = options_of(ReadingOptions, to="reading", but=("seed", "keep"), given_only=True)


def reads_log(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a log's reading; it shows from its first moment that it works."""
    return _takes_reading(at_work(command))


def one_log(log: str | None, dataset: str | None) -> str | None:
    """Return the log that the user names as argument or by ``--dataset``; None if the user names no log.

    Raises
    ------
    UsageError
        The user names two logs.
    """
    return one_place(("LOG", log), ("--dataset", dataset), "logs")


def one_place(first: tuple[str, str | None], second: tuple[str, str | None], what: str) -> str | None:
    """Return the value that is given as argument or by an option; None if neither is given.

    Both are pairs of the name in messages and the value.

    Raises
    ------
    UsageError
        Both are given.
    """
    (place, by_place), (option, by_option) = first, second
    if by_place is not None and by_option is not None:
        raise UsageError(f"{place} and {option} name two {what}.", remedy="leave one out.")
    return by_option if by_place is None else by_place


def open_log(dataset: str | None, reading: Mapping[str, Any], keep: Sequence[str] = ()) -> Reading:
    """Read the named log with some extra columns; notes report a log that was not named, and rows that are left out."""
    doing("Reading the log")
    from evaluator.datasets import read

    if dataset is None:
        note("No --dataset named: using the bundled synthetic log.")
    done = read("synthetic" if dataset is None else dataset, **reading_options(reading, keep))
    if done.quarantine.num_rows:
        note(f"{done.quarantine.num_rows:,} bad rows were left out; --out writes them to quarantine.parquet.")
    doing("Preparing")
    return done


def reading_options(reading: Mapping[str, Any], keep: Sequence[str]) -> dict[str, Any]:
    """Return the options for reading a log with some extra columns."""
    return {**reading, **({"keep": list(keep)} if keep else {})}


def origin(source: Reading, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of a result: the log with its size and time range, and the options of its reading."""
    meta = source.log.meta
    log_facts = {"displays": len(source.log), "tick": meta.tick, "time_range": list(source.log.time_range())}
    return {"dataset": meta.name, "fingerprint": meta.fingerprint, "reading": reading, "log": log_facts}
