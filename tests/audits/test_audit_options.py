"""An audit has the options that it can do, and no other, in Python as on the command line."""

from __future__ import annotations

from dataclasses import fields

import pytest

from evaluator import audit
from evaluator.audits.options import AuditOptions
from evaluator.errors import UsageError
from evaluator.replays.options import ReplayOptions
from tests.cli.test_declared_options import COMMANDS
from tests.logs import bernoulli_log

# What twins have none of: users, groups, outcomes, what was learned before, and bounds that are not the log's.
NOT_OF_AN_AUDIT = {"cluster_by", "by", "guardrails", "warm_start", "reward_max", "reward_min", "cap"}


def test_an_audit_has_all_other_options_of_a_replay() -> None:
    of_audit, of_replay = ({field.name for field in fields(cls)} for cls in (AuditOptions, ReplayOptions))
    assert of_replay - of_audit == NOT_OF_AN_AUDIT
    assert of_audit - of_replay == {"twins", "displays"}
    assert not NOT_OF_AN_AUDIT & {parameter.name for parameter in COMMANDS["audit"].params}


@pytest.mark.parametrize("name", sorted(NOT_OF_AN_AUDIT))
def test_an_option_that_is_none_of_an_audit_is_unknown(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        audit(bernoulli_log(300, [0.5, 0.5], mean_delay=5.0, seed=1), "random", **{name: None})  # type: ignore[misc]


def test_options_of_the_replays_are_those_of_the_audit() -> None:
    asked = AuditOptions(window=7, objective="profit", learn_from="revenue", repeats=3, seed=5, jobs=2)
    replays = asked.of_replays(seed=9)
    assert (replays.window, replays.objective, replays.learn_from, replays.repeats) == (7, "profit", "revenue", 3)
    assert (replays.seed, replays.jobs) == (9, 1)
