"""What a check says to do is something else than what was done."""

from __future__ import annotations

import numpy as np

from evaluator import check
from evaluator.checks.run import CheckReport
from evaluator.reports.documents import document_of
from evaluator.reports.terminal import text_of
from tests.logs import build_log


def test_no_check_advises_the_model_that_failed() -> None:
    # A logistic model of the context does not know that the logger followed the product of two coordinates.
    rng = np.random.default_rng(5)
    context = rng.choice([-1.0, 1.0], (20_000, 2))
    action = (rng.random(20_000) < 0.5 + 0.3 * context.prod(axis=1)).astype(np.int32)
    context[:, 1] += context[:, 0]  # so that each of four groups of the second coordinate tells both
    log = build_log(time=np.arange(20_000), action=action, n_actions=2, context=context)
    found = check(log, propensity="estimate:context")["calibration"]
    assert found.verdict == "fail"
    assert "estimate:context" not in found.remedy
    assert "`features`" in found.remedy


def logged(propensity: np.ndarray, actions: int) -> CheckReport:
    """Return the check of a log of an even logger whose propensities are written so."""
    n = len(propensity)
    rng = np.random.default_rng(3)
    action, time = rng.integers(0, actions, n), np.arange(n) * 60
    sold = np.flatnonzero(rng.random(n) < 0.1)
    return check(build_log(
        time=time, action=action, n_actions=actions, tick="s", propensity=propensity,
        conversion_display=sold, conversion_time=time[sold] + 30,
    ))  # fmt: skip


def test_a_quantile_is_advised_where_it_leaves_more_rounds() -> None:
    one = np.full(8_000, 0.25)
    one[1_234] = 1e-9
    report = logged(one, 4)
    assert "`accept_quantile=0.01`, which leaves about 2,000 rounds" in report["overlap"].remedy
    text = text_of(document_of(report))
    assert "times as many displays" not in text
    assert "about 2,000 without them" in " ".join(text.split())
    # Where all are as small, no quantile leaves more.
    small = logged(np.full(900, 1 / 90), 90)
    assert "accept_quantile" not in small["overlap"].remedy
    assert "`actions='top:n'`" in small["overlap"].remedy
    assert "times as many displays" in " ".join(text_of(document_of(small)).split())
