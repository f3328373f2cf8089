"""JSON lines: what is no object, what is no cell, and lines that say where."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evaluator import datasets, load
from evaluator.errors import EvaluatorError
from evaluator.reading.cells import Kind
from evaluator.reading.frames import Chunks
from evaluator.reading.json_lines import CAREFUL, ObjectColumns
from evaluator.reading.sources.files import SourceFile, file_at
from evaluator.reading.spec_sections import Source
from evaluator.reading.text import LINE_MAX
from tests.reading.sources import write_spec

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
        (['{"t": 1, "ad": "a",', '"sold": 3}'], "log.jsonl line 1: no JSON object, '{\"t\": 1, "),
        ([GOOD[0] + ",", GOOD[1] + ","], "(Extra data at character 31). Hint: write one object a line, without breaks"),
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
    monkeypatch.setattr("evaluator.reading.json_lines.SAMPLE", sample)
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


def test_a_key_that_is_not_read_may_come_twice(tmp_path: Path) -> None:
    lines = [GOOD[0], '{"t": 2, "ad": "b", "note": 1, "note": 2, "of": {"t": 3, "t": 4}}', "{]"]
    done = datasets.read(objects(tmp_path, lines), on_error="quarantine", quarantine_at_most=1)
    assert [row["line"] for row in done.quarantine.to_pylist()] == [3]


KINDS: dict[str, Kind] = {"n": "int", "p": "float", "ad": "category", "id": "text", "at": "datetime"}
PLAIN = {
    "n": ["1", "0", "-5", "9007199254740993", "null"],
    "p": ["0.1", "-0", "3", "1e-7", "5e-324", "2.2250738585072011e-308", "null"],
    "ad": ['"a"', '"b\\n"', '"\\u00e9"', '"\\"n\\": 7,"', "null"],
    "id": ["1", "2", "9223372036854775807"],
    "at": ['"2017-11-07 10:00:00"', '"2017-11-07"', "null"],
}
ODD = [
    *("1.0", "1.50", "1e3", "-0", "-0.0", "01", "1.", "+1", "1e400", "1e-400", "9223372036854775808", "1700000000.25"),
    *("NaN", "-NaN", "Inf", "Infinity", "-Infinity", "true", "false", "[1]", '{"n": 1}', '"1"', '""', '" 1"', '"-1"'),
    *('"\\ud800"', '"\\u0000"', '"a\tb"', '"x\\\\"', '"NaN"', "-1", "nul"),
]
UNREAD = [
    '"u": {"n": 5, "n": 6}',
    '"u": [{"p": 1.50}]',
    '"u": "\\"n\\": 7"',
    '"u": 1, "u": Inf',
    '"u": ' + "[" * 950 + "]" * 950,
]
LINES = [
    "",
    "\x0b",
    "[]",
    "5",
    '{"n": 1}{"n": 2}',
    '{"n": 1',
    '"p": 2}',
    '{"\\u006e": 3}',
    "{} ",
    " {}",
    "{},",
    '{"n": 1, "n": 1}',
]


def odd_lines(seed: int, rows: int, odd: float) -> list[str]:
    draw = random.Random(seed)
    lines = []
    for _ in range(rows):
        if draw.random() < odd / 2:
            lines.append(draw.choice(LINES))
            continue
        values = {key: draw.choice(ODD if draw.random() < odd / 10 else PLAIN[key]) for key in KINDS}
        cells = [
            f'"{key}"{draw.choice([":", ": ", " : "])}{value}' for key, value in values.items() if draw.random() > 0.1
        ]
        lines.append("{" + ", ".join([*cells, *draw.choices(UNREAD, k=draw.random() < odd / 4)]) + "}")
    return lines


def cells_or_error(file: SourceFile, none: list[str | int]) -> pl.DataFrame | str:
    try:
        found = Chunks([file], Source(files=file.path.name, none=none), KINDS).collect()
    except EvaluatorError as error:
        return str(error)
    return found.select(sorted(found.columns))


@pytest.mark.parametrize("odd", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_lines_read_at_once_are_those_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, odd: float
) -> None:
    file = file_at(tmp_path / "log.jsonl", "jsonl")
    file.path.write_text("\n".join(odd_lines(seed, 3 * CAREFUL, odd)), newline="")
    none: list[str | int] = [[], ["-1"], ["NaN", "1.50"], [0, ""]][seed % 4]
    monkeypatch.setattr("evaluator.reading.json_lines.CAREFUL", 1)
    at_once = cells_or_error(file, none)
    monkeypatch.setattr(ObjectColumns, "read", lambda self, lines: None)
    one_by_one = cells_or_error(file, none)
    assert type(at_once) is type(one_by_one)
    if isinstance(at_once, str):
        assert at_once == one_by_one
    else:
        assert_frame_equal(at_once, one_by_one, check_exact=True)


INNER: dict[str, Kind] = {
    "id": "text", "u.n": "int", "u.at.ad": "category", "u.l.p": "float", "u.l.id": "text", "e": "labels",
}  # fmt: skip


def nested_lines(seed: int, rows: int, odd: float) -> list[str]:
    draw = random.Random(seed)

    def cell(key: str) -> str:
        return draw.choice(ODD if draw.random() < odd else PLAIN[key])

    lines = []
    for _ in range(rows):
        elements = [f'{{"p": {cell("p")}, "id": {cell("id")}}}' for _ in range(draw.randrange(3))]
        labels = draw.choice(["[]", '["a", "b"]', '["a", null, " "]', *(["[1.5]", "[0, -0]"] if odd else [])])
        user = [f'"n": {cell("n")}', f'"at": {{"ad": {cell("ad")}}}', f'"l": [{", ".join(elements)}]']
        if draw.random() < odd:
            user.append(
                draw.choice(['"n": 1', '"l": [{"p": 2}]', '"at": 5', '"l": {"p": 1}', '"l": "[]"', '"x": [[1]]'])
            )
        pairs = [f'"id": {cell("id")}', f'"u": {{{", ".join(draw.sample(user, k=len(user) - (draw.random() < 0.1)))}}}']
        if draw.random() < odd:
            pairs.append(draw.choice(['"u.n": 4', '"u\\u002en": 4', '"u": null', '"u.at": {"ad": "z"}', '"ad": 3']))
        lines.append("{" + ", ".join([*pairs, f'"e": {labels}']) + "}")
    return lines


@pytest.mark.parametrize("odd", [0.0, 0.004, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_fields_and_elements_read_at_once_are_those_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, odd: float
) -> None:
    file = file_at(tmp_path / "log.jsonl", "jsonl")
    file.path.write_text("\n".join(nested_lines(seed, 2 * CAREFUL, odd)))
    chunks = Chunks([file], Source(files="log.jsonl", explode="u.l"), INNER)
    monkeypatch.setattr("evaluator.reading.json_lines.CAREFUL", 1)
    read, answers = ObjectColumns.read, []
    monkeypatch.setattr(ObjectColumns, "read", lambda *given: answers.append(read(*given)) or answers[-1])
    found: list[pl.DataFrame | str] = []
    for _ in range(2):
        try:
            whole = chunks.collect()
            found.append(whole.select(sorted(whole.columns)))
        except EvaluatorError as error:
            found.append(str(error))
        monkeypatch.setattr(ObjectColumns, "read", lambda *given: None)
    at_once, one_by_one = found
    if odd == 0:
        assert [answer is None for answer in answers] == [False]
    if isinstance(at_once, str) or isinstance(one_by_one, str):
        assert type(at_once) is type(one_by_one)
    else:
        assert_frame_equal(at_once, one_by_one, check_exact=True)


def test_ordinary_lines_are_read_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(lines: Sequence[str]) -> None:
        raise AssertionError(lines)

    monkeypatch.setattr("evaluator.reading.json_lines._with_care", lambda path, kinds, lines: refuse(lines))
    mixed = [
        '{"t": 1, "ad": 1.50}',
        '{"t": 2.0, "ad": "b", "sold": NaN}',
        '{"t": 3, "ad": -0}',
        '{"t": "4", "ad": "b "}',
    ]
    objects(tmp_path, [*mixed, "", '{"t": 5, "ad": "b", "x": {"t": [1]}}'])
    assert load(write_spec(tmp_path, source={"files": "log.jsonl", "none": ["NaN"]})).labels == ["-0", "1.50", "b"]
