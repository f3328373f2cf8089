"""Each check finds the defect it is for, and the others stay quiet."""

from __future__ import annotations

import pytest

from evaluator import check
from tests.checks.defects import DEFECTS
from tests.checks.makers import MAKERS

# Checks that block a replay of the defect they are for.
BLOCKING = {
    "propensities of one action 1.4 times too large",
    "constant propensity of one action 1.3 times too large",
    "uniform claimed, one action 1.3 times as often",
    "action depends on the context, propensities constant",
    "values in cents from half time on",
    "conversions end with the log, unsaid",
    "an action with a propensity of 1e-5",
    "an action never shown",
    "no choice in a fifth of the contexts",
    "the logger follows the hour, uniform claimed",
    "the logger follows contexts and, unsaid, the hour",
    "whole days sorted by action",
    "hours sorted by outcome",
    "an action never shown in 31 % of the contexts, right propensities",
    "an action launched on day 3, right propensities",
    "an action retired on day 5, estimated propensities",
    "an action too young for a single judged display",
    "ten hours of conversions lost",
    "one stray conversion two days after all others",
    "an attribution window longer than the log",
}


@pytest.mark.parametrize("defect", DEFECTS | MAKERS)
def test_the_right_check_finds_it_and_the_others_stay_quiet(defect: str) -> None:
    make, must, may = (DEFECTS | MAKERS)[defect]
    report = check(make(7))
    found = {f.name for f in report.checks if f.verdict in ("warn", "fail")}
    assert must <= found <= must | may
    for finding in report.checks:
        assert finding.what
        assert bool(finding.remedy) == (finding.verdict in ("warn", "fail")), finding.name
    assert report.fit is (not report.having("fail"))
    if defect in BLOCKING:
        assert must & {f.name for f in report.having("fail")}


def test_the_finding_says_where() -> None:
    made = DEFECTS["uniform claimed, one action 1.3 times as often"][0](7)
    assert check(made)["uniformity"].numbers["where"] == "action a0"
    made = DEFECTS["action depends on the context, propensities constant"][0](7)
    assert check(made)["independence"].numbers["where"] == "context[1]"


def test_drifting_shares_of_good_and_bad_actions_are_no_drift_of_rates() -> None:
    import numpy as np

    from tests.logs import build_log

    rng = np.random.default_rng(3)
    n = 30_000
    action = (rng.random(n) < np.linspace(0.2, 0.8, n)).astype(int)
    paid = np.flatnonzero(rng.random(n) < np.where(action == 1, 0.3, 0.1))
    report = check(
        build_log(time=np.arange(n), action=action, conversion_display=paid, conversion_time=paid, n_actions=2)
    )
    assert report["drift of action shares"].verdict == "fail"
    assert report["drift of conversion rates"].verdict == "pass"


def test_young_displays_are_no_drift_of_rates_even_when_nothing_announces_them() -> None:
    report = check(DEFECTS["conversions end with the log, unsaid"][0](11))
    assert report["drift of conversion rates"].verdict == "pass"
    assert report["drift of delays"].verdict == "pass"
    assert report["immature displays"].numbers["missing_share"] > 0.05
