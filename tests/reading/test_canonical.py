from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Never

import numpy as np
import pytest

from evaluator.datasets import convert, load, show, validate
from evaluator.errors import OutputExistsError, SourceError, UsageError
from evaluator.log import Log
from evaluator.outputs.atomic import whole_folder
from evaluator.reading.canonical import refuse_other, write_canonical
from tests.reading.sources import ROWS, dataset


def same(one: Log, two: Log) -> bool:
    return (
        one.meta == two.meta
        and one.displays.equals(two.displays)
        and one.conversions.equals(two.conversions)
        and one.actions.equals(two.actions)
    )


def test_round_trip_of_a_file_log(tmp_path: Path) -> None:
    rows = ["t,ad,sold,city", "1,a,4,Rome", "2,b,,Oslo", "2,a,9,Rome", "5,b,5,"]
    spec = dataset(tmp_path, rows, display={"propensity_kind": "uniform"}, context={"columns": ["city"]})
    log = convert(spec, tmp_path / "made" / "out", features="hash=4").log
    assert same(load(tmp_path / "made" / "out"), log)
    assert sorted(p.name for p in (tmp_path / "made" / "out").iterdir()) == [
        "actions.parquet", "displays.parquet", "events.parquet", "meta.json",
    ]  # fmt: skip
    assert [p.name for p in (tmp_path / "made").iterdir()] == ["out"]


def test_round_trip_of_a_synthetic_log_over_several_row_groups(tmp_path: Path) -> None:
    log = convert("synthetic", tmp_path / "out", limit=70_000).log
    assert same(load(tmp_path / "out"), log)


def test_folder_named_like_a_partition(tmp_path: Path) -> None:
    convert(dataset(tmp_path), tmp_path / "day=3")
    assert "day" not in load(tmp_path / "day=3").displays.column_names


def test_existing_output_is_kept_unless_overwritten(tmp_path: Path) -> None:
    spec, out = dataset(tmp_path), tmp_path / "out"
    convert(spec, out)
    with pytest.raises(OutputExistsError, match="overwrite") as raised:
        convert(spec, out, limit=2)
    assert raised.value.exit_code == 2
    assert len(load(out)) == len(ROWS) - 1
    convert(spec, out, limit=2, overwrite=True)
    assert len(load(out)) == 2
    assert not list(tmp_path.glob(".out*"))


def test_a_folder_of_something_else_is_never_deleted(tmp_path: Path) -> None:
    spec, out = dataset(tmp_path), tmp_path / "photos"
    out.mkdir()
    (out / "cat.jpg").write_text("")
    with pytest.raises(OutputExistsError, match="of another kind"):
        convert(spec, out, overwrite=True)
    assert (out / "cat.jpg").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_interruption_leaves_the_old_output_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    spec, out = dataset(tmp_path), tmp_path / "out"
    old = convert(spec, out).log

    def interrupted() -> Never:
        with whole_folder(out, check_old=refuse_other) as partial:
            write_canonical(load("synthetic", limit=10), partial)
            raise error

    with pytest.raises(error):
        interrupted()
    assert same(load(out), old)
    assert not list(tmp_path.glob(".out*"))


def test_other_version(tmp_path: Path) -> None:
    convert(dataset(tmp_path), tmp_path / "out")
    meta = tmp_path / "out" / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "schema_version": 99}))
    with pytest.raises(SourceError, match=r"schema_version 99.*convert the dataset again"):
        load(tmp_path / "out")


@pytest.mark.parametrize("name", ["meta.json", "displays.parquet", "events.parquet"])
def test_damaged_file(tmp_path: Path, name: str) -> None:
    convert(dataset(tmp_path), tmp_path / "out")
    path = tmp_path / "out" / name
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(SourceError, match="missing or damaged") as raised:
        load(tmp_path / "out")
    assert "\n" not in str(raised.value)


def test_reading_rules_belong_to_the_conversion(tmp_path: Path) -> None:
    convert(dataset(tmp_path), tmp_path / "out")
    with pytest.raises(UsageError, match="`features` does not apply to a converted"):
        load(tmp_path / "out", features="none")


@pytest.mark.parametrize("options", [{"limit": 3}, {"actions": "b,a"}, {"actions": "top:2", "limit": 3}])
def test_parts_of_a_converted_log_are_those_of_its_source(tmp_path: Path, options: dict[str, Any]) -> None:
    convert(dataset(tmp_path), tmp_path / "out")
    part, source = load(tmp_path / "out", **options), load(dataset(tmp_path), **options)
    assert part.displays.equals(source.displays)
    assert part.conversions.equals(source.conversions)
    assert part.actions.equals(source.actions)
    for name in ("share_of_displays_kept", "conversions_dropped_by_actions"):
        assert part.meta.counts[name] == source.meta.counts[name]


def test_actions_of_a_converted_log_take_their_vectors_along(tmp_path: Path) -> None:
    convert("synthetic", tmp_path / "out", limit=500)
    whole, part = load(tmp_path / "out"), load(tmp_path / "out", actions="7,2")
    shown = np.isin(whole.column("action"), [7, 2])
    assert len(part) == shown.sum()
    np.testing.assert_array_equal(part.column("action_set"), whole.column("action_set")[shown][:, [7, 2]])
    np.testing.assert_array_equal(part.column("expected_reward"), whole.column("expected_reward")[shown][:, [7, 2]])
    assert set(part.column("propensity")) == {0.5}


def test_show(tmp_path: Path) -> None:
    facts = show(dataset(tmp_path))
    json.dumps(facts)
    log = facts["log"]
    assert (log["displays"], log["conversions"], log["actions"], log["time_range"]) == (4, 3, 2, [1, 5])
    assert log["delay_quantiles"]["p50"] == 3  # delays 3, 7, 0
    assert log["top_actions"][0] == {"label": "a", "displays": 2, "conversions": 2}
    convert(dataset(tmp_path), tmp_path / "out")
    assert show(tmp_path / "out")["log"] == log


def test_show_without_files_tells_the_spec_alone() -> None:
    facts = show("criteo_conversion_logs")
    assert facts["log"] is None
    assert "No file matches" in facts["missing"]
    assert facts["spec"]["display"]["action"] == "cat1"


def test_show_refuses_a_given_path_that_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No file matches"):
        show("criteo_attribution", path=tmp_path / "gone.tsv.gz")


def test_validate(tmp_path: Path) -> None:
    report = validate(dataset(tmp_path))
    assert report["ok"] is True
    assert report["counts"]["displays"] == 4
    report = validate(dataset(tmp_path, [*ROWS, "9,a,8"]), on_error="quarantine", quarantine_at_most=1)
    assert report["ok"] is False
    assert report["counts"]["quarantined"] == 1
