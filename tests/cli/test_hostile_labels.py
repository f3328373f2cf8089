"""What a log says is data: it steers no terminal, forges no line, is no markup, and fails no picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator.escape import escape
from evaluator.reading.canonical import write_canonical
from tests.cli.runs import Run, evaluate
from tests.logs import build_log
from tests.reading.sources import dataset

CLEAR = "\x1b[2J\x1b]0;owned\x07"
FORGED = "ok\nerror: forged\r\u2028error: forged"
LABELS = (
    CLEAR, FORGED, "[bold red]x[/]", "[/]", ":warning:", "\x00\uffff\x9b2J\u202edesrever\u2066", "", "e\u0301" * 500,
    "x" * 10_000, "👩‍👩‍👧 مرحبا 你好", "</script><!--", "back\\", "[link=file:///etc/passwd]y[/link]",
)  # fmt: skip
COLUMN = f"device{FORGED}{CLEAR}[red]"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A converted log every string of which is an attack."""
    rng = np.random.default_rng(0)
    n, k = 3000, len(LABELS)
    day = 86_400
    time = np.sort(rng.integers(0, 40 * day, n))
    of = np.flatnonzero(rng.random(n) < 0.4)
    log = build_log(
        time=time, action=rng.integers(0, k, n), conversion_display=of,
        conversion_time=time[of] + rng.geometric(1e-5, len(of)), n_actions=k, tick="s", name=f"shop{CLEAR}{FORGED}",
        counts={f"rows_{FORGED}{CLEAR}": 7}, notes=(f"note {CLEAR}{FORGED}", "[red]note[/red]"),
    )  # fmt: skip
    displays = log.displays.append_column(COLUMN, pa.array([LABELS[i % k] for i in range(n)]))
    object.__setattr__(log, "displays", displays)
    object.__setattr__(log, "actions", log.actions.set_column(1, "label", [LABELS]))
    folder = tmp_path_factory.mktemp("hostile") / "log"
    folder.mkdir()
    write_canonical(log, folder)
    return folder


def harmless(run: Run) -> str:
    said = run.out + run.err
    assert escape(said.replace("\n", " ")) == said.replace("\n", " ")
    assert [line for line in said.splitlines() if line.lstrip().startswith(("error: forged", "owned"))] == []
    return "".join(said.split())


def full(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command that print all that it knows."""
    if words == ("datasets", "validate"):
        return words
    place = 2 if words[0] == "datasets" else 1
    return (*words[:place], "--full", *words[place:])


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("datasets", "show"), (r"\x1b[2J\x1b]0;owned\x07", r"ok\nerror:forged\r\u2028", "[/]", "-[red]note[/red]")),
        (("datasets", "validate"), (r"\x1b[2J",)),
        (("check", "--cluster-by", COLUMN), (r"\x1b[2J",)),
        (("replay", "-p", "random", "--cluster-by", COLUMN, "-d"), ("[boldred]x[/]", ":warning:", r"[red]")),
        (("compare", "-p", "random", "-p", "fixed:action=1", "--windows", "2d", "-d"), (r"\x1b[2J", "[/]")),
        (
            ("delays", "--families", "geometric", "--bootstraps", "19", "--by", COLUMN),
            ("[boldred]x[/]", r"\nerror:forged", "[link=file:///etc/passwd]y[/link]"),
        ),
    ],
)
def test_no_string_of_a_log_is_more_than_text(hostile: Path, words: tuple[str, ...], shown: tuple[str, ...]) -> None:
    short, run = evaluate(*words, str(hostile)), evaluate(*full(words), str(hostile))
    assert short.code == run.code
    assert run.code in (0, 3), run.err
    harmless(short)
    said = harmless(run)
    for text in shown:
        assert text in said


def test_json_has_them_as_they_are(hostile: Path) -> None:
    facts = evaluate("datasets", "show", str(hostile), "--json").json
    assert {row["label"] for row in facts["log"]["top_actions"]} <= set(LABELS)
    assert facts["log"]["notes"][0] == f"note {CLEAR}{FORGED}"


def test_an_error_that_quotes_a_column_is_one_line(hostile: Path) -> None:
    run = evaluate("delays", str(hostile), "--by", f"no such\n{CLEAR}")
    assert run.code == 2
    assert r"'nosuch\n\x1b[2J" in harmless(run)
    assert len(run.err.splitlines()) == 1


def test_an_error_that_quotes_a_cell_is_one_line(tmp_path: Path) -> None:
    spec = dataset(tmp_path, ["t,ad,sold", f'"{CLEAR}\nerror: forged",a,4'])
    run = evaluate("datasets", "convert", str(spec), str(tmp_path / "out"))
    assert run.code == 3
    assert r"\x1b[2J" in harmless(run)
    assert len(run.err.splitlines()) == 1


def test_pictures_and_page_survive_them(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--families", "geometric", "--bootstraps", "19", "--by", COLUMN, "--groups", "20", "--json")
    run = evaluate("delays", str(hostile), *words, "--out", str(out))
    assert run.code == 0, run.err
    assert "could not be drawn" not in run.err
    assert (out / "groups.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "result.json").read_text()) == run.json
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert escape(page.split("<body>")[1].replace("\n", " ")) == page.split("<body>")[1].replace("\n", " ")
