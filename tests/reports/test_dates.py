"""Times that are dates are said as dates, and others as the log counts them."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import check, study_delays
from evaluator.errors import LogError
from evaluator.log import Log
from evaluator.reading.summary import log_facts
from evaluator.reports.answer_charts import change_chart
from evaluator.reports.delay_charts import rates_chart
from evaluator.reports.documents import document_of
from evaluator.reports.terminal import text_of
from tests.logs import build_log

DAY, N = 86_400, 3000
FIRST = 1_767_225_600  # 2026-01-01


def shop(start: int, *, until: int = 6 * DAY, outage: int | None = None) -> Log:
    """A log of six days whose conversions stop a day before `until`; one of its days may be without displays."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.integers(0, 6 * DAY, N))
    time = time[time // DAY != outage]
    came = time + rng.exponential(0.2 * DAY, len(time)).astype(int)
    of = np.flatnonzero((rng.random(len(time)) < 0.4) & (came <= 5 * DAY))
    return build_log(
        time=start + time, action=rng.integers(0, 2, len(time)), conversion_display=of, n_actions=2, tick="s",
        conversion_time=start + came[of], name="shop", observed_until=start + until,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "field", "axis"),
    [(FIRST, "date", [f"2026-01-{day:02}" for day in range(1, 7)]), (0, "period", list(range(6)))],
)
def test_the_axis_of_rates_has_dates_where_the_log_has_them(start: int, field: str, axis: list[object]) -> None:
    chart = rates_chart(study_delays(shop(start), windows=["1d"], bootstraps=19, families=["exponential"]))
    assert chart is not None
    x = chart["layer"][0]["encoding"]["x"]
    # A date alone is read as one of UTC, so that no reader's zone moves it.
    assert (x["field"], x.get("scale")) == (field, {"type": "utc"} if field == "date" else None)
    [rows] = chart["datasets"].values()
    assert list(dict.fromkeys(row[field] for row in rows)) == axis


def test_a_day_without_displays_is_left_out_of_rates() -> None:
    chart = change_chart(study_delays(shop(FIRST, outage=2), windows=["1d"], bootstraps=19, families=["exponential"]))
    assert chart is not None
    [rows] = chart["datasets"].values()
    assert list(dict.fromkeys(row["at"] for row in rows)) == [f"2026-01-{day:02}" for day in (1, 2, 4, 5, 6)]


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (FIRST, ["2026-01-01 00:01 to 2026-01-06 23:59 (6 d)", "2026-01-07 00:00"]),
        (0, ["to 518,", "518,400 s"]),
    ],
)
def test_a_dataset_is_shown_with_its_dates(start: int, said: list[str]) -> None:
    text = text_of(document_of({"name": "shop", "spec": None, "log": log_facts(shop(start)).to_dict()}))
    for words in said:
        assert words in text


def test_an_end_that_is_wrong_is_said_as_a_date() -> None:
    log = shop(FIRST)
    late = int(log.conversions["time"].to_numpy().max())
    with pytest.raises(LogError, match=rf"later than observed_until = {FIRST + DAY} \(2026-01-02 00:00\)"):
        log.with_meta(observed_until=FIRST + DAY).validated()
    finding = check(log)["immature displays"]
    assert f"before observed_until = {FIRST + 6 * DAY} (2026-01-07 00:00)" in finding.what
    assert f"observed_until = {late} under [log] of the spec, 2026-01-05 23:58, is when" in finding.remedy
