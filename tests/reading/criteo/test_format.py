"""The file is in the real one's format, rule by rule (numbers as in the description of the real file)."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from evaluator.datasets import load, validate
from evaluator.worlds.criteo.make import COLUMNS
from tests.reading.criteo.conftest import Twin

FLOATS = {"cost", "cpo"}


@pytest.fixture(scope="module")
def lines(twin: Twin) -> list[str]:
    return gzip.decompress(twin.path.read_bytes()).decode("ascii").split("\n")


def test_header_is_the_real_one(lines: list[str], shared_data: Path) -> None:
    with gzip.open(shared_data / "criteo_attribution" / "first_100_rows.tsv.gz", "rt", newline="") as real:
        assert lines[0] + "\n" == real.readline()


def test_no_row_is_a_real_one(lines: list[str], shared_data: Path) -> None:
    real = gzip.decompress((shared_data / "criteo_attribution" / "first_100_rows.tsv.gz").read_bytes()).decode()
    assert not set(real.splitlines()[1:]) & set(lines)


def test_lines(lines: list[str]) -> None:
    whole, number = r"(-1|0|[1-9]\d*)", r"([^\t]+)"
    pattern = "\t".join(number if c in FLOATS else whole for c in COLUMNS)
    assert lines[0] == "\t".join(COLUMNS)
    assert lines[-1] == ""
    assert not [line for line in lines[1:-1] if not re.fullmatch(pattern, line)]


@pytest.mark.parametrize("column", sorted(FLOATS))
def test_floats_are_printed_as_percent_12g(lines: list[str], column: str) -> None:
    cells = {line.split("\t")[COLUMNS.index(column)] for line in lines[1:-1]}
    assert not [cell for cell in cells if f"{float(cell):.12g}" != cell]
    assert (column == "cost") == ("1e-05" in cells)


def test_gzip_readers_agree(twin: Twin, lines: list[str]) -> None:
    done = subprocess.run(["gzip", "-dc", str(twin.path)], capture_output=True, check=True)
    assert done.stdout.decode() == "\n".join(lines)
    assert twin.frame.height == len(lines) - 2


def test_rule_1_times_are_sorted_seconds_with_ties(twin: Twin) -> None:
    time = twin.frame["timestamp"]
    assert time.is_sorted()
    assert (time[0], time[-1]) == (0, 2_671_199)
    assert time.n_unique() < len(time)


def test_rule_2_the_log_is_followed_past_its_end(twin: Twin) -> None:
    assert 2_671_199 < twin.frame["conversion_timestamp"].max() <= 2_671_199 + 2_591_997


def test_rule_3_delays_are_capped_at_thirty_days(twin: Twin) -> None:
    assert twin.converted["delay"].min() > 0
    assert twin.converted["delay"].max() <= 2_591_997


def test_rule_4_a_conversion_is_copied_to_the_rows_of_its_journey(twin: Twin) -> None:
    keys = twin.conversions
    assert keys["times"].unique().to_list() == keys["campaigns"].unique().to_list() == [1]
    assert (keys["rows"] > 1).any()


def test_rule_5_some_ids_span_two_users_at_two_times(twin: Twin) -> None:
    keys = twin.converted.select("conversion_id", "uid", "conversion_timestamp").unique()
    shared = keys.group_by("conversion_id").agg(pl.len(), pl.col("conversion_timestamp").n_unique().alias("times"))
    shared = shared.filter(pl.col("len") > 1)
    assert shared.height == round(2_910 / 435_810 * twin.conversions.height) == twin.truth["realised"]["colliding_ids"]
    assert shared["len"].unique().to_list() == shared["times"].unique().to_list() == [2]


def test_rule_6_conversions_are_clicked_and_attribution_is_theirs(twin: Twin) -> None:
    assert (twin.converted["click"] == 1).all()
    assert set(twin.conversions["attribution"].unique()) == {0.0, 1.0}
    assert (twin.others["attribution"] == 0).all()


def test_rule_7_click_positions_are_those_of_the_journey(twin: Twin) -> None:
    keys = twin.conversions
    for position, number in keys.select("click_pos", "click_nb").iter_rows():
        assert number == [len(position)]
        assert position == list(range(len(position)))
    assert keys["click_pos"].equals(keys["in_time"])


@pytest.mark.parametrize("column", ["conversion_timestamp", "conversion_id", "click_pos", "click_nb"])
def test_sentinel_on_rows_without_a_conversion_only(twin: Twin, column: str) -> None:
    assert twin.others[column].unique().to_list() == [-1]
    assert (twin.converted[column] >= 0).all()


def test_rule_8_last_clicks_may_be_before_the_log(twin: Twin) -> None:
    since = twin.frame["time_since_last_click"]
    assert since.min() == -1
    assert (since > twin.frame["timestamp"]).any()


def test_rule_9_amounts_are_positive(twin: Twin) -> None:
    assert twin.frame["cost"].min() == 1e-05
    assert twin.frame["cpo"].min() > 0


def test_rule_10_ids_are_anonymous(twin: Twin) -> None:
    ids = twin.frame.select("uid", "campaign", *(f"cat{k}" for k in range(1, 10)))
    assert max(ids.max().row(0)) <= 32_452_843
    assert min(ids.min().row(0)) >= 0


def test_rule_11_has_neither_display_id_nor_propensity(twin: Twin) -> None:
    assert twin.frame.columns == list(COLUMNS)
    assert {d.is_integer() for c, d in twin.frame.schema.items() if c not in FLOATS} == {True}


@pytest.mark.parametrize("name", ["criteo_attribution", "criteo_twin"])
def test_is_read_as_the_real_file(twin: Twin, name: str) -> None:
    log = load(name, path=twin.path, actions="top:10")
    rows = dict(twin.frame["campaign"].value_counts().iter_rows())
    largest = sorted(rows.values(), reverse=True)[:10]
    assert sorted((rows[int(label)] for label in log.labels), reverse=True) == largest
    # The truth names those that are largest by law: in so few rows, chance may swap neighbours about the tenth place.
    for campaign in {int(label) for label in log.labels} ^ set(twin.truth["top"]["campaigns"]):
        assert abs(rows[campaign] - largest[-1]) < 4 * (2 * largest[-1]) ** 0.5
    assert log.meta.observed_until is None
    assert log.meta.counts["conversions_distinct"] == twin.truth["realised"]["conversions"]
    assert log.meta.counts["conversions_without_click"] == 0


def test_every_row_is_sound(twin: Twin) -> None:
    assert validate("criteo_attribution", path=twin.path)["ok"]
