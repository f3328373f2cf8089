"""Two values that are the same but for rounding are no bias."""

from __future__ import annotations

import evaluator
from tests.logs import build_log


def test_a_log_on_which_every_display_earns_one_is_no_bias() -> None:
    n = 600
    log = build_log(
        time=range(n), action=[0, 1, 2] * (n // 3), conversion_display=range(n), conversion_time=range(n), n_actions=3,
        reward_max=1.0,
    )  # fmt: skip
    found = evaluator.audit(log, ["ucb1", "random"], twins=10)
    assert [abs(policy.bias) < 1e-6 for policy in found.policies] == [True, True]
    assert not any(policy.biased for policy in found.policies)
