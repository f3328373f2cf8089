"""Documents: what is said once is the same on every page, and the log's own words stay as they are."""

from __future__ import annotations

import pytest

from evaluator import replay
from evaluator.replays.result import ReplayResult
from evaluator.reports.document import Layout, column, grid
from evaluator.reports.documents import chapter_of, document_of, name_command_options
from evaluator.reports.html import page_of
from evaluator.reports.terminal import fits, text_of
from tests.logs import bernoulli_log

NOTE = "from `level=gold` customers, seen at an interval of five minutes"


@pytest.fixture(scope="module")
def result() -> ReplayResult:
    log = bernoulli_log(2000, [0.3, 0.5], mean_delay=5.0, seed=2)
    noted = log.with_meta(notes=(NOTE,))
    return replay(noted, "random", window=50)


def test_a_note_of_the_log_is_shown_as_it_stands(result: ReplayResult) -> None:
    text = text_of(name_command_options(document_of(result)))
    words = " ".join(text.split())
    assert NOTE in words
    assert NOTE in " ".join(page_of([chapter_of(result)]).split())


def test_a_note_is_nothing_that_intervals_rest_on(result: ReplayResult) -> None:
    sections = {section.name: section for section in document_of(result, Layout(full=False)).sections}
    assert NOTE not in str(sections.get("What the intervals rest on"))


def test_printing_a_result_says_what_the_terminal_says(result: ReplayResult) -> None:
    printed = str(result)
    assert printed == text_of(document_of(result)).rstrip("\n")
    for finding in result.findings:
        assert f"[{finding.code}]" in printed


def test_links_find_what_a_verdict_rests_on_by_its_id(result: ReplayResult) -> None:
    ids = [section.id for section in document_of(result).sections if section.id]
    assert "assumptions" in ids
    assert len(ids) == len(set(ids))


def test_a_table_fits_once_its_names_are_folded() -> None:
    table = grid([column("policy"), column("value", "number")], [("a" * 60, "0.25"), ("b", "12,345.678")])
    assert fits(table, Layout(width=24), longest=60)
    assert not fits(table, Layout(width=23), longest=60)


def test_printing_a_log_reads_none_of_it() -> None:
    log = bernoulli_log(2000, [0.3, 0.5], mean_delay=5.0, seed=2)
    assert str(log) == repr(log)
