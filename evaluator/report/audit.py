"""An audit on the terminal: policies, pairs, what the twins are, and the sentence that matters."""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from evaluator.audits.power import DetectableDifference
from evaluator.audits.result import Audit, Coverage, PairAudit, PolicyAudit
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.report.console import ReportConsole
from evaluator.report.short import FEW_ROWS, coded, counted, first_of, left_out
from evaluator.report.table_widths import WIDE, fits
from evaluator.report.terminal import TRUST, details, sentences
from evaluator.visible import visible


def print_audit(console: ReportConsole, audit: Audit, *, full: bool = True) -> None:
    """Print an audit: all of it, or what fits a screen, the verdict first."""
    console.print(
        Text.assemble(
            (visible(audit.dataset), "bold"),
            f": {audit.options.twins:,} twins of {audit.displays:,} displays and {audit.actions:,} actions replayed, "
            f"{audit.live_runs:,} live runs of each policy",
        )
    )
    sign = "+-" if console.options.ascii_only else "±"
    if not full:
        _print_short(console, audit, sign)
        return
    if console.width < WIDE:
        _print_lists(console, audit, sign)
    else:
        _print_tables(console, audit, sign)
    console.print(sentences("How to read this", _how(audit)))
    console.print(sentences("Twins", audit.truth))
    console.print(sentences("Assumptions of the replays", coded(assumptions_of(audit.findings))))
    if warnings := coded(warnings_of(audit.findings)):
        console.print(sentences(TRUST, warnings, style="yellow"))
    console.print()
    console.print(audit.verdict, style="bold")


def _print_short(console: ReportConsole, audit: Audit, sign: str) -> None:
    """Print the verdict, bias and coverage of each policy, and what is detected of each pair."""
    console.print(audit.verdict, style="bold")
    console.print()
    longest = max(len(policy.policy) for policy in audit.policies)
    table = _found(audit, sign)
    # Without what the twins were worth on the average, where there is no room for it.
    console.print(table if fits(console, table, longest) else _found(audit, sign, values=False))
    pairs = audit.pairs[:FEW_ROWS]
    if pairs:
        console.print(Text(f"\n{_shows(audit)}", style="bold"))
        table = _table("live", "detects", "told apart")
        table.columns[0].header = "pair"
        for pair in pairs:
            live = _with_error(pair.live_difference, pair.live_standard_error, sign, signed=True)
            table.add_row(f"{pair.first} - {pair.second}", live, _detects(_ranking(pair, audit), sign)[0], _apart(pair))
        console.print(table)
    said = "held: of the intervals of value, regret and uplift, the share that held where the fewest did."
    if pairs:
        said += (
            " live: first less second, per round. detects: the smallest difference that compare shows, by the runs, on "
            "80 % of such logs."
        )
    console.print(said, style="dim")
    if warnings := coded(warnings_of(audit.findings)):
        console.print(sentences(TRUST, first_of(warnings), style="yellow"))
    more = len(audit.pairs) - len(pairs)
    resting = counted(len(audit.assumptions), "assumption")
    console.print(
        left_out(counted(more, "more pair"), "intervals", "how to read them", "what the twins are drawn from", resting)
    )


def _ranking(pair: PairAudit, audit: Audit) -> DetectableDifference:
    """Return what is detected by the runs as compare ranks them."""
    return pair.alone if len(audit.pairs) == 1 else pair.ranked


def _found(audit: Audit, sign: str, *, values: bool = True) -> Table:
    """Return bias and coverage of each policy, one line each."""
    table = _table(*(["replayed", "live"] if values else []), "bias", "verdict", "held")
    for p in audit.policies:
        held = min((p.value_coverage, p.regret_coverage, p.uplift_coverage), key=lambda of: (not of.too_low, of.share))
        table.add_row(
            p.policy,
            *([f"{p.value:.4g}", _with_error(p.live_value, p.live_standard_error, sign)] if values else []),
            _with_error(p.bias, p.bias_standard_error, sign, signed=True),
            _judged(p),
            _coverage(held)[0].append(" too low" if held.too_low else ""),
        )
    return table


def _print_tables(console: ReportConsole, audit: Audit, sign: str) -> None:
    console.print(Text("\nDoes the replayed value equal the live one?", style="bold"))
    console.print(_values(audit, sign))
    console.print(Text("\nDo the intervals hold?", style="bold"))
    console.print(_intervals(audit))
    if audit.pairs:
        console.print(Text(f"\n{_shows(audit)}", style="bold"))
        console.print(_pairs(audit, sign))
        console.print(Text("\nHow large a difference shows on 80 % of such logs?", style="bold"))
        console.print(_powers(audit, sign))


def _print_lists(console: ReportConsole, audit: Audit, sign: str) -> None:
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
            *((name, f"{' '.join(_detects(of, sign))}, shown {_share(of, audit)}") for name, of in _cases(pair, audit)),
            ("told apart", _apart(pair).plain),
        ]
        console.print(details(f"{pair.first} - {pair.second}", rows))


def _cases(pair: PairAudit, audit: Audit) -> list[tuple[str, DetectableDifference]]:
    """Return what is detected: by the runs and as expected values; alone and, where there are more, in the ranking."""
    if len(audit.pairs) == 1:
        return [("by the runs", pair.alone), ("as expected", pair.expected)]
    ranked = f"in {len(audit.pairs):,} pairs"
    return [
        ("by the runs, alone", pair.alone),
        (f"by the runs, {ranked}", pair.ranked),
        ("as expected, alone", pair.expected),
        (f"as expected, {ranked}", pair.expected_ranked),
    ]


