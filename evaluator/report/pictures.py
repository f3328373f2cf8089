"""Charts as pictures."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

_ON_ANY = {"gridColor": "#888888", "gridOpacity": 0.25}
_DRAW = Path(__file__).with_name("draw.py")


def pictures(charts: Mapping[str, dict[str, Any]], *, form: Literal["png", "svg"] = "png") -> dict[str, bytes]:
    """Return charts as PNG at twice their size, or as SVG, by name; a chart that cannot be drawn has none."""
    found: dict[str, bytes] = {}
    names = list(charts)
    while names:
        lines = "".join(f"{json.dumps(charts[name])}\n" for name in names)
        try:
            # -P: no file of the folder it is run in is taken for a module.
            done = subprocess.run([sys.executable, "-P", _DRAW, form], input=lines, capture_output=True, text=True)
        except OSError:  # no process can be started
            break
        drawn = done.stdout.split("\n")[:-1]
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
