"""What the public functions take: policies in every form, and keywords; where those live that are none of theirs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, overload

from evaluator.errors import EvaluatorError, ParameterError, UsageError
from evaluator.options.declaration import Options
from evaluator.options.declaration import refuse_unknown as refuse_no_option
from evaluator.policies.base import Policy
from evaluator.policies.registry import as_policy, resolve, split_specs
from evaluator.policies.user import UserPolicy
from evaluator.reading.options import ReadingOptions
from evaluator.replays.learned.policy import LearnedPolicy


class OwnPolicy(Protocol):
    """A policy as a plain Python class, with the methods of `evaluator.policies.user`."""

    @property
    def choose(self) -> Callable[..., Any]:
        """Return an action."""

    @property
    def displayed(self) -> Callable[..., Any]:
        """Take note of a round."""

    @property
    def converted(self) -> Callable[..., Any]:
        """Learn from a conversion."""


# A spec (``"otflinucb:alpha=0.1"``), a description, a class of one's own, or an instance of one; or what was learned.
PolicyLike: TypeAlias = str | Policy | UserPolicy | type[OwnPolicy] | OwnPolicy | LearnedPolicy

_READING = frozenset(field.name for field in dataclasses.fields(ReadingOptions))
# What the command line alone has, or has under another name.
_ELSEWHERE = {
    "out": "it is of the command line; here `to_dict()` of the result and its tables hold what --out writes.",
    "save_policy": 'it is of `evaluate replay`; here `replay(log, policy).learned.save("learned.npz")` does it.',
    "dry_run": "it is of `evaluate replay`; here `plan(log, policy)` says what a replay would do.",
    "json": "it is of the command line; here `to_dict()` of the result does it.",
    "debug": "it is of the command line; Python shows tracebacks anyway.",
    "dataset": "the log is the first argument: a `Log`, or what `load` takes.",
    "policy": "policies are the second argument.",
    "policies": "policies are the second argument.",
    "scenario": "`simulate` takes a scenario, as its first argument.",
    "file": "it is of the command line; `evaluator.reading.delay_file.read_delay_file` reads such files.",
}
_ELSEWHERE["as_json"] = _ELSEWHERE["json"]


def refuse_unknown(function: str, given: Mapping[str, object], *options: type[Options]) -> None:
    """Raise if a keyword is none of a function's options; as `evaluator.options.declaration.refuse_unknown`."""
    reading = {} if function == "simulate" else {name: given[name] for name in _READING & given.keys()}
    told = {
        name: f"it is one of the reading of a log: `load(..., {name}={value!r})`." for name, value in reading.items()
    }
    refuse_no_option(function, given, *options, elsewhere=_ELSEWHERE | told)


def as_descriptions(policies: PolicyLike | Sequence[PolicyLike]) -> list[Policy | UserPolicy | LearnedPolicy]:
    """Return the descriptions of one policy or several."""
    if isinstance(policies, Sequence) and not isinstance(policies, str):
        return [description for policy in policies for description in as_descriptions(policy)]
    several = split_specs(policies) if isinstance(policies, str) else [policies]
    return [as_description(policy) for policy in several]


def _article(policy: object) -> str:
    if isinstance(policy, Iterable):
        return f"a {type(policy).__name__}"
    return repr(policy)


def from_nothing(policies: PolicyLike | Sequence[PolicyLike], by: str) -> list[Policy | UserPolicy]:
    """Return the descriptions of policies that begin with nothing; UsageError if one has learned."""
    descriptions = as_descriptions(policies)
    for policy in descriptions:
        if isinstance(policy, LearnedPolicy):
            raise UsageError(
                f"`{by}` lets policies begin with nothing, and {policy.spec} has learned.",
                remedy="give its description: learned.policy. Replays and comparisons go on with what was learned.",
            )
    return [policy for policy in descriptions if not isinstance(policy, LearnedPolicy)]


@overload
def as_description(policy: str) -> Policy | UserPolicy: ...
@overload
def as_description(policy: PolicyLike) -> Policy | UserPolicy | LearnedPolicy: ...
def as_description(policy: PolicyLike) -> Policy | UserPolicy | LearnedPolicy:
    """Return the description of a spec, a policy, a class or an instance; a learned policy as it is."""
    if isinstance(policy, str):
        description: Policy | UserPolicy = resolve(policy)
        return description
    if isinstance(policy, Policy | UserPolicy | LearnedPolicy):
        return policy
    if isinstance(policy, Iterable | float | int | None) and not hasattr(policy, "choose"):
        raise ParameterError(
            f"Expected a policy, got {_article(policy)}.",
            remedy="`replay` and `plan` take one: 'ucb1'; `compare`, `audit` and `simulate` take several in a list, "
            "the "
            "first of which is the baseline: ['ucb1', 'linucb'].",
        )
    if isinstance(policy, type):
        wrapped: Policy | UserPolicy = as_policy(policy, {})
        return wrapped
    return UserPolicy(cls=type(policy), instance=policy)


def loaded_by(policy: Any) -> str:
    """Return the words by which a worker loads a policy.

    UsageError if it is an object of this process, or a class that was defined in none of the files that can be named.
    """
    try:
        resolved: Any = as_description(policy.spec)
    except EvaluatorError:
        resolved = None
    cls = getattr(policy, "cls", type(policy))
    if type(resolved) is type(policy) and getattr(resolved, "cls", cls) is cls:
        return str(policy.spec)
    if cls.__module__.startswith("_policy_") and getattr(policy, "instance", None) is None:
        parameters = policy.spec.partition(":")[2]
        return ":".join(filter(None, (inspect.getfile(cls), cls.__name__, parameters)))
    raise UsageError(
        f"Workers load policies by their names, and {policy.spec} has none.",
        remedy="put its class into a file, and name it: path/to/mine.py:MyPolicy.",
    )
