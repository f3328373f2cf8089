"""A frame is the same log as its rows in files, to the bit, or the same error in the words of Python."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from evaluator import Log, check, compare, datasets, load, replay, study_delays
from evaluator.errors import DataError, EvaluatorError, LogError, SourceError, SpecError, UsageError
from evaluator.reading.from_frames import _KEYWORDS, in_keywords
from evaluator.reading.resolve import no_log
from evaluator.reading.roles import CALENDAR, CANDIDATE, DISPLAY, EVENT, TARGETS, VECTORS, Role
from evaluator.reading.spec import Context, Conversion, Display, Heading, Leakage, LogSection
from evaluator.reading.spec_sections import Source, Target, Time
from tests.reading.sources import write_spec
from tests.reading.test_column_types import TYPES
from tests.reading.test_formats_agree import everything

N = 400


def shop(*, apart: bool) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return displays with ties, and their sales; in a table of their own if they are to be apart."""
    rng = np.random.default_rng(7)
    shown = pl.Series(np.sort(rng.integers(0, 300, N)) * 60_000_000 + 1_700_000_000_000_000).cast(pl.Datetime("us"))
    sold = rng.random(N) < 0.3
    displays = pl.DataFrame(
        {
            "id": [f"d{i}" for i in range(N)],
            "shown": shown,
            "banner": rng.choice(["red", "blue", "grün"], N),
            "p": np.full(N, 1 / 3),
            "country": [None if i % 50 == 0 else f"c{i % 7}" for i in range(N)],
            "age": rng.integers(18, 80, N),
        }
    )
    sales = pl.DataFrame(
        {
            "sold": shown + pl.Series(rng.integers(0, 43_200, N) * 1_000_000).cast(pl.Duration("us")),
            "gain": rng.integers(1, 100, N) / 4,
        }
    )
    if apart:
        return displays, sales.insert_column(0, displays["id"].alias("of")).filter(pl.Series(sold))
    return displays.hstack(sales.with_columns(pl.when(pl.Series(sold)).then(pl.all()))), None


ROLES: dict[str, Any] = {
    "time": "shown", "action": "banner", "id": "id", "propensity": "p", "conversion_time": "sold", "value": "gain",
    "attribution_window": "12h", "observed_until": "complete", "reward_max": 25,
    "context": {"country": "category", "age": "number"}, "encoding": "one-hot", "none": ["c3"],
    "keep": "country", "name": "mine", "notes": ["a note"],
}  # fmt: skip


def spec_of(folder: Path, suffix: str, *, apart: bool) -> Path:
    folder.mkdir()
    conversion: dict[str, Any] = {"time": "sold", "value": "gain"}
    if apart:
        conversion["source"] = {"files": f"sales.{suffix}", "display": "of", "none": ["c3"]}
    path = write_spec(
        folder,
        source={"files": f"displays.{suffix}", "none": ["c3"]},
        time={"unit": "datetime"},
        display={"time": "shown", "action": "banner", "id": "id", "propensity": "p"},
        conversion=conversion,
        log={"attribution_window": "12h", "observed_until": "complete", "reward_max": 25},
        context={"columns": {"country": "category", "age": "number"}, "encoding": "one-hot"},
    )
    path.write_text('notes = ["a note"]\n' + path.read_text())
    return path


def write(frame: pl.DataFrame, path: Path) -> None:
    as_text = frame.with_columns(pl.col(pl.Datetime).dt.to_string("%Y-%m-%dT%H:%M:%S%.f"))
    {
        ".csv": lambda: as_text.write_csv(path),
        ".jsonl": lambda: as_text.write_ndjson(path),
        ".parquet": lambda: frame.write_parquet(path),
    }[path.suffix]()


