"""What every loop that runs policies does alike: its form for a policy, and errors that name a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.argmax import NanScoreError
from evaluator.engine.kernels.compiling import compiling_for, why_not_compiled
from evaluator.errors import SEE_TRACEBACK, EvaluatorError, ParameterError, PolicyError
from evaluator.policies.base import Policy, Setting
from evaluator.policies.columns import ColumnsPolicy
from evaluator.policies.registry import POLICIES, resolve
from evaluator.policies.user import UserPolicy


@contextmanager
def blamed(policy: Any, n_actions: int, rounds: npt.NDArray[np.int64] | None = None) -> Iterator[None]:
    """Turn what a user's policy raises, and a score that is NaN, into an error that names the policy.

    What is compiled meanwhile is compiled for it. Numba gives back no array that a compiled function still holds when
    an exception leaves it: each replay that fails so loses one such array for the life of the process.

    `rounds` is the number of rounds that the policy has lived, shape (1,); None where they are not counted.
    """
    try:
        with compiling_for(policy.name):
            yield
    except NanScoreError as error:
        raise _no_score(policy, int(error.args[0]), _round(rounds)) from None
    except Exception as error:
        if isinstance(error, EvaluatorError) or is_ours(policy):
            raise
        raise _raised(policy, error, n_actions, _round(rounds)) from _cause(error)


def _round(rounds: npt.NDArray[np.int64] | None) -> int | None:
    """Return the number of the round that the policy is in, None where rounds are not counted."""
    return None if rounds is None else int(rounds[0]) + 1


def _cause(error: Exception) -> Exception | None:
    # Where a `with` has raised a RuntimeError from a StopIteration, Python goes on with the StopIteration, and a loop
    # around it would end as if all were done.
    return None if isinstance(error, StopIteration) else error


def _raised(policy: Any, error: Exception, n_actions: int, round: int | None) -> PolicyError:
    spec = getattr(policy, "spec", policy.name)
    if why := why_not_compiled(error):
        return PolicyError(f"{spec} cannot be compiled: {why}.", remedy=f"{SEE_TRACEBACK}.")
    when = "" if round is None else f" in round {round:,}"
    said = f": {str(error).rstrip('.')}" if str(error) else ""
    return PolicyError(
        f"{spec} raised {type(error).__name__}{when}{said}.",
        remedy=f"actions go from 0 to {n_actions - 1}; {SEE_TRACEBACK}.",
    )


def _no_score(policy: Any, action: int, round: int | None) -> PolicyError:
    when = "" if round is None else f" in round {round:,}"
    spec = getattr(policy, "spec", policy.name)
    if ":" in spec and is_ours(policy):
        hint = f"its parameters are out of the range that floating point carries: change {spec.partition(':')[2]}."
    else:
        hint = "look for numbers of extreme size in the contexts, the values, and the policy's parameters."
    return PolicyError(f"{spec} scores action {action} as NaN{when}.", remedy=hint)


def loop_for(policy: Any, cached: Any, uncached: Any, interpreted: Any) -> Any:
    """Return the form of a loop that a policy runs in."""
    if is_plain_python(policy):
        return interpreted
    return cached if is_ours(policy) else uncached


def reward_unit(policy: Any, setting: Setting) -> float:
    """Return what rewards are divided by before the policy is told of them: 1 where it is told them as they are."""
    return setting.reward_max - setting.reward_min if policy.unit_rewards else 1.0


def is_plain_python(policy: Any) -> bool:
    """Return whether a policy is a plain Python class: loops that run it are interpreted, its state is its own."""
    return not isinstance(policy, Policy)


def is_ours(policy: Any) -> bool:
    """Return whether a policy belongs to this package, whose version identifies its code."""
    return type(policy).__module__.startswith("evaluator.") and not is_plain_python(policy)


def refuse_choosing_among(policy: Any, where: str, *, live: bool = False) -> None:
    """Raise where a policy's definition has no answer to some of its actions being eligible.

    `where` is a clause that says where they are not; `live` says that there is no log, whose columns a policy could
    read. The `ParameterError` names policies that have an answer.
    """
    if not policy.among:
        raise ParameterError(
            f"{policy.name} cannot choose among some of its actions, and {where}.", remedy=_ways(policy, live=live)
        )


def has_random_ties(policy: Any) -> bool:
    """Return whether the policy's equal scores go by a random order of the actions; else by the lower index."""
    return bool(getattr(policy, "ties", "random") == "random")


def _ways(policy: Any, *, live: bool) -> str:
    if isinstance(policy, UserPolicy):
        return "let its choose take them: choose(self, vectors, rng, eligible), and return one of `eligible`."
    if not is_ours(policy):
        return "give `implement` a `score` or a `choose` that takes `eligible`, and say among = True."
    described = {name: resolve(name) for name in POLICIES}
    able = [
        name
        for name, found in described.items()
        if isinstance(found, Policy) and found.among and not (live and isinstance(found, ColumnsPolicy))
    ]
    return f"take one that can: {', '.join(able)}."
