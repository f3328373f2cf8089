"""Drafts of files as other tools write them: what is no feature, no display, no value is asked about, not guessed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator.datasets import draft, load
from evaluator.errors import SourceError
from evaluator.reading.column_profile import Draft
from evaluator.reading.roles import DISPLAY

N = 600
RNG = np.random.default_rng(0)
BANNERS = np.array(["red", "green", "blue"])
P = np.array([0.5, 0.3, 0.2])
CODE = RNG.choice(3, N, p=P)
SHOWN = np.sort(RNG.integers(0, 20 * 86_400, N)) + 1_700_000_000
SOLD = RNG.random(N) < 0.2
CAME = SHOWN + RNG.integers(60, 5 * 86_400, N)
VALUE = np.round(RNG.uniform(1, 20, N), 2)
IDS = np.array([f"d{k}" for k in range(N)])


def if_sold(cells: Any) -> pl.Series:
    return pl.Series(cells).set(pl.Series(~SOLD), None)


def displays(**more: Any) -> pl.DataFrame:
    own = {"shown_at": SHOWN, "banner": BANNERS[CODE], "country": RNG.choice(["de", "fr"], N)}
    return pl.DataFrame({**own, "sold_at": if_sold(CAME), **more})


def drafted(folder: Path, table: pl.DataFrame, sales: pl.DataFrame | None = None) -> tuple[Draft, dict[str, Any]]:
    table.write_csv(folder / "log.csv")
    if sales is not None:
        sales.write_csv(folder / "sales.csv")
    found = draft(folder / "log.csv", conversions=None if sales is None else folder / "sales.csv")
    text = found.toml(folder)
    (folder / "spec.toml").write_text(text)
    return found, tomllib.loads(text)


def asked(found: Draft, about: str) -> list[str]:
    return [line for line in found.open if about in line]


NAMES = ["probability", "propensity", "prob", "p", "pscore", "split", "weight", "action_prob", "arm_weight", "P(shown)"]


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_of_any_name_are_the_propensity(tmp_path: Path, name: str) -> None:
    _, spec = drafted(tmp_path, displays(**{name: P[CODE]}))
    assert spec["display"]["propensity"] == name
    assert set(spec["context"]["columns"]) == {"country"}
    log = load(tmp_path / "spec.toml")
    assert np.array_equal(log.column("propensity"), P[CODE][np.argsort(SHOWN, kind="stable")])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cells", ["percent", "text", "far", "zero"])
def test_what_cannot_be_it_is_asked_about_and_no_feature(tmp_path: Path, name: str, cells: str) -> None:
    values: Any = {
        "percent": 100 * P[CODE], "text": np.where(CODE > 0, "test", "train"), "far": np.full(N, 0.01),
        "zero": np.where(SHOWN % 2, P[CODE], 0.0),
    }[cells]  # fmt: skip
    found, spec = drafted(tmp_path, displays(**{name: values}))
    assert name not in spec["context"]["columns"]
    assert asked(found, "probability") or asked(found, "the mean of 1/p")


def test_the_chance_of_anything_else_is_no_propensity(tmp_path: Path) -> None:
    found, spec = drafted(tmp_path, displays(p=P[CODE], p_ctr=RNG.uniform(0.01, 0.06, N)))
    assert spec["display"]["propensity"] == "p"
    assert asked(found, "p_ctr")
    assert set(spec["context"]["columns"]) == {"country"}


@pytest.mark.parametrize("key", ["weight", "cost"])
def test_roles_that_names_alone_suggest_are_left_to_the_reader(tmp_path: Path, key: str) -> None:
    role = DISPLAY[key]
    for name in role.words:
        found, _ = drafted(tmp_path, displays(**{name: 1.5}))
        assert f"display.{key}" in found.commented
        assert asked(found, f"only if it is {role.what}")
        told = draft(tmp_path / "log.csv", ask=lambda q, name=name: name if q.key == f"display.{key}" else q.guess)
        (tmp_path / "spec.toml").write_text(told.toml(tmp_path))
        assert set(load(tmp_path / "spec.toml").column(key).tolist()) == {1.5}
        # What breaks the rule of a role has another one.
        assert f"display.{key}" not in drafted(tmp_path, displays(**{name: -1.5}))[0].commented


def test_of_two_values_the_one_in_one_currency(tmp_path: Path) -> None:
    currency = if_sold(RNG.choice(["EUR", "USD", "GBP"], N))
    both = {
        "Event Revenue": if_sold(7 * VALUE),
        "Event Revenue Currency": currency,
        "Event Revenue USD": if_sold(VALUE),
    }
    found, spec = drafted(tmp_path, displays(**both))
    assert spec["conversion"]["value"] == "Event Revenue USD"
    assert asked(found, "'Event Revenue' too")
    log = load(tmp_path / "spec.toml")
    assert np.isclose(sum(log.conversions["value"].to_pylist()), VALUE[SOLD].sum())


def test_mixed_currencies_stop_and_one_does_not(tmp_path: Path) -> None:
    currency = if_sold(RNG.choice(["EUR", "USD"], N))
    found, spec = drafted(tmp_path, displays(revenue=if_sold(VALUE), currency=currency))
    assert found.missing == ("conversion.value",)
    assert "value" not in spec["conversion"]
    assert asked(found, "2 currencies ('currency': EUR, USD): convert them to one")
    found, spec = drafted(tmp_path, displays(revenue=if_sold(VALUE), currency="EUR"))
    assert (found.missing, spec["conversion"]["value"]) == ((), "revenue")
    answered = draft(tmp_path / "log.csv", ask=lambda q: q.guess)
    assert not answered.missing


def test_what_is_no_number_is_no_value_in_silence(tmp_path: Path) -> None:
    found, spec = drafted(tmp_path, displays(revenue=if_sold([f"${value}" for value in VALUE])))
    assert "value" not in spec["conversion"]
    assert asked(found, "are no numbers; without it, each conversion is worth 1")


@pytest.mark.parametrize(
    ("columns", "value"),
    [
        ({"Subtotal": 0.8, "Shipping": 4.9, "Taxes": 0.2, "Total": 1, "Discount Amount": 0.1}, "Total"),
        ({"Order Subtotal Amount": 0.8, "Order Shipping Amount": 4, "Order Total Amount": 1}, "Order Total Amount"),
        ({"Amount": 1, "Amount Refunded": 0.1, "Fee": 0.03}, "Amount"),
        ({"Lineitem price": 0.3, "Price": 1}, "Price"),
        ({"total_visits": 3, "amount": 1}, "amount"),
    ],
)
def test_values_of_orders_as_shops_export_them(tmp_path: Path, columns: dict[str, float], value: str) -> None:
    sales = pl.DataFrame({"display_id": IDS, "Paid at": CAME, **{name: of * VALUE for name, of in columns.items()}})
    own = displays(display_id=IDS, p=P[CODE]).drop("sold_at")
    _, spec = drafted(tmp_path, own, sales.filter(pl.Series(SOLD)))
    assert spec["conversion"]["value"] == value
    log = load(tmp_path / "spec.toml")
    assert np.isclose(sum(log.conversions["value"].to_pylist()), VALUE[SOLD].sum())


@pytest.mark.parametrize(("name", "prefix"), [("order_id", ""), ("Order Number", ""), ("Name", "#")])
def test_one_order_on_several_rows_is_asked_about(tmp_path: Path, name: str, prefix: str) -> None:
    places = np.arange(N)
    for rows, several in ((places // 2, True), (places, False)):
        order = if_sold([f"{prefix}{1000 + k}" for k in rows])
        found, _ = drafted(tmp_path, displays(**{name: order, "Total": if_sold(VALUE)}))
        assert bool(asked(found, "is it one conversion, and which display gets it?")) == several
    drafted(tmp_path, displays(**{name: if_sold([f"{prefix}{k // 2}" for k in places]), "Total": if_sold(VALUE)}))
    answers = {"conversion.deduplicate": "last_click"}
    told = draft(tmp_path / "log.csv", ask=lambda q: answers.get(q.key, q.guess))
    assert tomllib.loads(told.toml(tmp_path))["conversion"]["key"] == [name]


USERS = ["user", "user_id", "visitorId", "customer", "Customer ID", "cookie", "device_id", "user_pseudo_id", "email"]


@pytest.mark.parametrize("name", USERS)
def test_users_are_kept_for_clusters(tmp_path: Path, name: str) -> None:
    users = RNG.integers(1_000, 1_150, N)
    _, spec = drafted(tmp_path, displays(**{name: users}))
    assert spec["keep"] == {"user": name}
    assert set(spec["context"]["columns"]) == {"country"}
    kept = load(tmp_path / "spec.toml").displays["user"].to_pylist()
    assert sorted(map(str, kept)) == sorted(map(str, users))


@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_users_who_keep_their_action_are_asked_about(tmp_path: Path, kept: float) -> None:
    users = RNG.integers(1_000, 1_150, N)
    shown = np.where(RNG.random(N) < kept, users % 3, RNG.integers(0, 3, N))
    found, spec = drafted(tmp_path, displays(banner=BANNERS[shown], user_id=users))
    assert bool(asked(found, "does what you deploy keep the action of a user, too?")) == (kept == 1.0)
    assert not spec.get("deployment")
    (tmp_path / "spec.toml").write_text(found.toml(tmp_path).replace('# keep_for = "user"', 'keep_for = "user"'))
    assert load(tmp_path / "spec.toml").meta.deployment == ({"keep_for": "user"} if kept == 1.0 else {})


def test_what_describes_a_user_is_a_feature_and_one_row_each_is_no_cluster(tmp_path: Path) -> None:
    features = {"user": np.where(CODE > 0, "new", "old"), "user_country": np.where(CODE > 1, "x", "y")}
    _, spec = drafted(tmp_path, displays(**features, device=RNG.choice([f"m{k}" for k in range(40)], N), user_id=IDS))
    assert "keep" not in spec
    assert set(spec["context"]["columns"]) == {"country", *features, "device"}
    assert "id" not in spec["display"]


def test_rows_that_are_events_are_no_displays(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "id": [*IDS[:100], *IDS[:100:9]],
            "ts": [*range(100), *range(200, 212)],
            "event": ["impression"] * 100 + ["purchase"] * 12,
            "ad": [*"ab" * 50, *"ab" * 6],
        }
    )
    found, spec = drafted(tmp_path, table)
    assert not found.missing
    assert spec["source"]["where"] == "event = 'impression'"
    assert spec["conversion"] == {
        "time": "ts",
        "source": {"files": "log.csv", "where": "event = 'purchase'", "display": "id"},
    }
    assert "event" not in spec["context"].get("columns", ())
    log = load(tmp_path / "spec.toml")
    assert (len(log), log.conversions.num_rows) == (100, 12)
    table = table.with_columns(event=table["event"].replace({"impression": "login"}))
    found, spec = drafted(tmp_path, table)
    assert asked(found, "rows are events of 2 kinds ('event': login, purchase), not displays alone: which kind is one?")
    assert "where" not in spec["source"]
    found, _ = drafted(tmp_path, displays(event="impression", action_type=np.where(CODE > 0, "big", "small")))
    assert not asked(found, "rows are events")
    sales = {"display_id": IDS, "at": CAME, "event_name": np.where(SOLD, "purchase", "add_to_cart")}
    found, spec = drafted(tmp_path, displays(display_id=IDS).drop("sold_at"), pl.DataFrame(sales))
    assert spec["conversion"]["source"]["where"] == "event_name = 'purchase'"
    assert load(tmp_path / "spec.toml").conversions.num_rows == SOLD.sum()


def test_slates_and_several_experiments_are_asked_about(tmp_path: Path) -> None:
    slate = displays(request=[f"r{k // 3}" for k in range(N)], position=np.arange(N) % 3)
    found, spec = drafted(tmp_path, slate)
    assert asked(found, "'request': several rows share it")
    assert "request" not in spec["context"]["columns"]
    assert not asked(drafted(tmp_path, displays(request_kind=np.where(CODE > 0, "a", "b")))[0], "several rows share")
    tests = displays(experiment=[f"e{k % 3}" for k in range(N)], variation=np.arange(N) % 2).drop("banner")
    found, spec = drafted(tmp_path, tests)
    assert spec["display"]["action"] == "variation"
    assert asked(found, "rows are of 3 values of 'experiment'")
    assert "experiment" not in spec["context"]["columns"]
    assert not asked(drafted(tmp_path, tests.with_columns(experiment=pl.lit("e1")))[0], "'experiment'")


def ga4() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "event_date": "20240101", "event_timestamp": SHOWN * 10**6, "promotion_name": BANNERS[CODE],
            "event_name": RNG.choice(["view_promotion", "page_view", "purchase"], N),
            "user_pseudo_id": RNG.integers(0, 150, N), "purchase_revenue": if_sold(VALUE),
        }
    )  # fmt: skip


def optimizely() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "timestamp": SHOWN * 1000, "visitor_id": RNG.integers(0, 150, N), "campaign_id": CODE % 2 + 11,
            "experiment_id": CODE % 2 + 1, "variation_id": CODE + 101, "converted": SOLD.astype(int),
        }
    )  # fmt: skip


def braze() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": IDS, "user_id": RNG.integers(0, 150, N), "time": SHOWN, "campaign_id": "c1",
            "message_variation_id": BANNERS[CODE], "timezone": "UTC", "opened_at": if_sold(CAME),
        }
    )  # fmt: skip


def iterable() -> pl.DataFrame:
    emails = [f"u{k}@example.org" for k in RNG.integers(0, 150, N)]
    return pl.DataFrame(
        {
            "messageId": IDS, "email": emails, "createdAt": SHOWN, "templateId": CODE + 4, "clickedAt": if_sold(CAME),
            "unsubscribed": RNG.integers(0, 2, N),
        }
    )  # fmt: skip


GA4 = {"time": "event_timestamp", "action": "promotion_name", "user": "user_pseudo_id"}
EXPORTS: list[tuple[Callable[[], pl.DataFrame], dict[str, Any], str | None, str]] = [
    (ga4, GA4, "user_pseudo_id", "events of 3 kinds"),
    (optimizely, {"time": "timestamp", "action": "variation_id"}, "visitor_id", "are no choices of one another"),
    (braze, {"id": "id", "time": "time", "action": "message_variation_id"}, "user_id", ""),
    (iterable, {"id": "messageId", "time": "createdAt", "action": "templateId"}, "email", ""),
]


@pytest.mark.parametrize(("export", "display", "user", "about"), EXPORTS, ids=[one[0].__name__ for one in EXPORTS])
def test_exports_of_other_tools(
    tmp_path: Path, export: Callable[[], pl.DataFrame], display: dict[str, Any], user: str | None, about: str
) -> None:
    found, spec = drafted(tmp_path, export())
    assert spec["display"] == display
    assert spec["keep"] == {"user": user}
    assert asked(found, about)
    assert not spec["context"].get("columns")
    log = load(tmp_path / "spec.toml")
    without = log.meta.counts.get("conversions_without_display", 0)
    meant = pl.read_csv(tmp_path / "log.csv").filter(event_name="purchase").height if export is ga4 else SOLD.sum()
    assert log.conversions.num_rows + without == meant


DSJSON = {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 1, "EventId": "e", "a": [1, 2], "c": {}}
CRITEO = (
    "timestamp uid campaign conversion conversion_timestamp conversion_id attribution click click_pos click_nb cost "
    "cpo time_since_last_click " + " ".join(f"cat{k}" for k in range(1, 10))
).split()
CLICKS = "\n".join("\t".join([str(k), "", *"1" * 8, *"abcdefghi"]) for k in range(9))
BANDIT = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user_feature_2,user_feature_3,"
    "user-item_affinity_0,user-item_affinity_1"
)


@pytest.mark.parametrize(
    ("name", "text", "dataset"),
    [
        ("log.json", f"{json.dumps(DSJSON)}\n" * 9, "vw_dsjson"),
        ("log.jsonl", f"{json.dumps(DSJSON)}\n" * 9, "vw_dsjson"),
        ("log.txt", "shared | user=a\n0:1.0:0.5 | x\n| y\n\n" * 9, "vw_text"),
        ("log.dat", "1:-1:0.5 | a b\n2:0:.5 |f c:2\n" * 9, "vw_text"),
        ("log.tsv", "\t".join(CRITEO) + "\n" + "\t".join("1" * len(CRITEO)) + "\n", "criteo_attribution"),
        ("log.txt", CLICKS, "criteo_conversion_logs"),
        ("log.csv", BANDIT + "\n0,2019-11-24 00:00:00,1,1,0,0.5,a,b,c,d,0,0\n", "open_bandit"),
    ],
)  # fmt: skip
def test_files_of_a_bundled_format_are_named_so(tmp_path: Path, name: str, text: str, dataset: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(
        SourceError, match=f"in the format of {dataset}, .* evaluate datasets convert {dataset} LOG --path"
    ):
        draft(tmp_path / name)


def test_other_files_of_their_kind_are_drafted(tmp_path: Path) -> None:
    displays(uid=CODE, campaign=CODE).write_ndjson(tmp_path / "log.jsonl")
    assert draft(tmp_path / "log.jsonl").sections["display"]
    (tmp_path / "wide.txt").write_text(CLICKS.translate(str.maketrans("abcdefghi", "123456789")))
    assert draft(tmp_path / "wide.txt").missing  # as wide as clicks of Criteo, and all numbers
    (tmp_path / "log.txt").write_text("time|banner|sold_at\n1:30|a b|\n2:30|c|\n")
    draft(tmp_path / "log.txt")


def test_another_name_of_the_action_is_no_feature(tmp_path: Path) -> None:
    names = np.array(["Summer", "Winter", "Spring"])
    near = names[np.where(np.arange(N) == 5, (CODE + 1) % 3, CODE)]  # of one row another action's
    _, spec = drafted(tmp_path, displays(banner_name=names[CODE], season=near))
    assert spec["display"]["action"] == "banner"
    assert set(spec["context"]["columns"]) == {"country", "season"}
    assert asked(draft(tmp_path / "log.csv"), "'banner_name': it tells on every row which action was shown")


def test_flags_with_gaps_and_flags_of_one_value_are_not_taken_for_conversions(tmp_path: Path) -> None:
    clicked = SOLD.astype(int)
    table = displays(clicked=clicked, conversion=np.zeros(N, int)).drop("sold_at")
    _, spec = drafted(tmp_path, table)
    assert spec["conversion"]["indicator"] == "clicked"
    assert load(tmp_path / "spec.toml").conversions.num_rows == clicked.sum()
    found, _ = drafted(tmp_path, displays(revenue=if_sold(np.ones(N))).drop("sold_at"))
    assert "conversion.time" in found.missing  # gaps are refused in an indicator: the draft would be of no log


def test_times_that_no_row_has_are_asked_about(tmp_path: Path) -> None:
    table = displays(opened_at=pl.Series([None] * N, dtype=pl.String), is_open=np.where(SOLD, "True", "False"))
    found, spec = drafted(tmp_path, table)
    assert spec["conversion"]["time"] == "sold_at"
    assert "is_open" in spec["leakage"]["columns"]
    found, spec = drafted(tmp_path, table.drop("sold_at"))
    assert spec["conversion"]["time"] == "opened_at"
    assert asked(found, "times on 0.0% of its rows")


@pytest.mark.parametrize("repeated", [False, True])
def test_ids_are_said_to_repeat_only_if_they_do(tmp_path: Path, repeated: bool) -> None:
    ids = np.arange(N) // (2 if repeated else 1)
    sales = pl.DataFrame({"display": ids[SOLD], "sold_at": CAME[SOLD]})
    found, _ = drafted(tmp_path, displays(display=ids).drop("sold_at"), sales)
    (said,) = asked(found, "both tables have it")
    assert ("it repeats among the displays" in said) is repeated


def test_objects_are_known_whatever_the_suffix(tmp_path: Path) -> None:
    table = displays(banner=BANNERS[CODE])
    table.write_ndjson(tmp_path / "events.json")
    table.write_ndjson(tmp_path / "events.jsonl")
    found, same = draft(tmp_path / "events.json"), draft(tmp_path / "events.jsonl")
    assert found.toml().replace('format = "jsonl"\n', "").replace("events.json", "events.jsonl") == same.toml()
    (tmp_path / "spec.toml").write_text(found.toml(tmp_path))
    assert len(load(tmp_path / "spec.toml")) == N
    (tmp_path / "array.json").write_text(table.write_json())
    with pytest.raises(SourceError, match=r"array\.json: an array, not JSON lines"):
        draft(tmp_path / "array.json")
