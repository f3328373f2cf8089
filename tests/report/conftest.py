"""One result of each kind, on a log every string of which is an attack on a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluator import Log, audit, check, compare, replay, simulate, study_delays
from tests.logs import build_log, with_outcome

ATTACK = "<script>alert(1)</script>"
LABELS = (ATTACK, '"><img src=x onerror=alert(1)>', "a & b", "[bold]c[/bold]", "\x1b[2Jd\n<b>e</b>", "</style></svg>f")


@pytest.fixture(scope="session")
def log() -> Log:
    """A log of 40 days whose labels, name, notes and column are attacks."""
    rng = np.random.default_rng(0)
    n, k, day = 3000, len(LABELS), 86_400
    time = np.sort(rng.integers(0, 40 * day, n))
    of = np.flatnonzero(rng.random(n) < 0.4)
    made = build_log(
        time=time, action=rng.integers(0, k, n), conversion_display=of,
        conversion_time=time[of] + rng.geometric(1e-5, len(of)), n_actions=k, tick="s", name=f"shop {ATTACK}",
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
        "compare": compare(log, ["ucb1", "random"], windows=["1d", "2d"], by="shop,device"),
        "audit": audit(log, ["ucb1", "random"], window=500, twins=20),
        "simulate": simulate("vernade2017-high", ["ucb1", "random"], runs=5, horizon=500),
        "delays": study,
        "check": check(log),
    }
