"""What fixes the result of a replay, to the bit: who asks the same question again gets the same answer."""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from evaluator.comparisons.own_code import package_code
from evaluator.replays.plan import ReplayPlan
from evaluator.version import __version__

# Options on which no result depends.
NO_MATTER = ("jobs",)
# Libraries that compute numbers, or read those of the log; scikit-learn estimates propensities.
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "polars", "pyarrow", "scikit-learn")


def question_key(plan: ReplayPlan, log: str, code: Sequence[str]) -> str:
    """Return the SHA-256, in hex, of all that the result of a plan depends on.

    Parameters
    ----------
    plan
        Plan of a replay: policy, options and what follows from them.
    log
        Hash of the log that was planned for (`evaluator.log.content.content_hash`): how it was read, from which files
        and by which spec, shows in what it holds.
    code
        Versions and hashes of the code that runs, as it was when it was loaded: `software`, and
        `evaluator.comparisons.own_code.own_code` of the policy.
    """
    planned = plan.to_dict()
    for option in NO_MATTER:
        del planned["options"][option]
    policy = plan.policy
    depends = {
        "log": log,
        "plan": planned,
        "policy": [type(policy).__module__, type(policy).__qualname__, policy.spec, policy.parameters],
        "code": list(code),
        # With the content of a file of delays.
        "told": plan.setting,
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True, default=_plain).encode()).hexdigest()


def software() -> tuple[str, ...]:
    """Return what this package, the libraries that compute, and Python are known by."""
    libraries = (f"{name} {_version(name)}" for name in LIBRARIES)
    python = f"{platform.python_implementation()} {platform.python_version()} {platform.machine()}"
    return (f"delayed-replay {__version__} {package_code()}", *libraries, python)


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return secrets.token_hex()  # it can never be recognised
