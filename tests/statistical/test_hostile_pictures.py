"""Pictures of whatever letters: hundreds of labels from all of Unicode, half of which the library would die of."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.reports.chart_parts import drawable
from evaluator.reports.html import pictures

CHARTS, LABELS = 40, 12
# Controls, letters of several scripts, marks, spaces, halves of characters, private and other planes, emoji.
RANGES = [
    (0, 0x20), (0x20, 0x7F), (0x7F, 0x300), (0x300, 0x370), (0x590, 0x800), (0x900, 0x1000), (0x1F00, 0x2100),
    (0x2000, 0x2070), (0xD800, 0xE000), (0xE000, 0x10000), (0x10000, 0x110000), (0x1F300, 0x1FA00),
]  # fmt: skip
LENGTHS = (1, 5, 28, 60, 5000)


def label(rng: np.random.Generator) -> str:
    blocks = rng.integers(len(RANGES), size=rng.choice(LENGTHS))
    return "".join(chr(rng.integers(*RANGES[block])) for block in blocks)


@pytest.mark.usefixtures("drawn_alone")
def test_every_label_can_be_drawn() -> None:
    rng = np.random.default_rng(1)
    charts = {}
    for number in range(CHARTS):
        labels = [drawable(label(rng)) for _ in range(LABELS)]
        by = drawable(label(rng))
        legend = {"title": by, "labelLimit": 0, "titleLimit": 0}
        charts[str(number)] = {
            "data": {"values": [{"at": at, "of": name} for at in (1, 2) for name in labels]},
            "title": {"text": f"Delays by {by}"},
            "mark": "line",
            "encoding": {
                "x": {"field": "at", "type": "quantitative"},
                "y": {"field": "at", "type": "quantitative"},
                "color": {"field": "of", "type": "nominal", "scale": {"domain": labels}, "legend": legend},
            },
        }
    assert list(pictures(charts)) == list(charts)
