"""Pages in a real browser: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator import report_runs
from evaluator.reports.document import Chapter
from evaluator.reports.documents import chapter_of
from evaluator.reports.html import page_of
from tests.bench.page import comparison
from tests.reports.conftest import ATTACK

pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian's package chromium)")

QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--disable-quic"]  # fmt: skip
REPRODUCE = {"command": "evaluate replay --policy ucb1", "fingerprint": "0" * 64}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield found
        found.close()


@pytest.fixture(scope="module")
def page_file(results: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One page of every kind of result; each label of the log is an attack."""
    chapters = [chapter_of(result, REPRODUCE) for result in results.values()]
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(chapters), encoding="utf-8")
    return file


def opened(browser: Any, file: Path, **options: Any) -> tuple[Any, list[str]]:
    """Open a page; what it asked for beside itself, and what its console said, are told."""
    context = browser.new_context(**options)
    page = context.new_page()
    told: list[str] = []
    page.on("request", lambda request: told.append(request.url) if request.url != file.as_uri() else None)
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(file.as_uri())
    return page, told


def assert_letters_are_read(page: Any, width: int) -> None:
    """Letters of pictures are large enough on the screen, and end within it."""
    letters = page.evaluate(
        "[...document.querySelectorAll('.two figure text')].filter(text => text.textContent).map(text => "
        "[parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a, text.getBoundingClientRect().right])"
    )
    assert letters
    assert min(size for size, _ in letters) >= 12.0
    assert max(right for _, right in letters) <= width


