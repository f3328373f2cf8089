"""Every number that a spec or a study may hold: out of range is one line that names the key, never a crash."""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from evaluator import input_files, load
from evaluator.comparisons.study_file import READING, REPLAYING, read_study
from evaluator.errors import ParameterError, SourceError, SpecError
from evaluator.reading.locate import bundled_folder
from evaluator.reading.spec import FileSpec, ScenarioSpec, parse_spec, read_spec

WHOLE = (10**19, 10**30, -(10**19))
NO_NUMBERS = (math.inf, -math.inf, math.nan)


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models(part)


def numeric(annotation: Any) -> bool:
    return annotation in (int, float) or any(
        numeric(part) for part in get_args(annotation) if not isinstance(part, str | int)
    )


def numbers(model: type[BaseModel], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all fields that take numbers."""
    for name, field in model.model_fields.items():
        inner = list(models(field.annotation))
        named = ["named"] if get_origin(field.annotation) is dict else []
        for part in inner:
            yield from numbers(part, (*before, name, *named))
        if not inner and numeric(field.annotation):
            yield (*before, field.alias or name)


PATHS = sorted({*numbers(FileSpec), *numbers(ScenarioSpec)})
HEADING = {"name": "s", "title": "S", "licence": "none"}
BERNOULLI = {"kind": "bernoulli", "means": [0.1, 0.2]}
PROMOTIONS = tomllib.loads((bundled_folder() / "promotions" / "spec.toml").read_text())
BASES = (
    {**HEADING, "scenario": BERNOULLI},
    {**HEADING, "scenario": {**BERNOULLI, "delays": [{}, {}]}},
    {**HEADING, "scenario": {**BERNOULLI, "flights": [{"action": 0, "from": 1}]}},
    {**HEADING, "scenario": {"kind": "linear", "arrivals": {"displays_per_day": 10.0}}},
    TWIN := tomllib.loads((bundled_folder() / "criteo_twin" / "spec.toml").read_text()),
    {**TWIN, "action": [{"label": "a"}]},
    # An action with flights first, as numbers are put into the first entry of a list.
    {**PROMOTIONS, "scenario": {**PROMOTIONS["scenario"], "promotions": PROMOTIONS["scenario"]["promotions"][::-1]}},
)


def with_value(base: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(dict(base))
    at: Any = data
    for key in path[:-1]:
        at = (at if isinstance(at, dict) else at[0]).setdefault(key, {})
    (at if isinstance(at, dict) else at[0])[path[-1]] = value
    return data


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_infinity_and_nan_are_refused(path: tuple[str, ...]) -> None:
    if path[-1] == "none" and path[0] in ("source", "conversion", "outcomes", "calendar", "candidates"):
        return  # "nan" may stand for a missing cell
    for value in NO_NUMBERS:
        said = []
        for base in BASES:
            with pytest.raises(SpecError) as raised:
                parse_spec(with_value(base, path, value))
            said.append(str(raised.value))
        # Where the key belongs, it is what is wrong: what stands in another kind of spec is unknown there.
        assert any(path[-1] in line and f"got {value!r}" in line for line in said), said


def test_numbers_beyond_64_bits_are_refused_wherever_they_stand(tmp_path: Path) -> None:
    assert len(PATHS) > 60
    file = tmp_path / "spec.toml"
    for value in (*WHOLE, "[1, 10000000000000000000]", "{ a = { b = [9223372036854775808] } }"):
        file.write_text(f'name = "x"\n[log]\nobserved_until = {value}\n')
        with pytest.raises(SpecError, match=r"spec\.toml: `\$\.log\.observed_until.*` is a number beyond 64 bits"):
            read_spec(file)


NUMBERS = [key for key, kind in {**READING, **REPLAYING}.items() if kind in (int, float)]


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize(
    "value", ["10000000000000000000", "-10000000000000000000", "1" + "0" * 400, "true", '"7"', "[1]", "{}"]
)
def test_numbers_in_studies(tmp_path: Path, key: str, value: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f"{key} = {value}\n")
    with pytest.raises(ParameterError, match=rf"study\.toml.*{key}"):
        read_study(file)


@pytest.mark.parametrize("window", ["99999999999999999999", '"99999999999999999999d"', '"²"', "true", "1.5", "[1]"])
def test_windows_in_studies(tmp_path: Path, window: str) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f'policies = ["random"]\nwindows = [{window}]\n')
    if window.startswith('"'):
        read_study(file)  # what it is on a log's clock is said where there is a log
        return
    with pytest.raises(ParameterError, match=r"study\.toml.*windows\[0\]"):
        read_study(file)


BROKEN = {
    "nested": b"a = " + b"[" * 100_000,
    "nul": b'name = "a\0b"\n',
    "latin-1": b'name = "caf\xe9"\n',
    "utf-16": 'name = "x"\n'.encode("utf-16"),
    "digits": b"limit = " + b"1" * 5_000,
    "binary": bytes(range(256)),
    "date": b"limit = 0000-00-00\n",
    "twice": b"limit = 1\nlimit = 2\n",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("read", [read_spec, read_study])
def test_files_that_are_no_toml(tmp_path: Path, read: Any, content: bytes) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(content)
    with pytest.raises((SpecError, ParameterError), match=r"x\.toml: ") as raised:
        read(file)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("read", [read_spec, read_study])
def test_files_that_cannot_be_read(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((SpecError, SourceError), match="Is a directory"):
        read(tmp_path)
    with pytest.raises((SpecError, SourceError, ParameterError), match="it is no regular file"):
        read(Path("/dev/zero"))
    long = tmp_path / "long.toml"
    long.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises((SpecError, ParameterError), match="more than 1,048,576 bytes"):
        read(long)
    with pytest.raises((SpecError, SourceError), match="File name too long"):
        read(tmp_path / ("x" * 300))

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(input_files, "open", forbidden, raising=False)
    with pytest.raises((SpecError, SourceError), match="Permission denied"):
        read(tmp_path / "x")


def test_a_mark_and_windows_line_ends_are_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_bytes(b'\xef\xbb\xbfpolicies = ["random"]\r\nlimit = 5\r\n')
    assert read_study(file).reading == {"limit": 5}
    assert input_files.read_toml(file) == {"policies": ["random"], "limit": 5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 30d", {"a": "30d"}),
        ("a = 1.5h  # of delay\r\nb = 7d", {"a": "1.5h", "b": "7d"}),
        (
            "a = 2024-07-01\nb = [2024-07-01T00:30:00, 2024-07-01 00:30:00+02:00]",
            {"a": "2024-07-01", "b": ["2024-07-01 00:30:00", "2024-07-01 00:30:00+02:00"]},
        ),
        ("a = [7d, 30d]\nb = { c = 90min }", {"a": ["7d", "30d"], "b": {"c": "90min"}}),
        ('a = "x = 30d, y"\nb = 30', {"a": "x = 30d, y", "b": 30}),
        ("a = 30d\nb = ", None),
        ("a = 30 d", None),
        ("a = 30days", None),
        ('a = ["b = 30d, c"]\nd = ?', None),
    ],
)
def test_a_duration_needs_no_quotes(tmp_path: Path, text: str, said: dict[str, Any] | None) -> None:
    (tmp_path / "spec.toml").write_bytes(text.encode())
    if said is None:
        with pytest.raises(input_files.NotTomlError, match="not valid TOML"):
            input_files.read_toml(tmp_path / "spec.toml")
    else:
        assert input_files.read_toml(tmp_path / "spec.toml") == said


@pytest.mark.parametrize("place", ["log", "outcomes.click"])
@pytest.mark.parametrize(
    ("window", "ticks"), [("30d", 720), ('"30d"', 720), ("720", 720), ('"720"', 720), ("1w", 168), ('"10min"', None)]
)
def test_windows_of_a_spec_are_durations_or_ticks(tmp_path: Path, place: str, window: str, ticks: int | None) -> None:
    (tmp_path / "log.csv").write_text("t,ad,sold_at,clicked\n1,a,2,1\n2,b,,0\n3,a,4,1\n")
    click = 'indicator = "clicked"\nimmediate = true\n' if place != "log" else ""
    text = (
        'name = "x"\ntitle = "x"\nlicence = "x"\n[source]\nfiles = "log.csv"\n[time]\nunit = "h"\n[display]\n'
        f'time = "t"\naction = "ad"\n[conversion]\ntime = "sold_at"\n[{place}]\n{click}attribution_window = {window}\n'
    )
    (tmp_path / "spec.toml").write_text(text)
    if ticks is None:
        with pytest.raises(SpecError, match=r"'10min' is less than a tick of the log \(h\)"):
            load(tmp_path / "spec.toml")
        return
    meta = load(tmp_path / "spec.toml").meta
    assert (meta.attribution_window if place == "log" else meta.outcomes[0].attribution_window) == ticks
