"""Reading needs no more memory for a log of many displays than for one of some."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reading.sources import write_spec

PEAK = """
import json, resource, sys
from evaluator.reading import sorting
from evaluator.reading import frames as scan
scan.CHUNK_ROWS, sorting.RANGE_ROWS = 10_000, 25_000
from evaluator.datasets import convert, validate
spec, out, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
if out == "validate":
    validate(spec, **options)
else:
    convert(spec, out, **options)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_mb(spec: Path, out: str, **options: Any) -> int:
    words = [sys.executable, "-c", PEAK, str(spec), out, json.dumps(options)]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("job", ["convert", "sort", "validate"])
def test_memory_does_not_grow_with_the_log(tmp_path: Path, job: str) -> None:
    peaks = []
    # Both larger than what is sorted at once.
    small, large = 100_000, 300_000
    context = {"columns": ["user", "city"], "dimensions": 128}
    for n in (small, large):
        folder = tmp_path / str(n)
        folder.mkdir()
        spec = write_spec(folder, source={"files": "log.csv.gz"}, context=context)
        times = np.arange(n) if job != "sort" else np.random.default_rng(0).permutation(n)
        lines = "".join(f"{t},{t % 10},,{t % 1000},{t % 10}\n" for t in times.tolist())
        (folder / "log.csv.gz").write_bytes(gzip.compress(f"t,ad,sold,city,user\n{lines}".encode(), 1))
        out = "validate" if job == "validate" else str(folder / "out")
        peaks.append(peak_mb(spec, out, **({"sort": True} if job == "sort" else {})))
    # A display in memory: id, time, action, propensity, and 129 context dimensions of four bytes.
    in_memory = (large - small) * (8 + 8 + 4 + 8 + 4 * 129) / 2**20
    assert peaks[1] - peaks[0] < in_memory / 2
