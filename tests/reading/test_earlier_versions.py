"""Folders of earlier versions open to the same log, and give the same numbers, as what is written now."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from evaluator import load, replay
from evaluator.datasets import convert
from evaluator.errors import SourceError
from evaluator.log import Log
from evaluator.log.fingerprint import content_hash
from evaluator.log.log_tables import mark_kind
from evaluator.reading.canonical import write_canonical
from evaluator.reading.log_folders import EVENTS, META, OUTCOMES, SCHEMA_VERSION, _checksum, read_meta
from tests.logs import build_log, with_outcome
from tests.reading.earlier import rewrite
from tests.reading.parted import write_parts

N = 3_000


def made(*, rewards: bool) -> Log:
    """A log with refunds, and clicks whose times tie with those of conversions."""
    rng = np.random.default_rng(3)
    action, time = rng.integers(0, 3, N), np.arange(N)
    sold = np.flatnonzero(rng.random(N) < 0.2)
    log = build_log(
        time=time, action=action, n_actions=3, conversion_display=sold, conversion_time=time[sold] + 5,
        conversion_value=np.where(rng.random(len(sold)) < 0.1, -1.0, 1.0), attribution_window=10,
        observed_until=N + 20, reward_max=1.0, reward_min=-1.0,
    )  # fmt: skip
    log = with_outcome(log, "click", sold, time[sold] + 5, observed_until=N + 20, attribution_window=10, value_max=1.0)
    back = {"reward": True, "told": True, "value_min": -1.0, "value_max": 0.0} if rewards else {"value_max": 1.0}
    worth = np.full(len(sold[::7]), -0.5 if rewards else 0.5)
    return with_outcome(
        log, "damaged", sold[::7], time[sold[::7]] + 9, worth, observed_until=N + 20, attribution_window=10, **back
    ).validated()


@pytest.mark.parametrize("version", [4, 5, 6])
def test_an_earlier_version_is_the_same_log(tmp_path: Path, version: int) -> None:
    log = made(rewards=version == 6)
    folder = tmp_path / "old"
    if version == 5:
        write_parts(log, folder, [N // 2])
    else:
        folder.mkdir()
        write_canonical(log, folder)
    assert read_meta(folder).version == SCHEMA_VERSION == 8
    new = load(folder)
    rewrite(folder, version)
    assert not (folder / EVENTS).exists()
    old = load(folder)
    for other in (new, old):
        assert other.events.equals(log.events)
        assert (other.conversions.equals(log.conversions), other.outcomes.equals(log.outcomes)) == (True, True)
        assert other.meta.outcomes == log.meta.outcomes
        assert other.meta.conversions == log.meta.conversions
        # Nor does the hash by which results are kept change.
        assert content_hash(other) == content_hash(log.with_meta(fingerprint=other.meta.fingerprint))
    assert old.meta == new.meta
    results = [replay(one, "ucb1", window=8, guardrails=["click < +50%"]).to_dict() for one in (log, new, old)]
    for one in results:
        one["plan"].pop("fingerprint")
    assert results[0] == results[1] == results[2]
    again = convert(folder, tmp_path / "again").log
    assert again.meta == new.meta
    assert again.events.equals(log.events)
    assert load(folder, actions="top:2").events.equals(load(tmp_path / "again", actions="top:2").events)


def test_a_log_of_conversions_alone_has_no_column_of_kinds(tmp_path: Path) -> None:
    log = made(rewards=False).without_outcomes().validated()
    (tmp_path / "log").mkdir()
    write_canonical(log, tmp_path / "log")
    assert pq.read_schema(tmp_path / "log" / EVENTS).names == ["display_id", "time", "value"]
    assert log.conversions is log.events
    found = load(rewrite(tmp_path / "log", 4))
    assert not (tmp_path / "log" / OUTCOMES).exists()
    assert found.events.equals(log.events)
    assert found.conversions is found.events


def test_kinds_are_a_byte_an_event_and_in_no_order_of_the_file(tmp_path: Path) -> None:
    log = made(rewards=False)
    (tmp_path / "log").mkdir()
    write_canonical(log, tmp_path / "log")
    assert log.events["kind"].nbytes < log.events.num_rows + 100
    found = load(tmp_path / "log").events
    for name in ("", "click", "damaged", "unknown"):
        np.testing.assert_array_equal(mark_kind(found, name), mark_kind(log.events, name))


def test_kinds_begin_with_the_conversions(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    write_canonical(made(rewards=False), tmp_path / "log")
    said = json.loads((tmp_path / "log" / META).read_text())
    assert [kind["name"] for kind in said["kinds"]] == ["", "click", "damaged"]
    assert not {"outcomes", "observed_until", "reward_max"} & set(said)
    said["kinds"].reverse()
    del said["checksum"]
    (tmp_path / "log" / META).write_text(json.dumps({**said, "checksum": _checksum(said)}))
    with pytest.raises(SourceError, match="kinds: expected the conversions first, got 'damaged'"):
        load(tmp_path / "log")
