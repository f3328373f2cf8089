"""From frames in memory to a `Log`: the reader of files, its spec made of keywords."""

from __future__ import annotations

import json
import re
from typing import Any

from evaluator.datasets.adapter import read_tables
from evaluator.datasets.frame_source import frame_source
from evaluator.datasets.options import ReadingOptions
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.spec_file import parse_spec
from evaluator.errors import EvaluatorError, UsageError
from evaluator.log import Log
from evaluator.log.content import content_hash

DISPLAYS, CONVERSIONS = "displays", "conversions"
# Keys of a spec whose keywords have other names than theirs.
_KEYWORDS = {
    "conversion.time": "conversion_time",
    "conversion.source": CONVERSIONS,
    "context.columns": "context",
    "target.columns": "target",
    "leakage.columns": "leakage",
}
_KEY = re.compile(
    r"(?<![\w'\"./$])(?:\$\.)?((?:source|time|display|conversion|log|context|target|leakage)[.]([a-z_]+))"
)
_TIME_KEY = re.compile(r"\b(unit|format) = (?=[\"{])")
_FORMATS = re.compile(r"format = \{ (.+?\") \}")
_FORMAT = re.compile(r"(?:([\w-]+)|(\"(?:[^\"\\]|\\.)*\")) = (\"(?:[^\"\\]|\\.)*\")")
# An option of the reading of files that has the name of a key.
_CUT = re.compile(r"cut such conversions with `attribution_window=[^`]*`")
# What only a file says.
_OF_FILES = {
    "`$.": "`",
    "at `$`: ": "",
    ", no rows below the header": ": the frame has no rows",
    "check the export": "check what made it",
    "check source.format and source.delimiter": "check the types of its columns",
    "of time, delay and": "of conversion_time, delay and",
    ", set sort = true in [source], or pass `sort=True`": ", or pass `sort=True`",
    "or say in [time] how": "or say how",
    "[conversion.source]": "`conversions`",
    " under [time]": "",
    " out of [time]": " out",
    " in [log]": "",
    " in [target]": " in `target`",
    " in the spec": "",
    " = true": "=True",
    "datasets/README.md": "help(Log.from_frames)",
}


def read_frames(displays: object, conversions: object | None, spec: dict[str, Any], asked: dict[str, Any]) -> Log:
    """Return the log in a frame of displays, or in one of displays and one of conversions.

    Parameters
    ----------
    displays, conversions
        Frames; None without a second one.
    spec
        Sections of a spec without its files; a key whose value is None is left out.
    asked
        Options of the reading.

    Raises
    ------
    UsageError, SpecError, SourceError, LogError, PropensityError
        The keywords, the frames or their rows are wrong; the message names frame, row, column, value and keyword.
    """
    try:
        tables = [frame_source(displays, DISPLAYS)]
        others = [] if conversions is None else [frame_source(conversions, CONVERSIONS)]
        log = read_tables(
            _file_spec(spec, second=bool(others)),
            tables,
            others,
            [],
            ReadingOptions(**asked),
            into=None,
            contexts=True,
            advance=lambda rows: None,
            fingerprint=str,
        ).log
    except EvaluatorError as error:
        raise type(error)(in_keywords(error.what), hint=in_keywords(error.hint)) from None
    # Of what was read: equal rows have one fingerprint, whichever library holds them, in pieces of whatever size.
    return log.with_meta(fingerprint=content_hash(log))


def _file_spec(given: dict[str, Any], *, second: bool) -> FileSpec:
    data: dict[str, Any] = {"title": given["name"], "licence": "of the frame"}
    for section, keys in given.items():
        data[section] = {k: v for k, v in keys.items() if v is not None} if isinstance(keys, dict) else keys
    if second and "id" not in data["display"]:
        raise UsageError("`conversions` are joined to displays by an id.", hint="name its column: id='...'.")
    data["source"]["files"] = DISPLAYS
    display = data["conversion"].pop("display", data["display"].get("id"))
    if second:
        of_conversions = {"files": CONVERSIONS, "none": data["source"]["none"]}
        data["conversion"]["source"] = of_conversions | ({} if display is None else {"display": display})
    if "columns" not in data["target"]:
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
    message = _CUT.sub("leave such conversions out", message)
    message = _TIME_KEY.sub(r"\1=", _FORMATS.sub(_as_dict, message))
    return _KEY.sub(lambda found: _KEYWORDS.get(found[1], found[2]), message)


def _as_dict(found: re.Match[str]) -> str:
    """Return the formats of some columns as Python writes them."""
    pairs = (f"{quoted or json.dumps(bare)}: {form}" for bare, quoted, form in _FORMAT.findall(found[1]))
    return f"format = {{{', '.join(pairs)}}}"
