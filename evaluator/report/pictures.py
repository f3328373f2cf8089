"""Charts as pictures."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

_ON_ANY = {"gridColor": "#888888", "gridOpacity": 0.25}
# For all charts of a result, of which each takes less than one: what takes longer is none of ours.
_SECONDS = 60.0
_DRAW = Path(__file__).with_name("draw.py")


def pictures(charts: Mapping[str, dict[str, Any]], *, form: Literal["png", "svg"] = "png") -> dict[str, bytes]:
    """Return charts as PNG at twice their size, or as SVG, by name; one that cannot be drawn in a minute has none."""
    found: dict[str, bytes] = {}
    names = list(charts)
    end = time.monotonic() + _SECONDS
    while names and time.monotonic() < end:
        lines = "".join(f"{json.dumps(charts[name])}\n" for name in names)
        # -P: no file of the folder it is run in is taken for a module.
        words = [sys.executable, "-P", str(_DRAW), form]
        try:
            done = subprocess.run(words, input=lines.encode(), capture_output=True, timeout=end - time.monotonic())
            said = done.stdout
        except OSError:  # no process can be started
            break
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
        drawn = said.decode().split("\n")[:-1]
        found |= {name: base64.b64decode(line) for name, line in zip(names, drawn, strict=False) if line}
        # The first that is not answered ended the process: on with the others.
        names = names[len(drawn) + 1 :]
    return found


def svg_pictures(charts: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return charts as SVG on no background, with a grid that is seen on light and dark pages, by name."""
    clear = {
        name: {
            **chart,
            "background": None,
            "config": {**chart.get("config", {}), "axis": {**chart.get("config", {}).get("axis", {}), **_ON_ANY}},
        }
        for name, chart in charts.items()
    }
    return {name: picture.decode() for name, picture in pictures(clear, form="svg").items()}
