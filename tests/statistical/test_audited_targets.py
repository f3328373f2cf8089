"""Policies that are columns of a log are audited where displays have their own eligible actions."""

from __future__ import annotations

from evaluator import audit
from tests.audits.test_targets import shop


def test_columns_are_audited_among_eligible_actions() -> None:
    log = shop(sets=True)
    found = audit(log, ["target:best", "columns", "random"], twins=30)
    for policy in found.policies:
        assert abs(policy.bias) < 4 * policy.bias_standard_error
    knows, half, random = (policy.live_value for policy in found.policies)
    assert knows > half > random
