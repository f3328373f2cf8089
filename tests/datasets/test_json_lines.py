"""JSON lines: what is no object, what is no cell, and lines that say where."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator import datasets, load
from evaluator.datasets.json_lines import LINE_MAX
from evaluator.errors import EvaluatorError
from tests.datasets.sources import write_spec

GOOD = ['{"t": 1, "ad": "a", "sold": 4}', '{"t": 2, "ad": "b"}', '{"t": 3, "ad": "a", "sold": null, "x": {"y": [1]}}']


def objects(folder: Path, lines: list[str]) -> Path:
    (folder / "log.jsonl").write_text("\n".join(lines))
    return write_spec(folder, source={"files": "log.jsonl"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([GOOD[0], '{"t": 2, "ad', GOOD[2]], "A line that is no JSON object (log.jsonl line 2: '{"),
        ([GOOD[0], "", "[1, 2]"], "no JSON object (log.jsonl line 3: '[1, 2]')"),
        ([GOOD[0], '{"t": 2, "t": 3}'], "line 2: '{\"t\": 2, \"t\": 3}' (two values of 't')"),
        ([GOOD[0], '{"t": 2, "ad": ' + "[" * 100_000], "(nested too deeply)"),
        ([GOOD[0], '{"t": 2, "ad": ["a"]}'], "log.jsonl line 2: column 'ad' holds a list: several values a cell."),
        ([GOOD[0], '{"t": {"s": 1}, "ad": 1}'], "log.jsonl line 2: column 't' holds an object"),
        ([GOOD[0], '{"t": 2, "ad": "\\ud800"}'], "log.jsonl line 2: column 'ad' holds half a character"),
        (['{"t": 1.5, "ad": "a", "sold": 2}'], "Column 't': not a whole number (log.jsonl line 1: '1.5')"),
        (["[", GOOD[0] + ",", GOOD[1], "]"], "log.jsonl: an array, not JSON lines. Hint: write one object a line"),
        ([line.replace("sold", "sold_at") for line in GOOD], "log.jsonl: no column 'sold'. Hint: did you mean"),
        ([""], "the file is empty"),
        ([GOOD[0], " " * LINE_MAX + GOOD[1]], "line 2: no line of JSON, it has more than"),
    ],
)  # fmt: skip
def test_errors_name_the_line(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(EvaluatorError) as error:
        load(objects(tmp_path, lines))
    assert said in str(error.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("sample", [1, 1_000])
def test_a_column_may_appear_late_but_not_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: int) -> None:
    monkeypatch.setattr("evaluator.datasets.json_lines.SAMPLE", sample)
    lines = [f'{{"t": {t}, "ad": "{"ab"[t % 2]}"}}' for t in range(5)]
    spec = objects(tmp_path, [*lines, '{"t": 6, "ad": "a", "sold": 7}'])
    assert load(spec).conversions["time"].to_pylist() == [7]
    assert load(spec, limit=2).conversions.num_rows == 0
    with pytest.raises(EvaluatorError, match="no column 'sold'"):
        load(objects(tmp_path, lines), limit=2)


def test_numbers_and_truth_values_are_read_as_they_are_written(tmp_path: Path) -> None:
    lines = ['{"t": 9007199254740993, "ad": true, "sold": 9007199254740995}', '{"t": 9007199254740995.0, "ad": 1.50}']
    log = load(objects(tmp_path, lines))
    assert log.column("time").tolist() == [2**53 + 1, 2**53 + 3]
    assert log.conversions["time"].to_pylist() == [2**53 + 3]
    assert log.labels == ["1.50", "true"]


def test_broken_lines_can_be_left_out(tmp_path: Path) -> None:
    done = datasets.read(objects(tmp_path, [*GOOD, "{"]), on_error="quarantine", quarantine_at_most=1)
    assert [(row["line"], row["column"]) for row in done.quarantine.to_pylist()] == [(4, "")]
    assert len(done.log) == 3
