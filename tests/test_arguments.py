"""A keyword that a function does not take: the error says where it lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import evaluator
from evaluator.errors import UnknownOptionError, UsageError

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


def test_the_reading_of_a_log_names_the_nearest() -> None:
    with pytest.raises(UnknownOptionError, match=r"^`limt` is no option of `load`\. Hint: did you mean limit\?$"):
        evaluator.load("absent", limt=10)  # type: ignore[call-arg]
