"""What reports call the variants of a comparison: lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from evaluator.replays.result import ReplayResult
from evaluator.results.json_documents import Count, omitted


@dataclass(frozen=True)
class Line:
    """A variant as reports name it.

    Parameters
    ----------
    variant
        Number of the variant, from 0; people count from 1.
    policy, window
        Policy and window, as they were asked for.
    title
        Policy as sentences write it, with the label of a fixed action; empty where that is the policy itself.
    """

    variant: Count
    policy: str
    window: str
    title: Annotated[str, *omitted] = ""

    def __str__(self) -> str:
        return f"line {self.variant + 1} ({self.title or self.policy}, window {self.window})"


def line_of(variant: int, result: ReplayResult) -> Line:
    """Return a variant as reports name it."""
    return Line(variant, result.plan["policy"], window_text(result), result.title)


def window_text(result: ReplayResult) -> str:
    """Return the window of a variant as reports name it."""
    window, ticks = result.plan["window_rounds"], result.plan["window_ticks"]
    if window is None:
        return "none"
    return f"{window:,}" if ticks is None else str(result.plan["options"]["window"])
