"""A fixed action is named by its label or by its index, and results say which action it is."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator import audit, compare, plan, replay
from evaluator.arguments import loaded_by
from evaluator.errors import ParameterError
from evaluator.log import Log
from evaluator.policies.base import Setting
from evaluator.policies.registry import resolve
from evaluator.policies.static import FixedAction
from evaluator.replays.plan import with_label
from tests.logs import build_log


def shop(*labels: str, n: int = 1500) -> Log:
    """Return a log in which every third display is of each label, the k-th converting in k of 10 cases."""
    rng = np.random.default_rng(1)
    action = rng.integers(len(labels), size=n)
    sold = np.flatnonzero(rng.random(n) < 0.1 * (1 + action))
    log = build_log(
        time=np.arange(n), action=action, n_actions=len(labels), conversion_display=sold, conversion_time=sold
    )
    actions = log.actions.set_column(log.actions.column_names.index("label"), "label", [list(labels)])
    return log.changed(actions=actions)


PLAIN, NUMBERED = shop("blue", "green", "red"), shop("1", "2", "3")


def test_a_label_is_the_action_that_has_it() -> None:
    by_label, by_index = replay(PLAIN, "fixed:action=red"), replay(PLAIN, "fixed:action=2")
    assert (by_label.value, by_label.action_share) == (by_index.value, by_index.action_share)
    assert (by_label.policy, by_label.title) == ("fixed:action=red", "fixed:action=red")
    assert (by_index.policy, by_index.title) == ("fixed:action=2", "fixed:action=red")
    assert replay(PLAIN, "fixed").title == "fixed:action=blue"
    assert replay(PLAIN, FixedAction(action="green")).action_share == (0.0, 1.0, 0.0)


def test_a_label_is_the_action_that_has_it_in_the_log_at_hand() -> None:
    policy = FixedAction(action="red")
    for log, share in ((PLAIN, (0.0, 0.0, 1.0)), (shop("red", "blue"), (1.0, 0.0))):
        assert replay(log, policy).action_share == share


def test_reports_say_the_label() -> None:
    assert (
        str(replay(PLAIN, "fixed:action=2"))
        .split("\n")[0]
        .endswith("a display with fixed:action=red: not told from the logging policy")
    )
    assert "fixed:action=red to be replayed on" in str(plan(PLAIN, "fixed:action=2"))
    found = compare(PLAIN, ["fixed:action=2", "fixed:action=blue"], baseline="fixed:action=blue")
    assert found.verdict is not None
    assert [found.verdict.name_of(of.line) for of in found.verdict.candidates] == ["fixed:action=red"]
    assert found.to_dict()["verdict"]["candidates"][0]["line"].keys() == {"variant", "policy", "window", "learns"}


@pytest.mark.parametrize(
    "label", ["red", "true", "None", "inf", "e5", "1e5", "1", "a b", "a,b", "it's", "rot_2", "Grün"]
)
def test_a_title_without_a_label_beside_it_is_a_spec_of_its_action(label: str) -> None:
    title = with_label("fixed:action=1", ["other", label])
    if not title.endswith(f" ({label})"):
        assert resolve(title).action in (label, 1)


def test_a_number_is_an_index_though_another_action_has_it_as_its_label() -> None:
    codes = [
        [one.code for one in replay(NUMBERED, spec).findings if one.code == "index-or-label"]
        for spec in ("fixed:action=2", "fixed:action=0", 'fixed:action="2"')
    ]
    assert codes == [["index-or-label"], [], []]
    assert replay(NUMBERED, "fixed:action=2").title == "fixed:action=2 (3)"
    assert replay(NUMBERED, 'fixed:action="2"').action_share == (0.0, 1.0, 0.0)
    assert "index-or-label" not in {one.code for one in replay(shop("0", "1"), "fixed:action=1").findings}


@pytest.mark.parametrize("label", ["red", "2", "true", "none", "1.5", '"2"', "-3", "a=b"])
def test_any_label_is_written_in_a_spec_and_read_again(label: str) -> None:
    policy = FixedAction(action=label)
    assert resolve(policy.spec) == policy
    assert loaded_by(policy) == policy.spec
    assert replay(shop("x", label), policy.spec).action_share == (0.0, 1.0)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("fixed:action=rde", "no action of the log has this label. Hint: did you mean red"),
        ("fixed:action=3", "the log has 3 actions. Hint: take 0 to 2, or a label"),
        ("fixed:action=-1", "out of range"),
    ],
)
def test_an_action_that_is_not_there_is_told(spec: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        replay(PLAIN, spec)


def test_a_label_needs_a_log_that_has_it() -> None:
    with pytest.raises(ParameterError, match="is a label, and there is no log"):
        FixedAction(action="red").start(Setting(n_actions=3))


def test_an_audit_plays_the_action_that_has_the_label() -> None:
    found = audit(PLAIN, ["fixed:action=red", "random"], twins=10)
    index = audit(PLAIN, ["fixed:action=2", "random"], twins=10)
    assert [one.live_value for one in found.policies] == [one.live_value for one in index.policies]
