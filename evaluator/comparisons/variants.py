"""The variants of a study: every policy with every window, planned one by one on what all share, and their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from evaluator.log import Log
from evaluator.policies.base import Need
from evaluator.policies.static import LoggingPolicy
from evaluator.replays.options import ReplayOptions
from evaluator.replays.plan import ReplayPlan
from evaluator.replays.planning import plan_replay, read_basis
from evaluator.replays.result import ReplayResult
from evaluator.replays.warm_start import learned_among, numbered_as_learned
from evaluator.results.json_documents import Count, omitted

Window = str | int | None


P = TypeVar("P")


def pairs_of(
    policies: Sequence[P], windows: Sequence[Window], description: Callable[[P], Any] = lambda policy: policy
) -> list[tuple[P, Window]]:
    """Return the policy and the window of each variant; the logging policy waits for nothing, and has the first only.

    Policies may come with whatever belongs to them: `description` returns the description of one.
    """
    return [
        (policy, window)
        for policy in policies
        for window in (windows[:1] if _is_logging(description(policy)) else windows)
    ]


def _is_logging(policy: Any) -> bool:
    return isinstance(policy, LoggingPolicy)


class Variants:
    """Policies with windows on one log, numbered from 0 in the order of `pairs_of`; `options.window` is not used."""

    def __init__(self, log: Log, policies: Sequence[Any], windows: Sequence[Window], options: ReplayOptions) -> None:
        own = learned_among(policies, options)
        pairs = pairs_of(own, windows, lambda of: of[0])
        # The logging policy's value is the log's mean: no number of rounds of the others cuts it short.
        self._asked = [
            (policy, replace(asked, window=window, horizon=None if _is_logging(policy) else asked.horizon))
            for (policy, asked), window in pairs
        ]
        self._basis = read_basis(numbered_as_learned(log, [policy for policy, _ in own]), options)

    def __len__(self) -> int:
        return len(self._asked)

    def plan(self, number: int) -> ReplayPlan:
        """Plan a variant."""
        return plan_replay(self._basis, *self._asked[number])


@dataclass(frozen=True)
class VariantInputs:
    """What a variant's policy was told.

    Parameters
    ----------
    needs
        Facts that the policy asks to be told.
    delay_cdf
        Sentence that says where its delay CDF comes from; None where it needs none, or there is none.
    horizon
        The largest number of rounds, which it was told if it needs the horizon; None where not.
    """

    needs: tuple[Need, ...]
    delay_cdf: str | None
    horizon: int | None

    @property
    def needs_cdf(self) -> bool:
        """Whether the policy asks for a delay CDF."""
        return Need.DELAY_CDF in self.needs


def assumed_by(plan: ReplayPlan) -> VariantInputs:
    """Return what the policy of a variant was told."""
    cdf = plan.setting.delay_cdf
    return VariantInputs(
        needs=tuple(plan.policy.needs),
        delay_cdf=cdf.source if cdf is not None and Need.DELAY_CDF in plan.policy.needs else None,
        horizon=plan.setting.horizon if Need.HORIZON in plan.policy.needs else None,
    )


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
