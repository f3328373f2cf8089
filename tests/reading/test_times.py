"""Times as people write them: read where they can mean one thing only, else refused with the line to write."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator import load
from evaluator.errors import LogError, SpecError
from evaluator.reading.cells import instants, why_no_format
from tests.reading.sources import dataset

HALF_PAST_NINE = int(datetime(2017, 11, 7, 9, 30, tzinfo=UTC).timestamp()) * 10**6
MIDNIGHT = HALF_PAST_NINE - 34_200 * 10**6
FORMATS = (
    "%d.%m.%Y %H:%M:%S", "%m/%d/%y %I:%M:%S %p", "%Y%m%d %H:%M:%S.%f", "%d %b %Y, %H:%M:%S %z", "%B %d, %Y at %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%A, %d.%m.%Y %H:%M:%S", "%Y-%j %H:%M:%S", "100%% %d-%m-%Y %H:%M:%S",
)  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        *((cell, HALF_PAST_NINE) for cell in (
            "2017-11-07 09:30:00", "2017-11-07 09:30", "2017-11-07 9:30", "2017/11/07 9:30", "2017-11-07T09:30:00Z",
            "2017-11-07T09:30Z", "2017-11-07 09:30:00 UTC", "2017-11-07 10:30:00+01", "2017-11-07T10:30+01:00",
            "2017-11-07 10:30:00 +0100", " 2017-11-7 9:30 ", "2017-11-07T09:30:00.000000999",
        )),
        *((cell, MIDNIGHT) for cell in ("2017-11-07", "2017/11/07", "2017/11/7", "2017-11-07Z")),
        ("2017-11-07 09:30:00.25", HALF_PAST_NINE + 250_000),
        *((cell, None) for cell in (
            "07.11.2017", "07/11/2017", "17-11-07", "0017-11-07", "12017-11-07", "2017-13-07", "2017-11", "noon", "",
            "20171107", "2017-11-07 24:00:00", "2017-11-07 9", "1510047000",
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [[], ["2017-11-07 09:30:00"], ["noon"], ["2017/11/07", None]])
def test_year_first_is_read_whatever_stands_above_it(cell: str, found: int | None, before: list[str | None]) -> None:
    assert instants(pl.Series("t", [*before, cell]), None).to_list()[-1] == found


@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31), timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
    st.sampled_from(FORMATS),
)
def test_formats_are_those_of_python(moment: datetime, form: str) -> None:
    assert why_no_format(form) is None
    assert instants(pl.Series("t", [moment.strftime(form), None]), form).to_list() == [
        int(moment.timestamp()) * 10**6, None,
    ]  # fmt: skip


def test_seconds_since_1970_keep_their_decimals() -> None:
    cells = ["1510047000.25", "1510047000", " -1.5 ", "1510047000.1234567", "9e300", "nan", "x", None]
    found = instants(pl.Series("t", cells), "epoch").to_list()
    assert found == [HALF_PAST_NINE + 250_000, HALF_PAST_NINE, -1_500_000, HALF_PAST_NINE + 123_457, *[None] * 4]


def test_a_year_of_two_digits_is_no_year_of_four() -> None:
    assert instants(pl.Series("t", ["07.11.2017", "07.11.17"]), "%d.%m.%Y").to_list() == [MIDNIGHT, None]


def written(folder: Path, shown: list[str], sold: list[str], **time: object) -> Path:
    rows = [f'"{a}","{"ab"[i % 2]}","{b}"' for i, (a, b) in enumerate(zip(shown, sold, strict=True))]
    return dataset(folder, ["t,ad,sold", *rows], time={"unit": "datetime", **time})


@pytest.mark.parametrize(
    ("shown", "sold", "time", "line"),
    [
        (["07.11.2017", "08.11.2017"], ["19.11.2017", ""], {}, 'write format = "%d.%m.%Y" under [time]'),
        (["3/24/2017 9:30", "4/1/2017 13:30"], ["", ""], {}, 'write format = "%m/%d/%Y %H:%M" under'),
        (["3/24/2017 9:30 AM", "4/1/2017 1:30 PM"], ["", ""], {}, 'write format = "%m/%d/%Y %I:%M %p" under'),
        (["24.03.2017 09:30:00", "24.03.2017 09:30:00.5"], ["", ""], {}, 'format = "%d.%m.%Y %H:%M:%S.%f" under'),
        (["07/Nov/2017:13:40:00 +0100"], [""], {}, 'write format = "%d/%b/%Y:%H:%M:%S %z" under'),
        (["Tue Nov 07 13:40:00 2017"], [""], {}, 'write format = "%a %b %d %H:%M:%S %Y" under'),
        (["20171107"], ["20171108"], {}, 'write format = "%Y%m%d" under'),
        # One column settles what the other leaves open; where none does, nobody can know.
        (["03/04/2017"], ["25/04/2017"], {}, "(log.csv line 2: '03/04/2017'); write format = \"%d/%m/%Y\" under"),
        (["03/04/2017"], ["05/04/2017"], {},
         'write under [time] format = "%d/%m/%Y" if days come first, or format = "%m/%d/%Y" if months come first: '
         "every cell fits both"),
        (["03.04.05"], [""], {}, "every cell fits all"),
        (["2017-03-04"], ["25/04/2017"], {}, 'write format = { sold = "%d/%m/%Y" } under'),
        (["04.03.2017"], ["2017-03-04"], {"format": "%d.%m.%Y"}, 'write format = { t = "%d.%m.%Y" } under'),
        (["2017-03-04"], [""], {"format": "%d.%m.%Y"}, "take format out of [time]"),
        # One odd cell among dates that are read is no reason to change the spec.
        (["2017-03-04", "05.03.2017"], ["", ""], {}, "line 3: '05.03.2017'); write 2024-01-31T12:00:00+00:00, list"),
        (["25.03.2017", "NULL"], ["", ""], {}, "'NULL'); write 2024-01-31T12:00:00+00:00, list what means none in"),
        # Numbers.
        (["1510061994", "1510061996"], ["1510061998", ""], {}, 'write unit = "s" under'),
        (["1510061994000"], [""], {}, 'write unit = "ms" under'),
        (["1510061994.25", "1510061996.0"], ["1510061998.0", ""], {"unit": "s"},
         'write unit = "datetime" and format = "epoch" under'),
        (["1510061994"], ["1510061998.5"], {"unit": "s"}, 'write unit = "datetime" and format = "epoch" under'),
        (["1510061994"], ["2017-11-24"], {"unit": "s"}, 'write unit = "datetime" and format = { t = "epoch" } under'),
        (["2017-11-24"], ["1511481600"], {}, 'write format = { sold = "epoch" } under'),
        (["2017-03-04"], ["2017-05-04"], {"unit": "s"}, 'write unit = "datetime" under'),
        (["04.03.2017"], ["24.05.2017"], {"unit": "s"}, 'write unit = "datetime" and format = "%d.%m.%Y" under'),
    ],
)  # fmt: skip
def test_the_error_proposes_the_line_that_reads_every_cell(
    tmp_path: Path, shown: list[str], sold: list[str], time: dict[str, str], line: str
) -> None:
    with pytest.raises(LogError) as error:
        load(written(tmp_path, shown, sold, **time))
    assert line in str(error.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("shown", "sold", "time", "ticks"),
    [
        (["07.11.2017", "19.11.2017"], ["08.11.2017", ""], {"format": "%d.%m.%Y"}, 86_400_000_000),
        (["2017-11-07", "2017-11-08"], ["07/11/2017 9:30", ""], {"format": {"sold": "%d/%m/%Y %H:%M"}}, 34_200_000_000),
        (["1510061994.25", "1510061996.0"], ["1510061998.0", ""], {"format": "epoch"}, 3_750_000),
        (["1510061994.0", "1510061996.0"], ["1510061998.00", ""], {"unit": "s"}, 4),
    ],
)
def test_what_it_proposes_is_read(
    tmp_path: Path, shown: list[str], sold: list[str], time: dict[str, object], ticks: int
) -> None:
    log = load(written(tmp_path, shown, sold, **time))
    assert log.conversions["time"].to_pylist() == [int(log.column("time")[0]) + ticks]


def test_the_proposal_fits_the_cells_of_all_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.reading.frames.CHUNK_ROWS", 2)
    shown = ["03/04/2017", "04/04/2017", "05/04/2017", "25/04/2017", "26/04/2017"]
    with pytest.raises(LogError, match=r'more\); write format = "%d/%m/%Y" under'):
        load(written(tmp_path, shown, [""] * 5))
    with pytest.raises(LogError, match="list what means none"):
        load(written(tmp_path, [*shown, "26/26/2017"], [""] * 6))


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ({"format": "%Q"}, "holds '%Q': take %Y %y"),
        ({"format": "%d.%m.%Y%"}, "holds '%': take"),
        ({"format": "%H:%M"}, "names no day"),
        ({"format": "%d.%m.%Y %I:%M"}, "needs %I and %p together"),
        ({"format": "%d.%m.%Y %H"}, "hours without minutes"),
        ({"format": "%d.%m.%Y %M"}, "without the hour"),
        ({"format": "%d.%m.%Y %H:%M:%S,%f"}, "has %f elsewhere than after %S and a point"),
        ({"format": {"t": "%H:%M"}}, "names no day"),
        ({"format": {"shown": "%d.%m.%Y"}}, "holds 'shown', which is no column of times (t, sold)"),
        ({"format": "%d.%m.%Y", "unit": "s"}, "goes with unit = 'datetime', not 's'"),
    ],
)
def test_formats_that_could_be_misread_are_refused(tmp_path: Path, time: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError) as error:
        load(written(tmp_path, ["07.11.2017"], [""], **time))
    assert said in str(error.value)
