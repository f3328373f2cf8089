"""Finished results of a study that was interrupted, kept until all of it is written.

A result is one Parquet file: its trajectory, and all else in the metadata, under ``result``. Its name is the key of all
that fixes it to the bit: who asks the same question again gets the same answer.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from evaluator.jobs.workers import software
from evaluator.log import Log
from evaluator.log.fingerprint import content_hash
from evaluator.outputs.kept_folder import (
    kept_files,
    kept_name,
    pack_table,
    part_files,
    part_name,
    read_kept,
    unpack_table,
    write_kept,
)
from evaluator.own_code import CodeOfPolicy, codes_of, refuse_other_code
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.resampled import Draws

# Values of replays of resampled logs, by the number of the log: the value, whether all rounds were reached, the value
# of the first rounds, as many as the study compares, and their number.
DrawsFound = dict[int, tuple[float, bool, float, int]]
_NOT_WRITTEN = ("trajectory", "plan", "learned")
# Columns of a table of them.
_COLUMNS = ["variant", "number", "value", "complete", "compared", "rounds"]
# Options on which no result depends.
NO_MATTER = ("jobs",)


@dataclass(frozen=True)
class FoundResults:
    """What of a study was kept, by the number of the plan: results, bare ones, and values of resampled replays.

    Bare ones lack the expected values that the plan asks for. `damaged` counts files that answer a plan and are not
    what was written, which are removed; `others` those that answer none.
    """

    results: dict[int, ReplayResult]
    damaged: int
    others: int
    bare: dict[int, ReplayResult] = field(default_factory=dict)
    draws: dict[int, DrawsFound] = field(default_factory=dict)

    @property
    def parts(self) -> int:
        """Number of plans of whose results no more than parts were found."""
        return len({*self.bare, *self.draws} - self.results.keys())


class KeptResults:
    """Results in a folder, one file each, named by all that they depend on and by a checksum of their content.

    A result is found again only for the same log, variant, options, code and versions, and only as it was written.
    Files appear whole or not at all, whenever the process is killed. The policies were just loaded: their code, and
    what is installed, may change while they run.
    """

    def __init__(self, folder: Path, policies: Sequence[Any]) -> None:
        self.folder = folder
        self.questions = Questions(policies)

    def find(self, plans: Sequence[ReplayPlan], log: Log) -> FoundResults:
        """Return the results that are there of these plans on a log, as it was read."""
        self.questions.of_log(log)
        files = kept_files(self.folder)
        parts = part_files(self.folder)
        numbers = {self.questions.key(plan): i for i, plan in enumerate(plans)} if files or parts else {}
        results, damaged, others = {}, 0, 0
        for file, (key, digest) in files.items():
            i = numbers.get(key)
            content = None if i is None else read_kept(file, digest)
            result = None if i is None or content is None else read_back(content, key, plans[i])
            if i is None:
                others += 1
            elif result is None:
                damaged += i not in results
                file.unlink(missing_ok=True)
            else:
                results[i] = result
        found = FoundResults(dict(sorted(results.items())), damaged, others)
        return self._with_parts(found, parts, plans, numbers) if parts else found

    def keep(self, plan: ReplayPlan, result: ReplayResult) -> None:
        """Write a result of a plan on the log that results were looked for."""
        key = self.questions.key(plan)
        write_kept(self.folder, kept_name, key, written(result, key))

    def keep_bare(self, plan: ReplayPlan, result: ReplayResult) -> None:
        """Write a result that lacks its expected value; as `keep`."""
        key = self.questions.key(_bare(plan))
        write_kept(self.folder, part_name, key, written(result, key))

    def keep_draws(self, plans: Sequence[ReplayPlan], numbers: range, draws: Draws, rounds: int) -> None:
        """Write the values of some plans' replays of these resampled logs, compared after so many rounds; as `keep`."""
        keys = [self.questions.key(plan) for plan in plans]
        table = pa.table(
            {
                "variant": pa.array([key for _ in numbers for key in keys]),
                "number": pa.array([b for b in numbers for _ in keys]),
                "value": pa.array(draws.values.reshape(-1)),
                "complete": pa.array(draws.complete.reshape(-1)),
                "compared": pa.array(draws.compared.reshape(-1)),
                "rounds": pa.array([rounds] * draws.values.size),
            }
        )
        key = hashlib.sha256(json.dumps([sorted(keys), numbers.start, numbers.stop, rounds]).encode()).hexdigest()
        write_kept(self.folder, part_name, key, pack_table(table, key))

    def _with_parts(
        self,
        found: FoundResults,
        files: dict[Path, tuple[str, str]],
        plans: Sequence[ReplayPlan],
        numbers: dict[str, int],
    ) -> FoundResults:
        """Return what was found with the parts of results."""
        bare = {self.questions.key(_bare(plan)): i for i, plan in enumerate(plans)}
        damaged, others = found.damaged, found.others
        for file, (key, digest) in files.items():
            content = read_kept(file, digest)
            result = None if content is None or key not in bare else read_back(content, key, plans[bare[key]])
            rows = [] if content is None or key in bare else _draws(content, key)
            if content is None or (key in bare and result is None) or rows is None:
                damaged += 1
                file.unlink(missing_ok=True)
            elif result is not None:
                found.bare[bare[key]] = result
            elif not any(variant in numbers for variant, *_ in rows):
                others += 1
            else:
                for variant, number, *values in rows:
                    if variant in numbers:
                        found.draws.setdefault(numbers[variant], {})[number] = tuple(values)
        return replace(found, damaged=damaged, others=others)


