"""Events of other kinds than conversions, however a spec gives them: own columns, own tables, own clocks and rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evaluator.datasets import load, read
from evaluator.errors import LogError, SpecError, UsageError
from evaluator.log import EventKind, Log
from evaluator.log.fingerprint import content_hash
from evaluator.reading.converting import convert
from evaluator.reading.spec import parse_spec
from evaluator.reading.summary import show, validate

DISPLAYS = """\
id,shown,action,sold,clicked,left_after,worth
u,10,a,15,1,,
v,10,b,,0,3,
w,20,a,,1,0,
x,30,b,44,0,,
y,40,a,,1,90,
"""
EVENTS = """\
id,at,kind_value
v,13,1.5
w,20,0.5
w,29,2
y,130,1
"""
HEAD = """\
name = "shop"
title = "Shop"
licence = "none"
[source]
files = "displays.csv"
[time]
unit = "s"
ties = "file"
[display]
time = "shown"
action = "action"
id = "id"
propensity_kind = "uniform"
[conversion]
time = "sold"
[log]
attribution_window = 20
observed_until = 50
"""
CLICK = """\
[outcomes.click]
indicator = "clicked"
immediate = true
attribution_window = 0
"""
LEFT = """\
[outcomes.left]
delay = "left_after"
attribution_window = 100
observed_until = 200
"""
OWN_TABLE = """\
[outcomes.left]
time = "at"
value = "kind_value"
attribution_window = 100
observed_until = "end"
value_max = 2.5
[outcomes.left.source]
files = "events.csv"
display = "id"
"""


def in_folder(folder: Path, *tables: str, displays: str = DISPLAYS, events: str = EVENTS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "displays.csv").write_text(displays)
    (folder / "events.csv").write_text(events)
    (folder / "spec.toml").write_text(HEAD + "".join(tables))
    return folder / "spec.toml"


def test_outcomes_in_columns_of_the_displays(tmp_path: Path) -> None:
    log = load(in_folder(tmp_path, CLICK, LEFT))
    assert log.meta.outcomes == (
        EventKind(name="click", attribution_window=0, observed_until=50, value_max=1.0),
        EventKind(name="left", attribution_window=100, observed_until=200, value_max=1.0),
    )
    assert log.outcomes.to_pydict() == {
        "outcome": ["click", "left", "click", "left", "click", "left"],
        "display_id": [0, 1, 2, 2, 4, 4],
        "time": [10, 13, 20, 20, 40, 130],
        "value": [1.0] * 6,
    }
    # The rewards are what they are without.
    plain = load(in_folder(tmp_path / "plain"))
    assert log.conversions.equals(plain.conversions)
    assert log.displays.equals(plain.displays)
    assert (log.meta.observed_until, log.meta.attribution_window) == (50, 20)
    assert plain.meta.outcomes == ()


def test_an_outcome_in_a_table_of_its_own(tmp_path: Path) -> None:
    log = load(in_folder(tmp_path, OWN_TABLE))
    (left,) = log.meta.outcomes
    assert left == EventKind(name="left", attribution_window=100, observed_until=130, value_max=2.5)
    assert log.outcomes.to_pydict() == {
        "outcome": ["left"] * 4, "display_id": [1, 2, 2, 4], "time": [13, 20, 29, 130], "value": [1.5, 0.5, 2.0, 1.0],
    }  # fmt: skip


def test_window_and_end_are_those_of_the_log_where_an_outcome_says_none(tmp_path: Path) -> None:
    log = load(in_folder(tmp_path, '[outcomes.click]\nindicator = "clicked"\nimmediate = true\n'))
    assert log.meta.outcomes == (
        EventKind(name="click", attribution_window=20, observed_until=50, value_max=1.0),
    )  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_way_gives_the_same_log_to_the_bit(tmp_path: Path, suffix: str) -> None:
    spec = in_folder(tmp_path, CLICK, OWN_TABLE)
    if suffix == "parquet":
        for table in ("displays", "events"):
            pl.read_csv(tmp_path / f"{table}.csv").write_parquet(tmp_path / f"{table}.parquet")
        spec.write_text(spec.read_text().replace(".csv", ".parquet"))
    log, stored = load(spec), convert(spec, tmp_path / "log").log
    assert stored.outcomes.equals(log.outcomes)
    assert stored.meta == log.meta
    assert load(tmp_path / "log").displays.equals(log.displays)
    displays, events = (pl.read_csv(tmp_path / f"{table}.csv") for table in ("displays", "events"))
    framed = Log.from_frames(
        displays, time="shown", action="action", id="id", propensity_kind="uniform", conversion_time="sold", unit="s",
        ties="file", attribution_window=20, observed_until=50, name="shop",
        outcomes={
            "click": {"indicator": "clicked", "immediate": True, "attribution_window": 0},
            "left": {"frame": events, "time": "at", "value": "kind_value", "attribution_window": 100,
                     "observed_until": "end", "value_max": 2.5},
        },
    )  # fmt: skip
    same = {"counts": {}, "fingerprint": ""}
    assert content_hash(framed.with_meta(**same)) == content_hash(log.with_meta(**same))


def test_shuffled_ties_a_limit_and_chosen_actions_keep_events_with_their_displays(tmp_path: Path) -> None:
    n = 200
    rows = [f"d{i},{10 * (i // 20)},{'abc'[i % 3]},,{int(i % 7 == 0)},{i if i % 5 == 0 else ''}," for i in range(n)]
    displays = "id,shown,action,sold,clicked,left_after,worth\n" + "\n".join(rows) + "\n"
    head = HEAD.replace('ties = "file"', 'ties = "shuffle"').replace("= 20\n", "= 900\n").replace("= 50", "= 900")
    events = "id,at,kind_value\n" + "".join(f"d{i},{10 * (i // 20) + i},{1 + i}\n" for i in range(0, n, 5))
    own = OWN_TABLE.replace("left", "bought").replace("value_max = 2.5\n", "").replace("= 100", "= 900")
    spec = in_folder(
        tmp_path, CLICK, LEFT.replace("= 100", "= 900").replace("= 200", "= 900"), own, displays=displays, events=events
    )
    spec.write_text(spec.read_text().replace(HEAD, head))
    wanted: dict[str, Any]
    for wanted in ({}, {"limit": 90}, {"actions": ["b", "c"]}, {"actions": ["b", "c"], "limit": 90}):
        log = load(spec, keep=["id"], **wanted)
        name, of = log.displays["id"].to_pylist(), log.outcomes["display_id"].to_pylist()
        assert (name != sorted(name, key=lambda d: int(d[1:]))) is True  # they were shuffled
        number = {d: int(d[1:]) for d in name}
        for outcome, display, time, value in zip(*log.outcomes.to_pydict().values(), strict=True):
            i = number[name[display]]
            assert {"click": i % 7 == 0, "left": i % 5 == 0, "bought": i % 5 == 0}[outcome]
            assert (time, value) == (10 * (i // 20) + (0 if outcome == "click" else i),
                                     1 + i if outcome == "bought" else 1)  # fmt: skip
        assert of == sorted(of)
        assert len(of) == sum((i % 7 == 0) + 2 * (i % 5 == 0) for i in number.values())


@pytest.mark.parametrize(
    ("tables", "change", "said"),
    [
        (CLICK, ("u,10,a,15,1", "u,10,a,15,2"), r"Column 'clicked': not 0 or 1 \(.*line 2: '2'\); write 1"),
        (LEFT, (",3,", ",-3,"), r"Column 'left_after': event earlier than its display \(.*line 3: '?-3'?\); check the"),
        (LEFT, (",3,", ",soon,"), r"Column 'left_after': not a whole number \(.*line 3: 'soon'\); repair the cell"),
        (LEFT, (",3,", ",101,"), r"Column 'left_after': event later after its display than attribution_window = 100 "
         r"\(.*line 3: '111'\); raise attribution_window in \[outcomes\.left\]"),
        (LEFT, (",3,", ",191,"), r"Column 'left_after': event later than observed_until = 200 \(.*line 3: '201'\); "
         r"raise observed_until in \[outcomes\.left\], or drop the row"),
        (OWN_TABLE, ("1.5", "-1.5"), r"Column 'kind_value': value below 0 \(.*line 2: '-1.5'\); count what"),
        (OWN_TABLE, ("29,2\n", "29,2.25\n"), r"Column 'kind_value': the display has more than value_max = 2\.5, "
         r"all its events together \(.*events\.csv line 4: '2\.75'\); raise value_max in \[outcomes\.left\]"),
        (OWN_TABLE, ("v,13", "q,13"), r"Column 'id': event without display \(.*events\.csv line 2: 'q'\); check "
         r"outcomes\.left\.source\.display"),
    ],
)  # fmt: skip
def test_a_broken_row_is_one_line_or_goes_to_quarantine(
    tmp_path: Path, tables: str, change: tuple[str, str], said: str
) -> None:
    texts = {"displays": DISPLAYS, "events": EVENTS}
    which = "events" if tables == OWN_TABLE else "displays"
    assert change[0] in texts[which]
    texts[which] = texts[which].replace(*change)
    spec = in_folder(tmp_path, tables, **texts)
    with pytest.raises(LogError, match=said):
        load(spec)
    reading = read(spec, on_error="quarantine", quarantine_at_most=1)
    assert reading.quarantine.num_rows == 1
    sound = load(in_folder(tmp_path / "sound", tables))
    assert reading.log.outcomes.num_rows == sound.outcomes.num_rows - (change[0] != "u,10,a,15,1" or 1)
    # A row of the displays goes as a whole, with its conversion; of a second table, the display stays.
    late = "later" in said
    assert len(reading.log) == len(sound) - (which == "displays" and not late)


def test_a_row_that_breaks_a_rule_of_an_outcome_takes_its_conversion_along(tmp_path: Path) -> None:
    broken = in_folder(tmp_path, CLICK, displays=DISPLAYS.replace("x,30,b,44,0", "x,30,b,44,7"))
    log = read(broken, on_error="quarantine", quarantine_at_most=1).log
    assert log.displays["time"].to_pylist() == [10, 10, 20, 40]
    assert log.conversions["display_id"].to_pylist() == [0]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[outcomes.click]\nindicatr = "clicked"\nimmediate = true\n',
         r"unknown key `\$\.outcomes\.click\.indicatr`.*did you mean indicator"),
        ('[outcomes.click]\nindicator = "clicked"\n', r"at `\$\.outcomes\.click`: give exactly one of time, delay and"),
        ('[outcomes."a b"]\nindicator = "clicked"\nimmediate = true\n', r"`\$\.outcomes\.a b`: expected text that"),
        (CLICK + "value = -1.0\n", r"click`: value is below 0: count"),
        ('[outcomes.click]\ntime = "at"\n[outcomes.click.source]\nfiles = "e.csv"\n',
         r"at `\$\.outcomes\.click\.source`: give exactly one of display and user"),
        ('[outcomes.refunds]\nindicator = "clicked"\nimmediate = true\n',
         r"\[outcomes\.refunds\] has a name of what a log has by itself: rename it"),
        ('[context]\ncolumns = ["clicked"]\n' + CLICK, r"'clicked', which is known only after the outcome"),
    ],
)  # fmt: skip
def test_a_spec_that_is_wrong_is_one_line(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        load(in_folder(tmp_path, table))


def test_an_outcome_in_its_own_table_needs_an_id(tmp_path: Path) -> None:
    spec = in_folder(tmp_path, OWN_TABLE)
    spec.write_text(spec.read_text().replace('id = "id"\n', "", 1))
    with pytest.raises(SpecError, match=r"\[outcomes\.left\.source\] joins on display\.id: name that column"):
        load(spec)
    with pytest.raises(UsageError, match=r"`outcomes` are joined to displays by an id\. Hint: name its column: id="):
        Log.from_frames(pl.DataFrame({"t": [1], "a": ["x"], "s": [1]}), time="t", action="a", conversion_time="s",
                        outcomes={"left": {"frame": pl.DataFrame({"at": [1]}), "time": "at"}})  # fmt: skip


def test_messages_on_frames_speak_python() -> None:
    frame = pl.DataFrame({"t": [1, 2], "a": ["x", "y"], "s": [1, None], "late": [None, 9]})
    with pytest.raises(SpecError, match=r"outcomes\['sales'\] has a name of what a log has by itself"):
        Log.from_frames(
            frame, time="t", action="a", conversion_time="s", unit="s", outcomes={"sales": {"time": "late"}}
        )
    said = r"Column 'late': event later after its display than attribution_window = 5 \(displays row 2: '9'\)"
    with pytest.raises(LogError, match=said + r"; raise attribution_window in outcomes\['left'\]\."):
        Log.from_frames(frame, time="t", action="a", conversion_time="s", unit="s",
                        outcomes={"left": {"time": "late", "attribution_window": 5}})  # fmt: skip
    with pytest.raises(SpecError, match=r"unknown key `outcomes\.left\.tme`.*did you mean time"):
        Log.from_frames(frame, time="t", action="a", conversion_time="s", outcomes={"left": {"tme": "late"}})


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"outcomes": "click"}, "`outcomes`: expected roles by name, got 'click'"),
        ({"outcomes": ["click"]}, r"`outcomes`: expected roles by name, got \['click'\]"),
        ({"outcomes": {"click": None}}, "`outcomes`: expected roles of 'click', got None"),
        ({"key": None}, "`key`: expected a list, got None"),
        ({"none": {"s": 5}}, "`none`: expected a list, got 5"),
    ],
)
def test_roles_of_frames_of_the_wrong_kind_are_one_line(roles: dict[str, Any], said: str) -> None:
    frame = pl.DataFrame({"t": [1, 2], "a": ["x", "y"], "s": [1, None]})
    with pytest.raises(UsageError, match=said) as raised:
        Log.from_frames(frame, time="t", action="a", conversion_time="s", unit="s", **roles)
    assert "\n" not in str(raised.value)


def test_an_outcome_may_not_be_kept_to_group_by(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'clicked' is known only after the outcome"):
        load(in_folder(tmp_path, CLICK), keep=["clicked"])


def test_show_and_validate_say_what_outcomes_there_are(tmp_path: Path) -> None:
    spec = in_folder(tmp_path, CLICK, OWN_TABLE)
    facts = show(spec)["log"]["outcomes"]
    assert facts == [
        {"name": "click", "events": 3, "value_per_display": 0.6, "reward": False, "told": False,
         "observed_until": 50, "attribution_window": 0,
         "value_max": 1.0, "delay_quantiles": {"p25": 0, "p50": 0, "p75": 0, "p90": 0, "p99": 0}},
        {"name": "left", "events": 4, "value_per_display": 1.0, "reward": False, "told": False,
         "observed_until": 130, "attribution_window": 100,
         "value_max": 2.5,
         "delay_quantiles": pytest.approx({"p25": 2.25, "p50": 6, "p75": 29.25, "p90": 65.7, "p99": 87.57})},
    ]  # fmt: skip
    assert show(in_folder(tmp_path / "plain"))["log"]["outcomes"] == []
    assert validate(spec)["counts"]["events_of_other_outcomes"] == 7
    convert(spec, tmp_path / "log")
    assert show(tmp_path / "log")["log"]["outcomes"] == facts


def test_the_schema_of_specs_knows_outcomes() -> None:
    spec = {"name": "s", "title": "S", "licence": "none", "source": {"files": "x.csv"}, "time": {"unit": "s"},
            "display": {"time": "t", "action": "a"}, "conversion": {"time": "c"},
            "outcomes": {"click": {"delay": "d", "attribution_window": "7d"}}}  # fmt: skip
    assert parse_spec(spec).model_dump(exclude_defaults=True)["outcomes"] == {
        "click": {"delay": "d", "attribution_window": "7d"}
    }
