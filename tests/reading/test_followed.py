"""How long a log was followed: its end, strays beyond it, attribution windows, rewards beyond their bound."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluator import replay
from evaluator.datasets import convert, load, read
from evaluator.errors import LogError, SpecError, UsageError
from tests.reading.sources import ROWS, dataset, write_rows

HOUR, DAY = 3600, 86_400
RATE, MEAN_DELAY = 0.2, 1.5 * DAY


def shop_rows(*, n: int = 20_000, days: int = 20, followed: float = 0.0, stray: float | None = None) -> list[str]:
    """A shop whose sales come 1.5 days after the display on average, as known `followed` days after the last one."""
    rng = np.random.default_rng(7)
    time = np.sort(rng.integers(0, days * DAY, n))
    time[-1] = days * DAY
    sold = np.where(rng.random(n) < RATE, time + rng.exponential(MEAN_DELAY, n).astype(int), -1)
    sold[(sold > (days + followed) * DAY) | (sold - time > 7 * DAY)] = -1
    action = rng.integers(0, 2, n)
    if stray is not None:
        sold[-10] = int((days + stray) * DAY)
    return ["t,ad,sold", *[f"{t},{a},{'' if s < 0 else s}" for t, a, s in zip(time, action, sold, strict=True)]]


def shop(folder: Path, rows: list[str], **log: Any) -> Path:
    return dataset(
        folder, rows, display={"propensity_kind": "uniform"}, log={"attribution_window": "7d", "reward_max": 1, **log}
    )


def test_the_end_is_the_last_event_of_an_honest_log(tmp_path: Path) -> None:
    for followed in (0.0, 0.5, 3.0, 7.0):
        rows = shop_rows(followed=followed)
        sold = [int(row.split(",")[2] or 0) for row in rows[1:]]
        assert load(shop(tmp_path, rows, attribution_window="60d")).meta.observed_until == max(20 * DAY, *sold)


def test_few_conversions_long_after_a_short_burst_are_no_strays(tmp_path: Path) -> None:
    # Ten minutes of traffic, followed for 30 days: the last conversions are days apart.
    rng = np.random.default_rng(1)
    time = np.sort(rng.integers(0, 600, 5000))
    for scale in (0.5 * DAY, 5 * DAY):
        sold = np.where(rng.random(5000) < 0.1, time + rng.exponential(scale, 5000).astype(int), -1)
        rows = [f"{t},{i % 2},{'' if s < 0 else s}" for i, (t, s) in enumerate(zip(time, sold, strict=True))]
        assert load(dataset(tmp_path, ["t,ad,sold", *rows])).meta.observed_until == sold.max()
    # Heavy tails: the last one may come twice as late as the one before.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        late = time + (HOUR * rng.random(5000) ** -1.5).astype(int)
        rows = [f"{t},{i % 2},{s if i % 10 == 0 else ''}" for i, (t, s) in enumerate(zip(time, late, strict=True))]
        assert load(dataset(tmp_path, ["t,ad,sold", *rows])).meta.observed_until == late[::10].max()


@pytest.mark.parametrize("stray", [0.5, 2.0, 6.9])
def test_a_stray_is_refused_by_line_and_left_out_on_request(tmp_path: Path, stray: float) -> None:
    rows = shop_rows(stray=stray)
    spec = shop(tmp_path, rows)
    line = len(rows) - 9
    with pytest.raises(
        LogError, match=rf"Column 'sold': stray conversion.*log.csv line {line}: '{rows[line - 1].split(',')[2]}'"
    ):
        load(spec)
    done = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert [(r["line"], r["column"]) for r in done.quarantine.to_pylist()] == [(line, "sold")]
    assert done.log.meta.observed_until == 20 * DAY
    assert len(done.log) == len(rows) - 1  # the display stays


def test_a_stray_would_bias_the_value(tmp_path: Path) -> None:
    rows = shop_rows(n=60_000, days=10, stray=6.9)
    # Two arms alike; a window of 7 days sees this share of the conversions.
    truth = RATE * (1 - np.exp(-7 * DAY / MEAN_DELAY))
    right = read(shop(tmp_path, rows), on_error="quarantine", quarantine_at_most=1).log
    fooled = right.with_meta(observed_until=int(16.9 * DAY))
    values = {}
    for name, log in (("right", right), ("fooled", fooled)):
        result = replay(log, "random", window="7d", seed=2).value
        assert result.n > 0
        error = np.sqrt(RATE * (1 - RATE) / result.n)
        values[name] = (result.estimate - truth) / error
    assert abs(values["right"]) < 4
    assert values["fooled"] < -4


def test_several_strays_apart_are_all_found(tmp_path: Path) -> None:
    rows = shop_rows()
    for i, days in enumerate((21.5, 23.0, 24.5, 26.0)):
        t, a, _ = rows[-10 - i].split(",")
        rows[-10 - i] = f"{t},{a},{int(days * DAY)}"
    done = read(shop(tmp_path, rows), on_error="quarantine", quarantine_at_most=1)
    assert [r["line"] for r in done.quarantine.to_pylist()] == [len(rows) - 12 + i for i in range(4)]
    assert done.log.meta.observed_until == 20 * DAY


def test_a_stray_cut_by_the_window_does_not_move_the_end(tmp_path: Path) -> None:
    log = load(shop(tmp_path, shop_rows(stray=400.0)), attribution_window="7d")
    assert log.meta.observed_until == 20 * DAY
    assert log.meta.counts["conversions_beyond_attribution_window"] >= 1


def test_conversions_beyond_the_stated_end_are_named(tmp_path: Path) -> None:
    spec = dataset(tmp_path, [*ROWS, "6,a,40"], log={"observed_until": 20})
    with pytest.raises(LogError, match=r"later than observed_until = 20 \(.*log.csv line 6: '40'\); raise observed_un"):
        load(spec)
    done = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert len(done.log) == 5
    assert done.log.conversions["time"].to_pylist() == [4, 9, 5]


@pytest.mark.parametrize(
    ("time", "until"),
    [
        ({"unit": "datetime"}, "2024-01-05T12:00:00"),
        ({"unit": "datetime"}, "2024-01-05 13:00+01:00"),
        ({"unit": "datetime", "format": "%d.%m.%Y %H:%M"}, "05.01.2024 12:00"),
        ({"unit": "datetime", "format": {"t": "%d.%m.%Y %H:%M", "sold": "%d.%m.%Y %H:%M"}}, "05.01.2024 12:00"),
        ({"unit": "datetime"}, 1_704_456_000_000_000),
        ({"unit": "s"}, 1_704_456_000),
    ],
)
def test_an_end_is_a_time_as_those_of_the_displays(tmp_path: Path, time: dict[str, Any], until: str | int) -> None:
    def written(text: str) -> str:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        if time["unit"] == "s":
            return f"{moment.timestamp():.0f}"
        return moment.strftime("%d.%m.%Y %H:%M" if "format" in time else "%Y-%m-%dT%H:%M:%S")

    shown, sold = written("2024-01-01T00:00:00"), written("2024-01-05T12:00:00")
    rows = ["t,ad,sold", f"{shown},a,{sold}", f"{shown},b,"]
    outcomes = {"left": {"time": "sold", "observed_until": until}}
    (tmp_path / "late").mkdir()
    log = load(dataset(tmp_path, rows, time=time, log={"observed_until": until}, outcomes=outcomes))
    ticks = 1_704_456_000 * (10**6 if time["unit"] == "datetime" else 1)
    assert (log.meta.observed_until, log.meta.outcomes[0].observed_until) == (ticks, ticks)
    late = written("2024-01-05T12:01:00")
    with pytest.raises(LogError, match=rf"later than observed_until = {ticks} \(2024-01-05 12:00\)"):
        load(dataset(tmp_path / "late", [*rows, f"{shown},b,{late}"], time=time, log={"observed_until": until}))


@pytest.mark.parametrize(
    ("unit", "until", "said"),
    [
        ("datetime", "completed", "'completed'. Hint: write 'end' or 'complete' or a date as those of display.time"),
        ("s", "2024-01-05", "'2024-01-05'. Hint: write 'end' or 'complete' or a whole number, in s"),
    ],
)
def test_an_end_that_is_no_time_is_told(tmp_path: Path, unit: str, until: str, said: str) -> None:
    spec = dataset(tmp_path, ["t,ad,sold"], time={"unit": unit}, log={"observed_until": until})
    with pytest.raises(SpecError, match=re.escape(f"`$.log.observed_until`: got {said}.")):
        load(spec)


def test_conversions_beyond_the_window_of_the_spec_are_named_with_the_repair(tmp_path: Path) -> None:
    rows = ["t,ad,sold", "0,a,28800", "1,b,28802", "2,a,99999", "3,b,"]
    spec = dataset(tmp_path, rows, log={"attribution_window": "8h"})
    with pytest.raises(LogError) as raised:
        load(spec)
    said = str(raised.value)
    assert "log.csv line 3: '28802'" in said
    assert "line 4: '99999'" in said
    assert "`attribution_window='8h'`" in said
    assert "raise attribution_window in [log]" in said
    done = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert (len(done.log), done.log.meta.counts["quarantined"]) == (4, 2)
    log = load(spec, attribution_window="8h")
    assert log.conversions["time"].to_pylist() == [28_800]
    assert log.meta.attribution_window == 28_800
    assert log.meta.counts["conversions_beyond_attribution_window"] == 2
    assert "2 conversions later than an attribution window of 8h were cut." in log.meta.notes
    assert load(spec, attribution_window=28_801).conversions.num_rows == 2
    assert load(spec, attribution_window="2d").meta.attribution_window == 2 * DAY


def test_dates_are_named_as_dates(tmp_path: Path) -> None:
    rows = ["t,ad,sold", "2024-01-01,a,2024-01-03", "2024-01-02,b,"]
    spec = dataset(tmp_path, rows, time={"unit": "datetime"}, log={"attribution_window": "1d"})
    with pytest.raises(LogError, match="line 2: '2024-01-03T00:00:00'"):
        load(spec)
    assert load(spec, attribution_window="1d").conversions.num_rows == 0


def test_a_converted_log_takes_a_shorter_window_only(tmp_path: Path) -> None:
    spec = shop(tmp_path, shop_rows())
    whole = convert(spec, tmp_path / "out").log
    short = load(tmp_path / "out", attribution_window="1d")
    read_so = load(spec, attribution_window="1d")
    assert short.conversions.equals(read_so.conversions)
    # A converted log is known as the whole one, however it is read.
    assert short.meta == read_so.with_meta(fingerprint=whole.meta.fingerprint).meta
    assert short.conversions.num_rows < whole.conversions.num_rows
    with pytest.raises(UsageError, match="is longer than 7 d: log"):
        load(tmp_path / "out", attribution_window="8d")
    assert convert(tmp_path / "out", tmp_path / "short", attribution_window="1d").log.meta == read_so.meta
    for wrong in ("8 parsecs", "0", "0.1ms"):
        with pytest.raises(UsageError):
            load(spec, attribution_window=wrong)
    with pytest.raises(UsageError, match="known truth"):
        load("synthetic", limit=100, attribution_window=10)


def test_a_shorter_window_gives_the_value_within_it(tmp_path: Path) -> None:
    log = load(shop(tmp_path, shop_rows(n=60_000)), attribution_window="1d")
    result = replay(log, "random", window="7d", seed=3).value
    assert result.n > 0
    error = np.sqrt(RATE * (1 - RATE) / result.n)
    assert abs(result.estimate - RATE * (1 - np.exp(-DAY / MEAN_DELAY))) < 4 * error
    assert abs(result.estimate - RATE) > 8 * error


SALES = ["shown,when,paid", "x,4,6", "y,5,3", "x,5,3", "x,6,4", "y,9,20"]


def test_what_a_display_earns_beyond_its_bound_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path / "sales.csv", SALES)
    conversion = {"time": "when", "value": "paid", "source": {"files": "sales.csv", "display": "shown"}}
    rows = ["id,t,ad", "x,1,a", "y,2,b"]

    def bounded(most: float) -> Path:
        return dataset(tmp_path, rows, display={"id": "id"}, conversion=conversion, log={"reward_max": most})

    with pytest.raises(LogError) as raised:
        load(bounded(10))
    said = str(raised.value)
    # x earns 6 + 3 + 4, its third sale is too much; y earns 3 + 20.
    assert "Column 'paid': the display earns more than reward_max = 10" in said
    assert "sales.csv line 5: '13.0'" in said
    assert "sales.csv line 6: '23.0'" in said
    assert "line 2" not in said
    log = read(bounded(10), on_error="quarantine", quarantine_at_most=1).log
    assert log.conversions["value"].to_pylist() == [6.0, 3.0, 3.0]
    assert load(bounded(23)).conversions.num_rows == 5


def test_shares_that_sum_to_one_keep_their_bound(tmp_path: Path) -> None:
    rows = ["t,ad,sold,buy,user,click", *[f"{i},{'ab'[i % 2]},9,k,u,1" for i in range(7)], "8,a,,,,"]
    conversion = {"key": ["buy", "user"], "click": "click", "deduplicate": "share"}
    log = load(dataset(tmp_path, rows, conversion=conversion, log={"reward_max": 1 / 7}))
    assert log.conversions.num_rows == 7
