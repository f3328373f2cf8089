"""The truth of untidy traffic, by brute force: displays earn what was expected of them beforehand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.untidy.defects import rows_of
from tests.untidy.kinds import KINDS
from tests.untidy.traffic import draw_traffic
from tests.untidy.truth import expected_rewards

# Defects of the log, not of the traffic: without them its rows must show the truth.
CLEAN = {
    "claim": "right", "sampled": 1.0, "stamp_s": 1, "by_action": False, "copied": 0.0, "conversions_copied": 0.0,
    "outage_h": 0.0, "gap_h": 0.0, "stray_h": 0.0, "in_files": False,
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_displays_earn_what_is_expected_of_them(name: str) -> None:
    kind = KINDS[name]
    untidy = replace(kind.untidy, **{**CLEAN, "displays": 60_000})
    cut = untidy.attribution_s or kind.window_s
    window = None if kind.window_s is None else float(kind.window_s)
    traffic = draw_traffic(untidy, 5)
    rows = rows_of(traffic, 5)
    delay = rows.conversion_time - rows.time[rows.conversion_of]
    # Followed to the end of the log: what is cut off there is not part of the truth.
    old = rows.time <= rows.until - (cut or 0)
    counted = delay <= (np.inf if cut is None else cut)
    earned = np.bincount(rows.conversion_of[counted], weights=rows.conversion_value[counted], minlength=len(rows.of))
    expected = expected_rewards(traffic, window_s=window)
    if cut is None:  # heavy tails: what has come so far, of what ever comes
        left = (rows.until - rows.time)[:, None] / 60.0
        expected = expected * (1.0 - np.maximum(left, 1.0) ** -(untidy.tail or np.inf))
    # By action, by context and by half of the log: groups of independent displays.
    for k in range(untidy.n_actions):
        for group in (traffic.context == 0, traffic.context == 1, traffic.share < 0.5, traffic.share >= 0.5):
            some = old & group & (rows.action == k)
            if some.sum() < 200:
                continue
            error = np.sqrt(earned[some].var() / some.sum())
            # Delays are cut to whole seconds, values are drawn: 4.5 standard errors for some 300 groups in all.
            assert abs(earned[some].mean() - expected[some, k].mean()) < 4.5 * error + 1e-3 * expected[some, k].mean()