class InPieces:
    """A stream that is no frame, its rows in pieces of odd sizes."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        table = self._frame.to_arrow()
        pieces = [batch for n in range(0, len(table), 37) for batch in table.slice(n, 37).to_batches()]
        return pa.Table.from_batches(pieces).__arrow_c_stream__(requested_schema)


def to_pandas(frame: pl.DataFrame) -> Any:
    pytest.importorskip("pandas", minversion="2.2")
    return frame.to_pandas()


def to_duckdb(frame: pl.DataFrame) -> Any:
    return pytest.importorskip("duckdb").from_arrow(frame.to_arrow())


LIBRARIES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "pyarrow": pl.DataFrame.to_arrow,
    "pyarrow, read once": lambda frame: frame.to_arrow().to_reader(max_chunksize=64),
    "pieces": InPieces,
    "pandas": to_pandas,
    "duckdb": to_duckdb,
}


@pytest.fixture(scope="module", params=[False, True], ids=["one table", "two tables"])
def in_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The log in files of each format, and converted."""
    displays, sales = shop(apart=request.param)
    folder, logs = tmp_path_factory.mktemp("shop"), {}
    for suffix in ("csv", "jsonl", "parquet"):
        spec = spec_of(folder / suffix, suffix, apart=request.param)
        write(displays, spec.parent / f"displays.{suffix}")
        if sales is not None:
            write(sales, spec.parent / f"sales.{suffix}")
        logs[suffix] = load(spec, keep="country")
    datasets.convert(folder / "csv" / "spec.toml", folder / "converted", keep="country")
    logs["converted"] = load(folder / "converted")
    return SimpleNamespace(displays=displays, sales=sales, logs=logs)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_is_the_log_of_its_rows_in_files(in_files: SimpleNamespace, library: str) -> None:
    given = LIBRARIES[library]
    second = None if in_files.sales is None else given(in_files.sales)
    roles = ROLES if second is None else {**ROLES, "display": "of"}
    log = Log.from_frames(given(in_files.displays), second, **roles)
    found = everything(log)
    for name, other in in_files.logs.items():
        assert everything(other) == found, name
    assert log.conversions.num_rows > 50
    assert log.meta.counts["ties_shuffled"] > 50


def test_the_fingerprint_is_of_the_content_alone(in_files: SimpleNamespace) -> None:
    def fingerprint(given: Callable[[pl.DataFrame], Any], **changes: Any) -> str:
        frame = in_files.displays.with_columns(**changes)
        second = None if in_files.sales is None else given(in_files.sales)
        roles = ROLES if second is None else {**ROLES, "display": "of"}
        return Log.from_frames(given(frame), second, **roles).meta.fingerprint

    one = fingerprint(lambda frame: frame)
    assert re.fullmatch("[0-9a-f]{64}", one)
    assert fingerprint(InPieces, unused=pl.lit(1)) == one
    assert fingerprint(lambda frame: frame, age=pl.col("age") + 1) != one


def test_a_frame_is_replayed(in_files: SimpleNamespace) -> None:
    second = in_files.sales
    log = Log.from_frames(in_files.displays, second, **(ROLES if second is None else {**ROLES, "display": "of"}))
    found, same = (replay(log, "linucb", window="6h", seed=1) for log in (log, in_files.logs["parquet"]))
    assert found.trajectory.equals(same.trajectory)
    assert found.value == same.value


# Types that libraries have, beside `OF_FILES` of those that `test_column_types` reads from files.
MORE_TYPES: dict[str, pa.Array] = {
    "zone": pa.array([datetime(2024, 3, 31, i, tzinfo=UTC) for i in range(6)], pa.timestamp("ms", "Europe/Berlin")),
    "string view": pa.array(list("ababab"), pa.string_view()),
    "large string": pa.array(["1", "2", "3", "4", "5", None], pa.large_string()),
    "dictionary of numbers": pa.array([1, 2, 1, None, 1, 2]).dictionary_encode(),
    "dictionary of large strings": pa.array(list("121212"), pa.large_string()).dictionary_encode(),
    "nullable int": pa.array([0, 1, 2, None, 4, 5], pa.int8()),
    "timedelta": pa.array([timedelta(seconds=i) for i in range(6)]),
    "days": pa.array([date(2024, 1, 1 + i) for i in range(6)], pa.date64()),
    "cents": pa.array([Decimal(f"{i}.25") for i in range(6)], pa.decimal128(9, 2)),
    "wide decimal": pa.array([Decimal(i) for i in range(6)], pa.decimal256(50, 2)),
    "small uint64": pa.array(range(6), pa.uint64()),
    "half": pa.array([0.5] * 6, pa.float32()),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([3, 6], pa.int32()), pa.array(["a", "b"])),
    "zones by name": pa.array([datetime(2024, 1, 1, i) for i in range(6)], pa.timestamp("ns")),
}
OF_FILES = ("dictionary", "uint64", "bool", "float", "null", "struct", "last ns", "far us")
ONE_ROLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "time": ({"time": "v"}, {"display": {"time": "v"}}),
    "dates": ({"time": "v", "conversion_time": "v", "unit": "datetime"},
              {"time": {"unit": "datetime"}, "display": {"time": "v"}, "conversion": {"time": "v"}}),
    "action": ({"action": "v"}, {"display": {"action": "v"}}),
    "id": ({"id": "v"}, {"display": {"id": "v"}}),
    "delay": ({"conversion_time": None, "delay": "v"}, {"conversion": {"time": None, "delay": "v"}}),
    "value": ({"value": "v"}, {"conversion": {"value": "v"}}),
}  # fmt: skip


