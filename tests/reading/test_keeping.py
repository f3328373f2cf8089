"""Columns kept to group delays by: the same from memory, from disk and from the command line; differences and none."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from evaluator import study_delays
from evaluator.datasets import convert, load
from evaluator.errors import SourceError, UsageError
from evaluator.log import StoredLog
from evaluator.log.column import LIKE_USERS, read_clusters
from evaluator.log.delay_rows import delay_rows
from evaluator.log.fingerprint import content_hash
from evaluator.log.schema import kept_columns
from evaluator.reading import frames as scan
from evaluator.reading.delay_file import read_delay_file
from evaluator.reading.options import DelayFileOptions
from tests.cli.runs import evaluate
from tests.reading.sources import dataset, write_spec

DAY = 86_400
QUICK = {"families": ["exponential"], "bootstraps": 19}
CONTEXT = {"columns": {"country": "category", "hour": "number"}, "dimensions": 4}
LEAKAGE = {"columns": ["basket"]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 60 days cut at its end: conversions come 5 times later in France, and alike on all devices."""
    rng = np.random.default_rng(3)
    n = 6000
    time = np.sort(rng.integers(0, 60 * DAY, n))
    country, device = rng.choice(["de", "fr", "it"], n), rng.choice(["phone", "desk", ""], n)
    delay = (rng.exponential(1.0, n) * np.where(country == "fr", 5, 1) * DAY).astype(int)
    # Countries start at different times, so that their limits differ too.
    seen = (rng.random(n) < 0.4) & (time + delay <= 60 * DAY)
    rows = zip(time, rng.choice(["a", "b"], n), np.where(seen, time + delay, -1), country, device, strict=True)
    lines = [f"{t},{ad},{sold if sold >= 0 else ''},{c},{d},{t // 3600 % 24},1" for t, ad, sold, c, d in rows]
    return dataset(
        tmp_path_factory.mktemp("shop"), ["t,ad,sold,country,device,hour,basket", *lines],
        context=CONTEXT, leakage=LEAKAGE, log={"observed_until": 60 * DAY},
    )  # fmt: skip


