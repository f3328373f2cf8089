"""A study in a file: what to compare, on which log, with which options, in the words of the command line.

::

    dataset = "shop-log"                    # as --dataset; any option that reads the log beside it
    policies = ["random", "delayed-klucb"]  # as --policy
    windows = [500, 2000, "7d", "none"]     # as --windows; one alone: window = 500
    learn_every = ["event", "1d@03:00"]     # as --schedules, or schedules = [...]
    baseline = "random"
    ship_if = "uplift > 0.002"              # as --ship-if
    look = "3 of 5"                         # as --look
    guardrails = ["complaint < +0.001"]     # as --guardrail
    by = "device,country"                   # as --by
    repeats = 5                             # any option of a replay: seed, horizon, jobs, traffic_share, ...

    [[policy]]                              # parameters with several values are crossed: six variants here
    name = "otflinucb"
    alpha = [0.1, 0.3, 1.0]
    bonus = ["buffered", "exact"]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.comparisons.rule import Look, ShipRule, parse_look, parse_ship_rule
from evaluator.errors import EvaluatorError, KeyOfFileError, SourceError, nearest, nearest_file
from evaluator.input_files import NotTomlError, read_toml
from evaluator.options.declaration import Options, alternatives, kinds_of, several
from evaluator.options.deployment import parse_schedule
from evaluator.options.shared import POLICIES, SCHEDULES, WINDOWS
from evaluator.policies.registry import resolve
from evaluator.reading.options import ReadingOptions
from evaluator.replays.options import GUARDRAILS, ReplayOptions

_OWN: dict[str, type] = {
    "dataset": str, "baseline": str, "ship_if": str, "look": str, "policies": list, "windows": list, "policy": list,
    "schedules": list,
}  # fmt: skip
# What takes several values, of which one may be named alone.
_PLURALS = {"policies": POLICIES, "windows": WINDOWS, "schedules": SCHEDULES, "guardrails": GUARDRAILS}
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}


def _keys(options: type[Options], *, but: Sequence[str]) -> dict[str, type]:
    """Return what the key of each option takes; numbers with a point may be written without one."""
    kinds = {name: alternatives(kind) for name, kind in kinds_of(options).items() if name not in but}
    return {
        name: list
        if several(kinds_of(options)[name]) is not None and str not in kind
        else next((one for one in (bool, float, int) if one in kind and str not in kind), str)
        for name, kind in kinds.items()
    }


# A comparison says itself by which windows; generated logs have a seed in their spec, and groups are not its matter.
READING = _keys(ReadingOptions, but=("seed", "keep"))
REPLAYING = _keys(ReplayOptions, but=("window", "learn_every"))


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """What a study file asks for, in the words of `evaluator.compare`; None and nothing where it does not say.

    `reading` has options of the log's reading, `options` values of fields of `ReplayOptions`, by name.
    """

    dataset: str | None
    reading: dict[str, Any]
    policies: tuple[str, ...]
    windows: tuple[str | int | None, ...] | None
    schedules: tuple[str | int, ...] | None
    baseline: str | None
    rule: ShipRule | None
    look: Look | None
    options: dict[str, Any]


def read_study(path: str | Path) -> StudyFile:
    """Read a study file.

    Parameters
    ----------
    path
        A TOML file in the format above. Paths in it are relative to the working folder, as on the command line. It
        names registered policies only: Python of one's own is named by who runs it, with ``-p``.

    Raises
    ------
    SourceError
        The file is not there, or cannot be read.
    ParameterError
        The file is no TOML, or has an unknown key, or a value that does not fit; names file, key, value and repair.
    """
    try:
        said = read_toml(Path(path))
    except OSError as error:
        hint = nearest_file(path, "name a .toml file.")
        raise SourceError(f"{path}: no study can be read there: {error.strerror}.", remedy=hint) from None
    except NotTomlError as error:
        hint = "`evaluate datasets make shop -o shop` writes one, shop/study.toml."
        raise KeyOfFileError(f"{path}: {error}.", remedy=hint) from None
    said = _under_one_name(path, said)
    kinds = {**_OWN, **READING, **REPLAYING}
    for key, value in said.items():
        if key not in kinds:
            raise KeyOfFileError(f"{_line(path, key)}: unknown key `{key}`.", remedy=nearest(key, kinds))
        _check(path, key, value, kinds[key])
    for key, kind in (("policies", str), ("policy", dict)):
        for i, value in enumerate(said.get(key, [])):
            if not isinstance(value, kind):
                hint = 'write a spec: "otflinucb:alpha=0.1".' if kind is str else "write [[policy]] and its lines."
                raise KeyOfFileError(f"{_line(path, key)}: `{key}[{i}]` is {value!r}.", remedy=hint)
    if "baseline" in said:
        with _naming(path, "baseline", "`baseline`"):
            resolve(said["baseline"], files=False)
    options = {key: value for key, value in said.items() if key in REPLAYING}
    reading = {key: value for key, value in said.items() if key in READING}
    try:
        ReadingOptions(**reading)
        ReplayOptions(**options)
        rule = parse_ship_rule(said["ship_if"]) if "ship_if" in said else None
        look = parse_look(said["look"]) if "look" in said else None
    except EvaluatorError as error:
        named = re.match(r"`(\w+)", error.what)  # what errors of options begin with
        where = path if named is None else _line(path, named[1])
        raise KeyOfFileError(f"{where}: {error.what}", remedy=error.remedy) from None
    return StudyFile(
        dataset=said.get("dataset"),
        reading=reading,
        policies=tuple(_specs(path, said)),
        windows=tuple(_window(path, i, w) for i, w in enumerate(said["windows"])) if "windows" in said else None,
        schedules=tuple(_learns(path, i, of) for i, of in enumerate(said["schedules"]))
        if "schedules" in said
        else None,
        baseline=said.get("baseline"),
        rule=rule,
        look=look,
        options=options,
    )


def _under_one_name(path: str | Path, said: dict[str, Any]) -> dict[str, Any]:
    """Return what is said with one policy, window or guardrail, which a file may name alone, among the several."""
    said = dict(said)
    for plural, declared in _PLURALS.items():
        one = declared.singular
        if one not in said or (one == "policy" and not isinstance(said[one], str)):
            continue
        if plural in said:
            raise KeyOfFileError(
                f"{_line(path, one)}: `{one}` and `{plural}` exclude each other.", remedy="write the second."
            )
        value = said.pop(one)
        said[plural] = value if isinstance(value, list) else [value]
    return said


def _check(path: str | Path, key: str, value: object, kind: type) -> None:
    fits = isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits:
        what = "[[policy]] and its lines" if key == "policy" else _NAMES[kind]
        raise KeyOfFileError(f"{_line(path, key)}: `{key}` is {value!r}.", remedy=f"write {what}.")


def _window(path: str | Path, i: int, value: object) -> str | int | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise KeyOfFileError(
            f"{_line(path, 'windows')}: `windows[{i}]` is {value!r}.", remedy='write rounds, "7d" or "none".'
        )
    return None if value == "none" else value


def _learns(path: str | Path, i: int, value: object) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise KeyOfFileError(
            f"{_line(path, 'schedules')}: `schedules[{i}]` is {value!r}.",
            remedy='write "event", rounds, "1h" or "1d@03:00".',
        )
    with _naming(path, "schedules", f"`schedules[{i}]`"):
        parse_schedule(value, None)
    return value


def _specs(path: str | Path, said: dict[str, Any]) -> Iterator[str]:
    for i, spec in enumerate(said.get("policies", [])):
        with _naming(path, "policies", f"`policies[{i}]`"):
            resolve(spec, files=False)
        yield spec
    for i, table in enumerate(said.get("policy", [])):
        if not isinstance(table.get("name"), str):
            where = _line(path, "policy", table=i)
            raise KeyOfFileError(f"{where}: `policy[{i}]` has no name.", remedy='write name = "otflinucb".')
        values = {key: value if isinstance(value, list) else [value] for key, value in table.items() if key != "name"}
        for key, value in values.items():
            if not value or any(isinstance(x, list | dict) for x in value):
                where = _line(path, "policy", table=i)
                raise KeyOfFileError(
                    f"{where}: `policy[{i}]`.{key} is {table[key]!r}.", remedy="write a value, or a list of values."
                )
        for chosen in itertools.product(*values.values()):
            words = ",".join(f"{key}={value}" for key, value in zip(values, chosen, strict=True))
            spec = f"{table['name']}:{words}" if words else table["name"]
            with _naming(path, "policy", f"`policy[{i}]`", table=i):
                resolve(spec, files=False)
            yield spec


def _line(path: str | Path, key: str, *, table: int | None = None) -> str:
    """Return the file, and the line of a key in it, or of the table of that name and number; the file if none is."""
    alone = _PLURALS[key].singular if key in _PLURALS else key
    start = (
        rf"\s*[\"']?({re.escape(key)}|{re.escape(alone)})[\"']?\s*=" if table is None else rf"\s*\[\[\s*{key}\s*\]\]"
    )
    lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    found = [number for number, line in enumerate(lines, 1) if re.match(start, line)][table or 0 :]
    return f"{path}: line {found[0]}" if found else str(path)


@contextmanager
def _naming(path: str | Path, key: str, what: str, *, table: int | None = None) -> Iterator[None]:
    """Let errors say where in the file they arose."""
    try:
        yield
    except EvaluatorError as error:
        raise KeyOfFileError(f"{_line(path, key, table=table)}: {what}: {error.what}", remedy=error.remedy) from None
