from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from evaluator.datasets import load
from evaluator.errors import SpecError, UsageError
from tests.reading.sources import dataset

ROWS = ["t,ad,sold,city,age,late,of", "1,x,,Rome,.5,1,a", "2,y,5,,.25,1,b", "3,x,,Oslo,1,0,a", "4,y,,Rome,0,1,b"]
CONTEXT = {"columns": {"city": "category", "age": "number"}, "dimensions": 8}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return dataset(tmp_path, ROWS, context=CONTEXT, leakage={"columns": ["late", "sold"]})


def slot(token: str, p: int) -> tuple[int, int]:
    code = zlib.crc32(token.encode())
    return (code % 2**31) % p, -1 if code >= 2**31 else 1


def test_hashed_categories_numbers_and_intercept(spec: Path) -> None:
    expected = np.zeros((4, 10))
    for row, (city, age) in enumerate([("Rome", 0.5), ("", 0.25), ("Oslo", 1), ("Rome", 0)]):
        at, sign = slot(f"city={city}", 8)
        expected[row, at] = sign
        expected[row, 8:] = age, 1
    context = load(spec).column("context")
    assert context.dtype == np.float32
    np.testing.assert_allclose(context, expected / np.sqrt(3), rtol=1e-6)


def test_tokens_that_share_a_slot_add_up(tmp_path: Path) -> None:
    log = load(dataset(tmp_path, ROWS, context={"columns": ["city", "of"], "dimensions": 1, "intercept": False}))
    signs = [slot(f"city={c}", 1)[1] + slot(f"of={a}", 1)[1] for c, a in [("Rome", "a"), ("", "b")]]
    np.testing.assert_allclose(log.column("context")[:2, 0], np.array(signs) / np.sqrt(2), rtol=1e-6)


def test_one_hot(spec: Path) -> None:
    context = load(spec, features="city,of:one-hot").column("context") * np.sqrt(3)
    # Oslo, Rome, missing; a, b; intercept
    expected = [[0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1], [1, 0, 0, 1, 0, 1], [0, 1, 0, 0, 1, 1]]
    np.testing.assert_allclose(context, expected, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(context / np.sqrt(3), axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("features", "width"),
    [
        (None, 8 + 1 + 1), ("hash=32", 32 + 1 + 1), ("hash:32", 32 + 1 + 1), ("city", 8 + 1), ("city,of:hash=4", 4 + 1),
        ("age:number", 2), ("city,age", 8 + 1 + 1), ("one-hot", 3 + 1 + 1),
    ],
)  # fmt: skip
def test_width(spec: Path, features: str | None, width: int) -> None:
    assert load(spec, features=features).column("context").shape == (4, width)


def test_none(spec: Path) -> None:
    assert "context" not in load(spec, features="none").displays.column_names


def test_numbers_of_the_spec_stay_numbers(spec: Path) -> None:
    np.testing.assert_allclose(
        load(spec, features="age").column("context")[:, 0], np.array([0.5, 0.25, 1, 0]) / np.sqrt(2), rtol=1e-6
    )


@pytest.mark.parametrize("features", ["late", "city,late:hash=4", "sold:number"])
def test_outcomes_are_refused(spec: Path, features: str | None) -> None:
    with pytest.raises(UsageError, match="known only after the outcome"):
        load(spec, features=features)


def test_one_hot_of_many_labels_points_to_hashing(tmp_path: Path) -> None:
    rows = ["t,ad,sold,user", *[f"{i},{'ab'[i % 2]},,{i}" for i in range(257)]]
    with pytest.raises(UsageError, match=r"needs 257 dimensions, above 256.*hash"):
        load(dataset(tmp_path, rows), features="user:one-hot")


def test_vectors_do_not_depend_on_the_other_rows(spec: Path) -> None:
    np.testing.assert_array_equal(load(spec, limit=2).column("context"), load(spec).column("context")[:2])


NAMED = {
    "display": {"id": "id", "propensity": "p", "weight": "w"},
    "conversion": {"indicator": "buy", "time": "sold", "value": "gain", "key": ["order", "user"], "click": "click"},
}
NAMED_ROWS = [
    "id,t,ad,p,w,sold,buy,gain,order,user,click,city",
    "1,1,a,.5,1,3,1,2,o,u,1,Rome",
    "2,2,b,.5,10,,0,,,,0,Oslo",
]


@pytest.mark.parametrize("column", ["id", "t", "ad", "p", "w", "sold", "buy", "gain", "order", "user", "click"])
def test_columns_with_a_role_are_no_features(tmp_path: Path, column: str) -> None:
    path = dataset(tmp_path, NAMED_ROWS, **NAMED)
    with pytest.raises(UsageError, match=f"'{column}' .*no policy may see it"):
        load(path, features=f"city,{column}")
    with pytest.raises(SpecError, match=f"context.columns holds '{column}', which .*no policy may see it"):
        load(dataset(tmp_path, NAMED_ROWS, context={"columns": ["city", column]}, **NAMED))
    may = column in ("t", "gain", "order", "user")
    allowed = dataset(tmp_path, NAMED_ROWS, context={"columns": ["city"], "allow": [column]}, **NAMED) if may else None
    if allowed is None:
        with pytest.raises(SpecError, match=f"allow holds '{column}'.*can be no feature"):
            load(dataset(tmp_path, NAMED_ROWS, context={"columns": ["city"], "allow": [column]}, **NAMED))
    else:
        assert load(allowed, features=f"city,{column}:hash=4").column("context").shape == (2, 5)


def test_what_is_allowed_is_refused_otherwise(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="allow holds 'city', which is a feature like any other"):
        load(dataset(tmp_path, NAMED_ROWS, context={"columns": ["city"], "allow": ["city"]}, **NAMED))
