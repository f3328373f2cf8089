"""From frames in memory to a `Log`: the reader of files, its spec made of keywords."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from evaluator.errors import EvaluatorError, SourceError, UsageError
from evaluator.log import Log
from evaluator.reading.adapter import read_tables
from evaluator.reading.event_rows import REWARDS
from evaluator.reading.options import ReadingOptions
from evaluator.reading.sources.part import TablePart, first_line, series_of
from evaluator.reading.spec import KEYS, FileSpec, parse_spec

DISPLAYS, CONVERSIONS = "displays", "conversions"
# What roles of events say of a frame of their own.
_OF_SOURCE = ("display", "user", "action", "where", "explode")
# Frames that say which actions were eligible.
OF_SETS = ("candidates", "calendar")
# Keys of a spec whose keywords have other names than theirs.
_KEYWORDS = {
    "conversion.time": "conversion_time",
    "conversion.source": CONVERSIONS,
    **{f"conversion.source.{key}": f"conversion_{key}" for key in ("where", "explode", "user", "action")},
    "conversion.source.display": "display",
    "candidates.display": "candidate_display",
    "candidates.action": "candidate_action",
    "candidates.propensity": "candidate_propensity",
    "candidates.features": "candidate_features",
    "candidates.explode": "candidate_explode",
    "calendar.action": "calendar_action",
    "calendar.from": "calendar_from",
    "calendar.until": "calendar_until",
    "context.columns": "context",
    "target.columns": "target",
    "action_set.columns": "action_set",
    "leakage.columns": "leakage",
}
_KEY = re.compile(
    r"(?<![\w'\"./$])(?:\$\.)?((?:source|time|display|conversion|candidates|calendar|log|context|target|action_set|leakage)[.]([a-z_]+(?:(?<=source)[.](?:where|explode|user|action|display))?))"
)
_TABLE_KEY = re.compile(r"\b(unit|format|timezone|offset|keep) = (?=[\"{])")
_TABLES = re.compile(r"(format|timezone|offset|keep) = \{ (.+?\") \}")
_TEXT = re.compile(r"(?:([\w-]+)|(\"(?:[^\"\\]|\\.)*\")) = (\"(?:[^\"\\]|\\.)*\")")
# An option of the reading of files that has the name of a key.
_CUT = re.compile(r"cut such conversions with `attribution_window=[^`]*`")
_OF_OUTCOME = re.compile(r"( in |: )\[outcomes\.([^\]]*)\]")
# What only a file says.
_OF_FILES = {
    "`$.": "`",
    "at `$`: ": "",
    ", no rows": ": the frame has no rows",
    "check the export": "check what made it",
    "check source.format and source.delimiter": "check the types of its columns",
    "of time, delay and": "of conversion_time, delay and",
    ", set sort = true in [source], or pass `sort=True`": ", or pass `sort=True`",
    "or say in [time] how": "or say how",
    "[conversion.source]": "`conversions`",
    "[candidates]": "`candidates`",
    "[calendar]": "`calendar`",
    " under [time]": "",
    " out of [time]": " out",
    " in [log]": "",
    "[target]": "`target`",
    "[action_set]": "`action_set`",
    " in the spec": "",
    " = true": "=True",
    KEYS: "see help(Log.from_frames)",
}


def read_frames(
    displays: object, others: Mapping[str, object | None], spec: dict[str, Any], asked: dict[str, Any]
) -> Log:
    """Return the log in a frame of displays and, where there are some, in frames of what belongs to them.

    A key of the spec whose value is None is left out. Errors name frame, row, column, value and keyword.
    """
    try:
        tables = [frame_source(displays, DISPLAYS)]
        given = {name: frame_source(frame, name) for name, frame in others.items() if frame is not None}
        frames = {name: of.pop("frame") for name, of in spec["outcomes"].items() if "frame" in of}
        events = {REWARDS: [given[CONVERSIONS]]} if CONVERSIONS in given else {}
        for name, frame in frames.items():
            events[f"outcomes.{name}"] = [frame_source(frame, f"outcomes[{name!r}]")]
        return read_tables(
            _file_spec(spec, given, frames),
            tables,
            events,
            [frame for name, frame in given.items() if name in OF_SETS],
            ReadingOptions(**asked),
        ).log
    except EvaluatorError as error:
        raise type(error)(in_keywords(error.what), remedy=in_keywords(error.remedy)) from None


def _file_spec(given: dict[str, Any], frames: Collection[str], of_outcomes: Collection[str]) -> FileSpec:
    data: dict[str, Any] = {"title": given["name"], "licence": "of the frame"}
    for section, keys in given.items():
        data[section] = {k: v for k, v in keys.items() if v is not None} if isinstance(keys, dict) else keys
    none = data["source"]["none"]
    joined = [name for name in (CONVERSIONS, OF_SETS[0]) if name in frames] + ["outcomes"] * bool(of_outcomes)
    if joined and not {"id", "user"} & data["display"].keys():
        raise UsageError(f"`{joined[0]}` are joined to displays by an id.", remedy="name its column: id='...'.")
    data["source"]["files"] = DISPLAYS
    kinds = {CONVERSIONS: data["conversion"], **{f"outcomes[{name!r}]": of for name, of in data["outcomes"].items()}}
    apart = {CONVERSIONS}.intersection(frames) | {f"outcomes[{name!r}]" for name in of_outcomes}
    for name, of in kinds.items():
        own = {key: of.pop(key) for key in _OF_SOURCE if key in of}
        if name in apart:
            if own.get("display") is None and own.get("user") is None:
                own["display"] = data["display"].get("id")
                own["user"] = None if own["display"] else data["display"].get("user")
            of["source"] = {"files": name, "none": none} | {key: said for key, said in own.items() if said is not None}
        elif stray := [key for key, said in own.items() if said is not None and key != "display"]:
            key = f"conversion_{stray[0]}" if name == CONVERSIONS else stray[0]
            raise UsageError(f"`{key}` is of `{name}`, which is no frame of its own.", remedy="give the frame.")
    for name in OF_SETS:
        if name in frames:
            data[name] |= {"files": name, "none": none}
        elif roles := {"from", "until", "propensity", "features", "explode"}.intersection(
            k for k, v in data.pop(name).items() if v
        ):
            kind = {"candidates": "candidate", "calendar": "calendar"}[name]
            raise UsageError(
                f"`{kind}_{min(roles)}` is a column of `{name}`, which is not there.", remedy="give the frame."
            )
    if not data["action_set"].get("columns"):
        del data["action_set"]
    if not data["target"]:
        del data["target"]
    spec = parse_spec(data, where="Log.from_frames")
    assert isinstance(spec, FileSpec)
    return spec


def in_keywords(message: str) -> str:
    """Return a message about a spec with its keys as the keywords of `Log.from_frames`.

    >>> in_keywords("list it in source.none, or say in [time] how dates are written")
    'list it in none, or say how dates are written'
    >>> in_keywords("give exactly one of time, delay and immediate = true")
    'give exactly one of conversion_time, delay and immediate=True'
    >>> in_keywords('write format = { shown = "epoch", "a b" = "%d.%m.%Y" } under [time]')
    'write format={"shown": "epoch", "a b": "%d.%m.%Y"}'
    """
    for said, meant in _OF_FILES.items():
        message = message.replace(said, meant)

    if "outcomes." in message:  # whose own keys are those of a spec
        message = message.replace("exactly one of conversion_time", "exactly one of time")
    message = _OF_OUTCOME.sub(r"\1outcomes['\2']", message)
    message = _CUT.sub("leave such conversions out", message)
    message = _TABLE_KEY.sub(r"\1=", _TABLES.sub(_as_dict, message))
    return _KEY.sub(lambda found: _KEYWORDS.get(found[1], found[2]), message)


def _as_dict(found: re.Match[str]) -> str:
    """Return a table of texts as Python writes it."""
    pairs = (f"{quoted or json.dumps(bare)}: {text}" for bare, quoted, text in _TEXT.findall(found[2]))
    return f"{found[1]} = {{{', '.join(pairs)}}}"


@dataclass(frozen=True, eq=False)
class FrameSource(TablePart):
    """One frame in memory."""

    rows: pa.Table

    def names(self) -> list[str]:
        """Return its columns."""
        return list(self.rows.column_names)

    def state(self) -> object:
        """Return what nobody changes while it is read."""
        return self.rows

    def _unreadable(self, error: BaseException, *, opening: bool) -> SourceError:
        """Return the error that says why its rows cannot be read."""
        return SourceError(
            f"{self.name}: cannot be read: {first_line(error)}.", remedy="check the types of its columns."
        )

    def scan(self, columns: Iterable[str], *, rows: int | None = None) -> pl.LazyFrame:
        """Return some columns, of the first rows alone where these are counted.

        Raises SourceError if Polars has no such type, or if the frame has several columns of a name.
        """
        series = []
        for column in columns:
            if self.rows.schema.get_field_index(column) < 0:
                raise SourceError(f"{self.name}: several columns are called {column!r}.", remedy="rename one of them.")
            cells = self.rows[column] if rows is None else self.rows[column].slice(0, rows)
            series.append(series_of(cells, column, self.name))
        return pl.LazyFrame(series)


def frame_source(frame: object, name: str) -> FrameSource:
    """Return a frame as a source.

    It comes without a copy, where its library keeps it as Arrow does. Raises UsageError if it speaks no Arrow, and
    SourceError if its library cannot write it as Arrow: a column mixes types, a query fails.
    """
    if not (hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__")) or isinstance(frame, type):
        lazy = ": collect() it" if hasattr(frame, "collect") else ""
        raise UsageError(
            f"`{name}`: a {type(frame).__name__} is no frame that speaks Arrow{lazy}.",
            remedy="give a frame of polars, pandas (2.2 or later) or pyarrow, or a relation of DuckDB.",
        )
    try:
        table = pa.table(frame)
    except Exception as error:  # of any library: a relation of DuckDB computes its rows only now
        said = "; ".join(str(part).strip().split("\n")[0].rstrip(".") for part in error.args)
        raise SourceError(
            f"{name}: its library cannot hand it over as Arrow: {said}.",
            remedy="give every column one type, and a name of its own.",
        ) from None
    return FrameSource(name, {}, table)
