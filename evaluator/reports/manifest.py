"""How the result in a folder came about, and what its files are known by."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.datasets.options import ReadingOptions
from evaluator.delays.study.options import DelayOptions
from evaluator.errors import SourceError
from evaluator.inputs.open_regular import open_regular
from evaluator.log.times import dated, time_words
from evaluator.outputs.checksums import FileChecksum, described
from evaluator.replays.options import ReplayOptions
from evaluator.replays.warm_start import WarmStart
from evaluator.results.json_documents import Count, JsonDocument, Positive, Sha256, naming, values_of, where_given
from evaluator.simulations.options import SimulateOptions
from evaluator.units import ROUND, SECONDS
from evaluator.version import __version__

MANIFEST = "manifest.json"
# What the command printed, beside what it wrote.
REPORT = "report.txt"
AGAIN = "run the command again with --out."
# Of a file of a result, so that one that somebody made larger ends before it is read.
_MOST_BYTES = 64 * 2**20
_VERSIONS = ("numpy", "numba", "polars", "pyarrow", "scipy")


@dataclass(frozen=True, kw_only=True)
class ReadLog:
    """What was read of a log.

    Parameters
    ----------
    displays
        Number of displays.
    tick
        Unit of its times.
    time_range
        Times of the first and the last display, in ticks.
    """

    displays: Positive
    tick: str
    time_range: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class LogSource:
    """Log of a result.

    Parameters
    ----------
    dataset
        Name of the log.
    fingerprint
        Hash of what it holds; empty where nobody looked.
    reading
        Options of its reading that were given.
    log
        What was read; left out where nothing was.
    """

    dataset: str
    fingerprint: str
    reading: ReadingOptions
    log: Annotated[ReadLog | None, *where_given(ReadLog)] = None


@dataclass(frozen=True, kw_only=True)
class DelaysSource:
    """Bare file of delays.

    Parameters
    ----------
    file
        Path of the file.
    delay_column
        Name of the column of delays; null where none was named.
    unit
        Unit of the delays.
    followed
        Column, or time, that says for how long each was followed; null where each was to its end.
    """

    file: str
    delay_column: str | None
    unit: str
    followed: str | None


@dataclass(frozen=True, kw_only=True)
class ReplayDone:
    """A replay: its policy, options, and what it began with."""

    policy: str
    options: ReplayOptions
    warm_start: WarmStart | None


@dataclass(frozen=True, kw_only=True)
class StudyDone:
    """A study of delays: its options, and the column of its groups."""

    command: Literal["delays"]
    options: DelayOptions
    by: str


@dataclass(frozen=True, kw_only=True)
class FileDone:
    """What a file is known by: its size in bytes and the SHA-256 of its content, in hex."""

    bytes: Count
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class Manifest(JsonDocument):
    """Manifest of a result that was written with --out.

    Parameters
    ----------
    command
        Command that was typed, without --out; empty where Python asked.
    source
        Log, and how it was read; or the bare file of delays.
    replays
        Replays of a replay or a comparison, in the order of its variants.
    scenario
        Name of the scenario of a simulation.
    policies
        Specs of the policies of a simulation or an audit.
    options
        Options of a simulation, an audit or a check.
    study
        Study of delays.
    versions
        Versions of the product and of libraries.
    python
        Version of Python.
    files
        Every other file of the folder, by its name.
    """

    schema: ClassVar[str] = "evaluate.manifest/2"

    command: Annotated[str | None, *where_given(str)] = None
    source: Annotated[Mapping[str, Any] | None, *where_given(LogSource | DelaysSource)] = None
    replays: Annotated[list[dict[str, Any]] | None, *where_given(tuple[ReplayDone, ...])] = None
    scenario: Annotated[str | None, *where_given(str)] = None
    policies: Annotated[list[str] | None, *where_given(tuple[str, ...])] = None
    options: Annotated[dict[str, Any] | None, *where_given(AuditOptions | SimulateOptions | CheckOptions)] = None
    study: Annotated[dict[str, Any] | None, *where_given(StudyDone)] = None
    versions: Annotated[dict[str, str], naming("delayed-replay", *_VERSIONS)]
    python: str
    files: Annotated[Mapping[str, FileChecksum], values_of(Mapping[str, FileDone]), naming("result.json")]


def write_manifest(folder: Path, *, libraries: tuple[str, ...] = (), **done: Any) -> None:
    """Write ``manifest.json`` beside the files of a result, all of which are there.

    Parameters
    ----------
    folder
        Folder of the files; each is described by its size and checksum.
    libraries
        Names of libraries whose versions matter, beside those that always do.
    **done
        Facts by name: what was done, to which source.
    """
    document = Manifest(
        **done, versions=versions(*libraries), python=platform.python_version(), files=described(folder)
    )
    write_json(folder / MANIFEST, document.to_dict())


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of the product, of the libraries that always matter, and of others."""
    return {"delayed-replay": __version__, **{name: version(name) for name in (*_VERSIONS, *libraries)}}


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path, *, most_names: int | None = None) -> dict[str, Any]:
    """Return what a JSON file of a result holds, by names.

    Parameters
    ----------
    path
        Path of the file.
    most_names
        Largest number of names in any one object of it; None for no limit.

    Raises
    ------
    SourceError
        It cannot be read, or holds something else, or more than any result.
    """

    def named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if most_names is not None and len(pairs) > most_names:
            raise ValueError(f"an object of it has {len(pairs):,} names")
        return dict(pairs)

    try:
        with open_regular(path) as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES // 2**20} MB")
        found = json.loads(text.decode("utf-8"), object_pairs_hook=named)
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"{path}: cannot be read ({error}).", remedy=AGAIN) from None
    if not isinstance(found, dict):
        raise SourceError(f"{path}: not as a command wrote it.", remedy=AGAIN)
    return found


def write_text(path: Path, text: str) -> None:
    """Write a text with the same bytes everywhere."""
    path.write_text(text, encoding="utf-8", newline="\n")


class LogDates(NamedTuple):
    """First and last display of a log, in seconds since 1970."""

    first: float
    last: float

    def __str__(self) -> str:
        return " to ".join(time_words(end, 1.0, start=0) for end in self)

    @property
    def middle(self) -> float:
        """Time half way, in seconds since 1970."""
        return (self.first + self.last) / 2

    @property
    def days(self) -> str:
        """First and last day, ``2026-03-01 to 2026-03-07``; a single one alone."""
        return " to ".join(dict.fromkeys(f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in self))


def log_dates(log: object) -> LogDates | None:
    """Return the dates of a log as a manifest holds it under ``log``; None where it has none, or is not said."""
    match log:
        case {"tick": str(tick), "time_range": [int(first), int(last)]} if tick != ROUND and tick in SECONDS:
            seconds = SECONDS[tick]
            if dated(first, seconds) and dated(last, seconds):
                return LogDates(first * seconds, last * seconds)
    return None
