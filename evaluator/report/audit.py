"""An audit on the terminal: policies, pairs, what the twins are, and the sentence that matters."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaluator.auditor.result import Audit, Coverage, PairAudit, PolicyAudit
from evaluator.report.terminal import details, sentences

# Narrower terminals get lists: tables would break their numbers.
_TABLES = 100


def print_audit(console: Console, audit: Audit) -> None:
    """Print an audit."""
    console.print(
        Text.assemble(
            (audit.dataset, "bold"),
            f": {audit.options.twins:,} twins of {audit.displays:,} displays and {audit.actions:,} actions replayed, "
            f"{audit.live_runs:,} live runs of each policy",
        )
    )
    sign = "+-" if console.options.ascii_only else "±"
    if console.width < _TABLES:
        _print_lists(console, audit, sign)
    else:
        _print_tables(console, audit, sign)
    console.print(sentences("How to read this", _how(audit)))
    console.print(sentences("Twins", audit.truth))
    console.print(sentences("Assumptions of the replays", audit.assumptions))
    if audit.warnings:
        console.print(sentences("Read before trusting the numbers", audit.warnings, style="yellow"))
    console.print()
    console.print(Text(audit.verdict, style="bold"))


def _print_tables(console: Console, audit: Audit, sign: str) -> None:
    console.print(Text("\nDoes the replayed value equal the live one?", style="bold"))
    console.print(_values(audit, sign))
    console.print(Text("\nDo the intervals hold?", style="bold"))
    console.print(_intervals(audit))
    if audit.pairs:
        console.print(Text(f"\n{_shows(audit)}", style="bold"))
        console.print(_pairs(audit, sign))


def _print_lists(console: Console, audit: Audit, sign: str) -> None:
    """Print the same numbers, one a line."""
    for p in audit.policies:
        held = [
            (f"{name} held", f"{c.share:.1%}{' too low' if c.too_low else ''}, width {c.mean_width:.3g}")
            for name, c in (("value", p.value_coverage), ("regret", p.regret_coverage), ("uplift", p.uplift_coverage))
        ]
        rows = [
            ("rounds", f"{p.rounds:,.0f}"),
            ("replayed", f"{p.value:.4g}"),
            ("live", _with_error(p.live_value, p.live_standard_error, sign)),
            ("bias", f"{_with_error(p.bias, p.bias_standard_error, sign, signed=True)}, {_judged(p).plain}"),
            ("spread", f"{p.spread:.2g}"),
            *held,
        ]
        console.print(details(p.policy, rows))
    if audit.pairs:
        console.print(Text(f"\n{_shows(audit)}", style="bold"))
    for pair in audit.pairs:
        rows = [
            ("live", _with_error(pair.live_difference, pair.live_standard_error, sign, signed=True)),
            ("replayed", f"{pair.difference:+.2g}, spread {pair.spread:.2g}, ranked {_ranked(pair)}"),
            ("detects", f"{pair.detectable:.2g}, at one time {pair.detectable_at_fixed_time:.2g}"),
            ("told apart", _apart(pair).plain),
        ]
        console.print(details(f"{pair.first} - {pair.second}", rows))


def _shows(audit: Audit) -> str:
    return f"Which differences show after {audit.common_rounds:,} rounds?"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def _values(audit: Audit, sign: str) -> Table:
    table = _table("rounds", "replayed", "live", "bias", "verdict", "spread")
    for p in audit.policies:
        table.add_row(
            Text(p.policy),
            f"{p.rounds:,.0f}",
            f"{p.value:.4g}",
            _with_error(p.live_value, p.live_standard_error, sign),
            _with_error(p.bias, p.bias_standard_error, sign, signed=True),
            _judged(p),
            f"{p.spread:.2g}",
        )
    return table


def _judged(policy: PolicyAudit) -> Text:
    return Text("BIASED", style="bold red") if policy.biased else Text("unbiased")


def _intervals(audit: Audit) -> Table:
    table = _table("value", "width", "regret", "width", "uplift", "width")
    for p in audit.policies:
        cells = (cell for c in (p.value_coverage, p.regret_coverage, p.uplift_coverage) for cell in _coverage(c))
        table.add_row(Text(p.policy), *cells)
    return table


def _coverage(coverage: Coverage) -> tuple[Text, str]:
    return Text(f"{coverage.share:.1%}", style="bold red" if coverage.too_low else ""), f"{coverage.mean_width:.3g}"


def _pairs(audit: Audit, sign: str) -> Table:
    table = _table("live", "replayed", "spread", "ranked", "detects", "at one time", "told apart")
    table.columns[0].header = "pair"
    for pair in audit.pairs:
        table.add_row(
            Text(f"{pair.first} - {pair.second}"),
            _with_error(pair.live_difference, pair.live_standard_error, sign, signed=True),
            f"{pair.difference:+.2g}",
            f"{pair.spread:.2g}",
            _ranked(pair),
            f"{pair.detectable:.2g}",
            f"{pair.detectable_at_fixed_time:.2g}",
            _apart(pair),
        )
    return table


def _ranked(pair: PairAudit) -> str:
    return "?" if pair.ranked_rightly is None else f"{pair.ranked_rightly:.0%}"


def _apart(pair: PairAudit) -> Text:
    return Text("yes", style="green") if pair.told_apart else Text("no", style="yellow")


def _how(audit: Audit) -> list[str]:
    level = audit.options.level
    said = [
        "replayed: mean value over the twins. live: expected value of as many live rounds on the same truth. bias: the "
        "one less the other, with its standard error; beyond three of these it is called biased",
        "spread: standard deviation of the replayed value from twin to twin, what one replay cannot tell about the "
        "expected value",
        f"intervals: share of the twins whose {level:.0%} interval holds the mean expected reward of what the replay "
        "showed, and mean width; they hold at any stopping time, and so hold oftener than promised at one",
    ]
    if audit.pairs:
        said += [
            "live, replayed: first policy less second. ranked: share of the twins on which the better one has the "
            "higher replayed value; ?: live runs do not tell which is better",
            f"detects: smallest difference that the anytime-valid {level:.0%} interval of the paired difference shows "
            "on 80 % of such logs: mean half-width + 0.84 spread. at one time: the same for a normal interval, "
            f"({_z(level):.2f} + 0.84) spread",
        ]
    return said


def _z(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)


def _with_error(value: float, error: float, sign: str, *, signed: bool = False) -> str:
    # As many decimals as the error has two digits, so that the two line up.
    digits = 4 if error <= 0 else min(max(1 - math.floor(math.log10(error)), 0), 8)
    return f"{value:{'+' if signed else ''}.{digits}f}" + (f" {sign} {error:.{digits}f}" if error > 0 else "")
