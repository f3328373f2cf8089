"""Tables of a replay: its estimates, and the values of its final policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from evaluator.estimates.confidence import Interval
from evaluator.estimates.weighted import ESTIMATORS, NORMAL, WeightedValue
from evaluator.replays.result import ReplayResult
from evaluator.replays.values.doubly_robust import LEARNING
from evaluator.replays.values.final import FinalValue
from evaluator.reports.document import Cell, Grid, Section, column, grid, lines, paragraph, section
from evaluator.reports.numbers import Measured, measured, significant_text

# Note on intervals that depend on the largest reward seen.
APPROXIMATE = ", not anytime-valid"
_LEFT_OUT = (
    ", estimated on displays left out of the replay: another target than the value above, which is that of the rounds "
    "in which the policy learned."
)
# Heading and description of each kind of final policy.
_FINAL = {
    "greedy": (
        "Final policy, greedy",
        "Reward per round of the best of what was learned: always the action with the largest estimated reward, no "
        "bonus, no draws, no learning on" + _LEFT_OUT,
    ),
    "exploring": (
        "Final policy, exploring",
        "Reward per round of the policy frozen as it would choose next, its bonus and draws included, without learning "
        "on: not what it has learned to be best" + _LEFT_OUT,
    ),
    "posterior sampling": (
        "Final policy, posterior sampling",
        "Reward per round of actions shown with the posterior's choice probabilities, without learning on" + _LEFT_OUT,
    ),
    "fixed": ("Fixed policy", "Reward per round of a policy that learns nothing, by weights on the displays left out."),
    "columns": (
        "Fixed policy",
        "Reward per round of the policy whose probabilities are columns of the log, by weights on all its displays, or "
        "on those that `final` names.",
    ),
}


class _Row(NamedTuple):
    """A number: its name, its explanation in the full form, its name in the short form, and its cells."""

    name: str
    more: str
    cells: tuple[Cell, Cell, str]
    short: str = ""


def estimates(result: ReplayResult, *, full: bool, few: bool = False) -> Grid:
    """Return the table of the estimates; with `few`, for a page as wide as a phone, intervals below estimates."""
    about = "" if result.plan["reward_bound"]["known"] else APPROXIMATE
    level = f"{result.value.level:.0%} interval"
    columns = [
        column("" if full else _unit(result), bold=True),
        column("estimate", "number"),
        column(level if full or not about else lines(level, about[2:]), "number"),
        column("n", "number"),
    ]
    rows = list(_rows(result, about))
    if few:
        below = [(row.short or row.name, _below(row.cells)) for row in rows]
        return grid([column(_unit(result), bold=True), column("estimate", "number")], below, alike="rows")
    named = [(f"{row.name}{row.more}" if full else row.short or row.name, *row.cells) for row in rows]
    return grid(columns, named, alike="rows")


def _below(cells: tuple[Cell, Cell, str]) -> Cell:
    """Return one cell of an estimate and its interval."""
    estimate, interval, _ = cells
    if isinstance(estimate, Measured):
        return replace(estimate, part="below")
    return lines(str(estimate), str(interval))


def _unit(result: ReplayResult) -> str:
    seen = "" if result.plan["options"]["reward"] == "eventual" else " seen by the horizon"
    return f"{'reward' if result.money is None else 'profit'} per round{seen}"


def _rows(result: ReplayResult, about: str) -> Iterator[_Row]:
    clusters = result.plan["clusters"]
    by = "" if clusters is None else f", by {clusters['by']}"
    yield _Row("realised value", f" ({_unit(result)}){about}", _cells(result.value))
    if result.expected_value is not None:
        more = f" at {result.rounds:,} rounds (bootstrap{by})"
        yield _Row("expected value", more, _cells(result.expected_value), f"expected value (bootstrap{by})")
    if result.doubly_robust is not None and result.doubly_robust.target == LEARNING:
        displays = "all displays read" if result.plan["options"]["repeats"] == 1 else "all that the first repeat read"
        yield _Row(f"value over {displays}, doubly robust{by}", "", _given(result.doubly_robust))
    best = result.best_fixed_action
    name = f"regret over {result.rounds:,} rounds"
    yield _Row(name, f" vs best fixed {best.kind}{about}", _cells(result.regret), f"regret vs best fixed {best.kind}")
    if not math.isnan(result.true_regret):
        truth = (significant_text(result.true_regret, 4), "known truth", "")
        yield _Row("true regret", " vs the best action of each display", truth)
    yield _Row("uplift over the logging policy", f" (per round){about}", _cells(result.uplift))
    for name, amount in () if result.money is None else result.money.rows():
        yield _Row(name, about if name != "cost per round" else "", _cells(amount))
    yield _Row("logging policy's value", about, _cells(result.logging_value))
    how = " (halves choose and value)" if best.by_halves else ""
    yield _Row(f"best fixed {best.kind}: {best.label or 'unknown'}", f"{how}{about}", _cells(best.value))


def final_section(final: FinalValue, *, full: bool = True) -> Section:
    """Return the value of a frozen policy by every estimator, or by the first one, with its assumptions."""
    columns = [
        column("", bold=True),
        column("estimate", "number", folds=True),
        column(f"{final.ips.value.level:.0%} interval", "number"),
        column("n", "number", folds=True),
    ]
    estimators = tuple(reversed(ESTIMATORS))[: None if full else 1]
    rows = [(one.title, *_given(final.estimates[one.name])) for one in estimators]
    rows.append(("logging policy on these displays", *_given(final.logging)))
    w = final.weights
    weights = (
        f"weights: effective sample size {w.effective_sample_size:,.0f} of {w.n:,}, mean {w.mean:.3g} (1 if "
        f"propensities are right), largest {w.largest:.3g}; {final.rewarded:,} displays with a reward count"
    )
    (heading, about), kind = _FINAL[final.policy], final.ips.value.kind
    probabilities = [f"probabilities: shares of {final.draws:,} draws at each display"] if final.draws and full else []
    if final.repeats > 1:
        about += f" It is any of the final policies of the {final.repeats} repeats, with equal chance."
    return section(
        heading,
        paragraph(f"{about} {'Normal intervals' if kind == NORMAL else f'Intervals: {kind}'}.", style="dim"),
        grid(columns, rows),
        paragraph(lines(*probabilities, weights)),
    )


def _given(weighted: WeightedValue) -> tuple[Cell, Cell, str]:
    return _cells(weighted.value) if weighted.given else ("not given", "too few rewards", f"{weighted.value.n:,}")


def _cells(interval: Interval) -> tuple[Cell, Cell, str]:
    return (*measured(interval), f"{interval.n:,}")
