"""Run the command line in this process."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

import pytest

from evaluator.cli import app as cli
from evaluator.cli import options


@dataclass(frozen=True)
class Run:
    """Exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def evaluate(*words: str) -> Run:
    """Run ``evaluate`` as its script does, errors and exit code included."""
    out, err = io.StringIO(), io.StringIO()
    patch = pytest.MonkeyPatch()
    patch.setattr("sys.argv", ["evaluate", *words])
    patch.setattr(options, "debug", False)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
            cli.main()
    finally:
        patch.undo()
    return Run(int(stop.value.code or 0), out.getvalue(), err.getvalue())
