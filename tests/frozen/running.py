"""Runs a command for its snapshot, and keeps what others read."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evaluator.cli import options
from tests.cli.runs import evaluate
from tests.frozen.commands import COMMANDS, Command
from tests.frozen.logs import LOGS, write_log
from tests.frozen.normal import page_text, plain, plain_json

# A failed check is a result, too; what is larger is a signal that stopped the run.
RESULTS = (0, 4)
SNAPSHOTS = Path(__file__).parent / "snapshots"


@dataclass(frozen=True)
class Runs:
    """Commands in a folder of their own, each run once."""

    folder: Path
    done: dict[str, str] = field(default_factory=dict)

    def snapshot(self, name: str) -> str:
        """Return what a command says, in the form that is kept."""
        if name not in self.done:
            command = COMMANDS[name]
            for other in command.after:
                self.snapshot(other)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self.folder)
                patch.setenv("COLUMNS", "80")
                Path("out").mkdir(exist_ok=True)
                self._make_logs(command)
                self.done[name] = self._run(name, command)
        return self.done[name]

    def _make_logs(self, command: Command) -> None:
        for word in command.words:
            log = word.partition("/")[0]
            if log in LOGS and not Path(log).exists():
                write_log(log, Path(log))
            if log == "shop" and not Path(log).exists():
                evaluate("datasets", "make", "shop", "-o", "shop")

    def _run(self, name: str, command: Command) -> str:
        out = Path("out") / name
        words = [*command.words, *(["--full", "-o", str(out)] if command.parts == "pages" else [])]
        with pytest.MonkeyPatch.context() as patch:
            shown = Shown()
            patch.setattr(options, "show", shown)
            run = evaluate(*words)
        if run.code > max(RESULTS):
            raise KeyboardInterrupt(run.err)
        parts = {
            f"evaluate {' '.join(command.words)}": f"exit code {run.code}",
            "stderr": run.err.partition("Wrote report.html")[0],
            "screen": shown.again() if command.parts == "pages" else run.out,
        }
        if run.code in RESULTS:
            parts |= self._more(command, run.out, out, shown)
        kept = [
            f"=== {title}\n{plain(text, str(self.folder)).strip(chr(10))}\n" for title, text in parts.items() if text
        ]
        return "\n".join(kept)

    def _more(self, command: Command, printed: str, out: Path, shown: Shown) -> dict[str, str]:
        match command.parts:
            case "pages":
                result, page = ((out / file).read_text("utf-8") for file in ("result.json", "report.html"))
                return {"full": printed, "json": plain_json(json.loads(result)), "page": page_text(page)}
            case "json" if hasattr(shown.result, "to_dict"):
                return {"json": plain_json(json.loads(shown.again(as_json=True)))}
            case "json":
                return {"json": plain_json(evaluate(*command.words, "--json").json)}
            case "report":
                return {"page": page_text(Path(command.words[-1]).read_text("utf-8"))}
        return {}


@dataclass
class Shown:
    """What shows results in place of `options.show`; the last one can be shown in other forms, computed once."""

    result: Any = None

    def __call__(self, result: Any, **how: bool) -> None:
        self.result = result
        _SHOW(result, **how)

    def again(self, *, as_json: bool = False) -> str:
        """Return what is printed without `--full`, or with `--json`."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            _SHOW(self.result, full=False, as_json=as_json)
        return out.getvalue()


_SHOW = options.show
