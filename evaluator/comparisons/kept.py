"""Finished results of a study that was interrupted, kept until all of it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from evaluator.comparisons.kept_folder import RESULT, kept_files, kept_name, passing_name
from evaluator.comparisons.own_code import own_code
from evaluator.comparisons.question import question_key, software
from evaluator.log import Log
from evaluator.log.content import content_hash
from evaluator.outputs.checksums import checksum
from evaluator.outputs.failures import writing
from evaluator.outputs.renames import sync
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.result import ReplayResult

_NOT_KEPT = ("trajectory", "plan", "learned")


@dataclass(frozen=True)
class FoundResults:
    """What of a study was kept.

    Parameters
    ----------
    results
        Results that were found, by the number of their plan.
    damaged
        Number of files that answered a plan and are not what was written; they are removed.
    others
        Number of files that answer none of the plans.
    """

    results: dict[int, ReplayResult]
    damaged: int
    others: int


class KeptResults:
    """Results in a folder, one file each, named by all that they depend on and by a checksum of their content.

    A result is found again only for the same log, variant, options, code and versions, and only as it was written.
    Files appear whole or not at all, whenever the process is killed.

    Parameters
    ----------
    folder
        Folder of the results; made with the first of them.
    policies
        Descriptions of the policies, just loaded: their code, and what is installed, may change while they run.
    """

    def __init__(self, folder: Path, policies: Sequence[Any]) -> None:
        self.folder = folder
        installed = software()
        self._code = {policy.spec: (*installed, *own_code(policy)) for policy in policies}
        self._log = ""

    def find(self, plans: Sequence[ReplayPlan], log: Log) -> FoundResults:
        """Return the results that are there of these plans on a log, as it was read."""
        self._log = content_hash(log)
        files = kept_files(self.folder)
        numbers = {self._key(plan): i for i, plan in enumerate(plans)} if files else {}
        results, damaged, others = {}, 0, 0
        for file, (key, digest) in files.items():
            i = numbers.get(key)
            result = None if i is None else _read(file, key, digest, plans[i])
            if i is None:
                others += 1
            elif result is None:
                damaged += i not in results
                file.unlink(missing_ok=True)
            else:
                results[i] = result
        return FoundResults(dict(sorted(results.items())), damaged, others)

    def keep(self, plan: ReplayPlan, result: ReplayResult) -> None:
        """Write a result of a plan on the log that results were looked for.

        Raises
        ------
        OutputError
            The folder cannot be written.
        """
        said = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in _NOT_KEPT}
        said = {name: _plain(x) for name, x in said.items()}
        key = self._key(plan)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            passing = self.folder / passing_name()
            try:
                about = {RESULT: json.dumps({"key": key, **said})}
                pq.write_table(result.trajectory.replace_schema_metadata(about), passing)
                sync(passing)
                passing.rename(self.folder / kept_name(key, checksum(passing)))
            finally:
                passing.unlink(missing_ok=True)
            # With its entry in the folder above, if it is the first.
            sync(self.folder)
            sync(self.folder.parent)

    def _key(self, plan: ReplayPlan) -> str:
        return question_key(plan, self._log, self._code[plan.policy.spec])


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _read(file: Path, key: str, digest: str, plan: ReplayPlan) -> ReplayResult | None:
    """Return the result in a file; None where it is not what was written."""
    try:
        if checksum(file) != digest:
            return None
        with pq.ParquetFile(file) as stored:  # read as one: no folder's name becomes a column
            table = stored.read()
        said = json.loads(table.schema.metadata[RESULT])
        if said.pop("key") != key:
            return None
        hints = get_type_hints(ReplayResult)
        rebuilt = {name: _rebuilt(hints[name], x) for name, x in said.items()}
        return ReplayResult(
            **rebuilt, plan=plan.to_dict(), trajectory=table.replace_schema_metadata(None), learned=None
        )
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, AttributeError):
        return None


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
