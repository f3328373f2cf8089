"""A keyword that a function does not take: the error says where it lives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import evaluator
from evaluator.errors import ParameterError, UnknownOptionError, UsageError

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    evaluator.replay, evaluator.plan, evaluator.compare, evaluator.audit, evaluator.simulate,
)  # fmt: skip


@pytest.mark.parametrize("function", [*FUNCTIONS, evaluator.study_delays, evaluator.check], ids=lambda f: f.__name__)
def test_options_of_the_command_line_say_what_does_it_here(function: Callable[..., Any]) -> None:
    # Nothing is read before: there is no such log.
    arguments = ("absent", "ucb1") if function in FUNCTIONS else ("absent",)
    for name, said in (("out", r"`to_dict\(\)` of the result"), ("debug", "tracebacks"), ("as_json", "does it")):
        with pytest.raises(UnknownOptionError, match=f"^`{name}` is no option of `{function.__name__}`.*{said}"):
            function(*arguments, **{name: "x"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", 10, r"`load\(..., limit=10\)`\.$"),
        ("actions", "top:3", r"`load\(..., actions='top:3'\)`\.$"),
        ("save_policy", "x.npz", r"`replay\(log, policy\)\.learned\.save"),
        ("dry_run", True, r"`plan\(log, policy\)`"),
        ("windw", 5, "did you mean window"),
    ],
)
def test_options_that_live_elsewhere(name: str, value: object, said: str) -> None:
    with pytest.raises(UnknownOptionError, match=said):
        evaluator.replay("absent", "ucb1", **{name: value})  # type: ignore[arg-type]


def test_the_error_is_what_python_and_the_package_raise() -> None:
    assert issubclass(UnknownOptionError, TypeError)
    assert issubclass(UnknownOptionError, UsageError)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"windows": {3, 4}},
            "`windows`: expected a list, got a set, which has no order. Hint: give a list such",
        ),
        ({"windows": (one for one in (3, 4))}, "`windows`: expected a list, got a generator. Hint: give a list"),
        ({"windows": []}, "`windows` is empty. Hint: give a list such as 500,2000,7d,none, or leave it out."),
        ({"windows": ["", "5"]}, "`windows` is empty. Hint: give a value such as"),
        ({"cluster_by": ""}, "`cluster_by` is empty. Hint: give a value, or leave it out."),
        ({"window": 0}, "`window=0` is out of range. Hint: take at least one round."),
        ({"window": "0"}, "`window='0'` is out of range."),
        ({"horizon": "5%"}, "`horizon`: expected a whole number, got '5%'. Hint: take a whole number from 1 to"),
    ],
)
def test_a_value_that_does_not_fit_is_quoted_as_it_was_given(options: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(said)}"):
        evaluator.compare(evaluator.load("synthetic", limit=200), "random", **options)


@pytest.mark.parametrize(
    ("policy", "got"),
    [
        (["ucb1"], "a list"), ({"ucb1"}, "a set"), (iter(["ucb1"]), "a list_iterator"), ({"a": "ucb1"}, "a dict"),
        (None, "None"), (3, "3"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_told_who_takes_which(policy: Any, got: str) -> None:
    log = evaluator.load("synthetic", limit=200)
    said = f"^Expected a policy, got {got}. Hint: `replay` and `plan` take one"
    with pytest.raises(ParameterError, match=said):
        evaluator.replay(log, policy)
    if not isinstance(policy, list):
        with pytest.raises(ParameterError, match=said):
            evaluator.compare(log, policy)


def test_the_reading_of_a_log_names_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match=r"^`limt` is no option of `load`\. Hint: did you mean limit\?$"):
        evaluator.load("absent", limt=10)  # type: ignore[call-arg]
