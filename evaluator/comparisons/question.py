"""What fixes the result of a replay, to the bit: who asks the same question again gets the same answer."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from evaluator.jobs.software import software
from evaluator.log import Log
from evaluator.log.fingerprint import content_hash
from evaluator.own_code import CodeOfPolicy, codes_of, refuse_other_code
from evaluator.replays.plan import ReplayPlan

# Options on which no result depends.
NO_MATTER = ("jobs",)


def question_key(plan: ReplayPlan, log: str, code: Sequence[str]) -> str:
    """Return the SHA-256, in hex, of all that the result of a plan depends on.

    Parameters
    ----------
    plan
        Plan of a replay: policy, options and what follows from them.
    log
        Hash of the log that was planned for (`evaluator.log.fingerprint.content_hash`): how it was read, and by which
        spec, shows in what it holds.
    code
        Versions and hashes of the code that runs, as it was when it was loaded: `evaluator.jobs.software`, and
        `evaluator.own_code.codes_of` the policy.
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


class Questions:
    """Keys of what is asked of one log.

    Parameters
    ----------
    policies
        Descriptions of the policies, just loaded: their code, and what is installed, may change while they run.
    told
        On a worker, the hashes of their code where the command runs; None there.

    Raises
    ------
    WorkerError
        The code of a policy is another one than was told.
    """

    def __init__(self, policies: Sequence[Any], told: Sequence[CodeOfPolicy] | None = None) -> None:
        if told is not None:
            refuse_other_code(policies, told)
        self.software = software()
        self.codes = codes_of(policies) if told is None else tuple(told)
        self._code = {policy.spec: (*self.software, of.run) for policy, of in zip(policies, self.codes, strict=True)}
        self.log = ""

    def of_log(self, log: Log) -> None:
        """Say which log they are asked of, as it was read."""
        self.log = content_hash(log)

    def key(self, plan: ReplayPlan) -> str:
        """Return the key of a plan (`question_key`)."""
        return question_key(plan, self.log, self._code[plan.policy.spec])


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return secrets.token_hex()  # it can never be recognised
