"""The document of an audit: its verdict, the policies, the pairs of policies, and how the twins were made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaluator.audits.power import DetectableDifference
from evaluator.audits.result import Audit, Coverage, PairAudit, PolicyAudit
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.reports.document import (
    Document,
    Grid,
    Layout,
    Run,
    Section,
    Wordable,
    column,
    grid,
    listed,
    named,
    paragraph,
    run,
    section,
)
from evaluator.reports.numbers import column_digits, error_text, significant_text
from evaluator.reports.shared_sections import FEW_ROWS, coded, counted, name_omitted, warnings_section
from evaluator.reports.terminal import fits

# Decimals of values without errors.
_DIGITS = 4


def document(audit: Audit, layout: Layout) -> Document:
    """Return the document of an audit: all sections, or a short form for one screen with the verdict first."""
    heading = paragraph(
        run(audit.dataset, "bold"),
        f": {audit.options.twins:,} twins of {audit.displays:,} displays and {audit.actions:,} actions replayed, "
        f"{audit.live_runs:,} live runs of each policy",
    )
    verdict = paragraph(audit.verdict, style="bold")
    sections: list[Section]
    if layout.full:
        numbers = _tables(audit, layout) if layout.wide else _lists(audit, layout)
        sections = [section("", heading), *numbers, *_explanations(audit), section("", verdict)]
    else:
        sections = [section("", heading, verdict), *_brief(audit, layout)]
    return Document("audit", f"Audit on twins of {audit.dataset}", tuple(sections))


def _explanations(audit: Audit) -> Iterator[Section]:
    yield listed("How to read this", _how(audit), folded=True)
    yield listed("Twins", audit.truth, folded=True)
    assumptions = coded(assumptions_of(audit.findings))
    yield listed("Assumptions of the replays", assumptions, id="assumptions", folded=True)
    yield from warnings_section(coded(warnings_of(audit.findings)), full=True)


def _brief(audit: Audit, layout: Layout) -> Iterator[Section]:
    """Yield bias and coverage of each policy, the detectable difference of each pair, and the first warnings."""
    longest = max(len(policy.policy) for policy in audit.policies)
    table = _bias_and_coverage(audit, layout)
    if not fits(table, layout, longest):
        # Without the mean values of the twins, where the table has no room for them.
        table = _bias_and_coverage(audit, layout, values=False)
    note = "held: of the intervals of value, regret and uplift, the share that held where the fewest did."
    pairs = audit.pairs[:FEW_ROWS]
    if pairs:
        note += (
            " live: first less second, per round. detects: the smallest difference that compare shows, by the runs, on "
            "80 % of such logs."
        )
        yield section("", table)
        yield section(
            _question(audit),
            _table(
                ("pair", "live", "detects", "told apart"),
                [
                    (_name(pair), live, _detects(_ranking(pair, audit), layout)[0], _apart(pair))
                    for pair, live in zip(pairs, _live_differences(pairs, layout), strict=True)
                ],
            ),
            paragraph(note, style="dim"),
        )
    else:
        yield section("", table, paragraph(note, style="dim"))
    yield from warnings_section(coded(warnings_of(audit.findings)), full=False)
    yield name_omitted(
        counted(len(audit.pairs) - len(pairs), "more pair"),
        "intervals",
        "how to read them",
        "what the twins are drawn from",
        counted(len(audit.assumptions), "assumption"),
    )


def _ranking(pair: PairAudit, audit: Audit) -> DetectableDifference:
    """Return the difference that the runs of a pair detect, tested as compare tests its ranking."""
    return pair.alone if len(audit.pairs) == 1 else pair.ranked


def _bias_and_coverage(audit: Audit, layout: Layout, *, values: bool = True) -> Grid:
    """Return bias and coverage of each policy, one line each."""
    rows = []
    for policy, numbers in zip(audit.policies, _values_of(audit, layout), strict=True):
        coverages = (policy.value_coverage, policy.regret_coverage, policy.uplift_coverage)
        worst = min(coverages, key=lambda one: (not one.too_low, one.share))
        cells = (numbers.replayed, numbers.live) if values else ()
        held = run(f"{worst.share:.1%}{' too low' if worst.too_low else ''}", _alarm(worst))
        rows.append((policy.policy, *cells, numbers.bias, _judged(policy), held))
    return _table(("policy", *(("replayed", "live") if values else ()), "bias", "verdict", "held"), rows)


def _tables(audit: Audit, layout: Layout) -> Iterator[Section]:
    yield section("Does the replayed value equal the live one?", _values(audit, layout))
    yield section("Do the intervals hold?", _intervals(audit))
    if audit.pairs:
        yield section(_question(audit), _pairs(audit, layout))
        yield section("How large a difference shows on 80 % of such logs?", _powers(audit, layout))


def _lists(audit: Audit, layout: Layout) -> Iterator[Section]:
    """Yield the numbers of the tables as lists, for narrow terminals."""
    for policy, values in zip(audit.policies, _values_of(audit, layout), strict=True):
        coverages = {
            "value": policy.value_coverage, "regret": policy.regret_coverage, "uplift": policy.uplift_coverage
        }  # fmt: skip
        rows = [
            ("rounds", f"{policy.rounds:,.0f}"),
            ("replayed", values.replayed),
            ("live", values.live),
            ("bias", f"{values.bias}, {_judged(policy).text}"),
            ("spread", significant_text(policy.spread, 2)),
            *(
                (
                    f"{name} held",
                    f"{coverage.share:.1%}{' too low' if coverage.too_low else ''}, width {_width(coverage)}",
                )
                for name, coverage in coverages.items()
            ),
        ]
        yield named(policy.policy, rows)
    if audit.pairs:
        yield section(_question(audit))
    for pair, live in zip(audit.pairs, _live_differences(audit.pairs, layout), strict=True):
        rows = [
            ("live", live),
            ("replayed", f"{_difference(pair)}, spread {significant_text(pair.spread, 2)}, ranked {_ranked(pair)}"),
            *(
                (name, f"{' '.join(_detects(detected, layout))}, shown {_share(detected, audit)}")
                for name, detected in _cases(pair, audit)
            ),
            ("told apart", _apart(pair).text),
        ]
        yield named(_name(pair), rows)


def _cases(pair: PairAudit, audit: Audit) -> list[tuple[str, DetectableDifference]]:
    """Return detectable differences by test: of the runs and of expected values, alone and among all pairs."""
    if len(audit.pairs) == 1:
        return [("by the runs", pair.alone), ("as expected", pair.expected)]
    ranked = f"in {len(audit.pairs):,} pairs"
    return [
        ("by the runs, alone", pair.alone),
        (f"by the runs, {ranked}", pair.ranked),
        ("as expected, alone", pair.expected),
        (f"as expected, {ranked}", pair.expected_ranked),
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[Wordable]]) -> Grid:
    """Return a table whose first column holds names, and the others numbers; a verdict may break over lines."""
    numbers = [column(name, "number", folds=name == "verdict") for name in columns[1:]]
    return grid([column(columns[0]), *numbers], rows)


def _values(audit: Audit, layout: Layout) -> Grid:
    return _table(
        ("policy", "rounds", "replayed", "live", "bias", "verdict", "spread"),
        [
            (
                policy.policy,
                f"{policy.rounds:,.0f}",
                *values,
                _judged(policy),
                significant_text(policy.spread, 2),
            )
            for policy, values in zip(audit.policies, _values_of(audit, layout), strict=True)
        ],
    )


def _intervals(audit: Audit) -> Grid:
    rows = []
    for policy in audit.policies:
        cells: list[Wordable] = [policy.policy]
        for coverage in (policy.value_coverage, policy.regret_coverage, policy.uplift_coverage):
            cells += [run(f"{coverage.share:.1%}", _alarm(coverage)), _width(coverage)]
        rows.append(cells)
    return _table(("policy", "value", "width", "regret", "width", "uplift", "width"), rows)


def _pairs(audit: Audit, layout: Layout) -> Grid:
    return _table(
        ("pair", "live", "replayed", "spread", "ranked", "told apart"),
        [
            (
                _name(pair),
                live,
                _difference(pair),
                significant_text(pair.spread, 2),
                _ranked(pair),
                _apart(pair),
            )
            for pair, live in zip(audit.pairs, _live_differences(audit.pairs, layout), strict=True)
        ],
    )


def _powers(audit: Audit, layout: Layout) -> Grid:
    return _table(
        ("pair", "test", "detects", "", "shown"),
        [
            ("" if i else _name(pair), name, *_detects(detected, layout), _share(detected, audit))
            for pair in audit.pairs
            for i, (name, detected) in enumerate(_cases(pair, audit))
        ],
    )


def _question(audit: Audit) -> str:
    return f"Which differences show after {audit.common_rounds:,} rounds?"


class _Values(NamedTuple):
    """Values of a policy as text: replayed, live, and the difference of the two."""

    replayed: str
    live: str
    bias: str


def _values_of(audit: Audit, layout: Layout) -> list[_Values]:
    """Return the values of each policy, in the decimals of their columns."""
    digits = column_digits((policy.live_standard_error for policy in audit.policies), least=_DIGITS)
    bias_digits = column_digits((policy.bias_standard_error for policy in audit.policies), least=_DIGITS)
    sign = layout.plus_minus
    return [
        _Values(
            f"{policy.value:,.{digits}f}",
            error_text(policy.live_value, policy.live_standard_error, digits, sign),
            error_text(policy.bias, policy.bias_standard_error, bias_digits, sign, sign=True),
        )
        for policy in audit.policies
    ]


def _live_differences(pairs: Sequence[PairAudit], layout: Layout) -> list[str]:
    """Return the live difference of each pair, in the decimals of its column."""
    digits = column_digits((pair.live_standard_error for pair in pairs), least=_DIGITS)
    sign = layout.plus_minus
    return [error_text(pair.live_difference, pair.live_standard_error, digits, sign, sign=True) for pair in pairs]


def _judged(policy: PolicyAudit) -> Run:
    if policy.biased:
        return run("BIASED", "bold red")
    return run(f"none seen above {significant_text(policy.detectable_bias, 2)}")


def _width(coverage: Coverage) -> str:
    return significant_text(coverage.mean_width, 3)


def _alarm(coverage: Coverage) -> str:
    return "bold red" if coverage.too_low else ""


def _name(pair: PairAudit) -> str:
    return f"{pair.first} - {pair.second}"


def _difference(pair: PairAudit) -> str:
    return significant_text(pair.difference, 2, sign=True)


def _ranked(pair: PairAudit) -> str:
    return "?" if pair.ranked_rightly is None else f"{pair.ranked_rightly:.0%}"


def _apart(pair: PairAudit) -> Run:
    answers = {True: ("yes", "green"), False: ("no", "yellow"), None: ("perhaps", "yellow")}
    alone, ranked = answers[pair.told_apart], answers[pair.told_apart_ranked]
    if alone == ranked:
        return run(*ranked)
    return run(f"{ranked[0]}, alone {alone[0]}", ranked[1])


def _detects(detected: DetectableDifference, layout: Layout) -> tuple[str, str]:
    if math.isnan(detected.difference):
        return "none", "(same displays)"
    difference, error = significant_text(detected.difference, 2), significant_text(detected.standard_error, 1)
    return significant_text(detected.high, 2), f"({difference} {layout.plus_minus} {error})"


def _share(detected: DetectableDifference, audit: Audit) -> str:
    error = (detected.shown * (1.0 - detected.shown) / audit.options.twins) ** 0.5
    return f"{detected.shown:.0%}" + (f" ({error:.0%})" if error > 0 else "")


def _how(audit: Audit) -> list[str]:
    level = audit.options.level
    lines = [
        "replayed: mean value over the twins. live: expected value of as many live rounds on the same truth. bias: the "
        "one less the other, with its standard error; called biased where chance does so in 1 of 370 audits at most. "
        "None seen above a number: a bias as large would be seen on 80 % of such audits, a smaller one may be there",
        "spread: standard deviation of the replayed value from twin to twin, what one replay cannot tell about the "
        "expected value",
        f"intervals: share of the twins whose {level:.0%} interval holds the mean expected reward of what the replay "
        "showed, and mean width; they hold at any stopping time, and so hold oftener than promised at one",
    ]
    if audit.pairs:
        lines += [
            "live, replayed: first policy less second. ranked: share of the twins on which the better one has the "
            "higher replayed value; ?: live runs do not tell which is better",
            "detects: a difference as large is told from 0 on 80 % of such logs, with 95 % confidence; in brackets "
            "what the twins have, with its standard error. It is for policies that choose as these do, with more to "
            "win; the spread is taken at that difference. shown: share of the twins on which their own difference is "
            "told from 0, with its standard error. told apart: whether their own difference is one that is detected by "
            f"the runs{' in the ranking' if len(audit.pairs) > 1 else ''}",
            f"by the runs: by the {level:.0%} interval of what two runs showed.{_explain_pairs(audit)} as expected: by "
            "expected values, compared with a bootstrap whose standard error is the spread",
        ]
    return lines


def _explain_pairs(audit: Audit) -> str:
    pairs = len(audit.pairs)
    if pairs == 1:
        return ""
    return (
        f" alone: as if nothing else were compared; in {pairs:,} pairs: adjusted by Holm's method for all "
        "differences of these policies, as compare does."
    )
