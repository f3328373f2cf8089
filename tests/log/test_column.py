"""Columns of a log as groups of displays: values, clusters, crossed columns; the same from memory and from disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.log.column import Column, read_clusters, read_groups, read_values, source_columns
from evaluator.reading.canonical import open_canonical, write_canonical
from evaluator.replays.options import ReplayOptions
from tests.logs import build_log

TIME = np.array([0, 10, 80_000, 86_400, 90_000, 260_000])


def timed(**columns: list[str | None]) -> Log:
    log = build_log(time=TIME, action=[0, 1, 0, 1, 0, 1], n_actions=2, tick="s")
    displays = log.displays
    for name, values in columns.items():
        displays = displays.append_column(name, pa.array(values, pa.string()))
    return replace(log, displays=displays)


def test_clusters_are_numbered_and_the_unnamed_stand_alone(tmp_path: Path) -> None:
    log = timed(user=["zoe", None, "ann", "zoe", None, "ann"])
    found = read_clusters(log, "user")
    assert found.code.tolist() == [0, 2, 1, 0, 3, 1]
    assert (found.count, found.unnamed) == (4, 2)
    write_canonical(log, tmp_path)
    assert read_clusters(open_canonical(tmp_path), "user").code.tolist() == found.code.tolist()


def test_an_empty_text_is_a_value_and_no_value_is_none() -> None:
    found = read_clusters(timed(user=["", None, "", "a", None, ""]), "user")
    assert (found.count, found.unnamed) == (4, 2)
    assert len(set(found.code[[0, 2, 5]].tolist())) == 1


@pytest.mark.parametrize("by", ["every:1d", "every:24h", "every:86400s"])
def test_parts_of_the_clock_are_cut_at_whole_multiples(by: str) -> None:
    assert read_clusters(timed(), by).code.tolist() == [0, 0, 0, 1, 1, 2]


def test_parts_of_a_log_that_counts_rounds_are_named_in_rounds() -> None:
    log = build_log(time=np.arange(10), action=np.zeros(10), n_actions=2)
    assert read_clusters(log, "every:4").code.tolist() == [0] * 4 + [1] * 4 + [2] * 2


@pytest.mark.parametrize(
    ("log", "by", "words"),
    [
        (timed(user=["a"] * 6), "usr", "keeps no column 'usr' .it keeps user."),
        (timed(), "day", "keeps none|it keeps none"),
        (timed(), "every:5000", "has times"),
        (timed(), "every:week", "week"),
        (timed(), "every:0d", "out of range"),
        (build_log(time=[0, 1], action=[0, 1], n_actions=2), "every:1d", "counts rounds"),
        (build_log(time=[0, 1], action=[0, 1], n_actions=2), "every:0", "counts rounds"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(log: Log, by: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        read_clusters(log, by)


def test_a_column_called_like_a_part_of_the_clock_is_not_taken_for_it() -> None:
    with pytest.raises(ParameterError, match="a column of that name"):
        read_clusters(timed(**{"every:1d": ["a"] * 6}), "every:1d")


def test_only_columns_are_asked_of_a_source() -> None:
    assert [source_columns(by) for by in (None, "user", "every:1d")] == [[], ["user"], []]


def test_crossed_columns_are_clusters_and_the_clock_can_be_crossed() -> None:
    log = timed(user=["zoe", None, "ann", "zoe", "zoe", "ann"], shop=["a", "a", "a", "b", "a", None])
    found = read_clusters(log, "user + shop")
    assert (found.by, found.code.tolist()) == ("user+shop", [0, 4 - 1, 1, 2, 0, 4])
    assert (found.count, found.unnamed) == (5, 2)
    assert read_clusters(log, "user+every:1d").code.tolist() == [0, 4, 1, 2, 2, 3]
    assert source_columns("user + every:1d + shop") == ["user + shop"]


@pytest.mark.parametrize("stored", [False, True])
def test_crossed_columns_have_a_group_for_each_pair(tmp_path: Path, stored: bool) -> None:
    """Every display is in the group of its pair, whichever it is; the pairs that are too few are pooled."""
    rng, n = np.random.default_rng(0), 4000
    device, country = rng.choice(["phone", "tv"], n, p=[0.8, 0.2]), rng.choice(["de", "fr", None], n, p=[0.6, 0.3, 0.1])
    log = build_log(time=np.arange(n), action=np.zeros(n), n_actions=2)
    shown = {"device": pa.array(device), "country": pa.array(country, pa.string()), "age": pa.array(np.arange(n) % 100)}
    for name, values in shown.items():
        log = replace(log, displays=log.displays.append_column(name, values))
    if stored:
        write_canonical(log, tmp_path)
        log = open_canonical(tmp_path)
    (found,) = read_groups(log, "device+country")
    assert found.by == "device+country"
    named = ("phone + de", "phone + fr", "phone + (missing)", "tv + de", "tv + fr")
    assert found.labels == (*named, "other (1 group)")
    pairs = [f"{d} + {c or '(missing)'}" for d, c in zip(device, country, strict=True)]
    assert [found.labels[g] for g in found.code] == [p if p in named else "other (1 group)" for p in pairs]
    alone, both, numbers = read_groups(log, "device, country+device, device+age")
    assert alone.labels == ("phone", "tv")
    assert both.labels[:2] == ("de + phone", "de + tv")
    assert numbers.labels[:2] == ("phone + 0 to 24", "phone + 25 to 49")
    once = read_groups(log, "device, country+device, device+device, device + country")
    assert [column.by for column in once] == ["device", "country+device"]
    by = read_values(log, ["device+country", "action+device"], np.arange(n))
    assert [by[0].labels[g] for g in by[0].code] == pairs
    assert set(by[1].labels) == {"a0 + phone", "a0 + tv"}


def test_a_column_whose_name_has_a_plus_sign_is_that_column() -> None:
    log = timed(**{"a+b": list("xxyyxy"), "a": ["1"] * 6, "b": ["2"] * 6})
    assert read_clusters(log, "a+b").code.tolist() == [0, 0, 1, 1, 0, 1]
    assert read_clusters(log, "b+a").count == 1
    with pytest.raises(ParameterError, match="crosses an empty column"):
        read_clusters(log, "a+c+")
    for by in ("a+b+a", "a + a+b"):
        assert read_clusters(log, by).count == 2, "a column with a plus sign can be crossed"
    assert source_columns("a+b + every:1d") == ["a+b"]
    with pytest.raises(ParameterError, match=r"keeps no column 'c' .it keeps a\+b, a, b"):
        read_clusters(log, "a+c")


@pytest.mark.parametrize("read", [lambda log: read_groups(log, "one+other")[0],
                                  lambda log: read_values(log, ["one+other"], np.arange(len(log)))[0]])  # fmt: skip
def test_pairs_whose_values_read_alike_are_two_groups(read: Callable[[Log], Column]) -> None:
    n = 600
    log = build_log(time=np.arange(n), action=np.zeros(n), n_actions=2)
    pairs = [("a + b", "c"), ("a", "b + c"), ("'a", "b'")]
    for name, values in zip(("one", "other"), zip(*pairs, strict=True), strict=True):
        log = replace(log, displays=log.displays.append_column(name, pa.array([*values] * (n // 3))))
    found = read(log)
    assert len(found.labels) == 3
    assert [found.labels[g] for g in found.code[:3]] == ["""'a + b' + c""", """a + 'b + c'""", """'a + b'"""]


@pytest.mark.parametrize("stored", [False, True])
def test_parts_of_the_clock_are_named_groups(tmp_path: Path, stored: bool) -> None:
    """A display is in the part in which it was shown, and a label says when its part begins."""
    n, start = 1_000, 1_767_225_600  # 2026-01-01
    time = start + np.sort(np.random.default_rng(1).integers(3_600, 3 * 86_400, n))
    log = build_log(time=time, action=np.zeros(n), n_actions=2, tick="s")
    log = replace(log, displays=log.displays.append_column("shop", pa.array(["a", "b"] * (n // 2))))
    if stored:
        write_canonical(log, tmp_path)
        log = open_canonical(tmp_path)
    days, crossed = read_groups(log, "every:1d, every:1d+shop")
    assert days.labels == tuple(f"from 2026-01-0{day} 00:00" for day in (1, 2, 3))
    assert days.code.tolist() == ((time - start) // 86_400).tolist()
    assert crossed.labels == ("other (6 groups)",)
    rounds = build_log(time=np.arange(n), action=np.zeros(n), n_actions=2)
    assert read_groups(rounds, "every:400")[0].labels == ("from round 0", "from round 400", "from round 800")
    with pytest.raises(ParameterError, match="`by='every:1d'`: log 'test' counts rounds"):
        read_groups(rounds, "every:1d")
    assert ReplayOptions(by="shop,every:1d,every:1d+shop", cluster_by="user+every:1d").keeps == ["user", "shop"]
