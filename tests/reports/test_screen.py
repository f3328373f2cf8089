"""The short form of any document fits the smallest terminal, and says what it leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evaluator.reports.console import ReportConsole
from evaluator.reports.document import Document, Section, column, grid, listed, name_omitted, paragraph, section
from evaluator.reports.terminal import LINES, fit_lines, print_document

ANSWER = section("", paragraph("The answer."))
LONG = "a sentence that goes on and on, " * 12


def printed(document: Document, *, width: int = 80) -> str:
    console = ReportConsole(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        print_document(console, document)
    return captured.get()


def fitted(*sections: Section, width: int = 80) -> str:
    console = ReportConsole(width=width, color_system=None, force_terminal=False)
    return printed(fit_lines(Document("replay", "", sections), console), width=width)


def warnings(number: int) -> Section:
    return listed("Warnings", [(*paragraph(LONG).words, *paragraph(f" [code-{i}]").words) for i in range(number)],
                  id="warnings")  # fmt: skip


def table(rows: int) -> Section:
    return section(
        "Numbers", grid([column("name"), column("value", "number")], [(f"row {i}", "1") for i in range(rows)])
    )


def test_a_document_that_fits_is_printed_unchanged() -> None:
    sections = (ANSWER, table(5), warnings(1), name_omitted("the law"))
    assert fitted(*sections) == printed(Document("", "", sections))


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("rows", [1, 4, 20, 3000])
@pytest.mark.parametrize("number", [1, 3, 12])
def test_any_document_fits_and_names_what_is_left_out(width: int, rows: int, number: int) -> None:
    how = replace(listed("How it was replayed", [LONG] * 9), folded=True)
    text = fitted(ANSWER, table(rows), warnings(number), how, table(rows), name_omitted("the law"), width=width)
    assert len(text.splitlines()) <= LINES
    assert text.startswith("The answer.")
    assert "--full prints the rest: " in text
    assert "How it was" not in text
    assert "how it was replayed" in text or "and more" in text
    assert "[code-0]" in text
    if rows > LINES:
        assert "more: --full" in text


def test_of_a_long_sentence_a_line_and_its_code_stay() -> None:
    (line,) = [line for line in fitted(ANSWER, warnings(12)).splitlines() if "[code-0]" in line]
    assert line.endswith("... [code-0]")
    assert line.startswith("  - a sentence")
    assert len(line) <= 80


def test_of_a_long_table_the_first_rows_are_printed_and_the_others_counted() -> None:
    text = fitted(section("", *table(100).blocks))
    rows = [line for line in text.splitlines() if line.startswith("row ")]
    assert rows[0].split() == ["row", "0", "1"]
    assert f"{100 - len(rows)} more: --full" in text
    assert len(text.splitlines()) == LINES


def test_words_that_introduce_a_list_go_with_it() -> None:
    text = fitted(ANSWER, section("Power", paragraph("Found would have been:"), *listed("", ["this"] * 30).blocks))
    assert "Found would" not in text
    assert "power" in text


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_ends_in_blanks(width: int) -> None:
    padded = section("Table", grid([column("a"), column("b")], [("x ", ""), ("word " * 40, " ")]))
    text = printed(Document("", "", (ANSWER, padded, warnings(2), table(3))), width=width)
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