def _bare(plan: ReplayPlan) -> ReplayPlan:
    """Return the plan that asks for no expected value."""
    return replace(plan, options=replace(plan.options, bootstrap=0))


def _draws(content: bytes, key: str) -> list[tuple[Any, ...]] | None:
    """Return the rows of a table of draws; none of another file, None of one under another name."""
    unpacked = unpack_table(content, key)
    if unpacked is None:
        return None
    table, _ = unpacked
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True)) if table.column_names == _COLUMNS else []


def written(result: ReplayResult, key: str) -> bytes:
    """Return a result, the answer to the question with a key, as it is written; not what its policy learned."""
    rest = {f.name: _plain(getattr(result, f.name)) for f in fields(result) if f.name not in _NOT_WRITTEN}
    return pack_table(result.trajectory, key, rest)


def read_back(content: bytes, key: str, plan: ReplayPlan) -> ReplayResult | None:
    """Return the result of a plan that was written so; None where it is of another question, or no result."""
    unpacked = unpack_table(content, key)
    if unpacked is None:
        return None
    trajectory, rest = unpacked
    try:
        hints = get_type_hints(ReplayResult)
        rebuilt = {name: _rebuilt(hints[name], x) for name, x in rest.items()}
        return ReplayResult(**rebuilt, plan=plan.to_dict(), trajectory=trajectory, learned=None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _rebuilt(hint: Any, value: Any) -> Any:
    """Return a value of the type that a field names, from what JSON made of it."""
    if value is None:
        return None
    if isinstance(value, list):
        inner = get_args(hint)[0] if get_origin(hint) is tuple else None
        return tuple(_rebuilt(inner, x) if is_dataclass(inner) else x for x in value)
    if get_origin(hint) is Mapping:
        return {name: _rebuilt(get_args(hint)[1], x) for name, x in value.items()}
    kind = next((kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)), None)
    if kind is None:
        return value
    hints = get_type_hints(kind)
    return kind(**{name: _rebuilt(hints[name], x) for name, x in value.items()})  # type: ignore[operator]


def question_key(plan: ReplayPlan, log: str, code: Sequence[str]) -> str:
    """Return the SHA-256, in hex, of all that the result of a plan depends on.

    The log is the hash of the one planned for (`evaluator.log.fingerprint.content_hash`): how it was read, and by which
    spec, shows in what it holds. The code is versions and hashes of what runs, as it was when it was loaded.
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
    return hashlib.sha256(json.dumps(depends, sort_keys=True, default=_as_key).encode()).hexdigest()


class Questions:
    """Keys of what is asked of one log by policies that were just loaded: their code may change while they run.

    On a worker, `told` has the hashes of their code where the command runs; WorkerError, if it is another one here.
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


def _as_key(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return secrets.token_hex()  # it can never be recognised
