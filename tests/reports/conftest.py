"""One result of each kind, on a log every string of which is an attack on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, audit, check, compare, replay, simulate, study_delays
from evaluator.reading.canonical import write_canonical
from tests.cli.runs import evaluate
from tests.logs import build_log, with_outcome

ATTACK = "<script>alert(1)</script>"
LABELS = (ATTACK, '"><img src=x onerror=alert(1)>', "a & b", "[bold]c[/bold]", "\x1b[2Jd\n<b>e</b>", "</style></svg>f")
NAME = f"shop {ATTACK}"
DAY, N = 86_400, 3_000
FIRST = 1_767_225_600  # 2026-01-01


@pytest.fixture(scope="session")
def log() -> Log:
    """A log of 40 days whose labels, name, notes and column are attacks."""
    rng = np.random.default_rng(0)
    n, k = N, len(LABELS)
    time = np.sort(rng.integers(0, 40 * DAY, n))
    of = np.flatnonzero(rng.random(n) < 0.4)
    made = build_log(
        time=time, action=rng.integers(0, k, n), conversion_display=of,
        conversion_time=time[of] + rng.geometric(1e-5, len(of)), n_actions=k, tick="s", name=NAME,
        counts={f"rows {ATTACK}": 7}, notes=(f"note {ATTACK}",),
    )  # fmt: skip
    displays = made.displays.append_column("device", pa.array([LABELS[i % k] for i in range(n)]))
    # Groups large enough to be named.
    displays = displays.append_column("shop", pa.array([LABELS[i % 3] for i in range(n)]))
    found = Log(displays, made.conversions, made.actions.set_column(1, "label", [list(LABELS)]), made.meta)
    return with_outcome(with_outcome(found, "click", of[::2], time[of[::2]]), f"note {ATTACK}", of[:9], time[of[:9]])


@pytest.fixture(scope="session")
def results(log: Log) -> dict[str, Any]:
    """Results by name, the log among them."""
    study = study_delays(log, windows=["1d", 500], families=["geometric", "weibull"], by="device", bootstraps=19)
    return {
        "log": log,
        "replay": replay(
            log, "ucb1", window=500, final="last:20%", bootstrap=20, repeats=2, guardrail="click < 1", by="shop"
        ),
        "compare": compare(
            log, ["ucb1", "random"], baseline="ucb1", windows=["1d", "2d"], schedules=["event", 100], by="shop,device"
        ),
        "audit": audit(log, ["ucb1", "random"], window=500, twins=20),
        "simulate": simulate("vernade2017-high", ["ucb1", "random"], runs=5, horizon=500),
        "delays": study,
        "check": check(log),
    }


def week(number: int, folder: Path, *, start: int = FIRST, copies: int = 0) -> Path:
    """Write a week of displays, two actions at random; `copies` displays are there twice, which a check finds."""
    rng = np.random.default_rng(number)
    time = np.sort(rng.integers(0, 7 * DAY, N))
    action = rng.integers(0, 2, N)
    time[N - copies :], action[N - copies :] = time[-1], action[-1]
    of = np.flatnonzero(rng.random(N) < np.array([0.2, 0.4])[action])
    begin = start + 7 * DAY * number
    log = build_log(
        time=begin + time, action=action, conversion_display=of, conversion_time=begin + time[of] + 60,
        n_actions=2, tick="s", name=NAME,
    )  # fmt: skip
    folder.mkdir(parents=True)
    write_canonical(log, folder)
    return folder


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of three weeks, and of what is in no order, named so that their names are in another order."""
    place = tmp_path_factory.mktemp("runs")
    for number, name in enumerate("cab"):
        log = str(week(number, place / "logs" / name))
        write = {
            "compared": ("compare", "-p", "ucb1,random", "--baseline", "random"),
            "replayed": ("replay", "-p", "ucb1"),
        }
        for what, words in write.items():
            assert evaluate(*words, "-d", log, "--window", "1d", "--out", str(place / f"{what}-{name}")).code == 0
        assert evaluate("check", log, "--out", str(place / f"checked-{name}")).code in (0, 4)
    log = str(place / "logs" / "a")
    more = {
        "policy": ("-p", "random", "--window", "1d", "-d", log),
        "option": ("-p", "ucb1", "--window", "1d", "--seed", "7", "-d", log),
        "undated": ("-p", "ucb1", "--window", "1d", "-d", str(week(0, place / "logs" / "u", start=0))),
    }
    for name, asked in more.items():
        assert evaluate("replay", *asked, "--out", str(place / name)).code == 0
    return place
