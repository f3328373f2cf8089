"""Folders of converted logs, on disk and in object stores: their files, and ``meta.json``, which knows each of them.

It holds what the log says about itself, and by what the files are known to be those that were written. Its versions:
``docs/reference/formats.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluator.errors import EvaluatorError, SourceError
from evaluator.log import EventKind, LogMeta
from evaluator.log.encoder import encoder_of
from evaluator.log.log_files import LogFile, damaged, opened, size_of
from evaluator.log.log_tables import Objective, PropensityKind
from evaluator.log.stored import RowFacts
from evaluator.outputs.atomic import checksum
from evaluator.reading.sources.stores import ObjectFile, Store, StoredObject, open_store
from evaluator.store_addresses import as_given, is_address
from evaluator.units import LEAST_SAMPLE, ROUND, SECONDS
from evaluator.version import __version__

META = "meta.json"
DISPLAYS, EVENTS, ACTIONS = TABLES = ("displays.parquet", "events.parquet", "actions.parquet")
# Tables of events of earlier versions, the second only where there were events that are no conversions.
CONVERSIONS, OUTCOMES = "conversions.parquet", "outcomes.parquet"
# Present where rows were left out of the log.
QUARANTINE = "quarantine.parquet"
# Its columns: texts, and the number of a line or row.
QUARANTINED = ("file", "line", "key", "column", "value", "problem")
# What a folder of some version may hold.
FILES = (*TABLES, META, QUARANTINE, CONVERSIONS, OUTCOMES)

SCHEMA_VERSION, SCHEMA_OF_KINDS, SCHEMA_OF_PARTS = 8, 7, 5
# Versions of the folder that are read; the first has no checksums, the second says not how contexts were encoded, the
# third has no events but conversions, the fourth has its displays in one file, the fifth no rewards but conversions,
# the sixth conversions and other events in two tables, the seventh no facts of its rows.
READS = (1, 2, 3, 4, 5, 6, 7, 8)
# What metadata say of conversions, and the last of other kinds: one list of kinds in the folder.
_OF_KINDS = ("observed_until", "attribution_window", "reward_max", "reward_min", "outcomes")

_PROGRAM = "delayed-replay"
_LARGEST = 2**63 - 1

Tick = Annotated[str, Field(pattern=f"^({'|'.join((*SECONDS, ROUND))})$")]
Time = Annotated[int, Field(ge=-_LARGEST - 1, le=_LARGEST)]
Ticks = Annotated[int, Field(ge=0, le=_LARGEST)]
Share = Annotated[float, Field(ge=LEAST_SAMPLE, le=1)]
Count = Annotated[float, Field(ge=0)]
Checksum = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
# A Parquet file ends with its footer, the length of that (little-endian) and four letters.
_TAIL = 8


@dataclass(frozen=True)
class ObjectFolder:
    """A folder of an object store, as it was when it was listed first.

    The `key` is its path within the bucket, without a slash at the end; empty for the whole bucket.
    """

    store: Store
    key: str

    def __str__(self) -> str:
        return self.store.url(self.key).rstrip("/")

    def __truediv__(self, name: str) -> ObjectFile:
        return ObjectFile(self.store, f"{self.key}/{name}".lstrip("/"), self.objects.get(name))

    @property
    def name(self) -> str:
        """Last part of its address."""
        return str(self).rsplit("/", 1)[-1]

    @cached_property
    def objects(self) -> dict[str, StoredObject]:
        """What it holds, by the name within; one question, however many there are."""
        cut = len(self.key) + 1 if self.key else 0
        return {one.key[cut:]: one for one in self.store.objects(self.key)}

    def listed_anew(self) -> ObjectFolder:
        """Return it as it is now."""
        return ObjectFolder(self.store, self.key)


LogFolder = Path | ObjectFolder


def folder_at(place: str | Path) -> LogFolder:
    """Return the folder of a path or an address; credentials, endpoint and region are those of the environment.

    Raises SourceError for an address of no object store, and UsageError for one that holds a secret.
    """
    address = as_given(place)
    if not is_address(address):
        return Path(place)
    store, key = open_store(address, None)
    return ObjectFolder(store, key.strip("/"))


def names_in(folder: LogFolder) -> set[str]:
    """Return the names of all that a folder holds; OSError where it cannot be read."""
    return set(folder.objects) if isinstance(folder, ObjectFolder) else {path.name for path in folder.iterdir()}


def holds(folder: LogFolder, name: str) -> bool:
    """Whether a folder holds a file of a name."""
    return name in folder.objects if isinstance(folder, ObjectFolder) else (folder / name).is_file()


def folder_of(file: LogFile) -> LogFolder:
    """Return the folder of a file of a log."""
    if isinstance(file, Path):
        return file.parent
    assert isinstance(file, ObjectFile)
    return ObjectFolder(file.store, file.key.rpartition("/")[0])


@dataclass(frozen=True)
class StoredFile:
    """What a Parquet file is known by.

    Its end, `footer_bytes` long, says what columns it has, where their pages are and how to read them. Each page has a
    checksum of its own, so that with its footer a file is verified as far as it is read.
    """

    bytes: int
    rows: int
    sha256: str
    footer_bytes: int
    footer_sha256: str


def stored_file(path: Path) -> StoredFile:
    """Return what a Parquet file just written is known by."""
    return StoredFile(
        bytes=path.stat().st_size,
        rows=pq.read_metadata(path).num_rows,
        sha256=checksum(path),
        footer_bytes=(footer := _footer(path)),
        footer_sha256=_end(path, footer),
    )


def _footer(path: LogFile) -> int:
    """Return the size of the end of a Parquet file."""
    with opened(path) as stream:
        stream.seek(-_TAIL, os.SEEK_END)
        return int.from_bytes(stream.read(4), "little") + _TAIL


def check_end(path: LogFile, known: StoredFile) -> None:
    """Refuse a file of another size or with another footer; its pages are not read.

    Raises SourceError if the file is missing or damaged.
    """
    try:
        size, end = size_of(path), _end(path, known.footer_bytes)
    except EvaluatorError:  # of a store that does not give it
        raise
    except OSError as error:
        raise damaged(path, error) from None
    if size != known.bytes:
        raise damaged(path, f"{size:,} bytes where {known.bytes:,} were written")
    if end != known.footer_sha256:
        raise damaged(path, "its footer was changed")


def check_whole(path: LogFile, known: StoredFile) -> None:
    """Refuse a file of which any byte is another; errors as `check_end`."""
    check_end(path, known)
    try:
        with opened(path) as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except EvaluatorError:
        raise
    except OSError as error:
        raise damaged(path, error) from None
    if found != known.sha256:
        raise damaged(path, "its checksum is not that of what was written")


def check_rows(path: LogFile, rows: int, known: StoredFile) -> None:
    """Refuse a file with another number of rows than were written; errors as `check_end`."""
    if rows != known.rows:
        raise damaged(path, f"{rows:,} rows where {known.rows:,} were written")


def _end(path: LogFile, size: int) -> str:
    """Return the checksum of the last `size` bytes, or of all there are."""
    with opened(path) as stream:
        stream.seek(-min(size, size_of(path)), os.SEEK_END)
        return hashlib.sha256(stream.read()).hexdigest()


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _About(_Strict):
    """What `LogMeta` may hold, which is all of version 1."""

    schema_version: int
    name: str
    tick: Tick
    observed_until: Time | None = None
    attribution_window: Ticks | None = None
    propensity: PropensityKind = "absent"
    reward_max: float | None = None
    reward_min: float | None = None
    objective: Objective | None = None
    sampling_rate: Share = 1.0
    kept_share: Share = 1.0
    fingerprint: str = ""
    counts: dict[str, Count] = Field(default_factory=dict)
    notes: list[str]
    timezone: str | None = None
    deployment: dict[str, str] = Field(default_factory=dict)


class _File(_Strict):
    """What a file is known by."""

    bytes: Annotated[int, Field(ge=0)]
    rows: Annotated[int, Field(ge=0)]
    sha256: Checksum
    footer_bytes: Annotated[int, Field(ge=0)]
    footer_sha256: Checksum


class _Sealed(_About):
    """Version 2: its files are described, and it is protected itself."""

    written_by: str
    files: dict[str, _File]
    checksum: Checksum


class _Encoded(_Sealed):
    """Version 3: it says how contexts were encoded."""

    encoder: dict[str, Any] | None


class _Outcome(_Strict):
    """What `EventKind` may hold."""

    name: str
    attribution_window: Ticks | None
    observed_until: Time | None
    value_max: float | None


class _WithOutcomes(_Encoded):
    """Version 4: it says what other events there are."""

    outcomes: list[_Outcome]


class _Kind(_Outcome):
    """What `EventKind` may hold where some count as rewards."""

    reward: bool = False
    told: bool = False
    value_min: float | None = None


class _WithRewards(_Encoded):
    """Version 6: some of the other events are rewards."""

    outcomes: list[_Kind]


class _WithKinds(_Encoded):
    """Version 7: it says what kinds of events there are, the conversions first."""

    kinds: Annotated[list[_Kind], Field(min_length=1)]


class _Facts(_Strict):
    """What `RowFacts` may hold."""

    shown: list[Annotated[int, Field(ge=0)]]
    first_time: Time
    last_time: Time


class _WithFacts(_WithKinds):
    """Version 8: it says what was found of rows that keep the contract; None where nobody looked, or some do not."""

    facts: _Facts | None


_SAYS: dict[int, type[_About]] = {
    1: _About,
    2: _Sealed,
    3: _Encoded,
    4: _WithOutcomes,
    5: _WithOutcomes,
    6: _WithRewards,
    7: _WithKinds,
    8: _WithFacts,
}


def part_name(number: int) -> str:
    """Return the name of a file of some of the displays, the first of which has number 1.

    >>> part_name(1)
    'displays-00001.parquet'
    """
    return f"displays-{number:05}.parquet"


def is_part(name: str) -> bool:
    """Whether a file of this name is one of some of the displays."""
    return re.fullmatch(r"displays-[0-9]{5,}\.parquet", name) is not None


@dataclass(frozen=True)
class MetaFile:
    """What ``meta.json`` says.

    `files` has size and checksums of each file, by its name; empty in version 1. `facts` are of rows that were found to
    keep the contract; None where they are to be validated.
    """

    version: int
    meta: LogMeta
    files: Mapping[str, StoredFile]
    facts: RowFacts | None = None

    @property
    def displays(self) -> list[str]:
        """Names of the files of the displays, in the order of these."""
        return [DISPLAYS] if DISPLAYS in self.files or not self.files else _parts(self.files)


def display_files(folder: Path) -> list[str]:
    """Return the names of the files of the displays in a folder that is being written, in the order of these."""
    return [DISPLAYS] if (folder / DISPLAYS).is_file() else _parts(path.name for path in folder.iterdir())


def write_meta(folder: Path, meta: LogMeta, facts: RowFacts | None = None) -> None:
    """Write ``meta.json`` beside the files of a log, all of which are there."""
    names = [*_parts(path.name for path in folder.iterdir()), *(name for name in FILES if name != META)]
    files = {name: asdict(stored_file(folder / name)) for name in names if (folder / name).is_file()}
    document = {
        "schema_version": SCHEMA_VERSION,
        "written_by": f"{_PROGRAM} {__version__}",
        **{name: value for name, value in meta.to_dict().items() if name not in _OF_KINDS},
        "kinds": [asdict(kind) for kind in (meta.conversions, *meta.outcomes)],
        "encoder": None if meta.encoder is None else meta.encoder.to_dict(),
        "facts": None if facts is None else facts.to_dict(),
        "files": files,
    }
    document["checksum"] = _checksum(document)
    (folder / META).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_meta(folder: LogFolder) -> MetaFile:
    """Return what ``meta.json`` says.

    Raises SourceError if the file is missing, no JSON, was changed since it was written, or is of a version that this
    one does not read; or if a field is none that a log may have.
    """
    path = folder / META
    try:
        with opened(path) as file:
            document = json.loads(file.read().decode("utf-8"))
    except EvaluatorError:  # of a store that does not give it
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(path, error) from None
    if not isinstance(document, dict):
        raise damaged(path, "no JSON object")
    version = _version(path, document)
    try:
        _SAYS[version].model_validate(document)
    except ValidationError as error:
        raise damaged(path, _first(error)) from None
    if version > 1:
        if document["checksum"] != _checksum(document):
            raise damaged(path, "it was changed after it was written")
        named, parts = set(document["files"]), _parts(document["files"])
        displays = [DISPLAYS] if version < SCHEMA_OF_PARTS or DISPLAYS in named else parts or [DISPLAYS]
        tables = (*displays, CONVERSIONS if version < SCHEMA_OF_KINDS else EVENTS, ACTIONS)
        if not set(tables) <= named <= {*tables, QUARANTINE, *[OUTCOMES] * (version < SCHEMA_OF_KINDS)}:
            raise damaged(path, f"files: expected {', '.join(tables)}, got {', '.join(document['files'])}")
    # As they stand there: what was a whole number stays one.
    said = {field.name: document[field.name] for field in fields(LogMeta) if field.name in document}
    if said.get("encoder") is not None:
        try:
            said["encoder"] = encoder_of(said["encoder"])
        except SourceError as error:
            raise damaged(path, error.what) from None
    own, *others = (EventKind(**one) for one in document.get("kinds", [{"name": ""}, *said.get("outcomes", ())]))
    said["outcomes"] = tuple(others)
    if "kinds" in document:
        said |= {name: getattr(own, name.replace("reward", "value")) for name in _OF_KINDS[:-1]}
        if own != LogMeta(**said).conversions:
            raise damaged(path, f"kinds: expected the conversions first, got {own.name!r}")
    files = {name: StoredFile(**known) for name, known in document.get("files", {}).items()}
    facts = document.get("facts")
    facts = None if facts is None else RowFacts(**{**facts, "shown": tuple(facts["shown"])})
    return MetaFile(version, LogMeta(**{**said, "notes": tuple(said["notes"])}), files, facts)


def _parts(names: Iterable[str]) -> list[str]:
    """Return the names of parts among those of files, in their order, up to the first that lacks."""
    known = set(names)
    return list(takewhile(known.__contains__, map(part_name, count(1))))


def _version(path: LogFile, document: dict[str, Any]) -> int:
    version = document.get("schema_version")
    if type(version) is not int or version < min(READS):
        raise damaged(path, f"schema_version: expected one of {', '.join(map(str, READS))}, got {version!r}")
    if version not in READS:
        by = str(document.get("written_by"))
        newer = by if re.fullmatch(rf"{_PROGRAM} [0-9][0-9a-z.+-]*", by) else "the release that wrote it"
        raise SourceError(
            f"{path}: schema_version {version}, written by a newer version; this one reads up to {max(READS)}.",
            remedy=f"read it with {newer}, or convert the dataset again.",
        )
    return version


def _checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 of all that a document says but for its checksum, however it is laid out."""
    said = {name: value for name, value in document.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in found["loc"])
    if found["type"] in ("missing", "extra_forbidden"):
        return f"{field}: {'missing' if found['type'] == 'missing' else 'unknown'}"
    return f"{field}: {found['msg'].replace('Input should be', 'expected')}, got {_short(found['input'])}"


def _short(value: object) -> str:
    words = repr(value)
    return words if len(words) <= 40 else f"{words[:40]}..."
