"""What a conversion replaces, and what it never does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluator.datasets import convert, load
from evaluator.errors import OutputExistsError
from evaluator.reading.sources.files import find_files
from evaluator.reading.spec import read_spec
from tests.reading.sources import ROWS, dataset, write_spec


def contents(folder: Path) -> dict[str, bytes | None]:
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.parametrize(
    "meta",
    [
        None,
        "",
        "[]",
        "{}",
        '{"schema_version": 99}',
        '{"schema_version": true}',
        '{"schema_version": 1, "title": "a thesis"}',
        "\udcff",
    ],
)
def test_a_folder_of_something_else_is_never_deleted(tmp_path: Path, meta: str) -> None:
    spec, out = dataset(tmp_path), tmp_path / "photos"
    out.mkdir()
    (out / "cat.jpg").write_text("")
    if meta is not None:
        (out / "meta.json").write_text(meta, errors="surrogateescape")
    before = contents(out)
    with pytest.raises(OutputExistsError, match="of another kind"):
        convert(spec, out, overwrite=True)
    assert contents(out) == before


@pytest.mark.parametrize("name", ["chapter1.tex", "displays.parquet.bak", ".notes", "figures/one.png"])
def test_a_converted_log_is_not_deleted_with_what_is_not_of_it(tmp_path: Path, name: str) -> None:
    spec, out = dataset(tmp_path), tmp_path / "out"
    convert(spec, out)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    before = contents(out)
    with pytest.raises(OutputExistsError, match=f"out holds {name.split('/')[0]}, which is not of a converted log"):
        convert(spec, out, overwrite=True)
    assert contents(out) == before
    assert (out / name).read_text() == "mine"


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["quarantine.parquet", "displays.parquet", "actions.parquet"])
@pytest.mark.parametrize("kind", ["text", "table"])
def test_what_only_has_the_name_of_a_log_s_file_is_not_deleted(
    tmp_path: Path, version: int, name: str, kind: str
) -> None:
    spec, out = dataset(tmp_path), tmp_path / "out"
    if version == 1:
        shutil.copytree(Path(__file__).parent / "formats" / "version-1", out)
    else:
        convert(spec, out)
    if kind == "text":
        (out / name).write_text("thesis")
    else:
        pq.write_table(pa.table({"chapter": [1, 2]}), out / name)
    before = contents(out)
    with pytest.raises(OutputExistsError, match=f"out holds {name}, which is not of .* remove it yourself"):
        convert(spec, out, overwrite=True)
    assert contents(out) == before


def test_a_log_of_the_first_version_may_be_replaced(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parent / "formats" / "version-1", tmp_path / "out")
    convert(dataset(tmp_path), tmp_path / "out", overwrite=True)
    assert len(load(tmp_path / "out")) == len(ROWS) - 1


def test_all_that_a_conversion_writes_may_be_replaced(tmp_path: Path) -> None:
    spec, out = dataset(tmp_path, [*ROWS, "9,a,8"]), tmp_path / "out"
    convert(spec, out, on_error="quarantine", quarantine_at_most=1)
    assert len(contents(out)) == 5
    convert(spec, out, on_error="quarantine", quarantine_at_most=1, limit=2, overwrite=True)
    assert len(load(out)) == 2


def test_a_log_is_not_replaced_by_what_is_read_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, out = dataset(tmp_path), tmp_path / "out"
    convert(spec, out)
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "raw.toml").write_text(spec.read_text().replace("log.csv", "*/displays.parquet"))
    (tmp_path / "two").mkdir()
    sold = {"time": "sold", "source": {"files": "../out/events.parquet", "display": "id"}}
    second = write_spec(tmp_path / "two", source={"files": "../log.csv"}, display={"id": "t"}, conversion=sold)
    before = contents(out)
    monkeypatch.chdir(out)
    ways = [
        (out, {}), (tmp_path / "link", {}), (Path("."), {}), (tmp_path / "raw.toml", {}), (second, {}),
        (spec, {"path": "../out/*.parquet"}),
    ]  # fmt: skip
    for source, options in ways:
        for target in (out, tmp_path / "link", Path("../out")):
            with pytest.raises(OutputExistsError, match=r"would replace .*, which is read"):
                convert(source, target, overwrite=True, **options)
    assert contents(out) == before


def test_outputs_in_the_making_are_no_sources(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    spec = dataset(tmp_path / "data")
    source = read_spec(spec).source.model_copy(update={"files": "."})
    hidden = tmp_path / "data" / ".out.partial-0123456789abcdef" / "out"
    hidden.mkdir(parents=True)
    (hidden / "displays.csv").write_text("t,ad,sold\n")
    for files, found in ((".", ["log.csv"]), ("**/*.csv", ["log.csv"]), (".out.*/*/*.csv", ["displays.csv"])):
        source = source.model_copy(update={"files": files})
        assert [file.path.name for file in find_files(source, spec.parent)] == found
