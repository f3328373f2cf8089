"""Which keywords the public functions take, and where those live that they do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from evaluator.datasets.options import ReadingOptions
from evaluator.errors import UnknownOptionError, nearest
from evaluator.options.declaration import Options, declaration

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
    """Raise if a keyword is none of a function's options.

    Parameters
    ----------
    function
        Name of the function.
    given
        Keywords that it was called with.
    *options
        Dataclasses whose fields it takes, those of several values by their singular too.

    Raises
    ------
    UnknownOptionError
        A keyword is none; says where it lives, or which one is nearest.
    """
    fields = [field for cls in options for field in dataclasses.fields(cls)]
    known = {name for field in fields for name in (field.name, declaration(field).singular) if name}
    for name, value in given.items():
        if name not in known:
            said = f"`{name}` is no option of `{function}`."
            if name in _READING and function != "simulate":
                raise UnknownOptionError(
                    said, hint=f"it is one of the reading of a log: `load(..., {name}={value!r})`."
                )
            raise UnknownOptionError(said, hint=_ELSEWHERE.get(name) or nearest(name, known))
