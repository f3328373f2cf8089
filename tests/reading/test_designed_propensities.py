"""Propensities that a spec states instead of naming a column: one number, or each action's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from evaluator import Log, datasets, load
from evaluator.errors import PropensityError, SpecError
from tests.reading.sources import write_spec
from tests.reading.test_formats_agree import everything

SPLIT = {"a": 0.4, "b": 0.3, "c": 0.3}
N = 3_000
ROLES: dict[str, Any] = {
    "time": "t", "action": "ad", "indicator": "sold", "immediate": True, "observed_until": "complete", "unit": "round",
}  # fmt: skip


def frame(**more: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    shown = rng.choice(list(SPLIT), N, p=list(SPLIT.values()))
    return pl.DataFrame({"t": np.arange(N), "ad": shown, "sold": (rng.random(N) < 0.2).astype(int), **more})


def made(table: pl.DataFrame, **roles: Any) -> Log:
    return Log.from_frames(table, **ROLES, **roles)


def test_a_stated_split_is_the_column_that_says_the_same(tmp_path: Path) -> None:
    table = frame()
    stated = made(table, propensity=SPLIT)
    column = made(table.with_columns(p=pl.col("ad").replace_strict(SPLIT)), propensity="p")
    assert stated.meta.propensity == "logged"
    assert stated.displays.equals(column.displays)
    assert stated.meta.notes == ("Propensities are those that the spec states, by design: a 0.4, b 0.3, c 0.3.",)
    # The same from a file, and from its converted form.
    table.write_csv(tmp_path / "log.csv")
    spec = write_spec(
        tmp_path, source={"files": "log.csv"}, time={"unit": "round"}, log={"observed_until": "complete"},
        display={"time": "t", "action": "ad", "propensity": SPLIT}, conversion={"indicator": "sold", "immediate": True,
        "time": None, "value": 1.0},
    )  # fmt: skip
    assert load(spec).displays.equals(stated.displays)
    datasets.convert(spec, tmp_path / "converted")
    assert everything(load(tmp_path / "converted"))[0] == everything(stated)[0]


def test_chosen_actions_share_what_the_design_gives_them() -> None:
    log = Log.from_frames(frame(), **ROLES, propensity=SPLIT, actions=["a", "b"])
    assert np.allclose(np.unique(log.column("propensity")), [3 / 7, 4 / 7])


def test_actions_that_are_numbers_are_named_by_them() -> None:
    table = frame().with_columns(ad=pl.col("ad").replace_strict({"a": 7, "b": 8, "c": 9}))
    log = made(table, propensity={7: 0.4, 8: 0.3, 9: 0.3})
    assert np.array_equal(log.column("propensity"), made(frame(), propensity=SPLIT).column("propensity"))


def test_one_number_is_that_of_every_action() -> None:
    assert set(made(frame(), propensity=1 / 3).column("propensity")) == {1 / 3}
    assert set(made(frame(), propensity=0.333).column("propensity")) == {0.333}  # rounded: a third all the same


@pytest.mark.parametrize("way", ["lists", "calendar"])
def test_where_displays_have_sets_they_stand_in_these_proportions(way: str) -> None:
    rng = np.random.default_rng(1)
    later = np.arange(N) >= N // 2  # from half time on, without b
    odds = np.array([[0.4, 0.3, 0.3]]) * np.where(later[:, None], [[1, 0, 1]], [[1, 1, 1]])
    p = odds / odds.sum(axis=1, keepdims=True)
    code = (p.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)
    table = frame().with_columns(ad=pl.Series(np.array(list("abc"))[code]))
    if way == "lists":
        table = table.with_columns(could=pl.Series(np.where(later, "a|c", "a|b|c")))
        log = made(table, propensity=SPLIT, eligible="could", eligible_separator="|")
    else:
        flights = pl.DataFrame({"ad": ["a", "b", "c"], "until": [None, N // 2, None]})
        log = made(table, propensity=SPLIT, calendar=flights, calendar_until="until")
    assert np.allclose(log.column("propensity"), p[np.arange(N), code])
    # Right propensities give each action back the displays at which it was eligible.
    shown = log.column("action") == 2
    error = np.sqrt(np.sum(shown * (1 / log.column("propensity")) ** 2))
    assert abs(np.sum(shown / log.column("propensity")) - N) < 4 * error


@pytest.mark.parametrize(
    ("propensity", "error", "said"),
    [
        ({"a": 0.4, "b": 0.3, "C": 0.3}, PropensityError, "gives action 'c' none.*known: C, a, b"),
        ({"a": 0.4, "b": 0.3, "c": 0.2}, SpecError, "propensities sum to 0.9, not to 1"),
        ({"a": 0.4, "b": 0.2, "c": 0.2, "d": 0.2}, PropensityError, "sum to 0.8, yet all 3,000 displays show one"),
        ({"a": 40, "b": 30, "c": 30}, SpecError, r"propensity 40 of 'a' is no probability in \(0, 1\]"),
        (0.25, PropensityError, "the 3 actions that were shown sum to 0.75"),
        (0.5, PropensityError, "the 3 actions that were shown sum to 1.5, not to 1"),
        (0, SpecError, "propensity 0 is no probability"),
        (True, SpecError, "`propensity`: expected"),
    ],
)
def test_a_design_that_cannot_be_is_refused(propensity: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        made(frame(), propensity=propensity)
    assert "\n" not in str(caught.value)


def test_an_action_that_is_rare_may_be_missing_from_the_displays() -> None:
    rare = {"a": 0.4, "b": 0.3, "c": 0.299, "d": 0.001}
    assert made(frame(), propensity=rare).n_actions == 3


def test_one_number_is_refused_where_sets_differ() -> None:
    with pytest.raises(SpecError, match=r"is one number, and display\.eligible|is one number, and eligible"):
        made(frame(could="a|b|c"), propensity=1 / 3, eligible="could", eligible_separator="|")
