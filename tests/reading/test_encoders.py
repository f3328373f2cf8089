"""A display that comes later becomes the vector that the log would have had, to the bit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.datasets import convert, load
from evaluator.errors import ParameterError, SourceError
from evaluator.log import Log
from evaluator.log.encoder import ContextColumn, ContextEncoder, encoder_of, token_slot
from evaluator.reading.canonical import open_canonical
from evaluator.reading.log_folders import META, READS, _checksum
from tests.reading.earlier import rewrite
from tests.reading.sources import dataset

DISPLAYS: list[dict[str, Any]] = [
    {"city": "Rome", "zip": 44, "age": 0.1},
    {"city": None, "zip": 7, "age": -1e30},
    {"city": 'Ås, "south"', "zip": 44, "age": 3},
    {"city": "none", "zip": 12, "age": 2**53 + 1},
    {"city": "Oslo", "zip": 7, "age": 1e-45},
]
CONTEXT: dict[str, Any] = {"columns": {"city": "category", "age": "number", "zip": "category"}, "dimensions": 8}
ENCODINGS = (None, "hash=3", "one-hot", "city,zip:one-hot", "age:number", "zip", "age,city", "hash=65536")


def in_file(
    folder: Path, file: str, displays: list[dict[str, Any]], *, intercept: bool = True, scale: str | None = None
) -> Path:
    """Write the displays as a log in a file of some format; return the spec's path."""
    times = {"t": list(range(len(displays))), "ad": ["a", "b"] * (len(displays) // 2) + ["a"] * (len(displays) % 2)}
    sold = pl.Series("sold", [None] * len(displays), pl.Int64)
    types = {"city": pl.String, "zip": pl.Int64, "age": pl.Float64}
    frame = pl.DataFrame(times).with_columns(sold).hstack(pl.DataFrame(displays, schema=types))
    folder.mkdir(parents=True, exist_ok=True)
    source = {"files": file, "none": {"city": ["none"]}}
    spec = dataset(
        folder, source=source, context={**CONTEXT, "intercept": intercept, **({"scale": scale} if scale else {})}
    )
    frame.write_csv(folder / file) if file.endswith("csv") else frame.write_parquet(folder / file)
    return spec


def assert_encodes(log: Log, displays: list[dict[str, Any]]) -> None:
    assert log.meta.encoder is not None
    columns = [column.name for column in log.meta.encoder.columns]
    own = [log.meta.encoder.encode({name: display[name] for name in columns}) for display in displays]
    assert log.meta.encoder.dimensions == len(own[0])
    assert np.array(own).tobytes() == log.column("context").tobytes()


@pytest.mark.parametrize("features", ENCODINGS)
def test_the_vectors_are_the_logs_own(features: str | None, tmp_path: Path) -> None:
    encoders = []
    for file in ("log.csv", "log.parquet"):
        spec = in_file(tmp_path / file, file, DISPLAYS)
        convert(spec, tmp_path / file / "converted", features=features)
        for log in (load(spec, features=features), load(tmp_path / file / "converted")):
            assert_encodes(log, DISPLAYS)
            encoders.append(log.meta.encoder)
    assert encoders == [encoders[0]] * 4
    assert encoder_of(json.loads(json.dumps(encoders[0].to_dict()))) == encoders[0]


def drifting(n: int) -> list[dict[str, Any]]:
    """Displays whose age is a date in milliseconds, which float32 knows to two minutes."""
    rng = np.random.default_rng(1)
    return [{"city": "Rome", "zip": int(z), "age": 1.7e12 + 1e3 * i} for i, z in enumerate(rng.integers(9, size=n))]


@pytest.mark.parametrize(("n", "part"), [(5, 5), (1200, 1000), (12_000, 1200)])
def test_numbers_are_scaled_by_the_first_displays_whatever_the_batches(
    n: int, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    displays = drifting(n)
    age = np.array([display["age"] for display in displays])
    found = []
    for batch in (65_536, 77):
        monkeypatch.setattr("evaluator.reading.adapter.BATCH", batch)
        for file in ("log.csv", "log.parquet"):
            folder = tmp_path / f"{batch}" / file
            spec = in_file(folder, file, displays, scale="standard")
            convert(spec, folder / "converted")
            found += [load(spec), load(folder / "converted")]
    for log in found:
        assert log.column("context").tobytes() == found[0].column("context").tobytes()
        assert log.meta.encoder == found[0].meta.encoder
    log = found[0]
    assert_encodes(log, displays)
    (column,) = (c for c in log.meta.encoder.columns if c.kind == "number")
    assert (column.centre, column.deviation) == pytest.approx((age[:part].mean(), age[:part].std()))
    (at,) = (i for i, told in enumerate(log.meta.encoder.coordinates()) if told.column == "age")
    told = log.meta.encoder.coordinates()[at]
    # Back in its own unit, to the second.
    own = log.column("context")[:, at].astype(np.float64) * told.unit + told.centre
    np.testing.assert_allclose(own, age, rtol=0, atol=1e3)
    assert abs(log.column("context")[:part, at].mean()) < 1e-6
    assert encoder_of(json.loads(json.dumps(log.meta.encoder.to_dict()))) == log.meta.encoder


def test_no_scale_leaves_contexts_and_metadata_as_they_were(tmp_path: Path) -> None:
    spec = in_file(tmp_path, "log.csv", DISPLAYS)
    assert set(load(spec).meta.encoder.to_dict()["columns"][0]) == {"name", "kind", "missing", "labels"}


WRONG = ({"centre": 1.0}, {"centre": 1.0, "deviation": 0.0}, {"centre": "1", "deviation": 1.0},
         {"centre": math.inf, "deviation": 1.0})  # fmt: skip


@pytest.mark.parametrize("scale", WRONG)
def test_a_scale_that_is_none_is_refused(scale: dict[str, Any]) -> None:
    encoder = ContextEncoder((ContextColumn("age", "number", (), None, 1.0, 2.0),), 0, intercept=True)
    said = json.loads(json.dumps(encoder.to_dict()))
    assert encoder_of(said) == encoder
    said["columns"] = [{**{k: v for k, v in said["columns"][0].items() if k not in ("centre", "deviation")}, **scale}]
    with pytest.raises(SourceError, match="centre and deviation"):
        encoder_of(said)


LABELS = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=4))
NUMBERS = st.floats(-3e38, 3e38).filter(math.isfinite) | st.integers(-(2**60), 2**60).map(float)
ROWS = st.lists(
    st.fixed_dictionaries({"city": LABELS, "zip": st.none() | st.integers(-(2**63), 2**63 - 1), "age": NUMBERS}),
    min_size=2, max_size=12,
)  # fmt: skip


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.sampled_from(ENCODINGS[:-1]), st.booleans())
def test_whatever_the_rows_say(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], features: str | None, intercept: bool
) -> None:
    spec = in_file(tmp_path_factory.mktemp("rows"), "log.parquet", rows, intercept=intercept)
    assert_encodes(load(spec, features=features), rows)


