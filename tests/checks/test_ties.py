"""Order within ties: exact moments, whatever the batches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from evaluator import check
from evaluator.checks.counters import TieSums
from tests.checks.shops import DAY, shop


def added(time: np.ndarray, action: np.ndarray, values: np.ndarray, cuts: Sequence[int] = ()) -> TieSums:
    ties = TieSums(int(np.max(action)) + 1, len(values))
    for part in np.split(np.arange(len(time)), cuts):
        if len(part):
            ties.add(time[part], action[part], values[:, part])
    ties.finish()
    return ties


def test_moments_are_those_over_all_orders() -> None:
    action, value = np.array([0, 0, 1, 2, 1, 0]), np.array([[0.0, 1, 1, 0, 4, 2]])
    found = []
    for order in itertools.permutations(range(6)):
        at = list(order)
        t = added(np.zeros(6, np.int64), action[at], value[:, at])
        found.append((t.repeats, *t.shift, *t.value_shift))
    mean, variance = np.mean(found, axis=0), np.var(found, axis=0)
    np.testing.assert_allclose(mean, [t.usual, 0, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(variance, [t.repeats_variance, *t.shift_variance, *t.value_variance])
    # Places run from -5/12 to 5/12; being action 0 has mean 1/2 in the group.
    assert t.places == pytest.approx(2 * (1 + 9 + 25) / 144)
    assert t.varied.tolist() == pytest.approx([1.5, 2 * 2 / 3, 5 / 6])


@pytest.mark.parametrize("span", [3, 40, 4000])
def test_sums_do_not_depend_on_batches(span: int) -> None:
    rng = np.random.default_rng(span)
    n = 600
    time, action = np.sort(rng.integers(0, span, n)), rng.integers(0, 7, n)
    values = rng.integers(0, 5, (2, n)).astype(float)
    whole = added(time, action, values)
    for cuts in ([1, 2, 599], [300], np.arange(1, n), np.arange(97, n, 97)):
        parts = added(time, action, values, cuts)
        for name in ("tied", "crowd", "pairs", "repeats", "usual", "repeats_variance", "places", "shift",
                     "shift_variance", "varied", "value_shift", "value_variance", "value_varied"):  # fmt: skip
            np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-9, atol=1e-9, err_msg=name)
    sizes = np.bincount(time)
    assert whole.tied == sizes[sizes > 1].sum()
    assert whole.crowd == (sizes[sizes > 1] ** 2).sum()


def test_more_actions_than_a_table_holds_are_counted_alike() -> None:
    rng = np.random.default_rng(0)
    time, action = np.sort(rng.integers(0, 200, 600)), rng.integers(0, 7, 600)
    few = added(time, action, np.zeros((0, 600)))
    many = added(time, np.append(action[:-1], 5000), np.zeros((0, 600)))
    assert few.varied[:6] == pytest.approx(many.varied[:6], abs=1.0)
    assert many.shift[4:7] == pytest.approx(few.shift[4:7], abs=1.0)
    assert many.varied[5000] == pytest.approx(1 - 1 / (time == time[-1]).sum())


def test_z_is_standard_normal_when_chance_orders() -> None:
    rng, z = np.random.default_rng(1), []
    action = np.repeat(np.arange(4), [400, 300, 200, 100])
    time = np.repeat(np.arange(40), 25)
    for _ in range(400):
        t = added(time, rng.permutation(action), np.zeros((0, 1000)))
        z.append([(t.repeats - t.usual) / np.sqrt(t.repeats_variance), *(t.shift / np.sqrt(t.shift_variance))])
    assert np.all(np.abs(np.mean(z, axis=0)) < 4 / np.sqrt(400))
    assert np.all(np.abs(np.std(z, axis=0) - 1) < 4 * np.sqrt(1 / 800))


def test_the_finding_says_what_is_in_order() -> None:
    made = shop(1, n=20_000)
    by_action = check(made.stamped(DAY, made.action).log())["order within ties"]
    assert by_action.verdict == "fail"
    assert by_action.effect == pytest.approx(1.0, abs=0.01)
    assert by_action.numbers["where"] == "action: equal ones side by side"
    by_context = check(made.stamped(DAY, -made.context[:, 1]).log())["order within ties"]
    assert (by_context.verdict, by_context.numbers["where"]) == ("warn", "context[1]: large values first")
    # Chance orders them: what the advice does.
    shuffled = made.stamped(DAY, np.random.default_rng(1).random(len(made.time)))
    assert check(shuffled.log())["order within ties"].verdict == "pass"
    assert check(made.log())["order within ties"].number.endswith("of the displays share their time")
