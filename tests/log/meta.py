"""The same log with other metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evaluator.log import Log


def with_meta(log: Log, **changes: Any) -> Log:
    """Return the log with changed metadata."""
    return replace(log, meta=replace(log.meta, **changes))