def log_or_error(read: Callable[[], Log]) -> tuple[str, str]:
    """Return what a log holds, or the error in its place: NaN equals itself in text."""
    try:
        return repr(everything(read())), ""
    except DataError as error:
        return "", str(error)


@pytest.mark.parametrize("kind", [*OF_FILES, *MORE_TYPES])
def test_every_type_is_read_as_from_parquet_or_refused_in_a_line(tmp_path: Path, kind: str) -> None:
    column = TYPES[kind] if kind in TYPES else MORE_TYPES[kind]
    own = {"t": pa.array(range(6)), "ad": pa.array(list("ababab")), "sold": pa.array([None, 3, None, None, 9, None])}
    frame = pa.table({**own, "v": column})
    if kind != "runs":
        pq.write_table(frame, tmp_path / "log.parquet")
    for role, (keywords, sections) in ONE_ROLE.items():
        roles = {"time": "t", "action": "ad", "conversion_time": "sold", "unit": "s", "name": "mine", **keywords}
        log, error = log_or_error(lambda: Log.from_frames(frame, **roles))  # noqa: B023
        assert bool(log) != bool(error), role
        assert "\n" not in error
        if kind == "runs":  # no Parquet file holds them
            plain = frame.set_column(3, "v", pc.run_end_decode(column))
            assert (log, error) == log_or_error(lambda: Log.from_frames(plain, **roles))  # noqa: B023
            continue
        spec = write_spec(tmp_path, **{"source": {"files": "log.parquet"}, "time": {"unit": "s"}, **sections})
        same, told = log_or_error(lambda: load(spec))  # noqa: B023
        assert log == same, role
        assert error == in_keywords(told.replace(str(tmp_path / "log.parquet"), "displays")), role


