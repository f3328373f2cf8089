"""The output of commands that replay policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evaluator.cli.output import Save, this_command

if TYPE_CHECKING:
    from evaluator.comparisons.result import Comparison
    from evaluator.datasets import Reading
    from evaluator.replays.result import ReplayResult


def save_result(save: Save, result: ReplayResult | Comparison, source: Reading, reading: Mapping[str, Any]) -> None:
    """Write the result of a command on a log to its ``--out``."""
    from evaluator.reports.result_files import write_result

    where = origin(source, reading)
    save(write_result, result, source=where, quarantine=source.quarantine, command=this_command())


def origin(source: Reading, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of a result: the log with its size and time range, and the options of its reading."""
    meta = source.log.meta
    log_facts = {"displays": len(source.log), "tick": meta.tick, "time_range": list(source.log.time_range())}
    return {"dataset": meta.name, "fingerprint": meta.fingerprint, "reading": reading, "log": log_facts}
