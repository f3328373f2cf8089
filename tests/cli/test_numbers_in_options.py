"""Every whole number and every number that a command's options declare: beyond its range, one line."""

from __future__ import annotations

import dataclasses
import math
import typing
from pathlib import Path
from typing import Any

import pytest

from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.datasets import load
from evaluator.delays.study.options import DelayOptions
from evaluator.errors import UsageError
from evaluator.reading.outcomes import asked_window
from evaluator.replays.options import ReplayOptions
from evaluator.replays.rounds.clock import resolve_window, start_clock
from evaluator.replays.rounds.survey import survey
from evaluator.simulations.options import SimulateOptions
from tests.reading.sources import dataset

OPTIONS = (ReplayOptions, AuditOptions, CheckOptions, DelayOptions, SimulateOptions)
# The clock refuses it: it knows what shares it can count in.
LATER = {"traffic_share"}
NOT_POSITIVE = {"reward_min"}
FIELDS = [
    pytest.param(kind, field.name, hint, id=f"{kind.__name__}.{field.name}")
    for kind in OPTIONS
    for field in dataclasses.fields(kind)
    for hint in [typing.get_type_hints(kind)[field.name]]
    if {int, float} & {hint, *typing.get_args(hint)} and str not in typing.get_args(hint) and field.name not in LATER
]


@pytest.mark.parametrize(("kind", "name", "hint"), FIELDS)
def test_numbers_out_of_range(kind: type, name: str, hint: Any) -> None:
    whole = int in (hint, *typing.get_args(hint))
    beyond = 1.0 if name in NOT_POSITIVE else -1.0
    for value in (10**20, 10**400, -(10**19)) if whole else (math.inf, -math.inf, math.nan, beyond):
        with pytest.raises(UsageError, match=f"^`{name}=.* is out of range") as raised:
            kind(**{name: value})
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    "text", ["1" + "0" * 19, "1" + "0" * 5_000, "9" * 20 + "d", "9" * 400 + "d", "²", "-1", "0", ""]
)
def test_windows_out_of_range(tmp_path: Path, text: str) -> None:
    log = load(dataset(tmp_path))
    seen = survey(log)
    clock = start_clock(seen, "traffic", traffic_share=1.0, acceptance=1.0)
    for told in (lambda: resolve_window(text, clock, seen), lambda: asked_window(text, "s")):
        with pytest.raises(UsageError) as raised:
            told()
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("limit", [0, -1, 10**19, 10**400, True])
def test_limits_out_of_range(tmp_path: Path, limit: int) -> None:
    with pytest.raises(UsageError, match=r"limit="):
        load(dataset(tmp_path), limit=limit)
    with pytest.raises(UsageError, match=r"limit=.*2\^63 - 1"):
        load("synthetic", limit=limit)
