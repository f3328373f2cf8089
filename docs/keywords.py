"""Write `evaluator/options/keywords.py`: the options of the public functions as types, for editors and type checkers.

``python docs/keywords.py`` does it, from the declarations; a test says when it is due.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import NoneType
from typing import Any

from evaluator.audits.options import AuditOptions
from evaluator.checks.options import CheckOptions
from evaluator.comparisons.options import CompareOptions
from evaluator.delays.study.options import DelayOptions
from evaluator.options.declaration import Options, alternatives, declaration, kinds_of, several, type_text
from evaluator.reading.options import ReadingOptions
from evaluator.replays.options import BareReplayOptions, ReplayOptions
from evaluator.simulations.options import SimulateOptions

FILE = Path(__file__).resolve().parents[1] / "evaluator/options/keywords.py"

_HEAD = '''"""The options of the public functions, as types. Written by `docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict
'''
# Each class, what it is for, the dataclass, the class of keywords that it extends, and what it leaves out.
_CLASSES: tuple[tuple[str, str, type[Options], str, tuple[str, ...]], ...] = (
    ("ReadingKeywords", "Options of `evaluator.load`.", ReadingOptions, "", ()),
    ("BareReplayKeywords", "Options of a replay that all who replay share.", BareReplayOptions, "",
     ("window", "learn_every", "learn_from", "bootstrap")),
    ("SharedKeywords", "Options of a replay that those of a comparison share.", ReplayOptions, "BareReplayKeywords",
     ("window", "learn_every", "learn_from", "bootstrap")),
    ("ReplayKeywords", "Options of `evaluator.replay` and `evaluator.plan`.", ReplayOptions, "SharedKeywords", ()),
    # Python takes a baseline of any kind that a policy may have, not its name alone.
    ("CompareKeywords", "Options of `evaluator.compare`.", CompareOptions, "SharedKeywords", ("baseline",)),
    ("AuditKeywords", "Options of `evaluator.audit`.", AuditOptions, "BareReplayKeywords", ()),
    ("SimulateKeywords", "Options of `evaluator.simulate`.", SimulateOptions, "", ()),
    ("DelayKeywords", "Options of `evaluator.study_delays`.", DelayOptions, "", ()),
    ("CheckKeywords", "Options of `evaluator.check`.", CheckOptions, "", ()),
)  # fmt: skip


def source() -> str:
    """Return the text of `evaluator/options/keywords.py`."""
    parts, said = [_HEAD], dict[str, set[str]]()
    for name, about, options, base, left_out in _CLASSES:
        kinds = kinds_of(options)
        known = said.get(base, set())
        own = [f.name for f in dataclasses.fields(options) if f.name not in known and f.name not in left_out]
        said[name] = known | set(own)
        lines = [f"class {name}({base or 'TypedDict'}, total=False):", f'    """{about}"""', ""]
        lines += [f"    {option}: {_taken(kinds[option])}" for option in own]
        # One of several values goes by its singular, too.
        ones = {declaration(f).singular: several(kinds[f.name]) for f in dataclasses.fields(options)}
        lines += [f"    {one}: {type_text(kind)}" for one, kind in ones.items() if one]
        parts.append("\n".join(lines) + "\n")
    return "\n\n".join(parts)


def _taken(kind: Any) -> str:
    """Return the type of what a function takes for a field: where that is several values, one alone, too."""
    inner = several(kind)
    ones = () if inner is None else alternatives(inner)
    kinds = (*(one for one in ones if one is not NoneType), *alternatives(kind))
    return " | ".join(dict.fromkeys(map(type_text, kinds)))


def main() -> None:
    """Write the file."""
    FILE.write_text(source(), encoding="utf-8")


if __name__ == "__main__":
    main()
