"""What the command sets in a process that is its own, and no library may set: how long freed memory is kept."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Polars reads the variable as it loads, and adds its own settings in front.
COMMAND = """
import os, sys
from evaluator.cli.app import main
sys.argv = ["evaluate", "--version"]
try:
    main()
except SystemExit:
    assert "polars" not in sys.modules
    import polars
    print(os.environ["_RJEM_MALLOC_CONF"])
"""
LIBRARY = """
import os, evaluator, polars
evaluator.load("synthetic", limit=100)
print(os.environ["_RJEM_MALLOC_CONF"])
"""


@pytest.mark.parametrize(
    ("script", "chosen", "kept"),
    [(COMMAND, None, True), (COMMAND, "dirty_decay_ms:0", False), (LIBRARY, None, False)],
)
def test_only_the_command_keeps_freed_memory_where_nobody_chose(script: str, chosen: str | None, kept: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "_RJEM_MALLOC_CONF"}
    environment |= {} if chosen is None else {"_RJEM_MALLOC_CONF": chosen}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    settings = done.stdout.split()[-1].split(",")
    assert ("dirty_decay_ms:10000" in settings) is kept
    assert chosen is None or settings[-1] == chosen
