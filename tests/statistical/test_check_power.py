"""What `evaluate check` says that a log could have shown is found about as often as it says, and half of it is not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evaluator import check
from evaluator.checks.result import FOUND
from evaluator.log import Log
from tests.checks.shops import DAY, HOUR
from tests.logs import build_log

N, RATES, RUNS = 20_000, np.linspace(0.05, 0.15, 4), 12
MIDDLE = 2  # the third action of four is the one in the middle that the sentences speak of


def planted(seed: int, check_name: str, size: float) -> Log:
    """Return a log of ten days with a defect of a size, in the unit of the sentence; 0 or 1 for none."""
    rng = np.random.default_rng(seed)
    k, p = len(RATES), np.full(len(RATES), 0.25)
    if check_name == "uniformity":
        p = np.full(k, (1 - size / k) / (k - 1))
        p[MIDDLE] = size / k
    time, x = np.sort(rng.integers(0, 10 * DAY, N)), rng.normal(size=(N, 3)).astype(np.float32)
    action = rng.choice(k, N, p=p)
    half = np.where(time >= 5 * DAY, 1.0, -1.0)
    theta = RATES[action]
    if check_name == "drift of conversion rates":
        theta = theta * (1 + half * (size - 1) / (size + 1))
    if check_name == "rates by action":
        odds = theta / (1 - theta) * np.where(action == MIDDLE, size ** (half / 2), 1.0)
        theta = odds / (1 + odds)
    converts = rng.random(N) < theta
    if check_name == "vectors without conversions":
        robot = rng.random(N) < size
        x[robot], converts[robot] = 0.25, False
    rows, paid = np.arange(N), np.flatnonzero(converts)
    if check_name == "near copies":
        copied = rng.choice(N, round(size * N), replace=False)
        time = np.concatenate((time, time[copied] + rng.integers(1, 9, len(copied))))
        order = np.argsort(time, kind="stable")
        rows, time = np.concatenate((rows, copied))[order], time[order]
        paid = np.sort(np.argsort(order)[paid])
    when = time[paid] + rng.exponential(HOUR, len(paid)).astype(int)
    return build_log(time=time, action=action[rows], n_actions=k, context=x[rows], tick="s",
                     conversion_display=paid, conversion_time=when)  # fmt: skip


@pytest.mark.parametrize(
    "name", ["uniformity", "drift of conversion rates", "rates by action", "near copies", "vectors without conversions"]
)
def test_what_would_have_been_seen_is_seen(name: str) -> None:
    said = check(planted(0, name, 0.0 if name in ("near copies", "vectors without conversions") else 1.0))[name].shows
    size = float(re.search(r"\d+\.\d+", said)[0]) / (100 if "%" in said else 1)
    half = size / 2 if "%" in said else np.sqrt(size)
    found = [
        [check(planted(100 + seed, name, of), seed=seed)[name].verdict != "pass" for seed in range(RUNS)]
        for of in (size, half)
    ]
    # With a chance of `FOUND` fewer than 3 of 12 come once in 52 times; four standard errors would ask nothing.
    assert np.sum(found[0]) >= 3
    assert np.mean(found[1]) < FOUND
