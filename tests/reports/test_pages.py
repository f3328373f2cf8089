"""Pages of results: from Python, from the folders of commands, and from damaged ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import evaluator
from evaluator.errors import SourceError, UnknownNameError
from evaluator.reports.documents import chapter_of
from evaluator.reports.html import page_of
from evaluator.reports.manifest import CHAPTER, read_chapter, write_chapter
from tests.cli.runs import evaluate
from tests.reports.conftest import ATTACK
from tests.reports.digits import as_written

CHARTS = {
    "log": {"log"},
    "replay": {
        "replay", "guardrails", "actions", "window", "groups by shop", "acceptance", "earned", "seen", "gainers",
    },
    "compare": {
        "comparison", "differences", "differences by shop", "differences by device", "windows", "acceptance",
        "actions 1", "actions 2", "actions 3", "actions 4", "decision", "gainers", "gain", "seen",
    },
    "audit": {"audit", "detectable", "bias", "told"},
    "check": {"left", "tests"},
    "simulate": {"simulation", "observed"},
    "delays": {"cdf", "density", "groups", "rates", "arrival", "change"},
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chapter_comes_back_from_its_folder(name: str, results: dict[str, Any], tmp_path: Path) -> None:
    found = chapter_of(results[name], {"command": "evaluate ..."})
    assert set(found.charts) == CHARTS[name]
    write_chapter(tmp_path, found)
    again = read_chapter(tmp_path)
    assert page_of([again]) == page_of([found])
    assert ATTACK not in page_of([found])


def test_results_are_pages_and_charts(results: dict[str, Any]) -> None:
    found = results["replay"]
    page = found.page()
    assert page.startswith("<!DOCTYPE html>")
    assert all(text in page for text in as_written(found.value))
    assert found.chart().to_dict()["title"]["text"] == "Mean reward per round"
    assert found.chart("actions").to_dict()["title"]["text"].startswith("What ucb1 showed")
    with pytest.raises(UnknownNameError, match=r"has no chart 'action'.*did you mean actions"):
        found.chart("action")
    assert results["check"].chart().to_dict()["description"] == "Displays that a replay can use"


def test_a_page_of_several_folders_has_a_chapter_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = ("--limit", "3000")
    assert evaluate("check", "synthetic", *short, "--out", "checked").code in (0, 4)
    words = ("replay", "-p", "ucb1", "--window", "200", *short)
    assert evaluate(*words, "--out", "run").code == 0
    run = evaluate("report", "checked", "run", "-o", "both.html")
    assert (run.code, run.out, run.err) == (0, "", "Wrote both.html.\n")
    page = (tmp_path / "both.html").read_text()
    assert re.findall(r'<h2 id="chapter-\d-title">(.*?)</h2>', page) == [
        "Checks of synthetic", "ucb1 replayed on synthetic"
    ]  # fmt: skip
    assert "<code>evaluate replay -p ucb1 --window 200 --limit 3000</code>" in page
    own = (tmp_path / "run" / "report.html").read_text()
    assert own.count("<h1") == 1
    assert re.search(r'<h1 class="head">.* a display with ucb1: .*</h1>', own)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["command"] == "evaluate " + " ".join(words)
    again = evaluate("report", "run", "-o", "both.html")
    assert again.code == 2
    assert "both.html exists" in again.err


def test_a_log_has_a_page_too(tmp_path: Path) -> None:
    out = tmp_path / "shown"
    run = evaluate("datasets", "show", "promotions", "--limit", "3000", "--out", str(out), "--json")
    assert run.code == 0, run.err
    assert {file.name for file in out.iterdir()} == {
        "chapter.json", "manifest.json", "report.html", "report.txt", "result.json"
    }  # fmt: skip
    assert json.loads((out / "result.json").read_text()) == run.json
    page = page_of([read_chapter(out)])
    assert '<h1 class="head"><span style="font-weight:600">3,000 displays</span>' in page
    assert "<td>3,000</td>" in page


def test_what_is_no_folder_of_a_result_is_told(tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()
    for name, said in (("nowhere", "no such folder"), ("result.json", "is a file")):
        run = evaluate("report", str(tmp_path / name), "-o", str(tmp_path / "page.html"))
        hint = "Hint: name a folder that a command wrote with --out."
        assert (run.code, run.err) == (3, f"error: {tmp_path / name}: {said}. {hint}\n")
    assert not (tmp_path / "page.html").exists()


def test_python_has_no_command_to_name(tmp_path: Path) -> None:
    found = evaluator.replay("synthetic", "random", window=50, horizon=100)
    assert "How to reproduce it" not in found.page()


def changed(file: Path, before: str, after: str) -> None:
    file.write_text(file.read_text().replace(before, after))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), "holds no chapter.json: no result of this version"),
        (lambda file: file.write_text("{"), "cannot be read"),
        (lambda file: file.write_text("[" * 100_000), "cannot be read"),
        (lambda file: file.write_text("{}"), "no evaluate.chapter/2"),
        (lambda file: file.write_text('{"schema": "evaluate.chapter/1"}'), "no evaluate.chapter/2"),
        (
            lambda file: file.write_text(file.read_text().replace('"paragraph"', '"script"')),
            "not as a command wrote it",
        ),
        (lambda file: file.write_text(file.read_text().replace('"text"', '"html"')), "not as a command wrote it"),
    ],
)
def test_a_damaged_chapter_is_told_in_a_line(damage: Any, said: str, results: dict[str, Any], tmp_path: Path) -> None:
    write_chapter(tmp_path, chapter_of(results["simulate"]))
    damage(tmp_path / CHAPTER)
    with pytest.raises(SourceError, match=said):
        read_chapter(tmp_path)


def test_a_verdict_stands_first_knows_what_lies_beside_it_and_links_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_log = ("--limit", "4000")
    two = ("-p", "fixed:action=0", "-p", "random")
    assert evaluate("compare", *two, *of_log, "-b", "random", "--out", "compared").code == 0
    assert evaluate("check", "synthetic", *of_log, "--out", "checked").code == 0
    assert evaluate("audit", *two, *of_log, "--twins", "10", "--out", "audited").code == 0
    assert evaluate("check", "synthetic", "--limit", "3000", "--out", "other").code == 0

    def conditions(*folders: str) -> dict[str, tuple[str, str]]:
        """Name, link and state of each condition."""
        assert evaluate("report", *folders, "-o", f"{'-'.join(folders)}.html").code == 0
        page = (tmp_path / f"{'-'.join(folders)}.html").read_text()
        assert page.count('class="verdict ') == len(folders)  # the verdict, and the answer of each other chapter
        assert page.index('class="verdict ') < page.index("<figure")
        table = page[page.index("Conditions of the rule") :].partition("</table>")[0]
        rows = re.findall(
            r'<th scope="row">(?:<a href="#([^"]*)">)?(\w+)(?:</a>)?</th><td><span[^>]*>. ([^<]*)<', table
        )
        assert all(f'id="{link}"' in page for link, _, _ in rows if link)
        return {name: (link, state) for link, name, state in rows}

    alone = conditions("compared")
    assert alone["checks"] == ("chapter-1-checks", "met")
    assert alone["difference"][0] == "chapter-1-difference"
    assert "audit" not in alone
    known = conditions("checked", "compared", "audited")
    assert known["checks"] == ("chapter-1", "met")
    assert known["audit"] == ("chapter-3", "met")
    assert known["difference"] == ("chapter-2-difference", "open")
    # A check of another log says nothing of this one.
    assert conditions("other", "compared")["checks"] == ("chapter-2-checks", "met")

    checked = json.loads((tmp_path / "checked" / "result.json").read_text())
    checked["checks"][0] |= {"verdict": "fail", "remedy": "repair it"}
    (tmp_path / "checked" / "result.json").write_text(json.dumps(checked))
    assert conditions("compared", "checked")["checks"] == ("chapter-2", "not met")
    (tmp_path / "checked" / "result.json").write_text("{}")
    run = evaluate("report", "checked", "compared", "-o", "x.html")
    assert (run.code, run.err.count("\n")) == (3, 1)
    assert "result.json: not as a command wrote it" in run.err


def test_a_rule_puts_the_checks_of_the_log_on_the_page_of_a_comparison(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ("compare", "-p", "fixed:action=0", "-p", "random", "--limit", "4000", "--ship-if", "uplift > 0.002")
    assert evaluate(*words, "--out", str(out)).code == 0
    page = (out / "report.html").read_text()
    assert 'href="#chapter-1-checks"' in page
    assert 'id="chapter-1-checks"' in page
    assert "Rule: uplift &gt; 0.002 at 95 %" in page
    assert "Rule: uplift > 0.002 at 95 %" in (out / "report.txt").read_text()
