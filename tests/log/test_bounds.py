"""Bounds that a user names: refused where the log breaks them, and caps that count no more than they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.log.reward_kinds import with_bounds, with_cap
from evaluator.log.schema import to_numpy
from evaluator.reading.canonical import open_canonical, write_canonical
from tests.logs import build_log

OF = [0, 1, 1, 1, 3, 3]
VALUE = [5.0, 3.0, 4.0, 6.0, 20.0, 1.0]


def paid(value: list[float], of: list[int] = OF) -> Log:
    when = [10 + i for i in range(len(of))]
    return build_log(
        time=np.arange(5), action=np.zeros(5), n_actions=2, conversion_display=of, conversion_time=when,
        conversion_value=value, reward_max=None,
    )  # fmt: skip


def values(log: Log) -> list[float]:
    return to_numpy(log.conversions["value"]).tolist()


def test_conversions_count_in_their_order_until_the_cap_is_reached(tmp_path: Path) -> None:
    log, found = with_cap(paid(VALUE), 6.0)
    assert values(log) == [5.0, 3.0, 3.0, 0.0, 6.0, 0.0]
    assert log.meta.reward_max == 6.0
    assert (found.displays, found.left_out, found.share) == (2, 22.0, 22.0 / 39.0)
    write_canonical(paid(VALUE), tmp_path)
    stored, again = with_cap(open_canonical(tmp_path), 6.0)
    assert (values(stored), again) == (values(log), found)
    assert len(stored.checked()) == 5


def test_a_cap_that_nothing_reaches_changes_no_value() -> None:
    log, found = with_cap(paid(VALUE), 21.0)
    assert values(log) == VALUE
    assert (found.displays, found.left_out) == (0, 0.0)
    none, nothing = with_cap(paid([], []), 1.0)
    assert (values(none), nothing.share) == ([], 0.0)


def test_no_display_earns_more_than_the_cap_not_even_by_rounding() -> None:
    rng = np.random.default_rng(1)
    of = np.sort(rng.integers(0, 5, 400)).tolist()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        log, _ = with_cap(paid((rng.random(400) * 3.3).tolist(), of), 0.7)
        assert (np.bincount(of, values(log)) <= 0.7).all()
        first = np.flatnonzero(np.diff(of, prepend=-1))
        assert (np.add.reduceat(values(log), first) <= 0.7).all()


def test_refunds_count_too() -> None:
    log, _ = with_cap(paid([9.0, -4.0], [1, 1]), 6.0)
    assert sum(values(log)) == pytest.approx(5.0)


def test_bounds_that_the_log_breaks_are_refused() -> None:
    said = with_bounds(paid(VALUE), least=-4.0, most=21.0).meta
    assert (said.reward_min, said.reward_max) == (-4.0, 21.0)
    with pytest.raises(ParameterError, match=r"`reward_max=20`: 1 displays .* earn more \(display 3: 21\)"):
        with_bounds(paid(VALUE), most=20.0)
    # What a display has earned at some time counts, whatever comes later.
    refunded = paid([2.0, -4.0, 3.0], [1, 1, 1])
    assert with_bounds(refunded, least=-2.0).meta.reward_min == -2.0
    with pytest.raises(ParameterError, match=r"`reward_min=-1.9`: 1 displays .* earn less \(display 1: -2\)"):
        with_bounds(refunded, least=-1.9)