# Colours do not depend on the width, nor does what fits on the colours.
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_a_page_is_accessible_asks_nobody_and_fits(browser: Any, page_file: Path, scheme: str, width: int) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, told = opened(
        browser, page_file, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for fold in page.locator("details").all():
        fold.evaluate("fold => fold.open = true")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.context.close()


@pytest.mark.parametrize(("width", "height", "screens"), [(1280, 800, 2), (390, 844, 3)])
def test_a_decision_is_read_in_few_screens(
    browser: Any, results: dict[str, Any], width: int, height: int, screens: int, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of([chapter_of(results["compare"], REPRODUCE)]), encoding="utf-8")
    page, told = opened(browser, file, viewport={"width": width, "height": height})
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("details.fold").first.bounding_box()["y"] <= screens * height
    order = [".verdict h1", ".rests", *[".two figure"] * 4, ".candidates", "ol", "details.fold"]
    seen = page.evaluate("[...document.querySelectorAll('.verdict h1,.rests,.two figure,.candidates,ol,details.fold')]"
                         ".map(part => part.matches('.verdict h1') ? '.verdict h1' : part.matches('figure') ? "
                         "'.two figure' : part.matches('ol') ? 'ol' : '.' + part.className)")  # fmt: skip
    assert seen[: len(order) - 1] == order[:-1]
    assert set(seen[len(order) - 1 :]) == {".fold"}
    before = page.evaluate("document.querySelector('main').innerText.split('What it rests on')[0].split(/\\s+/).length")
    assert before <= 600
    assert_letters_are_read(page, width)
    page.context.close()


@pytest.mark.parametrize("name", ["check", "audit", "delays", "replay"])
@pytest.mark.parametrize(("width", "height", "screens"), [(1280, 800, 2), (390, 844, 3)])
def test_an_answer_is_read_in_few_screens(
    browser: Any, results: dict[str, Any], name: str, width: int, height: int, screens: int, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of([chapter_of(results[name], REPRODUCE)]), encoding="utf-8")
    page, told = opened(browser, file, viewport={"width": width, "height": height})
    assert told == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("details.fold").first.bounding_box()["y"] <= screens * height
    seen = page.evaluate("[...document.querySelectorAll('h1,.two figure,details.fold')].map(part => part.tagName)")
    figures = seen.count("FIGURE")
    assert seen == ["H1", *["FIGURE"] * figures, *["DETAILS"] * (len(seen) - 1 - figures)]
    assert 1 <= figures <= 2
    wide = "[...document.querySelectorAll('.wide,figure')].filter(part => !part.closest('details'))"
    assert page.evaluate(f"{wide}.every(part => part.scrollWidth <= part.clientWidth + 1)")
    assert_letters_are_read(page, width)
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_of_runs_over_time_is_accessible_and_fits(browser: Any, runs: Path, scheme: str, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    file = tmp_path / "watch.html"
    kinds = ("checked", "compared", "replayed")
    file.write_text(report_runs([runs / f"{kind}-{name}" for kind in kinds for name in "abc"]), encoding="utf-8")
    page, told = opened(browser, file, color_scheme=scheme, viewport={"width": 390, "height": 900}, bypass_csp=True)
    assert told == []
    assert page.locator("h1").inner_text() == "Over time"
    # The latest verdict stands first, and each run is folded.
    assert page.locator(".verdict").first.bounding_box()["y"] < 400
    assert page.locator("main > details > section").count() == 9
    for fold in page.locator("details").all():
        fold.evaluate("fold => fold.open = true")
    assert page.locator("script, img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    titles = page.eval_on_selector_all("#chapter-1 path title", "all => all.map(title => title.textContent)")
    assert any("ucb1, 2026-01-01 to 2026-01-07: value" in title for title in titles)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.context.close()


def test_everything_is_there_without_scripts(browser: Any, page_file: Path, results: dict[str, Any]) -> None:
    page, told = opened(browser, page_file, java_script_enabled=False)
    assert told == []
    assert page.locator("main > section").count() == len(results)
    assert page.locator("h1").inner_text() == "Report"
    for section in page.locator("main > section").all():
        assert section.locator("summary", has_text="How to reproduce it").count() == 1
    # Folds are opened by the browser itself.
    for summary in page.locator("summary").all():
        summary.click()
    figures = page.locator("figure svg").all()
    assert len(figures) > len(results)
    for figure in figures:
        box = figure.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 50
    page.context.close()


def test_labels_are_text(browser: Any, page_file: Path) -> None:
    page, told = opened(browser, page_file)
    assert page.locator("script, img, iframe, link, object").count() == 0
    said = page.locator("body").inner_text()
    assert ATTACK in said or ATTACK[:20] in said
    assert told == []
    page.context.close()


def test_a_mark_tells_its_numbers(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    titles = page.eval_on_selector_all("figure path title", "all => all.map(title => title.textContent)")
    assert any("round" in title and "regret" in title for title in titles)
    # What nobody sees can be pointed at all the same.
    mark = page.locator("figure path:has(title)").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    hit = page.evaluate("([x, y]) => document.elementFromPoint(x, y).querySelector('title')?.textContent", at)
    assert hit in titles
    page.context.close()


def test_it_prints_without_cut_charts(browser: Any, page_file: Path, tmp_path: Path) -> None:
    page, _ = opened(browser, page_file, viewport={"width": 800, "height": 1000})
    page.emulate_media(media="print")
    width = page.evaluate("document.documentElement.clientWidth")
    for figure in page.locator("figure svg").all():
        box = figure.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    # What is folded on the screen is open on paper.
    for fold in page.locator("details").all():
        assert fold.evaluate("fold => fold.lastElementChild.getBoundingClientRect().height") > 0
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    page.context.close()


def test_a_chart_longer_than_a_sheet_is_printed_on_one(browser: Any, results: dict[str, Any], tmp_path: Path) -> None:
    found = results["compare"]
    rows = sum(1 + (difference.expected is not None) for difference in found.differences)
    many = replace(found, differences=found.differences * (39 // rows))
    file = tmp_path / "report.html"
    file.write_text(page_of([chapter_of(many)]), encoding="utf-8")
    page, _ = opened(browser, file, viewport={"width": 1280, "height": 1000})
    for fold in page.locator("details").all():
        fold.evaluate("fold => fold.open = true")
    boxes = [figure.bounding_box()["height"] for figure in page.locator("figure svg").all()]
    figure = page.locator("figure svg").nth(boxes.index(max(boxes)))
    assert figure.bounding_box()["height"] > 900
    page.emulate_media(media="print")
    # A sheet of A4 has 29.7 cm, of which margins take three.
    assert figure.bounding_box()["height"] < 25 / 2.54 * 96
    page.context.close()


def test_a_page_of_many_variants_is_small_and_whole(browser: Any, tmp_path: Path) -> None:
    """A curve has 200 points at the most: a page of more rounds is no larger (`tests.bench.page` says how fast)."""
    found = comparison(2_000)
    assert len(found.curves) == 21
    assert {len(curve.rounds) for curve in found.curves} == {200}
    file = tmp_path / "report.html"
    file.write_text(page_of([chapter_of(found)]), encoding="utf-8")
    assert os.path.getsize(file) < 2_000_000
    page, told = opened(browser, file)
    assert told == []
    assert page.locator("figure svg").count() >= 2
    page.context.close()


def test_hostile_chapters_are_text(browser: Any, tmp_path: Path) -> None:
    from evaluator.reports.document import Paragraph, Run, Section

    attacks = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "x" * 10_000, "\u202eabc\x00\x1b[2J")
    sections = tuple(Section((Run(attack),), (Paragraph((Run(attack),)),)) for attack in attacks)
    file = tmp_path / "report.html"
    file.write_text(page_of([Chapter("replay", attacks[1], sections)]), encoding="utf-8")
    page, told = opened(browser, file, viewport={"width": 390, "height": 800})
    assert told == []
    assert page.locator("script, img").count() == 0
    said = page.locator("main").inner_text()
    assert attacks[0] in said
    assert attacks[1] in said
    assert not set(said) & set("\u202e\x00\x1b")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()
