"""The manifest of a folder, which says how the result was computed and lists the files with sizes and checksums.

And its chapter: what pages are made of, in a file that holds no program.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.delays.study.options import DelayOptions
from evaluator.errors import SourceError
from evaluator.input_files import open_regular
from evaluator.log.times import dated, time_words
from evaluator.outputs.atomic import FileChecksum, described
from evaluator.reading.options import ReadingOptions
from evaluator.replays.options import ReplayOptions
from evaluator.replays.warm_start import WarmStart
from evaluator.reports.document import Chapter
from evaluator.results.json_documents import Count, JsonDocument, Positive, Sha256, naming, values_of, where_given
from evaluator.simulations.options import SimulateOptions
from evaluator.units import ROUND, SECONDS
from evaluator.version import __version__

MANIFEST = "manifest.json"
# File with the report that the command printed.
REPORT = "report.txt"
AGAIN = "run the command again with --out."
# Largest size of a file of a result: a file that somebody made larger is refused before it is read.
_MOST_BYTES = 64 * 2**20
_VERSIONS = ("numpy", "numba", "polars", "pyarrow", "scipy")
CHAPTER = "chapter.json"
_CHAPTER_SCHEMA = "evaluate.chapter/2"


@dataclass(frozen=True, kw_only=True)
class ReadLog:
    """Size, unit and time range of a log as it was read.

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
        Fingerprint of the log: a hash of its content; empty where it was not computed.
    reading
        Options for reading the log that were given.
    log
        Size and time range of the log; left out where no log was read.
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
        Name of the column of delays; null if no column was named.
    unit
        Unit of the delays.
    followed
        Column, or time, that says for how long each delay was followed; null if each was followed to its end.
    """

    file: str
    delay_column: str | None
    unit: str
    followed: str | None


@dataclass(frozen=True, kw_only=True)
class ReplayDone:
    """A replay: its policy, its options, and the policy file that it started from."""

    policy: str
    options: ReplayOptions
    warm_start: WarmStart | None


@dataclass(frozen=True, kw_only=True)
class StudyDone:
    """A study of delays: its options and the column of its groups."""

    command: Literal["delays"]
    options: DelayOptions
    by: str


@dataclass(frozen=True, kw_only=True)
class FileDone:
    """Size of a file in bytes, and the SHA-256 of its content in hexadecimal digits."""

    bytes: Count
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class Manifest(JsonDocument):
    """Manifest of a result that was written with --out.

    Parameters
    ----------
    command
        Command that the user typed, without --out; empty if Python computed the result.
    source
        Log and the options for reading it, or the bare file of delays.
    replays
        Replays that the result consists of, in the order of the variants.
    scenario
        Name of the scenario of a simulation.
    policies
        Specs of the policies of a simulation or an audit.
    options
        Options of a simulation, an audit or a check.
    study
        Study of delays.
    versions
        Versions of this package and of its libraries.
    python
        Version of Python.
    files
        Sizes and checksums of all other files of the folder, by name.
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
    """Write ``manifest.json``, with size and checksum of the other files of a result, which must be complete.

    `done` are the fields of the manifest that say what was computed, and from which source; versions of the libraries
    named are recorded beside those that always are.
    """
    document = Manifest(
        **done, versions=versions(*libraries), python=platform.python_version(), files=described(folder)
    )
    write_json(folder / MANIFEST, document.to_dict())


def versions(*libraries: str) -> dict[str, str]:
    """Return the versions of this package, of the libraries that are always recorded, and of others."""
    return {"delayed-replay": __version__, **{name: version(name) for name in (*_VERSIONS, *libraries)}}


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path, *, most_names: int | None = None) -> dict[str, Any]:
    """Return the content of a JSON file of a result, an object, none of which has more than `most_names` names.

    SourceError if it cannot be read, holds something else, or holds more than any result.
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
    """Write a text with the same bytes on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


class LogDates(NamedTuple):
    """First and last display of a log, in seconds since 1970."""

    first: float
    last: float

    def __str__(self) -> str:
        return " to ".join(time_words(end, 1.0, start=0) for end in self)

    @property
    def middle(self) -> float:
        """Middle of the time between both, in seconds since 1970."""
        return (self.first + self.last) / 2

    @property
    def spoken(self) -> str:
        """First and last day, ``1 March to 29 April 2026``, or the only day."""
        first, last = (datetime.fromtimestamp(end, UTC) for end in self)
        start = f"{first.day} {first:%B}" + (f" {first.year}" if first.year != last.year else "")
        end = f"{last.day} {last:%B} {last.year}"
        return end if first.date() == last.date() else f"{start} to {end}"

    @property
    def days(self) -> str:
        """First and last day, ``2026-03-01 to 2026-03-07``, or the only day."""
        return " to ".join(dict.fromkeys(f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}" for end in self))


def log_dates(log: object) -> LogDates | None:
    """Return the dates of a log, given as a manifest's entry ``log``; None without the entry or without dates."""
    match log:
        case {"tick": str(tick), "time_range": [int(first), int(last)]} if tick != ROUND and tick in SECONDS:
            seconds = SECONDS[tick]
            if dated(first, seconds) and dated(last, seconds):
                return LogDates(first * seconds, last * seconds)
    return None


def write_chapter(folder: Path, chapter: Chapter) -> None:
    """Write ``chapter.json``, from which pages are made."""
    write_json(folder / CHAPTER, {"schema": _CHAPTER_SCHEMA, **asdict(chapter)})


def read_chapter(folder: Path) -> Chapter:
    """Return the chapter in the folder of a result; SourceError without one as a command writes it."""
    from pydantic import TypeAdapter, ValidationError

    from evaluator.comparisons.verdict import Verdict  # noqa: F401  # the type of a field, which pydantic looks up here
    from evaluator.reports.chart_schema import MOST_CHARTS, check_charts, place_of

    path = folder / CHAPTER
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "no such folder"
        raise SourceError(f"{folder}: {what}.", remedy="name a folder that a command wrote with --out.")
    if not path.exists():
        raise SourceError(f"{folder} holds no {CHAPTER}: no result of this version.", remedy=AGAIN)
    content = read_json(path, most_names=MOST_CHARTS)
    if content.pop("schema", None) != _CHAPTER_SCHEMA:
        raise SourceError(f"{path}: no {_CHAPTER_SCHEMA}.", remedy=AGAIN)
    try:
        chapter = TypeAdapter(Chapter).validate_python(content)
        check_charts(chapter.charts)
    except ValueError as error:
        where = place_of(error) if isinstance(error, ValidationError) else str(error)
        raise SourceError(f"{path}: not as a command wrote it, at {where or 'the top'}.", remedy=AGAIN) from None
    return chapter