FRAME = pl.DataFrame(
    {
        "shown": [datetime(2024, 1, 1, hour) for hour in range(4)],
        "banner": ["a", "b", "a", None],
        "sold": [None, datetime(2024, 1, 2), None, None],
        "tags": [["x"], [], [], []],
    }
)
GOOD: dict[str, Any] = {"time": "shown", "action": "banner", "conversion_time": "sold"}
SAYS: dict[str, tuple[pl.DataFrame | object, dict[str, Any], type[EvaluatorError], str]] = {
    "a cell": (FRAME, GOOD, LogError, "Column 'banner': missing (displays row 4: None)"),
    "a column": (FRAME, {**GOOD, "time": "shwn"}, SourceError, "displays: no column 'shwn'. Hint: did you mean shown?"),
    "a list": (FRAME, {**GOOD, "action": "tags"}, SourceError, "displays: column 'tags' holds List(String): several"),
    "no clock": (FRAME, {**GOOD, "conversion_time": None}, SpecError, "Log.from_frames: at `conversion`: give exactly "
                 "one of conversion_time, delay and immediate=True. Hint: see help(Log.from_frames)."),
    "an end": (FRAME.head(3), {**GOOD, "observed_until": "soon"}, SpecError,
               "frame: `observed_until`: got 'soon'. Hint: write 'end' or 'complete' or a date as those of time."),
    "a unit": (FRAME, {**GOOD, "unit": "week"}, SpecError, "Log.from_frames: `unit`: expected 'ns', 'us'"),
    "dates for ticks": (FRAME, {**GOOD, "unit": "s"}, SourceError, 'not integers. Hint: set unit="datetime".'),
    "ticks for dates": (FRAME.with_columns(pl.col("shown", "sold").dt.epoch("s")), GOOD, LogError,
                        'not an ISO date and time (displays row 1: \'1704067200\', displays row 2: \'1704070800\', '
                        'displays row 3: \'1704074400\' and 1 more); write unit="s".'),
    "dates of people": (FRAME.with_columns(shown=pl.col("shown").dt.to_string("%d.%m.%y")), GOOD, LogError,
                        'write format={"shown": "%d.%m.%y"} if days come first'),
    "an order": (FRAME.head(3).reverse(), GOOD, LogError, "displays row 2: time 1704070800000000 is earlier than "
                 "1704074400000000 before it (2 such rows). Hint: sort the source, or pass `sort=True`."),
    "a delay": (FRAME.with_columns(late=pl.col("sold") - pl.col("shown")),
                {**GOOD, "conversion_time": None, "delay": "late"}, SourceError, "column 'late' holds "
                "Duration(time_unit='us'), not integers. Hint: write them as whole numbers of ticks (unit; us where"),
    "an outcome": (FRAME, {**GOOD, "context": "sold"}, SpecError, "Log.from_frames: context holds 'sold', which is "
                   "known only after the outcome"),
    "a window": (FRAME.head(3), {**GOOD, "attribution_window": "2h"}, LogError, "later after its display than "
                 "attribution_window = '2h' (displays row 2: '2024-01-02T00:00:00'); leave such conversions out, or "
                 "raise attribution_window. Hint"),
    "no rows": (FRAME.clear(), GOOD, LogError, "displays: the log is empty: the frame has no rows. Hint: check what"),
    "an option": (FRAME, {**GOOD, "limit": 0}, UsageError, "`limit=0` is out of range."),
    "lazy": (FRAME.lazy(), GOOD, UsageError, "`displays`: a LazyFrame is no frame that speaks Arrow: collect() it."),
    "a dict": ({"shown": [1]}, GOOD, UsageError, "`displays`: a dict is no frame that speaks Arrow. Hint: give a"),
    "a class": (pl.DataFrame, GOOD, UsageError, "`displays`: a type is no frame that speaks Arrow."),
    "twice": (pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["shown", "shown", "banner"]),
              {**GOOD, "conversion_time": "shown"}, SourceError, "displays: several columns are called 'shown'."),
}  # fmt: skip


@pytest.mark.parametrize("case", SAYS)
def test_errors_name_the_frame_its_row_and_the_keyword(case: str) -> None:
    frame, roles, error, said = SAYS[case]
    with pytest.raises(error, match=re.escape(said)):
        Log.from_frames(frame, **roles)  # type: ignore[arg-type]


# Keys of a spec that a frame has no use for: where it lies, and what is written of a dataset for its readers.
OF_FILES_ALONE = {
    "title",
    "licence",
    "homepage",
    "twin",
    "files",
    "delta",
    "version",
    "iceberg",
    "snapshot",
    "storage",
    "database",
    "uri_env",
    "query",
    "parameters",
    "format",
    "delimiter",
    "encoding",
    "header",
    "columns",
}


def test_a_keyword_says_whatever_a_spec_can() -> None:
    keywords = set(inspect.signature(Log.from_frames).parameters)
    other_names = {key.split(".")[1] for key in _KEYWORDS}
    for section in (Heading, Source, Time, Display, Conversion, LogSection, Context, Target, Leakage):
        said = set(section.model_fields) - (OF_FILES_ALONE if section in (Heading, Source) else set())
        assert said <= keywords | other_names, section


OF_SECTIONS = {
    "display": DISPLAY, "conversion": EVENT, "candidates": CANDIDATE, "calendar": CALENDAR,
    "target": {"columns": TARGETS["columns"]}, "action_set": {"columns": VECTORS},
}  # fmt: skip
CASES = [(section, role) for section, roles in OF_SECTIONS.items() for role in roles.values()]