def test_what_a_csv_reader_of_python_gives_is_taken(tmp_path: Path) -> None:
    encoder = load(in_file(tmp_path, "log.csv", DISPLAYS), features="one-hot").meta.encoder
    assert encoder is not None
    said = {"city": "", "zip": "44", "age": np.float32(0.5)}
    assert encoder.encode(said).tolist() == encoder.encode({"city": None, "zip": np.int32(44), "age": 0.5}).tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"citty": "Rome"}, "No context column 'citty'. Hint: did you mean city?"),
        ({"city": ...}, "The display has no 'city'. Hint: its columns are city, age, zip; None where one is missing."),
        ({"city": "Roma"}, "Column 'city': the log never had 'Roma', .* Hint: did you mean Rome?"),
        ({"zip": None}, "Column 'zip': the log never had a missing value, and one-hot vectors have no place"),
        ({"zip": 44.0}, "Column 'zip': 44.0 is not a category's text. Hint: write it as the log has it"),
        ({"city": True}, "Column 'city': True is not a category's text"),
        ({"city": ["Rome"]}, r"Column 'city': \['Rome'\] is not a category's text"),
        ({"city": "\udce9"}, "Column 'city': .* is not UTF-8"),
        ({"age": None}, "Column 'age': None is not a finite number. Hint: the log has no missing ones: fill it in."),
        ({"age": math.nan}, "Column 'age': nan is not a finite number"),
        ({"age": 1e39}, "Column 'age': 1e.39 is not a finite number"),
        ({"age": 10**400}, "Column 'age': 1000.* is not a finite number"),
        ({"age": "0.5"}, r"Column 'age': '0.5' is not a number. Hint: convert it: float\(...\)."),
        ({"age": True}, "Column 'age': True is not a number"),
        ({1: 2}, "No context column 1"),
    ],
)  # fmt: skip
def test_a_display_that_does_not_fit_is_named(tmp_path: Path, change: dict[Any, Any], said: str) -> None:
    columns = (
        ContextColumn("city", "category", labels=("Oslo", "Rome", None)),
        ContextColumn("age", "number"),
        ContextColumn("zip", "category", labels=("44", "7")),
    )
    display = {"city": "Rome", "age": 0.5, "zip": 44, **change}
    with pytest.raises(ParameterError, match=said):
        ContextEncoder(columns, 0, intercept=True).encode({k: v for k, v in display.items() if v is not ...})


