"""Draw charts. This is a script because the drawing library may end its process when it fails.

Each line of stdin is a chart as JSON. Each line of stdout is its picture in base 64, or empty if the chart cannot be
drawn. The argument is the format: png (at twice the size) or svg.
"""

from __future__ import annotations

import base64
import json
import sys

import vl_convert


def _main(form: str) -> None:
    for line in sys.stdin:
        chart = json.loads(line)
        try:
            # The library fetches no address, even if a chart names one.
            if form == "svg":
                picture = vl_convert.vegalite_to_svg(chart, allowed_base_urls=[]).encode()
            else:
                picture = vl_convert.vegalite_to_png(chart, scale=2, allowed_base_urls=[])
        except ValueError:
            picture = b""
        print(base64.b64encode(picture).decode(), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1])