@pytest.mark.parametrize(("section", "role"), CASES, ids=[f"{section}.{role.key}" for section, role in CASES])
def test_every_role_is_a_keyword_and_documented_for_frames_and_files(section: str, role: Role) -> None:
    key = "from" if role.key == "start" else role.key
    keyword = _KEYWORDS.get(f"{section}.{key}", key)
    assert keyword in inspect.signature(Log.from_frames).parameters
    said = inspect.getdoc(Log.from_frames) or ""
    assert re.search(rf"^(?:\w+, )*{keyword}(?:, \w+)*$", said, re.MULTILINE)
    assert in_keywords(f"see {section}.{key}, please") == f"see {keyword}, please"
    page = (Path(__file__).parents[2] / "datasets" / "README.md").read_text(encoding="utf-8")
    (of_section,) = [part for part in page.split("\n### ") if f"`[{section}]`" in part.partition("\n")[0]]
    assert f"`{key}`" in of_section


@pytest.mark.parametrize("objective", [None, "profit", "revenue"])
def test_an_objective_is_that_of_a_spec(tmp_path: Path, objective: str | None) -> None:
    frame = pl.DataFrame({"t": [1, 2, 3], "ad": ["a", "b", "a"], "sold": [None, 4, None], "paid": [0.5, 0.25, 0]})
    frame.write_parquet(tmp_path / "log.parquet")
    asked = {} if objective is None else {"objective": objective}
    spec = write_spec(tmp_path, source={"files": "log.parquet"}, display={"cost": "paid"}, log=asked)
    roles: dict[str, Any] = {"time": "t", "action": "ad", "conversion_time": "sold", "cost": "paid", "unit": "s"}
    log = Log.from_frames(frame, **roles, **asked, name="mine")
    assert everything(log) == everything(load(spec))
    assert log.meta.objective == objective


def test_errors_name_the_frame_of_conversions() -> None:
    displays = pl.DataFrame({"id": [1, 2], "t": [1, 2], "ad": ["a", "b"]})
    sales = pl.DataFrame({"id": [2, 2, 9], "at": [3, None, 4]})
    roles: dict[str, Any] = {"time": "t", "action": "ad", "conversion_time": "at", "unit": "s"}
    with pytest.raises(UsageError, match="`conversions` are joined to displays by an id"):
        Log.from_frames(displays, sales, **roles)
    with pytest.raises(LogError, match=r"Column 'id': conversion without display \(conversions row 3: '9'\)"):
        Log.from_frames(displays, sales, id="id", **roles)
    with pytest.raises(SourceError, match="conversions: no column 'of'"):
        Log.from_frames(displays, sales, id="id", display="of", **roles)
    log = Log.from_frames(displays, sales, id="id", on_error="quarantine", quarantine_at_most="40%", **roles)
    assert (log.conversions.num_rows, log.meta.counts["quarantined"]) == (1, 1)


def test_a_library_that_fails_is_told_in_a_line() -> None:
    class Fails:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise KeyError("no table\nhere")

    with pytest.raises(SourceError, match="displays: its library cannot hand it over as Arrow: no table"):
        Log.from_frames(Fails(), **GOOD)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: replay(x, "ucb1"),
        lambda x: compare(x, ["ucb1"], baseline="ucb1"),
        check,
        study_delays,
        load,
        datasets.show,
    ],
    ids=["replay", "compare", "check", "study_delays", "load", "show"],
)
def test_a_frame_where_a_log_is_wanted_gets_the_line_to_write(call: Callable[[Any], object]) -> None:
    line = "write Log.from_frames(frame, time='shown', action='banner', conversion_time='sold')"
    with pytest.raises(UsageError, match=f"A DataFrame of polars is no log yet.*{re.escape(line)}$"):
        call(FRAME)


def test_what_no_name_tells_is_left_open() -> None:
    assert "action='Arm', conversion_time=...); columns: x, Arm" in no_log(pa.table({"x": [1], "Arm": [2]})).remedy
    assert (
        no_log(FRAME.lazy()).remedy
        == "write Log.from_frames(frame.collect(), time=..., action=..., conversion_time=...)"
    )
    assert no_log({"a": 1}).what == "A dict is no log."
