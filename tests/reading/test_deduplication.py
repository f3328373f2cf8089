"""Rules on journeys worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.datasets import load
from evaluator.log import Log
from tests.reading.sources import dataset, write_rows

# Journey k1 of user u: rows 0, 2, 4, of which 0 and 2 were clicked; k1 of user v: row 1, clicked, attributed;
# k2 of u: row 3, never clicked. Rows 5 and 6 did not convert.
ROWS = [
    "t,ad,buy,sold,id,user,click,credit,gain",
    "1,a,1,10,k1,u,1,0,6",
    "2,b,1,11,k1,v,1,1,5",
    "3,c,1,10,k1,u,1,0,6",
    "4,a,1,12,k2,u,0,1,4",
    "5,b,1,10,k1,u,0,0,6",
    "6,c,0,,,u,1,0,",
    "7,a,0,,,v,0,0,",
]
CONVERSION = {
    "indicator": "buy", "time": "sold", "key": ["id", "user"], "click": "click", "attributed": "credit",
    "value": "gain",
}  # fmt: skip


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return dataset(tmp_path, ROWS, conversion=CONVERSION)


def rewards(log: Log) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in log.conversions.to_pylist()]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("all", [(0, 10, 6.0), (1, 11, 5.0), (2, 10, 6.0), (3, 12, 4.0), (4, 10, 6.0)]),
        ("last_click", [(1, 11, 5.0), (2, 10, 6.0)]),
        ("first_click", [(0, 10, 6.0), (1, 11, 5.0)]),
        ("share", [(0, 10, 3.0), (1, 11, 5.0), (2, 10, 3.0)]),
    ],
)
def test_rule(spec: Path, rule: str, expected: list[tuple[int, int, float]]) -> None:
    log = load(spec, deduplicate=rule)
    assert rewards(log) == expected
    counts = log.meta.counts
    assert counts["conversion_rows"] == 5
    assert counts["conversions_distinct"] == 3
    assert counts["conversions_shared"] == 1
    assert counts["colliding_ids"] == 1
    assert counts["conversion_rows_deduplicated"] == 5 - len(expected)
    assert counts.get("conversions_without_click", 0) == (0 if rule == "all" else 1)


def test_attributed_only(spec: Path) -> None:
    log = load(spec, attributed_only=True)
    assert rewards(log) == [(1, 11, 5.0), (3, 12, 4.0)]
    assert log.meta.counts["conversion_rows_unattributed"] == 3


def test_ties_in_time_are_broken_by_file_order(tmp_path: Path) -> None:
    rows = [ROWS[0], "1,a,1,9,k,u,1,0,1", "1,b,1,9,k,u,1,0,1", "1,c,0,,,u,0,0,"]
    spec = dataset(tmp_path, rows, time={"ties": "file"}, conversion={**CONVERSION, "deduplicate": "last_click"})
    assert rewards(load(spec)) == [(1, 9, 1.0)]
    assert rewards(load(spec, deduplicate="first_click")) == [(0, 9, 1.0)]


def test_journeys_are_judged_before_actions_are_filtered(spec: Path) -> None:
    # The last click of (k1, u) is on c: without c that conversion is nobody else's.
    log = load(spec, deduplicate="last_click", actions="a,b")
    assert rewards(log) == [(1, 11, 5.0)]


def test_keys_with_separators_in_them_do_not_collide(tmp_path: Path) -> None:
    rows = [ROWS[0], "1,a,1,9,x|y,z,1,0,1", "2,b,1,9,x,y|z,1,0,1"]
    spec = dataset(tmp_path, rows, conversion={**CONVERSION, "deduplicate": "last_click"})
    assert len(rewards(load(spec))) == 2


def two_tables(folder: Path, shown: list[str], events: list[str], rule: str) -> Path:
    write_rows(folder / "events.csv", events)
    source = {"files": "events.csv", "display": "ref"}
    conversion = {**CONVERSION, "indicator": None, "deduplicate": rule, "source": source}
    return dataset(folder, shown, display={"id": "ref"}, conversion=conversion)


# Order k is on three displays, and came back in two parts; the refunds are on the last one, or on all.
REFUNDED = [
    "1,a,1,10,k,u,1,0,6",
    "2,b,1,10,k,u,1,0,6",
    "3,c,1,10,k,u,0,0,6",
    "3,c,1,20,k,u,0,0,-2",
    "3,c,1,30,k,u,0,0,-2",
]
ON_ALL = [*REFUNDED, "1,a,1,20,k,u,1,0,-2", "2,b,1,20,k,u,1,0,-2", "1,a,1,30,k,u,1,0,-2", "2,b,1,30,k,u,1,0,-2"]


@pytest.mark.parametrize("rows", [REFUNDED, ON_ALL], ids=["on the last display", "on every display"])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("last_click", [(1, 10, 6.0), (1, 20, -2.0), (1, 30, -2.0)]),
        ("first_click", [(0, 10, 6.0), (0, 20, -2.0), (0, 30, -2.0)]),
        (
            "share",
            [(0, 10, 3.0), (0, 20, -1.0), (0, 30, -1.0), (1, 10, 3.0), (1, 20, -1.0), (1, 30, -1.0)],
        ),
    ],
)
def test_refunds_go_where_their_sale_went(
    tmp_path: Path, rows: list[str], rule: str, expected: list[tuple[int, int, float]]
) -> None:
    shown = ["t,ad,ref", "1,a,1", "2,b,2", "3,c,3", "4,a,4"]
    events = ["ref,sold,id,user,click,credit,gain", *(f"{r[0]},{r[6:]}" for r in rows)]
    log = load(two_tables(tmp_path, shown, events, rule))
    assert rewards(log) == expected
    assert log.meta.counts["conversions_distinct"] == 1
    assert log.meta.counts["conversions_without_click"] == 0


def test_a_refund_counts_no_more_than_its_sale(tmp_path: Path) -> None:
    shown = ["t,ad,ref", "1,a,1", "2,b,2", "3,c,3", "4,a,4"]
    events = [
        "ref,sold,id,user,click,credit,gain",
        "1,10,k,u,0,0,6", "1,20,k,u,1,0,-6",  # nobody clicked before this sale
        "2,9,l,u,1,0,-3", "3,9,l,u,1,0,-3",  # sold before the log began
        "4,8,m,u,1,0,5", "4,9,m,u,0,0,-5", "4,9,m,u,0,0,-1",
    ]  # fmt: skip
    assert rewards(load(two_tables(tmp_path, shown, events, "last_click"))) == [
        (2, 9, -3.0), (3, 8, 5.0), (3, 9, -5.0), (3, 9, -1.0),
    ]  # fmt: skip