def test_streaming_gives_what_memory_gives(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load(shop, keep=["device", "country"])
    monkeypatch.setattr(scan, "CHUNK_ROWS", 700)
    stored = convert(shop, tmp_path / "log", keep=["device", "country"], sort=True).log
    assert isinstance(stored, StoredLog)
    everything = stored.take(np.arange(len(stored)), stored.schema.names)
    assert everything.equals(whole.displays.combine_chunks())
    assert set(whole.displays["device"].to_pylist()) == {"phone", "desk", None}
    # A part of it, converted again: first batches may hold no label at all.
    again = convert(tmp_path / "log", tmp_path / "again", limit=900, keep=["device"]).log
    first = whole.displays.select(["device"]).slice(0, 900)
    assert again.take(np.arange(900), ["device"]).equals(first.combine_chunks())


@pytest.mark.parametrize(("by", "differ"), [("country", {("de", "fr"), ("fr", "it")}), ("device", set())])
def test_groups_that_differ_are_found_and_no_others(
    shop: Path, tmp_path: Path, by: str, differ: set[tuple[str, str]]
) -> None:
    study = study_delays(str(shop), by=by, **QUICK)
    test = study.heterogeneity
    assert test is not None
    assert {tuple(sorted((p.first, p.second))) for p in test.pairs if p.adjusted_p <= test.level} == differ
    assert (test.p <= 0.001) == bool(differ)
    if by == "country":
        medians = {group.label: group.fit.quantiles([0.5])[0] / (np.log(2) * DAY) for group in study.groups}
        # Standard error of a median, relative: about 1 / (log 2 sqrt(n)); truncation adds a little.
        slack = {group.label: 4 * 1.2 / (np.log(2) * group.conversions**0.5) for group in study.groups}
        for label, truth in (("de", 1.0), ("fr", 5.0), ("it", 1.0)):
            assert abs(medians[label] / truth - 1.0) < slack[label]
    else:
        assert {group.label for group in study.groups} == {"phone", "desk", "(missing)"}
    convert(shop, tmp_path / "log", keep=[by])
    assert study_delays(str(tmp_path / "log"), by=by, **QUICK).to_dict() == study.to_dict()
    words = (*("--by", by), "--families", "exponential", "--bootstraps", "19", "--json")
    for source in (shop, tmp_path / "log"):
        run = evaluate("delays", str(source), *words)
        assert run.code == 0, run.err
        assert run.json["groups"] == study.to_dict()["groups"]


def test_crossed_columns_are_read_each_by_itself(shop: Path, tmp_path: Path) -> None:
    log = load(shop, keep=["country+device"])
    assert kept_columns(log.schema.names) == ["country", "device"]
    shown = log.displays.take(log.conversions["display_id"])
    pairs = zip(shown["country"].to_pylist(), shown["device"].to_pylist(), strict=True)
    rows = delay_rows(log, by="country+device")
    assert (rows.by, rows.group.tolist()) == ("country+device", [f"{c} + {d or '(missing)'}" for c, d in pairs])
    stored = convert(shop, tmp_path / "log", keep=["country", "device"]).log
    assert delay_rows(load(tmp_path / "log", keep=["country+device"]), by="country+device").group.tolist() == (
        delay_rows(stored, by="country + device").group.tolist()
    )
    with pytest.raises(UsageError, match="keeps no column 'city'"):
        load(tmp_path / "log", keep=["country+city"])
    plus = dataset(tmp_path, ["t,ad,sold,a+b,a", "1,x,4,u,1", "2,y,,v,1"])
    assert kept_columns(load(plus, keep=["a+b"]).schema.names) == ["a+b"]
    file = tmp_path / "delays.csv"
    file.write_text("delay,shop,kind\n1,x,a\n2,y,a\n3,x,b\n")
    read = read_delay_file(file, DelayFileOptions(by="shop+kind")).rows
    assert (read.by, read.group.tolist(), read.delay.tolist()) == ("shop+kind", ["x + a", "y + a", "x + b"], [1, 2, 3])
    file.write_text("delay,a+b,kind\n1,x + y,z\n2,x,y + z\n")
    read = read_delay_file(file, DelayFileOptions(by="a+b+kind")).rows
    assert (read.by, read.group.tolist()) == ("a+b+kind", ["'x + y' + z", "x + 'y + z'"])


def test_a_number_of_the_context_is_a_group_too(shop: Path) -> None:
    hours = {group.label for group in study_delays(str(shop), by="hour", groups=30, **QUICK).groups}
    assert hours >= {"0", "23"}


@pytest.mark.parametrize(
    ("column", "error", "said"),
    [
        ("sold", UsageError, "only after the outcome"),
        ("basket", UsageError, "only after the outcome"),
        ("contry", SourceError, "did you mean country"),
    ],
)
def test_columns_that_cannot_be_groups(shop: Path, column: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        study_delays(str(shop), by=column, **QUICK)


def test_a_name_of_the_log_cannot_be_kept(tmp_path: Path) -> None:
    rows = ["t,ad,sold,context", "1,a,4,x", "2,b,,y"]
    with pytest.raises(UsageError, match=r'give it another: keep = \{ own_context = "context" \} in the spec'):
        load(dataset(tmp_path, rows), keep=["context"])


def test_a_converted_log_names_what_it_keeps(shop: Path, tmp_path: Path) -> None:
    run = evaluate("datasets", "convert", str(shop), str(tmp_path / "log"), "--keep", "country, hour")
    assert run.code == 0, run.err
    run = evaluate("delays", str(tmp_path / "log"), "--by", "device")
    assert (run.code, run.out) == (2, "")
    assert "it keeps country, hour" in run.err
    assert "--keep device" in run.err


def test_numbers_stay_numbers_and_text_stays_text(tmp_path: Path) -> None:
    """What is missing is null, whole numbers beyond 2^53 lose no digit, and words made of them are as they were."""
    n, big = 400, 2**60 + 1
    age = [None if i % 7 == 0 else 20 + i % 50 for i in range(n)]
    frame = pl.DataFrame({
        "t": range(n), "ad": ["a", "b"] * (n // 2), "sold": [i + 5 if i % 3 == 0 else None for i in range(n)],
        "age": age, "income": [math.nan if i % 5 == 0 else i / 4 for i in range(n)],
        "user": [None if i % 9 == 0 else big + i % 2 for i in range(n)], "zip": [f"{i % 3:02}" for i in range(n)],
    })  # fmt: skip
    frame.write_parquet(tmp_path / "log.parquet")
    spec = write_spec(tmp_path, source={"files": "log.parquet"})
    keep = ["age", "income", "user", "zip"]
    log = load(spec, keep=keep)
    kinds = {name: str(log.schema.field(name).type) for name in keep}
    assert kinds == {"age": "int64", "income": "double", "user": "int64", "zip": "string"}
    assert log.displays["age"].to_pylist() == age
    assert log.displays["income"].null_count == n // 5
    assert set(log.displays["user"].to_pylist()) == {None, big, big + 1}
    found = read_clusters(log, "user")
    assert (found.count - found.unnamed, found.unnamed) == (2, len(range(0, n, 9)))
    stored = convert(spec, tmp_path / "stored", keep=keep).log
    again = convert(tmp_path / "stored", tmp_path / "again", limit=300).log
    for other, rows in ((stored, n), (again, 300)):
        assert other.take(np.arange(rows), keep).equals(log.displays.select(keep).slice(0, rows).combine_chunks())
        assert np.array_equal(read_clusters(other, "user").code, found.code[:rows])
    assert content_hash(load(spec, keep=keep)) == content_hash(log)
    changed = log.displays.set_column(log.schema.get_field_index("age"), "age", pa.array([x or 20 for x in age]))
    assert content_hash(log.changed(displays=changed)) != content_hash(log)
    labels = [str(x or "(missing)") for x, sold in zip(age, frame["sold"], strict=True) if sold]
    assert list(delay_rows(log, by="age").group) == labels


def test_a_column_of_numbers_with_another_role_is_kept_as_text(tmp_path: Path) -> None:
    frame = pl.DataFrame({"t": range(60), "ad": [7, 8] * 30, "sold": [i + 5 for i in range(60)]})
    frame.write_parquet(tmp_path / "log.parquet")
    log = load(write_spec(tmp_path, source={"files": "log.parquet"}), keep=["ad"])
    assert set(log.displays["ad"].to_pylist()) == {"7", "8"}


def test_a_spec_says_what_every_log_keeps_and_under_which_name(tmp_path: Path) -> None:
    rows = ["t,ad,sold,position,price", "1,a,4,top,2.5", "2,b,,side,1", "3,a,,top,"]
    spec = dataset(tmp_path, rows, keep={"slot": "position", "sum": "price"})
    log = load(spec)
    assert log.column("slot").tolist() == ["top", "side", "top"]
    # Files of text say no types.
    assert log.column("sum").tolist() == ["2.5", "1", None]
    more = load(spec, keep=["price", "slot"])
    assert more.schema.names[-3:] == ["slot", "sum", "price"]
    stored = convert(spec, tmp_path / "log").log
    assert stored.take(np.arange(3), ["slot", "sum"]).equals(log.displays.select(["slot", "sum"]).combine_chunks())
    with pytest.raises(UsageError, match=r"'position' of the source cannot be kept.*keeps it as 'slot'"):
        load(spec, keep="position")


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        ({"bought": "sold"}, "'sold' is known only after the outcome"),
        ({"time": "price"}, "'price' of the source cannot be kept as 'time': every log.*own_price = \"price\""),
        ({"slot": "shelf"}, "no column 'shelf'"),
    ],
)
def test_a_column_that_a_spec_cannot_keep_is_told(tmp_path: Path, keep: dict[str, str], said: str) -> None:
    spec = dataset(tmp_path, ["t,ad,sold,price", "1,a,4,2.5", "2,b,,1"], keep=keep)
    with pytest.raises((UsageError, SourceError), match=said):
        load(spec)


def test_columns_of_users_are_kept_where_they_are_asked_for_and_there(tmp_path: Path) -> None:
    rows = ["t,ad,sold,customer,user_id,device_id,price", "1,a,4,c1,7,phone,3", "2,b,,c2,8,desk,1"]
    held = {"leakage": {"columns": ["customer"]}}
    log = load(dataset(tmp_path, rows, **held), keep=[LIKE_USERS])
    assert set(kept_columns(log.schema.names)) == {"user_id", "device_id"}
    # One that is kept for users is enough, and logs that are not read from files keep what they have.
    known = dataset(tmp_path, rows, **held, keep={"visitor": "price"})
    assert kept_columns(load(known, keep=[LIKE_USERS]).schema.names) == ["visitor"]
    assert kept_columns(load("synthetic", limit=100, keep=[LIKE_USERS]).schema.names) == []
    plain = dataset(tmp_path, ["t,ad,sold", "1,a,4", "2,b,"])
    assert kept_columns(load(plain, keep=[LIKE_USERS]).schema.names) == []
    # What holds no groups is no column of users.
    lines = [f'{{"t": {i}, "ad": "{ad}", "sold": 9, "user": {{"id": 3}}}}' for i, ad in enumerate("ab")]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    nested = write_spec(tmp_path, source={"files": "log.jsonl"})
    assert kept_columns(load(nested, keep=[LIKE_USERS]).schema.names) == []
    pl.DataFrame({"t": [1, 2], "ad": ["a", "b"], "sold": [3, None], "users": [[1, 2], [3]]}).write_parquet(
        tmp_path / "log.parquet"
    )
    listed = write_spec(tmp_path, source={"files": "log.parquet"})
    assert kept_columns(load(listed, keep=[LIKE_USERS]).schema.names) == []
