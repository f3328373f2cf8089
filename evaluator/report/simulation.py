"""A simulation on the terminal: one line a policy, then what the numbers are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from evaluator.datasets.scenario import Flight
from evaluator.report.console import ReportConsole
from evaluator.report.short import left_out
from evaluator.report.table_widths import fits
from evaluator.report.terminal import sentences
from evaluator.simulations.result import Simulation
from evaluator.visible import visible

_CELLS = 20
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-:=+*#"
# Laws of delays that a screen holds.
_LAWS = 4


def print_simulation(console: ReportConsole, found: Simulation, *, full: bool = True) -> None:
    """Print a simulation: all of it, or what fits a screen."""
    window = "no window" if found.window is None else f"window {found.window:,}"
    console.print(
        Text.assemble(
            (visible(found.scenario), "bold"),
            f": {found.runs:,} runs of {found.horizon:,} rounds, {found.n_actions} actions, {window}",
        )
    )
    plain = console.options.ascii_only
    bars, sign = (_PLAIN_BARS, "+-") if plain else (_BARS, "±")
    longest = max(len(curve.policy) for curve in found.curves)
    whole = _table(found, found.stated, bars, sign)
    if fits(console, whole, longest):
        console.print(whole)
    else:
        # Numbers stand whole: where one table is too wide for them, two are not.
        if full:
            console.print(_table(found, found.stated, bars, sign, rest=False, curve=False))
            console.print()
        last = _table(found, found.stated[-1:], bars, sign)
        narrow = not fits(console, last, longest)
        console.print(_table(found, found.stated[-1:], bars, sign, curve=False) if narrow else last)
    said, laws = _how(found, sign), _laws(found)
    if full or len(laws) <= _LAWS:
        console.print(sentences("How", [*said, *laws, *_told(found)]))
        return
    console.print(sentences("How", [*said, *_told(found)]))
    console.print(left_out(f"the delays of {len(laws)} actions"))


def _table(
    found: Simulation, stated: Sequence[int], bars: str, sign: str, *, rest: bool = True, curve: bool = True
) -> Table:
    """Return regret after the rounds at some places; the rest: what was observed, and differences; and the curve."""
    several = rest and len(found.curves) > 1
    top = max(float(curve.regret.max()) for curve in found.curves)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("regret after", overflow="fold")
    headers = [f"{found.rounds[i]:,}" for i in stated]
    for header in [*headers, *(["observed"] if rest else []), *(["to the first"] if several else [])]:
        table.add_column(header, justify="right", no_wrap=True)
    if curve:
        table.add_column("", no_wrap=True)
    for of in found.curves:
        more = [_cell(of.observed[-1], of.observed_se[-1], sign)] if rest else []
        more += [_cell(of.difference, of.difference_se, sign, signed=True)] if several else []
        more += [sparkline(of.regret.tolist(), top, bars)] if curve else []
        table.add_row(of.policy, *(_cell(of.regret[i], of.regret_se[i], sign) for i in stated), *more)
    if found.lower_bound is not None and found.observed_lower_bound is not None:
        more = [f"{found.observed_lower_bound[-1]:.1f}"] if rest else []
        more += [""] if several else []
        more += [sparkline(found.lower_bound.tolist(), top, bars)] if curve else []
        table.add_row("lower bound", *(f"{found.lower_bound[i]:.1f}" for i in stated), *more)
    return table


def _how(found: Simulation, sign: str) -> list[str]:
    best = "the best eligible action of each round" if found.flights else "the best action"
    said = [
        f"regret: conversions that come sooner or later, lost to {best}; {sign} one standard error",
        f"observed: those lost by round {found.horizon:,} within the window (Vernade et al. 2017, eq. 1 and 3)",
    ]
    if len(found.curves) > 1:
        said.append(
            "to the first: regret after all rounds less the first policy's, paired: run r of all policies has the same "
            "contexts and luck"
        )
    if found.lower_bound is not None:
        said.append("lower bound: of any uniformly efficient policy for large T (the same, Theorems 3 and 4)")
    if found.flights:
        said.append(f"eligible: {flights_text(found.flights)}; the others always")
    return said


def _laws(found: Simulation) -> list[str]:
    """Return how late conversions come, of each action where they differ."""
    one = len(found.laws) == 1
    within = [
        "" if found.window is None else f"; {tau:.1%} of the conversions within the window" for tau in found.tau_window
    ]
    return [
        f"{'' if one else f'action {k}: '}{law}{share}"
        for k, (law, share) in enumerate(zip(found.laws, within, strict=True))
    ]


def _told(found: Simulation) -> list[str]:
    said = []
    if found.told:
        said.append(f"policies are told: {found.told}")
    if found.told_zeros:
        said.append(
            f"told of each zero, after a delay of its own, as no log of conversions does: {', '.join(found.told_zeros)}"
        )
    return said


def flights_text(flights: Sequence[Flight]) -> str:
    """Return when actions are eligible, as text.

    >>> flights_text([Flight(1, 0, 2000), Flight(1, 6000), Flight(2, 10, 20)])
    'action 1 in rounds 1 to 2,000 and from round 6,001 on, action 2 in rounds 11 to 20'
    """
    said: dict[int, list[str]] = {}
    for action, start, until in sorted(flights, key=lambda flight: flight[:2]):
        when = f"from round {start + 1:,} on" if until is None else f"in rounds {start + 1:,} to {until:,}"
        said.setdefault(action, []).append(when)
    return ", ".join(f"action {action} {' and '.join(when)}" for action, when in said.items())


def sparkline(values: list[float], top: float, bars: str = _BARS) -> str:
    """Return the values as a row of bars, thinned to at most 20, the highest for `top`.

    >>> sparkline([0.0, 1.0, 2.0], 4.0)
    '▁▃▅'
    """
    n = min(len(values), _CELLS)
    shown = [values[math.ceil((i + 1) * len(values) / n) - 1] for i in range(n)]
    levels = [0 if top <= 0 else round(max(value, 0.0) / top * (len(bars) - 1)) for value in shown]
    return "".join(bars[min(level, len(bars) - 1)] for level in levels)


def _cell(value: float, error: float, sign: str, *, signed: bool = False) -> str:
    spread = "" if math.isnan(error) else f" {sign} {error:.2g}"
    return f"{value:{'+' if signed else ''}.1f}{spread}"
