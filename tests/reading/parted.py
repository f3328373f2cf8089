"""A log written in parts, cut where a test wants."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from evaluator.log import Log
from evaluator.reading.canonical import DisplayWriter, write_canonical
from evaluator.reading.log_folders import DISPLAYS, META, part_name, read_meta, write_meta


def write_parts(log: Log, folder: Path, cuts: Sequence[int]) -> Path:
    """Write a log into a new folder, cut before the displays of these numbers."""
    folder.mkdir()
    write_canonical(log, folder)
    meta = read_meta(folder).meta
    (folder / DISPLAYS).unlink()
    (folder / META).unlink()
    edges = [0, *cuts, len(log)]
    for number, (first, end) in enumerate(itertools.pairwise(edges), start=1):
        with DisplayWriter(folder, log.schema, part_name(number)) as part:
            part.add(log.displays.slice(first, end - first))
    write_meta(folder, meta)
    return folder
