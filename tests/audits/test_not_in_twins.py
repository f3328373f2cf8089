"""What the checks of a log find, and its twins are drawn without, is said beside what the twins show."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from evaluator import Log, audit
from evaluator.audits.words import warnings
from evaluator.checks.registry import CHECKS
from tests.cli.runs import validate


def shop_log(*, drift: float, learns: bool = True, seed: int = 3, n: int = 12_000) -> Log:
    """Return a log of two actions whose rates grow by a factor in its second half; a logger that learns logs no p."""
    rng = np.random.default_rng(seed)
    at = np.arange(n)
    p = np.linspace(0.5, 0.9, n) if learns else np.full(n, 0.5)
    action = (rng.random(n) < p).astype(np.int64)
    shown = np.where(action, p, 1.0 - p)
    rate = np.array([0.04, 0.08])[action] * np.where(at < n // 2, 1.0, drift)
    sold = np.where(rng.random(n) < rate, at + rng.geometric(1 / 30, n), 0)
    table = pa.table({"t": at, "ad": action, "p": shown, "sold": pa.array(sold, mask=(sold == 0) | (sold > n))})
    named = {} if learns else {"propensity": "p"}
    return Log.from_frames(
        table, time="t", action="ad", conversion_time="sold", unit="min", attribution_window=300, **named
    )


def test_what_no_twin_has_is_said_before_no_bias_was_seen() -> None:
    found = audit(shop_log(drift=3.0), ["fixed:action=1", "random"], window="5h", propensity="estimate", twins=10)
    verdicts = {of.name: of.verdict for of in found.not_in_twins}
    assert verdicts["drift of action shares"] == "fail"
    assert verdicts["drift of conversion rates"] == "warn"
    assert found.verdict.startswith("The log failed the check drift of action shares")
    assert "repair it before you decide by one" in found.verdict
    for of, said in zip(found.not_in_twins, found.warnings, strict=False):
        assert said == f"Check {of.name} ({of.verdict}), of the log and not of its twins: {of.what} {of.remedy}"
    written = json.loads(json.dumps(found.to_dict()))
    validate(written)
    assert [(of["name"], of["verdict"]) for of in written["not_in_twins"]] == list(verdicts.items())


def test_a_warning_is_added_to_the_verdict() -> None:
    found = audit(shop_log(drift=3.0, learns=False), ["random"], window="5h", twins=10)
    assert [(of.name, of.verdict) for of in found.not_in_twins] == [("drift of conversion rates", "warn")]
    assert found.verdict.startswith("On a log like this one")
    assert found.verdict.endswith(
        "The log's warnings of the check drift of conversion rates are about what no twin has."
    )


def test_of_a_sound_log_nothing_is_added() -> None:
    found = audit(shop_log(drift=1.0, learns=False), ["fixed:action=1", "random"], window="5h", twins=10)
    assert found.not_in_twins == ()
    assert found.verdict.startswith("On a log like this one")
    assert "no twin" not in found.verdict


def test_what_twins_have_too_is_in_their_numbers() -> None:
    assert {check.name for check in CHECKS if check.twins_have_it} == {"overlap", "immature displays"}


def test_twins_with_fewer_rounds_than_are_compared_are_counted() -> None:
    pair: Any = SimpleNamespace(coverage=SimpleNamespace(too_low=False))
    for rounds, said in (([310, 320], ""), ([310, 300], "1 twin has fewer"), ([300, 305], "2 twins have fewer")):
        assert " ".join(map(str, warnings([], [pair], [], rounds, 310))).startswith(said)
        assert len(warnings([], [pair], [], rounds, 310)) == bool(said)
