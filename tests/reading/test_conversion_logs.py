from __future__ import annotations

from pathlib import Path

from evaluator.datasets import load
from evaluator.reading.locate import bundled_folder
from evaluator.reading.spec import read_spec
from tests.reading.sources import write_rows


def line(click: int, sale: int | str, action: str) -> str:
    return "\t".join([str(click), str(sale), *["3", "", *["1"] * 6], action, *["x"] * 7, ""])


def test_layout_of_chapelle(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "data.txt", [line(0, "", "a"), line(5, 99, "b"), line(7, "", "a")])
    log = load("criteo_conversion_logs", path=path)
    assert log.labels == ["a", "b"]
    assert log.conversions.to_pylist() == [{"display_id": 1, "time": 99, "value": 1.0}]
    assert log.column("context").shape == (3, 17)


def test_action_is_no_context() -> None:
    spec = read_spec(bundled_folder() / "criteo_conversion_logs" / "spec.toml")
    assert spec.display.action not in spec.context.columns
