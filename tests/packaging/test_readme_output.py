"""Every number in the README is what the command beside it prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_consoles_show_what_the_commands_print() -> None:
    consoles = re.findall(r"```console\n\$ evaluate (.*?)\n(.*?)```", README, re.DOTALL)
    assert consoles
    for command, shown in consoles:
        done = subprocess.run(
            [sys.executable, "-m", "evaluator", *shlex.split(command)], capture_output=True, text=True, check=True
        )
        assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()