def _detects(of: DetectableDifference, sign: str) -> tuple[str, str]:
    if math.isnan(of.difference):
        return "none", "(same displays)"
    return f"{of.high:.2g}", f"({of.difference:.2g} {sign} {of.standard_error:.1g})"


def _share(of: DetectableDifference, audit: Audit) -> str:
    error = (of.shown * (1.0 - of.shown) / audit.options.twins) ** 0.5
    return f"{of.shown:.0%}" + (f" ({error:.0%})" if error > 0 else "")


def _shows(audit: Audit) -> str:
    return f"Which differences show after {audit.common_rounds:,} rounds?"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=column != "verdict")
    return table


def _values(audit: Audit, sign: str) -> Table:
    table = _table("rounds", "replayed", "live", "bias", "verdict", "spread")
    for p in audit.policies:
        table.add_row(
            p.policy,
            f"{p.rounds:,.0f}",
            f"{p.value:.4g}",
            _with_error(p.live_value, p.live_standard_error, sign),
            _with_error(p.bias, p.bias_standard_error, sign, signed=True),
            _judged(p),
            f"{p.spread:.2g}",
        )
    return table


def _judged(policy: PolicyAudit) -> Text:
    return Text("BIASED", style="bold red") if policy.biased else Text(f"none seen above {policy.detectable_bias:.2g}")


def _intervals(audit: Audit) -> Table:
    table = _table("value", "width", "regret", "width", "uplift", "width")
    for p in audit.policies:
        cells = (cell for c in (p.value_coverage, p.regret_coverage, p.uplift_coverage) for cell in _coverage(c))
        table.add_row(p.policy, *cells)
    return table


def _coverage(coverage: Coverage) -> tuple[Text, str]:
    return Text(f"{coverage.share:.1%}", style="bold red" if coverage.too_low else ""), f"{coverage.mean_width:.3g}"


def _pairs(audit: Audit, sign: str) -> Table:
    table = _table("live", "replayed", "spread", "ranked", "told apart")
    table.columns[0].header = "pair"
    for pair in audit.pairs:
        table.add_row(
            f"{pair.first} - {pair.second}",
            _with_error(pair.live_difference, pair.live_standard_error, sign, signed=True),
            f"{pair.difference:+.2g}",
            f"{pair.spread:.2g}",
            _ranked(pair),
            _apart(pair),
        )
    return table


def _powers(audit: Audit, sign: str) -> Table:
    table = _table("test", "detects", "", "shown")
    table.columns[0].header = "pair"
    for pair in audit.pairs:
        for i, (name, of) in enumerate(_cases(pair, audit)):
            table.add_row("" if i else f"{pair.first} - {pair.second}", name, *_detects(of, sign), _share(of, audit))
    return table


def _ranked(pair: PairAudit) -> str:
    return "?" if pair.ranked_rightly is None else f"{pair.ranked_rightly:.0%}"


def _apart(pair: PairAudit) -> Text:
    words = {True: ("yes", "green"), False: ("no", "yellow"), None: ("perhaps", "yellow")}
    alone, ranked = words[pair.told_apart], words[pair.told_apart_ranked]
    if alone == ranked:
        return Text(*ranked)
    return Text(f"{ranked[0]}, alone {alone[0]}", style=ranked[1])


def _how(audit: Audit) -> list[str]:
    level = audit.options.level
    said = [
        "replayed: mean value over the twins. live: expected value of as many live rounds on the same truth. bias: the "
        "one less the other, with its standard error; called biased where chance does so in 1 of 370 audits at most. "
        "None seen above a number: a bias as large would be seen on 80 % of such audits, a smaller one may be there",
        "spread: standard deviation of the replayed value from twin to twin, what one replay cannot tell about the "
        "expected value",
        f"intervals: share of the twins whose {level:.0%} interval holds the mean expected reward of what the replay "
        "showed, and mean width; they hold at any stopping time, and so hold oftener than promised at one",
    ]
    if audit.pairs:
        said += [
            "live, replayed: first policy less second. ranked: share of the twins on which the better one has the "
            "higher replayed value; ?: live runs do not tell which is better",
            "detects: a difference as large is told from 0 on 80 % of such logs, with 95 % confidence; in brackets "
            "what the twins have, with its standard error. It is for policies that choose as these do, with more to "
            "win; the spread is taken at that difference. shown: share of the twins on which their own difference is "
            "told from 0, with its standard error. told apart: whether their own difference is one that is detected by "
            f"the runs{' in the ranking' if len(audit.pairs) > 1 else ''}",
            f"by the runs: by the {level:.0%} interval of what two runs showed.{_in_ranking(audit)} as expected: by "
            "expected values, compared with a bootstrap whose standard error is the spread",
        ]
    return said


def _in_ranking(audit: Audit) -> str:
    pairs = len(audit.pairs)
    if pairs == 1:
        return ""
    return (
        f" alone: as if nothing else were compared; in {pairs:,} pairs: adjusted by Holm's method for all "
        "differences of these policies, as compare does."
    )


def _with_error(value: float, error: float, sign: str, *, signed: bool = False) -> str:
    # As many decimals as the error has two digits, so that the two line up.
    digits = 4 if not error > 0 else min(max(1 - math.floor(math.log10(error)), 0), 8)
    return f"{value:{'+' if signed else ''}.{digits}f}" + (f" {sign} {error:.{digits}f}" if error > 0 else "")
