"""Leaving rows out stops the run where many go, or where what goes depends on the outcome; else it says so."""

from __future__ import annotations

from html import unescape
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator import check, datasets, replay, study_delays
from evaluator.errors import LogError, ParameterError, UsageError
from evaluator.reading.canonical import Reading
from evaluator.reading.options import ReadingOptions
from evaluator.reading.row_rules import LEVEL, LeftOut, fisher_exact
from tests.reading.sources import dataset

# Every tenth of these displays converts.
ROWS = [[f"{i}", "ab"[i % 2], f"{i + 5}" if i % 10 == 0 else "", f"d{i}"] for i in range(4_000)]


def read(folder: Path, broken: dict[int, tuple[int, str]], **options: Any) -> Reading:
    """Read `ROWS`, where a cell of some rows is another: (column, text) by row."""
    rows = [list(row) for row in ROWS]
    for row, (column, text) in broken.items():
        rows[row][column] = text
    spec = dataset(folder, ["t,ad,sold,id", *map(",".join, rows)], log={"observed_until": "complete"})
    return datasets.read(spec, on_error="quarantine", **options)


def test_many_rows_stop_the_run_and_say_which_way_out(tmp_path: Path) -> None:
    broken = dict.fromkeys(range(44), (0, "soon"))
    with pytest.raises(LogError) as error:
        read(tmp_path, broken)
    assert str(error.value).replace(f"{tmp_path}/", "") == (
        "44 of 4,000 rows (1.1 %) break a rule, and 1 % may be left out. Most often column 't': not a whole number "
        "(44 rows, such as log.csv line 2: 'soon'); repair the cell, list it in source.none, or quarantine the row. "
        "Hint: repair these first; `quarantine_at_most='2%'` allows the loss."
    )
    assert len(read(tmp_path, broken, quarantine_at_most="2%").log) == 3_956
    for row in range(4):
        del broken[row]
    done = read(tmp_path, broken)
    assert (len(done.log), done.quarantine.num_rows) == (3_960, 40)
    said = "40 rows broke a rule and were left out: column 't': not a whole number (40)."
    assert done.log.meta.left_out == said
    assert said in done.log.meta.notes
    checked = check(done.log, propensity="uniform")
    assert checked.to_dict()["left_out"] == said
    for result in (checked, study_delays(done.log, families=["exponential"], bootstraps=19)):
        assert said in " ".join(unescape(result._repr_html_()).split())
    assert said in study_delays(done.log, families=["exponential"], bootstraps=19).to_dict()["sight"]


@pytest.mark.parametrize("broken", [(2, "?"), (1, "")])
def test_rows_that_go_by_their_outcome_stop_the_run(tmp_path: Path, broken: tuple[int, str]) -> None:
    # 20 rows of 4,000, all of them with a conversion: 5 % of these.
    rows = dict.fromkeys(range(0, 200, 10), broken)
    with pytest.raises(LogError, match=r"Left out are 20 of 400 rows with a conversion \(5 %\) and 0 of 3,600 others"):
        read(tmp_path, rows)
    log = read(tmp_path, rows, quarantine_at_most=0.05).log
    notes = log.meta.notes
    assert log.meta.counts["quarantined_by_outcome"] == 20
    if broken[1]:
        warned = replay(log, "ucb1", propensity="uniform", horizon=10).warnings
        assert sum("which depends on their outcome" in warning for warning in warned) == 1
    assert any("it depends on the outcome, so that what is left has another conversion rate" in note for note in notes)
    # As many, whatever their outcome.
    mixed = dict.fromkeys((*range(0, 20, 10), *range(1, 19)), (1, ""))
    assert not any("outcome" in note for note in read(tmp_path, mixed).log.meta.notes)


def test_the_log_that_kept_conversions_only_is_refused(tmp_path: Path) -> None:
    broken = {i: (2, "-") for i in range(4_000) if i % 10}
    with pytest.raises(
        LogError, match=r"3,600 of 4,000 rows \(90 %\) break a rule, and 1 % may be left out\. Most often column 'sold'"
    ):
        read(tmp_path, broken)


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_rows_lost_whatever_their_outcome_raise_no_alarm(rate: float) -> None:
    rng = np.random.default_rng(5)
    runs, alarms = 1_000, 0
    for _ in range(runs):
        found = LeftOut()
        found.see(rng.random(5_000) > 0.009, pl.Series(rng.random(5_000) < rate))
        alarms += found.depends_on_outcome()
    assert alarms <= runs * LEVEL + 4 * sqrt(runs * LEVEL)


def test_conversions_of_a_second_table_count_by_their_own(tmp_path: Path) -> None:
    sold = [f"d{i},{i + 5}" for i in range(0, 4_000, 10)]
    spec = dataset(
        tmp_path, ["t,ad,id", *(f"{t},{ad},{of}" for t, ad, _, of in ROWS)],
        display={"id": "id"}, conversion={"source": {"files": "sold.csv", "display": "of"}},
        log={"observed_until": "complete"},
    )  # fmt: skip
    (tmp_path / "sold.csv").write_text("\n".join(["of,sold", *sold[:-5], *(f"nobody{i},9" for i in range(5))]))
    with pytest.raises(LogError, match=r"5 of 400 rows of conversions \(1\.25 %\) break a rule.* without display"):
        datasets.read(spec, on_error="quarantine")
    assert datasets.read(spec, on_error="quarantine", quarantine_at_most="2%").log.conversions.num_rows == 395
    # Displays that go because they were sold.
    lines = (tmp_path / "log.csv").read_text().splitlines()
    lines[1:202:10] = [line.replace(",a,", ",,") for line in lines[1:202:10]]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    (tmp_path / "sold.csv").write_text("\n".join(["of,sold", *sold]))
    with pytest.raises(
        LogError, match=r"Left out are 21 of 400 rows with a conversion \(5\.25 %\) and 0 of 3,600 others"
    ):
        datasets.read(spec, on_error="quarantine")


def test_conversions_left_out_alone_count_too(tmp_path: Path) -> None:
    rows = [[t, ad, sold and str(int(sold) + (90 if int(t) < 100 else 0)), of] for t, ad, sold, of in ROWS]
    spec = dataset(
        tmp_path, ["t,ad,sold,id", *map(",".join, rows)], log={"observed_until": "complete", "attribution_window": 50}
    )
    with pytest.raises(LogError, match=r"10 of 400 conversions \(2\.5 %\) break a rule"):
        datasets.read(spec, on_error="quarantine")


@pytest.mark.parametrize("share", ["5", "-1%", "101%", "many", 1.5, float("nan")])
def test_no_share_is_refused(share: str | float) -> None:
    with pytest.raises(ParameterError, match="is no share of the rows"):
        ReadingOptions(on_error="quarantine", quarantine_at_most=share)


def test_a_share_goes_with_a_quarantine(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="but bad rows stop the run"):
        datasets.load(dataset(tmp_path), quarantine_at_most="5%")


def test_fisher_s_test_is_that_of_scipy() -> None:
    from scipy.stats import fisher_exact as known

    draw = np.random.default_rng(0)
    for _ in range(300):
        left_out, stay = draw.integers(0, [200, 2_000]), draw.integers(0, [10 ** draw.integers(1, 7)] * 2)
        rows = np.array([left_out, stay])
        assert fisher_exact(rows) == pytest.approx(known(rows).pvalue, rel=1e-7, abs=1e-300)
