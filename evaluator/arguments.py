"""Which keywords the public functions take, and where those live that they do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from evaluator.datasets.options import ReadingOptions
from evaluator.options import signatures
from evaluator.options.declaration import Options

_READING = frozenset(field.name for field in dataclasses.fields(ReadingOptions))
# What the command line alone has, or has under another name.
_ELSEWHERE = {
    "out": "it is of the command line; here `to_dict()` of the result and its tables hold what --out writes.",
    "save_policy": 'it is of the command line; here `result.learned.save("learned.npz")` does it.',
    "dry_run": "it is of the command line; here `plan(log, policy)` does it.",
    "json": "it is of the command line; here `to_dict()` of the result does it.",
    "debug": "it is of the command line; Python shows tracebacks anyway.",
    "dataset": "the log is the first argument: a `Log`, or what `load` takes.",
    "policy": "policies are the second argument.",
    "policies": "policies are the second argument.",
    "scenario": "`simulate` takes a scenario, as its first argument.",
    "file": "it is of the command line; `evaluator.datasets.delay_file.read_delay_file` reads such files.",
}
_ELSEWHERE["as_json"] = _ELSEWHERE["json"]


def refuse_unknown(function: str, given: Mapping[str, object], *options: type[Options]) -> None:
    """Raise if a keyword is none of a function's options; as `evaluator.options.signatures.refuse_unknown`."""
    reading = {} if function == "simulate" else {name: given[name] for name in _READING & given.keys()}
    told = {
        name: f"it is one of the reading of a log: `load(..., {name}={value!r})`." for name, value in reading.items()
    }
    signatures.refuse_unknown(function, given, *options, elsewhere=_ELSEWHERE | told)
