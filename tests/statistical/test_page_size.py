"""The page of a comparison of 20 variants with 1,000,000 rounds is small."""

from __future__ import annotations

from evaluator.reports.documents import chapter_of
from evaluator.reports.html import page_of
from tests.bench.page import VARIANTS, comparison


def test_a_page_of_a_million_rounds_stays_below_two_megabytes() -> None:
    found = comparison(1_000_000)
    assert len(found.results) == VARIANTS + 1  # and the logging policy, which all are compared with
    # Every other display is kept, by chance: four standard errors below a half of two million.
    assert min(result.rounds for result in found.results) > 1_000_000 - 4 * (2_000_000 / 4) ** 0.5
    assert len(page_of([chapter_of(found)]).encode()) < 2_000_000
