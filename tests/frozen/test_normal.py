"""Snapshots hold nothing that differs from machine to machine, and all that a reader sees."""

from __future__ import annotations

import pytest

from evaluator.version import __version__
from tests.frozen.normal import page_text, plain, plain_json, same


def test_folders_versions_hashes_and_dates_of_today_are_left_out() -> None:
    digest = "0f" * 32
    text = (
        f"delayed-replay {__version__}, numpy 2.4.6, pyarrow 26.0.1 in /tmp/x/log: {digest}, 2026-11-25T21:00:00.1Z  \n"
    )
    assert plain(text, "/tmp/x") == "delayed-replay VERSION, numpy VERSION, pyarrow VERSION in FOLDER/log: HASH, DATE"


def test_numbers_of_a_log_stay() -> None:
    text = f"1{__version__}5 rounds, 2026-03-02 00:01, 1773273368 s, 100,000 displays, 0.1.0.1, deadbeef"
    assert plain(text, "/tmp/x") == text


def test_json_is_rounded_and_long_lists_of_numbers_are_cut() -> None:
    text = plain_json({"a": 0.12345678949, "b": 1e-17, "c": list(range(100)), "d": [{"x": 1}] * 2})
    assert (
        text
        == '{"a": 0.123456789, "b": 0.0, "c": [0, 1, 2, "100 in all, sum 4950", 97, 98, 99], "d": [{"x": 1}, {"x": 1}]}'
    )


def test_what_json_repeats_is_named() -> None:
    long = ["a sentence that is said of every line of a comparison, and takes up more than a line of a snapshot"] * 2
    text = plain_json({"first": {"said": long}, "second": [long]})
    assert text.count("a sentence") == 2
    assert '"as first.said"' in text


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        ('"x": 0.123456789,', '"x": 0.12345679,', True),
        ('"x": 1.23456789e+20,', '"x": 1.23456788e+20,', True),
        ('"x": 0.123456789,', '"x": 0.123456889,', False),
        ('"x": 0.1234,', '"x": 0.1235,', False),
        ('"x": 100000000000,', '"x": 100000000001,', False),
        ('"x": 0.123456789,', '"y": 0.123456789,', False),
        ("0.95912", "0.95913", False),
    ],
)
def test_lines_are_the_same_up_to_the_last_kept_digit(a: str, b: str, alike: bool) -> None:
    assert same(a, b) == alike


def test_a_page_is_its_blocks_cells_links_and_labels_of_charts() -> None:
    page = """<html><head><style>p {}</style><title>T</title></head><body><main>
        <section id="one"><h2>A <a href="#b">b</a></h2>
        <figure aria-label="Chart"><svg><g role="graphics-symbol" aria-label="X-axis titled 'round'"><text>9</text></g>
        <g role="graphics-symbol" aria-label="round: 4"></g></svg></figure>
        <details open><summary>More</summary></details>
        <table><tr><th scope="row">k</th><td class="number">1 &lt; 2</td></tr></table>
        </section></main></body></html>"""
    assert page_text(page).splitlines() == [
        "title: T", " section#one:", "  h2: A [#b]b", "  figure: Chart", "   svg:", "   - X-axis titled 'round'",
        "  details[open]:", "   summary: More", "  table:", "   tr: | k | .number 1 < 2",
    ]  # fmt: skip
