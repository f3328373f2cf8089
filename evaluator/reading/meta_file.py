"""``meta.json`` of a converted folder: what the log says about itself, and what its files are known by."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluator.errors import EvaluatorError, SourceError
from evaluator.log import EventKind, LogMeta
from evaluator.log.encoder import encoder_of
from evaluator.log.log_files import LogFile, damaged, opened
from evaluator.log.log_tables import Objective, PropensityKind
from evaluator.reading.log_folders import LogFolder, StoredFile, stored_file
from evaluator.units import LEAST_SAMPLE, ROUND, SECONDS
from evaluator.version import __version__

META = "meta.json"
DISPLAYS, EVENTS, ACTIONS = TABLES = ("displays.parquet", "events.parquet", "actions.parquet")
# Tables of events of earlier versions, the second only where there were events that are no conversions.
CONVERSIONS, OUTCOMES = "conversions.parquet", "outcomes.parquet"
# Present where rows were left out of the log.
QUARANTINE = "quarantine.parquet"
# What a folder of some version may hold.
FILES = (*TABLES, META, QUARANTINE, CONVERSIONS, OUTCOMES)

SCHEMA_VERSION, SCHEMA_OF_PARTS = 7, 5
# Versions of the folder that are read; the first has no checksums, the second says not how contexts were encoded, the
# third has no events but conversions, the fourth has its displays in one file, the fifth no rewards but conversions,
# the sixth conversions and other events in two tables.
READS = (1, 2, 3, 4, 5, 6, 7)
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


_SAYS: dict[int, type[_About]] = {
    1: _About,
    2: _Sealed,
    3: _Encoded,
    4: _WithOutcomes,
    5: _WithOutcomes,
    6: _WithRewards,
    7: _WithKinds,
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

    `files` has size and checksums of each file, by its name; empty in version 1.
    """

    version: int
    meta: LogMeta
    files: Mapping[str, StoredFile]

    @property
    def displays(self) -> list[str]:
        """Names of the files of the displays, in the order of these."""
        return [DISPLAYS] if DISPLAYS in self.files or not self.files else _parts(self.files)


def display_files(folder: Path) -> list[str]:
    """Return the names of the files of the displays in a folder that is being written, in the order of these."""
    return [DISPLAYS] if (folder / DISPLAYS).is_file() else _parts(path.name for path in folder.iterdir())


def write_meta(folder: Path, meta: LogMeta) -> None:
    """Write ``meta.json`` beside the files of a log, all of which are there."""
    names = [*_parts(path.name for path in folder.iterdir()), *(name for name in FILES if name != META)]
    files = {name: asdict(stored_file(folder / name)) for name in names if (folder / name).is_file()}
    document = {
        "schema_version": SCHEMA_VERSION,
        "written_by": f"{_PROGRAM} {__version__}",
        **{name: value for name, value in meta.to_dict().items() if name not in _OF_KINDS},
        "kinds": [asdict(kind) for kind in (meta.conversions, *meta.outcomes)],
        "encoder": None if meta.encoder is None else meta.encoder.to_dict(),
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
        tables = (*displays, CONVERSIONS if version < SCHEMA_VERSION else EVENTS, ACTIONS)
        if not set(tables) <= named <= {*tables, QUARANTINE, *[OUTCOMES] * (version < SCHEMA_VERSION)}:
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
    return MetaFile(version, LogMeta(**{**said, "notes": tuple(said["notes"])}), files)


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
