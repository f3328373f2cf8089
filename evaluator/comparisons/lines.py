"""What reports call the variants of a comparison: by their policies, which are lines of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        Policy as sentences write it, with the label of a fixed action; empty where that is `policy`.
    """

    variant: Count
    policy: str
    window: str
    title: Annotated[str, *omitted] = ""

    def named_among(self, lines: Iterable[Line]) -> str:
        """Return the name that tells it from others: its policy, with its window where windows differ.

        The logging policy is one line, whatever the windows: no window is its own.
        """
        alike = {self.window, *(line.window for line in lines)} == {self.window}
        title = self.title or self.policy
        return title if alike or self.policy == "logging" else f"{title}, window {self.window}"


def names_of(results: Sequence[ReplayResult]) -> list[str]:
    """Return the names of all variants of a comparison."""
    lines = [line_of(i, result) for i, result in enumerate(results)]
    return [line.named_among(lines) for line in lines]


def line_of(variant: int, result: ReplayResult) -> Line:
    """Return a variant as reports name it."""
    return Line(variant, result.plan["policy"], window_text(result), result.title)


def window_text(result: ReplayResult) -> str:
    """Return the window of a variant as reports name it."""
    window, ticks = result.plan["window_rounds"], result.plan["window_ticks"]
    if window is None:
        return "none"
    return f"{window:,}" if ticks is None else str(result.plan["options"]["window"])
