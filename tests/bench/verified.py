"""What it costs that a converted log verifies itself: ``python -m tests.bench.verified [--rows N] [--folder FOLDER]``.

Opens and replays a converted twin of the Criteo log, and the same log in the first version of the format, whose pages
have no checksums, in turns. With ``--folder`` the logs are looked for, and kept, there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from unittest.mock import patch

from evaluator import load, replay
from evaluator.reading import canonical
from evaluator.reading.log_folders import DISPLAYS, META
from tests.bench.full_size_replay import converted
from tests.bench.timing import RUNS, Job, seconds


def unverified(log: Path) -> Path:
    """Return the log in the first version of the format, made unless it is there."""
    folder = log.with_name(f"{log.name}-version-1")
    if not folder.exists():
        folder.mkdir()
        with patch.dict(canonical.WRITTEN, write_page_checksum=False):
            canonical.write_canonical(load(log), folder)
        said = json.loads((folder / META).read_text())
        first = {name: value for name, value in said.items() if name not in ("written_by", "files", "checksum")}
        (folder / META).write_text(json.dumps({**first, "schema_version": 1}))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16_468_027)
    parser.add_argument("--folder", type=Path, help="where the logs are kept; a temporary folder otherwise")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()

    def job(log: Path) -> Job:
        return lambda: replay(load(log, actions="top:10"), "otflinucb", window="7d", propensity="estimate")

    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        log = converted(folder, given.rows)
        logs = {"version 2": log, "version 1": unverified(log)}
        taken = seconds({name: job(path) for name, path in logs.items()}, runs=given.runs)
        print(f"{given.rows:,} displays opened and replayed by otflinucb, median processor time of {given.runs} runs")
        print(f"{'':<12}{'seconds':>10}{'displays, MB':>14}")
        for name, path in logs.items():
            print(f"{name:<12}{taken[name]:>10.2f}{(path / DISPLAYS).stat().st_size / 1e6:>14.1f}")
        print(f"{'ratio':<12}{taken['version 2'] / taken['version 1']:>10.3f}")


if __name__ == "__main__":
    main()
