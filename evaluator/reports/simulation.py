"""The document of a simulation: one line for each policy, then an explanation of the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evaluator.options.deployment import exploring_words
from evaluator.reports import document as doc
from evaluator.reports.numbers import column_digits, error_text
from evaluator.reports.terminal import fits
from evaluator.simulations.result import Simulation
from evaluator.worlds.scenarios.scenario import Flight

_CELLS = 20
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-:=+*#"
# Largest number of delay laws in the short form.
_LAWS = 4


def document(simulation: Simulation, layout: doc.Layout) -> doc.Document:
    """Return the document of a simulation, in full or for one screen."""
    window = "no window" if simulation.window is None else f"window {simulation.window:,}"
    heading = doc.paragraph(
        doc.run(simulation.scenario, "bold"),
        f": {simulation.runs:,} runs of {simulation.horizon:,} rounds, {simulation.n_actions} actions, {window}",
    )
    first, *more = _tables(simulation, layout)
    sections: list[doc.Section] = [doc.section("", heading, first), *(doc.section("", table) for table in more)]
    about, laws, told = _how(simulation, layout), _laws(simulation), _told(simulation)
    if layout.full or len(laws) <= _LAWS:
        sections.append(doc.listed("How", [*about, *laws, *told], folded=True))
    else:
        sections.append(doc.listed("How", [*about, *told], folded=True))
        sections.append(doc.name_omitted(f"the delays of {len(laws)} actions"))
    return doc.Document("simulate", f"Simulation of {simulation.scenario}", tuple(sections))


def _tables(simulation: Simulation, layout: doc.Layout) -> Iterator[doc.Grid]:
    """Yield the numbers in one table, or in two narrower tables where one is too wide."""
    longest = max(len(curve.policy) for curve in simulation.curves)
    whole = _table(simulation, simulation.stated, layout)
    if fits(whole, layout, longest):
        yield whole
        return
    if layout.full:
        yield _table(simulation, simulation.stated, layout, rest=False, curve=False)
    last = _table(simulation, simulation.stated[-1:], layout)
    yield last if fits(last, layout, longest) else _table(simulation, simulation.stated[-1:], layout, curve=False)


def _table(
    simulation: Simulation, stated: Sequence[int], layout: doc.Layout, *, rest: bool = True, curve: bool = True
) -> doc.Grid:
    """Return regret after the rounds at some places; the rest: what was observed, and differences; and the curve."""
    curves, bound, observed_bound = simulation.curves, simulation.lower_bound, simulation.observed_lower_bound
    last = [] if bound is None else [bound]
    parts = [(doc.column("regret after"), [*(policy.policy for policy in curves), *("lower bound" for _ in last)])]

    def add(name: str, values: list[float], errors: list[float], least: float | None, *, sign: bool = False) -> None:
        digits = column_digits(errors)
        numbers = zip(values, errors, strict=True)
        cells = [error_text(value, error, digits, layout.plus_minus, sign=sign) for value, error in numbers]
        if last:
            cells.append("" if least is None else f"{least:,.{digits}f}")
        parts.append((doc.column(name, "number"), cells))

    for i in stated:
        lowest = None if bound is None else bound[i]
        add(
            f"{simulation.rounds[i]:,}",
            [policy.regret[i] for policy in curves],
            [policy.regret_se[i] for policy in curves],
            lowest,
        )
    if rest:
        lowest = None if observed_bound is None else observed_bound[-1]
        add(
            "observed",
            [policy.observed[-1] for policy in curves],
            [policy.observed_se[-1] for policy in curves],
            lowest,
        )
        if len(curves) > 1:
            differences = [policy.difference for policy in curves]
            add("to the first", differences, [policy.difference_se for policy in curves], None, sign=True)
    if curve:
        top = max(float(policy.regret.max()) for policy in curves)
        bars = _PLAIN_BARS if layout.ascii else _BARS
        lines = [*(policy.regret for policy in curves), *last]
        parts.append((doc.column("", "whole"), [sparkline(line.tolist(), top, bars) for line in lines]))
    columns, cells = zip(*parts, strict=True)
    return doc.grid(columns, zip(*cells, strict=True))


def _how(simulation: Simulation, layout: doc.Layout) -> list[str]:
    best = "the best eligible action of each round" if simulation.flights else "the best action"
    lines = [
        f"regret: conversions that come sooner or later, lost to {best}; {layout.plus_minus} one standard error",
        f"observed: those lost by round {simulation.horizon:,} within the window (Vernade et al. 2017, eq. 1 and 3)",
    ]
    if len(simulation.curves) > 1:
        lines.append(
            "to the first: regret after all rounds less the first policy's, paired: run r of all policies has the same "
            "contexts and luck"
        )
    if simulation.lower_bound is not None:
        lines.append("lower bound: of any uniformly efficient policy for large T (the same, Theorems 3 and 4)")
    if simulation.flights:
        lines.append(f"eligible: {flights_text(simulation.flights)}; the others always")
    return lines


def _laws(simulation: Simulation) -> list[str]:
    """Return sentences on the delays of conversions, one for each action if the actions differ."""
    one = len(simulation.laws) == 1
    within = [
        "" if simulation.window is None else f"; {tau:.1%} of the conversions within the window"
        for tau in simulation.tau_window
    ]
    return [
        f"{'' if one else f'action {k}: '}{law}{share}"
        for k, (law, share) in enumerate(zip(simulation.laws, within, strict=True))
    ]


def _told(simulation: Simulation) -> list[str]:
    lines = []
    if simulation.told:
        lines.append(f"policies are told: {simulation.told}")
    if simulation.learns:
        lines.append(f"policies learn {simulation.learns}")
    if simulation.explores:
        lines.append(
            f"in the first {simulation.explores:,} rounds {exploring_words(simulation.explores_as_logger)}, and the "
            "policies learn from them"
        )
    if simulation.told_zeros:
        zeros = ", ".join(simulation.told_zeros)
        lines.append(f"told of each zero, after a delay of its own, as no log of conversions does: {zeros}")
    return lines


def flights_text(flights: Sequence[Flight]) -> str:
    """Return text that says in which rounds actions are eligible.

    >>> flights_text([Flight(1, 0, 2000), Flight(1, 6000), Flight(2, 10, 20)])
    'action 1 in rounds 1 to 2,000 and from round 6,001 on, action 2 in rounds 11 to 20'
    """
    flown: dict[int, list[str]] = {}
    for action, start, until in sorted(flights, key=lambda flight: flight[:2]):
        when = f"from round {start + 1:,} on" if until is None else f"in rounds {start + 1:,} to {until:,}"
        flown.setdefault(action, []).append(when)
    return ", ".join(f"action {action} {' and '.join(when)}" for action, when in flown.items())


def sparkline(values: list[float], top: float, bars: str = _BARS) -> str:
    """Return at most 20 of the values as a row of bars; a value of `top` has the highest bar.

    >>> sparkline([0.0, 1.0, 2.0], 4.0)
    '▁▃▅'
    """
    n = min(len(values), _CELLS)
    thinned = [values[math.ceil((i + 1) * len(values) / n) - 1] for i in range(n)]
    levels = [0 if top <= 0 else round(max(value, 0.0) / top * (len(bars) - 1)) for value in thinned]
    return "".join(bars[min(level, len(bars) - 1)] for level in levels)
