"""Finished results of a study that was interrupted, kept until all of it is written."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow.parquet as pq

from evaluator import __version__
from evaluator.evaluation.plan import Plan
from evaluator.evaluation.result import ReplayResult

_RESULT = b"result"
_LIBRARIES = ("numpy", "numba", "scipy")
_NOT_KEPT = ("trajectory", "plan", "learned")


class KeptResults:
    """Results in a folder, one file each, named by all that they depend on.

    A result is found again only for the same log, variant, options and versions. Files appear whole or not at all,
    whenever the process is killed.

    Parameters
    ----------
    folder
        Where they are; made with the first of them.
    reading
        How the log was read, where its fingerprint does not say.
    """

    def __init__(self, folder: Path, *, reading: Mapping[str, Any]) -> None:
        self._folder = folder
        self._reading = dict(reading)

    def find(self, plans: Sequence[Plan]) -> dict[int, ReplayResult]:
        """Return the results that are there, by the number of their plan."""
        files = {i: self._file(plan) for i, plan in enumerate(plans)} if self._folder.is_dir() else {}
        return {i: _read(file, plans[i]) for i, file in files.items() if file.exists()}

    def keep(self, plan: Plan, result: ReplayResult) -> None:
        """Write a result."""
        self._folder.mkdir(parents=True, exist_ok=True)
        said = {f.name: getattr(result, f.name) for f in fields(result) if f.name not in _NOT_KEPT}
        said = {name: asdict(x) if is_dataclass(x) and not isinstance(x, type) else x for name, x in said.items()}
        file = self._file(plan)
        partial = file.with_name(f".{file.name}-{os.getpid()}")
        pq.write_table(result.trajectory.replace_schema_metadata({_RESULT: json.dumps(said)}), partial)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.rename(file)

    def remove(self) -> None:
        """Forget all results: they are written elsewhere."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, plan: Plan) -> Path:
        planned = plan.to_dict()
        planned["options"].pop("jobs")
        cdf = plan.setting.delay_cdf
        depends = {
            "plan": planned,
            "reading": self._reading,
            "code": _own_code(plan.policy),
            "delays": None
            if cdf is None
            else [
                cdf.delays.tolist(),
                cdf.cdf.tolist(),
                cdf.geometric_ratio,
                cdf.start,
                cdf.moments,
            ],
            "versions": {"delayed-replay": __version__, **{name: version(name) for name in _LIBRARIES}},
        }
        return self._folder / f"{hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()}.parquet"


def _read(file: Path, plan: Plan) -> ReplayResult:
    table = pq.read_table(file)
    hints = get_type_hints(ReplayResult)
    said = {name: _rebuilt(hints[name], x) for name, x in json.loads(table.schema.metadata[_RESULT]).items()}
    return ReplayResult(**said, plan=plan.to_dict(), trajectory=table.replace_schema_metadata(None), learned=None)


def _rebuilt(hint: Any, value: Any) -> Any:
    """Return a value of the type that a field names, from what JSON made of it."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(value)
    kind = next((kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)), None)
    if kind is None:
        return value
    hints = get_type_hints(kind)
    return kind(**{name: _rebuilt(hints[name], x) for name, x in value.items()})  # type: ignore[operator]


def _own_code(policy: Any) -> str | None:
    """Return a hash of the file of a user's policy: its name alone does not say what it does."""
    cls = getattr(policy, "cls", type(policy))
    if cls.__module__.startswith("evaluator."):
        return None
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:
        return None
    return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()


def kept_beside(out: Path, *, reading: Mapping[str, Any]) -> KeptResults:
    """Return where the finished results of a study are kept until its folder `out` is written: ``out.partial``."""
    return KeptResults(out.parent / f"{out.name}.partial", reading=reading)
