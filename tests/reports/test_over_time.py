"""Runs of one study on logs of different dates stand in their order, with how values and checks moved before them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evaluator
from evaluator.errors import ParameterError, SourceError
from evaluator.reports.document import Chapter
from evaluator.reports.manifest import read_chapter
from evaluator.reports.over_time import Chapters, Study, lines_of, order_by_time, read_run, sort_runs, verdict_of
from tests.cli.runs import evaluate
from tests.reports.conftest import ATTACK, DAY, FIRST, NAME, N, week
from tests.reports.digits import as_written

WEEKS = ("2026-01-01 to 2026-01-07", "2026-01-08 to 2026-01-14", "2026-01-15 to 2026-01-21")


def ordered(*folders: Path) -> Chapters:
    return order_by_time(folders, [read_chapter(folder) for folder in folders])


def cells(chapter: Chapter, section: int) -> list[list[str]]:
    grid: Any = chapter.sections[section].blocks[0]
    return [["".join(run.text for run in cell) for cell in row] for row in grid.rows]


def test_replays_stand_in_the_order_of_their_logs(runs: Path) -> None:
    folders = [runs / f"replayed-{name}" for name in "abc"]
    found = ordered(*folders)
    assert found.left == []
    first, *rest = found.chapters
    assert (first.kind, first.title) == ("over time", "Over time")
    assert [chapter.title for chapter in rest] == [f"ucb1 replayed on {NAME}, {week}" for week in WEEKS]
    assert rest[0].sections == read_chapter(runs / "replayed-c").sections
    results = [json.loads((runs / f"replayed-{name}" / "result.json").read_text()) for name in "cab"]
    rows = cells(first, 1)
    assert [row[0] for row in rows] == list(WEEKS)
    assert [row[1] for row in rows] == [f"{N:,}"] * 3
    for row, result in zip(rows, results, strict=True):
        value, uplift = result["value"], result["uplift"]
        assert row[2] == "\n".join(as_written(value, [of["value"] for of in results]))
        assert row[3] == "\n".join(as_written(uplift, [of["uplift"] for of in results], sign="+"))
        assert row[4] == "not checked here"
    assert list(first.charts) == ["value 1", "difference 1"]
    drawn = points(first, "value 1")
    assert [point["estimate"] for point in drawn] == [result["value"]["estimate"] for result in results]
    assert [point["at"] for point in drawn] == sorted(point["at"] for point in drawn)
    # At the middle of the week, and its first and last display are minutes from its ends.
    assert drawn[0]["at"] == pytest.approx(1000 * (FIRST + 3.5 * DAY), abs=1000 * 7 * DAY * 10 / N)


def points(chapter: Chapter, chart: str) -> list[dict[str, Any]]:
    sets = chapter.charts[chart]["datasets"].values()
    return next(rows for rows in sets if "estimate" in rows[0])


def test_comparisons_are_to_their_baseline_and_beside_the_checks_of_their_logs(runs: Path) -> None:
    found = ordered(*(runs / f"{what}-{name}" for what in ("checked", "compared") for name in "abc"))
    first, *rest = found.chapters
    assert [chapter.kind for chapter in rest] == ["compare"] * 3 + ["check"] * 3
    assert [name for name in first.charts if name[:4] != "runs"][:2] == ["value 1", "difference 1"]
    [table] = [i for i, part in enumerate(first.sections) if part.charts == ("value 1", "difference 1")]
    rows = cells(first, table)
    assert [row[0] for row in rows] == [WEEKS[0], "", WEEKS[1], "", WEEKS[2], ""]
    assert [row[4] for row in rows[1::2]] == ["baseline"] * 3
    assert [row[5] for row in rows] == ["ship", ""] * 3
    differences = {
        name: json.loads((runs / f"compared-{name}" / "result.json").read_text())["differences"][0]["realised"]
        for name in "abc"
    }
    for row, name in zip(rows[::2], "cab", strict=True):
        assert row[4] == "\n".join(as_written(differences[name], differences.values(), sign="+"))
        checks = json.loads((runs / f"checked-{name}" / "result.json").read_text())["checks"]
        for verdict, word in (("fail", "failed"), ("warn", "warned")):
            names = [of["name"] for of in checks if of["verdict"] == verdict]
            assert (f"{len(names)} {word} ({', '.join(names)})" in row[6]) == bool(names)
    assert {point["of"] for point in points(first, "difference 1")} == {"ucb1"}


def test_runs_of_one_comparison_have_one_verdict_first(runs: Path) -> None:
    first, *rest = ordered(*(runs / f"compared-{name}" for name in "abc")).chapters
    blocks = [verdict_of(chapter) for chapter in rest]
    assert verdict_of(first) == blocks[-1]
    texts = ["".join(run.text for run in part.blocks[0].words) for part in first.sections[:3:2]]  # type: ignore[union-attr]
    assert texts[0].startswith(f"{NAME} · 1 January to 21 January 2026 · 3 runs")
    assert "Of all three runs, ucb1 ships in 3; its difference to random lies above 0 in" in texts[1]
    assert "These are 3 looks at one question. Each verdict is good for one look" in texts[1]
    # Its chart has the interval that decided in each run; nothing changed, and that is said.
    drawn = points(first, "runs 1")
    decided = [block.verdict.candidate.difference for block in blocks if block is not None]
    assert [(row["low"], row["high"]) for row in drawn] == [(of.low, of.high) for of in decided if of is not None]
    assert drawn[0]["of"] == "1 to 7 Jan 2026"
    [changed] = [part for part in first.sections if part.name == "What changed from run to run"]
    assert [item[0].text for item in changed.blocks[0].items] == ["No verdict changed from run to run."]  # type: ignore[union-attr]


def test_checks_that_moved_are_lights_and_named(runs: Path, tmp_path: Path) -> None:
    bad = week(3, tmp_path / "log", copies=900)
    assert evaluate("check", str(bad), "--out", str(tmp_path / "checked")).code in (0, 4)
    [first, *_] = ordered(tmp_path / "checked", *(runs / f"checked-{name}" for name in "abc")).chapters
    worst = json.loads((tmp_path / "checked" / "result.json").read_text())["checks"]
    names = {of["name"] for of in worst if of["verdict"] in ("warn", "fail")}
    lights = [row for row in next(iter(first.charts["checks 1"]["datasets"].values())) if row["log"] == "2026-01-22"]
    assert {row["check"] for row in lights if row["verdict"] in ("warn", "fail")} == names != set()
    words = "".join(run.text for run in first.sections[1].blocks[1].words)  # type: ignore[union-attr]
    assert words.startswith("Worse on the latest log than on the one before: ")


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("policy", "other policies than {first}"),
        ("option", "other options (seed) than {first}"),
        ("undated", "its log has no dates"),
    ],
)
def test_what_is_in_no_order_is_said(other: str, why: str, runs: Path) -> None:
    folders = [runs / other, *(runs / f"replayed-{name}" for name in "abc")]
    found = ordered(*folders)
    assert len(found.chapters) == 5
    assert found.chapters[-1].title == read_chapter(runs / other).title
    [line] = found.left
    assert line == f"{runs / other} (replay): {why.format(first=runs / 'replayed-a')}."
    last = found.chapters[0].sections[-1]
    assert (last.name, last.blocks[0].items[0][0].text) == ("Not in this order", line)  # type: ignore[union-attr]


def test_kinds_that_are_not_drawn_over_time_are_said(runs: Path, tmp_path: Path) -> None:
    for name in "ab":
        assert evaluate("datasets", "show", str(runs / "logs" / name), "--out", str(tmp_path / name)).code == 0
    found = ordered(tmp_path / "a", tmp_path / "b", runs / "replayed-a", runs / "replayed-b")
    assert [chapter.kind for chapter in found.chapters] == ["over time", "replay", "replay", *["datasets show"] * 2]
    said = "only runs of replay, compare and check are drawn over time."
    assert found.left == [f"{tmp_path / name} (datasets show): {said}" for name in "ab"]


def test_runs_of_different_studies_are_chapters_as_given(runs: Path) -> None:
    folders = [runs / name for name in ("policy", "replayed-a", "checked-a")]
    found = ordered(*folders)
    assert [chapter.title for chapter in found.chapters] == [read_chapter(folder).title for folder in folders]
    assert found.left == [f"{runs / 'replayed-a'} (replay): other policies than {runs / 'policy'}."]
    again = ordered(runs / "replayed-a", runs / "replayed-a")
    assert len(again.chapters) == 2
    assert "no log of other dates was asked the same" in again.left[0]


def test_the_page_is_the_same_from_python_and_from_the_command(runs: Path, tmp_path: Path) -> None:
    folders = [str(runs / name) for name in ("undated", "replayed-b", "replayed-c")]
    run = evaluate("report", *folders, "-o", str(tmp_path / "page.html"))
    assert run.code == 0
    assert f"Not in the order of time: {folders[0]} (replay): its log has no dates." in run.err
    page = evaluator.report_runs(folders)
    assert page == (tmp_path / "page.html").read_text(encoding="utf-8")
    titles = re.findall(r'<h2 id="chapter-\d-title">(.*?)</h2>', page)
    assert titles[0] == "Over time"
    assert titles[1].endswith(WEEKS[0])
    assert ATTACK not in page
    with pytest.raises(ParameterError, match="No folder is named"):
        evaluator.report_runs([])


def test_a_page_says_the_dates_of_its_log(runs: Path) -> None:
    reproduce = read_chapter(runs / "replayed-c").reproduce["dates of the log"]
    assert re.fullmatch(r"2026-01-01 00:\d\d to 2026-01-07 23:\d\d", reproduce)
    assert "dates of the log" not in read_chapter(runs / "undated").reproduce


def broken(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads((folder / name).read_text())
    change(found)
    (folder / name).write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("manifest.json", lambda found: found.pop("replays"), "manifest.json: not as a command wrote it, at 'replays'"),
        ("result.json", lambda found: found.pop("value"), "is not as a command wrote it, at 'value'"),
        ("result.json", None, "cannot be read"),
    ],
)
def test_a_damaged_run_is_told_in_a_line(name: str, change: Any, said: str, runs: Path, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(runs / "replayed-a", tmp_path / "run")
    if change is None:
        (folder / name).unlink()
    else:
        broken(folder, name, change)
    with pytest.raises(SourceError, match=said):
        ordered(folder, runs / "replayed-b")


def test_lines_of_several_schedules_are_told_apart(tmp_path: Path) -> None:
    folders = []
    for number, schedules in enumerate(("event,300", "event,300", "event,200")):
        log, folder = str(week(number, tmp_path / "logs" / str(number))), tmp_path / str(number)
        options = ("-p", "ucb1", "--window", "1d", "--schedules", schedules, "--bootstrap", "0")
        assert evaluate("compare", *options, "-d", log, "--out", str(folder)).code == 0
        folders.append(folder)
    found = ordered(*folders)
    assert [line.name for line in lines_of(study_of(*folders[:2]))][:2] == ["ucb1, at each event", "ucb1, every 300"]
    assert found.left == [f"{folders[2]} (compare): other schedules than {folders[0]}."]


def study_of(*folders: Path) -> Study:
    runs = [read_run(folder, read_chapter(folder)) for folder in folders]
    (study,) = sort_runs([one for one in runs if one is not None]).studies
    return study
