"""Write `evaluator/options/keywords.py`: the options of the public functions as types, for editors and type checkers.

``python docs/keywords.py`` does it, from the declarations; a test says when it is due.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.datasets.options import ReadingOptions
from evaluator.delays.study.options import DelayOptions
from evaluator.options.declaration import Options, declaration, kinds_of, several, type_text
from evaluator.replays.options import ReplayOptions
from evaluator.simulations.options import SimulateOptions

FILE = Path(__file__).resolve().parents[1] / "evaluator/options/keywords.py"

_HEAD = '''"""The options of the public functions, as types. Written by `docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict
'''
# Each class, what it is for, the dataclass, and the class of keywords that it extends.
_CLASSES: tuple[tuple[str, str, type[Options], str, tuple[str, ...]], ...] = (
    ("ReadingKeywords", "Options of `evaluator.load`.", ReadingOptions, "", ()),
    ("CompareKeywords", "Options of `evaluator.compare` that its replays share.", ReplayOptions, "", ("window",)),
    ("ReplayKeywords", "Options of `evaluator.replay` and `evaluator.plan`.", ReplayOptions, "CompareKeywords", ()),
    ("AuditKeywords", "Options of `evaluator.audit`.", AuditOptions, "ReplayKeywords", ()),
    ("SimulateKeywords", "Options of `evaluator.simulate`.", SimulateOptions, "", ()),
    ("DelayKeywords", "Options of `evaluator.study_delays`.", DelayOptions, "", ()),
    ("CheckKeywords", "Options of `evaluator.check`.", CheckOptions, "", ()),
)


def source() -> str:
    """Return the text of `evaluator/options/keywords.py`."""
    parts, said = [_HEAD], dict[str, set[str]]()
    for name, about, options, base, left_out in _CLASSES:
        kinds = kinds_of(options)
        known = said.get(base, set())
        own = [f.name for f in dataclasses.fields(options) if f.name not in known and f.name not in left_out]
        said[name] = known | set(own)
        lines = [f"class {name}({base or 'TypedDict'}, total=False):", f'    """{about}"""', ""]
        lines += [f"    {option}: {type_text(kinds[option])}" for option in own]
        # One of several values goes by its singular, too.
        ones = {declaration(f).singular: several(kinds[f.name]) for f in dataclasses.fields(options)}
        lines += [f"    {one}: {type_text(kind)}" for one, kind in ones.items() if one]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def main() -> None:
    """Write the file."""
    FILE.write_text(source(), encoding="utf-8")


if __name__ == "__main__":
    main()
