"""One tiny propensity decides how many displays are accepted: the advice names it, and mends the very log."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, replay
from evaluator.errors import NoRoundsError

N = 8_000


def log_of(p: np.ndarray, *, context: bool = False, seed: int = 1) -> Log:
    rng = np.random.default_rng(seed)
    at, action, sold = np.arange(N), rng.choice(2, N), rng.random(N) < 0.1
    table = {"t": at, "ad": action, "p": p, "sold": pa.array(at + 5, mask=~sold)}
    named = {"context": ["x"]} if context else {}
    if context:
        table["x"] = rng.standard_normal(N)
    return Log.from_frames(
        pa.table(table), time="t", action="ad", propensity="p", conversion_time="sold", unit="s",
        attribution_window=10, **named,
    )  # fmt: skip


def with_tiny(p: float) -> np.ndarray:
    propensity = np.full(N, 0.5)
    propensity[777] = p
    return propensity


def quantile_in(advice: str) -> float:
    found = re.search(r"`accept_quantile=([\d.]+)`, which accepts about ([\d,]+)", advice)
    assert found is not None, advice
    return float(found[1])


@pytest.mark.parametrize(("policy", "context"), [("thompson", False), ("linucb", True), ("random", False)])
def test_the_advice_names_the_display_and_gives_the_rounds_that_it_promises(policy: str, context: bool) -> None:
    log = log_of(with_tiny(1e-4), context=context)
    said = [line for line in replay(log, policy, window=50).warnings if "accept_quantile" in line]
    assert said[0].startswith("The smallest propensity, 0.0001 (display 777, action ")
    assert not any("longer log" in line for line in said)
    mended = replay(log, policy, window=50, accept_quantile=quantile_in(said[0]))
    promised = int(re.search(r"accepts about ([\d,]+)", said[0])[1].replace(",", ""))  # type: ignore[index]
    assert abs(mended.rounds - promised) < 0.05 * promised
    assert not any("decides how many displays are accepted" in line for line in mended.warnings)


def test_where_no_round_is_left_the_error_names_the_display() -> None:
    with pytest.raises(NoRoundsError, match=r"1e-09 \(display 777") as caught:
        replay(log_of(with_tiny(1e-9), context=True), "linucb", window=50)
    assert replay(
        log_of(with_tiny(1e-9), context=True), "linucb", window=50, accept_quantile=quantile_in(str(caught.value))
    ).rounds > 0.4 * N  # fmt: skip


def test_a_log_whose_displays_share_the_smallness_is_not_blamed_on_one() -> None:
    # Half the displays of each action have p = .002: no quantile of few displays accepts more.
    p = np.where(np.random.default_rng(3).random(N) < 0.5, 0.002, 0.9)
    assert not any("decides how many" in line for line in replay(log_of(p), "thompson", window=50).warnings)