def test_slots_of_tokens_are_those_of_whole_columns() -> None:
    import pyarrow as pa

    from evaluator.reading.contexts import token_slots

    labels = ["", "Rome", "Ås", "x" * 100]
    slots = token_slots("city", pa.array(labels, pa.large_string()), 7)
    assert [(int(s >> 1), 1 - 2 * int(s & 1)) for s in slots] == [token_slot("city", label, 7) for label in labels]


GOOD = ContextEncoder((ContextColumn("city", "category"), ContextColumn("age", "number")), 8, intercept=True).to_dict()
FORGED: list[dict[str, Any]] = [
    {"hash": "md5"}, {"hashed": 0}, {"hashed": -1}, {"hashed": True}, {"hashed": 10**9}, {"intercept": 1},
    {"columns": []}, {"columns": None}, {"columns": [1]}, {"columns": GOOD["columns"] * 2}, {"more": 1},
    *({"columns": [{**GOOD["columns"][0], **change}, GOOD["columns"][1]]}
      for change in ({"name": 1}, {"kind": "text"}, {"missing": [1]}, {"missing": None}, {"labels": ["a"]}, {"x": 1},
                     {"labels": ["a", "a"]}, {"labels": [1]}, {"labels": [[]]}, {"kind": "number", "labels": ["a"]})),
]  # fmt: skip


@pytest.mark.parametrize("change", FORGED, ids=str)
def test_a_forged_encoder_is_refused(change: dict[str, Any]) -> None:
    assert encoder_of(json.loads(json.dumps(GOOD))).dimensions == 10
    with pytest.raises(SourceError, match="encoder of contexts is none: "):
        encoder_of(json.loads(json.dumps({**GOOD, **change})))


def resigned(folder: Path, **changes: Any) -> None:
    said = {**json.loads((folder / META).read_text()), **changes}
    said = {name: value for name, value in said.items() if value is not ...}
    (folder / META).write_text(json.dumps({**said, "checksum": _checksum(said)}))


def test_a_folder_of_the_version_before_opens_and_has_no_encoder(tmp_path: Path) -> None:
    convert(in_file(tmp_path, "log.csv", DISPLAYS), tmp_path / "out")
    new = load(tmp_path / "out")
    rewrite(tmp_path / "out", 2)
    assert 2 in READS
    old = load(tmp_path / "out")
    assert old.meta.encoder is None
    assert (old.displays, old.with_meta(encoder=new.meta.encoder).meta) == (new.displays, new.meta)
    resigned(tmp_path / "out", schema_version=3, encoder={**GOOD, "hash": "md5"})
    with pytest.raises(SourceError, match=r"missing or damaged \(Its encoder of contexts is none: hash is 'md5'"):
        open_canonical(tmp_path / "out")
    resigned(tmp_path / "out", encoder=...)
    with pytest.raises(SourceError, match="encoder: missing"):
        open_canonical(tmp_path / "out")
