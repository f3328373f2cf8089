"""The document of an audit: its answer, the policies, the pairs of policies, and how the twins were made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from evaluator.audits.result import Audit, Coverage, DetectableDifference, PairAudit, PolicyAudit
from evaluator.audits.words import reading_guide
from evaluator.findings.finding import assumptions_of, warnings_of
from evaluator.reports import document as doc
from evaluator.reports.numbers import column_digits, error_text, percent_text, significant_text
from evaluator.reports.terminal import fits

# Decimals of values without errors.
_DIGITS = 4


def document(audit: Audit, layout: doc.Layout) -> doc.Document:
    """Return the document of an audit, its answer first: the page, all sections, or a short form for one screen."""
    build = _page if layout.page else _whole if layout.full else _brief
    return doc.Document("audit", f"Audit on twins of {audit.dataset}", tuple(build(audit, layout)))


def _page(audit: Audit, layout: doc.Layout) -> Iterator[doc.Section]:
    yield _log(audit, layout)
    yield _answer(audit, layout)
    about = "replayed less live value per round; the bar: biases that these twins do not rule out"
    yield doc.picture("How far off is a replay?", about, "bias")
    about = "diamond: how far two policies differ; grey: the smallest difference told on 80 % of such logs"
    yield doc.picture("Which differences show?", about, "told")
    yield doc.section("Each policy", _few_values(audit, layout))
    numbers = [*_tables(audit, layout), doc.listed("How to read this", reading_guide(audit))]
    yield from doc.fold(
        "All numbers", "bias, intervals, pairs, how to read them", numbers, charts=("audit", "detectable")
    )
    truth, assumptions = doc.listed("Twins", audit.truth), doc.coded(assumptions_of(audit.findings))
    warnings = doc.coded(warnings_of(audit.findings))
    rests = [
        *doc.warnings_section(warnings, full=True), truth,
        doc.listed("Assumptions of the replays", assumptions, id="assumptions"),
    ]  # fmt: skip
    about = ", ".join(filter(None, (doc.counted(len(warnings), "warning"), "what twins are drawn from")))
    yield from doc.fold("What it rests on", f"{about}, {doc.counted(len(assumptions), 'assumption')}", rests)


def _whole(audit: Audit, layout: doc.Layout) -> Iterator[doc.Section]:
    yield _answer(audit, layout)
    yield _log(audit, layout)
    yield from _tables(audit, layout) if layout.wide else _lists(audit, layout)
    yield doc.listed("How to read this", reading_guide(audit), folded=True)
    yield doc.listed("Twins", audit.truth, folded=True)
    assumptions = doc.coded(assumptions_of(audit.findings))
    yield doc.listed("Assumptions of the replays", assumptions, id="assumptions", folded=True)
    yield from doc.warnings_section(doc.coded(warnings_of(audit.findings)), full=True)


def _log(audit: Audit, layout: doc.Layout) -> doc.Section:
    return doc.which_log(
        audit.dataset,
        f"{audit.options.twins:,} twins of {audit.displays:,} displays and {audit.actions:,} actions replayed",
        f"{audit.live_runs:,} live runs of each policy",
        layout=layout,
    )


def _answer(audit: Audit, layout: doc.Layout) -> doc.Section:
    """Return the answer: whether a bias was seen, which one could have gone unseen, and what is told apart."""
    biased = [audit.name_of(policy.policy) for policy in audit.policies if policy.biased]
    failed = [one.name for one in audit.not_in_twins if one.verdict == "fail"]
    unseen = significant_text(max(policy.detectable_bias for policy in audit.policies), 2)
    colour: doc.Colour = "green"
    if biased:
        word, rest, colour = "Biased", f": {_names_of(biased)}", "red"
    elif failed:
        word, rest, colour = "Not known", f" for this log: it failed {_names_of(failed)}, which no twin has", "yellow"
    else:
        word, rest = "No bias seen", f", one below {unseen} could have gone unseen"
    untold = [pair for pair in audit.pairs if pair.told_apart_ranked is not True]
    if colour == "green" and untold:
        colour = "yellow"
    told = len(audit.pairs) - len(untold)
    if audit.pairs and not biased and not failed:
        apart = (
            f"{told} of {len(audit.pairs):,} pairs"
            if len(audit.pairs) > 1
            else "the pair is"
            if told
            else "the pair is not"
        )
        rest += f"; {apart} told apart"
    tiles = [(unseen, "per round: a bias below it could have gone unseen")] if not biased else []
    if len(audit.pairs) > 1:
        tiles.append((f"{told} of {len(audit.pairs)}", "pairs of policies are told apart on 80 % of such logs"))
    elif audit.pairs and not math.isnan(audit.pairs[0].alone.high):
        tiles.append(
            (significant_text(audit.pairs[0].alone.high, 2), "is the smallest difference told on 80 % of logs")
        )
    worst = _worst(audit.policies)
    tiles.append((
        percent_text(worst.share),
        f"of the {percent_text(audit.options.level)} intervals held, where the fewest did",
    ))  # fmt: skip
    tiles.append((f"{audit.options.twins:,} twins", f"and {audit.live_runs:,} live runs of each policy"))
    rests = [
        doc.mark(False if one.verdict == "fail" else None, f"{one.name}: in no twin") for one in audit.not_in_twins
    ]
    return doc.answer(
        word, rest, audit.verdict, colour=colour, tiles=tiles if layout.page else (), rests=rests if layout.page else ()
    )


def _names_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _coverages(policy: PolicyAudit) -> dict[str, Coverage]:
    return {"value": policy.value_coverage, "regret": policy.regret_coverage, "uplift": policy.uplift_coverage}


def _worst(policies: Iterable[PolicyAudit]) -> Coverage:
    """Return the coverage of the intervals that held least often, those first that hold too seldom."""
    coverages = [one for policy in policies for one in _coverages(policy).values()]
    return min(coverages, key=lambda one: (not one.too_low, one.share))


def _held(policy: PolicyAudit, decimals: int) -> doc.Run:
    worst = _worst([policy])
    return doc.run(f"{worst.share:.{decimals}%}{' too low' if worst.too_low else ''}", _alarm(worst))


def _few_values(audit: Audit, layout: doc.Layout) -> doc.Grid:
    """Return live value and bias of each policy, and how often its intervals held, for a page as wide as a phone."""
    rows = []
    for policy, numbers in zip(audit.policies, _values_of(audit, layout), strict=True):
        live, bias = (doc.lines(*number.replace(" ± ", "\n± ").split("\n")) for number in (numbers.live, numbers.bias))
        coloured = tuple(replace(part, colour="red" if policy.biased else "") for part in bias)
        rows.append((audit.name_of(policy.policy), live, coloured, _held(policy, 0)))
    return doc.table(("policy", "live", "bias", "held"), rows)


def _brief(audit: Audit, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield bias and coverage of each policy, the detectable difference of each pair, and the first warnings."""
    yield _answer(audit, layout)
    yield _log(audit, layout)
    longest = max(len(audit.name_of(policy.policy)) for policy in audit.policies)
    values = _bias_and_coverage(audit, layout)
    if not fits(values, layout, longest):
        # Without the mean values of the twins, where the table has no room for them.
        values = _bias_and_coverage(audit, layout, values=False)
    note = "held: of the intervals of value, regret and uplift, the share that held where the fewest did."
    pairs = audit.pairs[: doc.FEW_ROWS]
    if pairs:
        note += (
            " live: first less second, per round. detects: the smallest difference that compare shows, by the runs, on "
            "80 % of such logs."
        )
        yield doc.section("", values)
        yield doc.section(
            _question(audit),
            doc.table(
                ("pair", "live", "detects", "told apart"),
                [
                    (_name(pair, audit), live, _detects(_ranking(pair, audit), layout)[0], _apart(pair))
                    for pair, live in zip(pairs, _live_differences(pairs, layout), strict=True)
                ],
            ),
            doc.paragraph(note, style="dim"),
        )
    else:
        yield doc.section("", values, doc.paragraph(note, style="dim"))
    yield from doc.warnings_section(doc.coded(warnings_of(audit.findings)), full=False)
    yield doc.name_omitted(
        doc.counted(len(audit.pairs) - len(pairs), "more pair"),
        "intervals",
        "how to read them",
        "what the twins are drawn from",
        doc.counted(len(audit.assumptions), "assumption"),
    )


def _ranking(pair: PairAudit, audit: Audit) -> DetectableDifference:
    """Return the difference that the runs of a pair detect, tested as compare tests its ranking."""
    return pair.alone if len(audit.pairs) == 1 else pair.ranked


def _bias_and_coverage(audit: Audit, layout: doc.Layout, *, values: bool = True) -> doc.Grid:
    """Return bias and coverage of each policy, one line each."""
    rows = []
    for policy, numbers in zip(audit.policies, _values_of(audit, layout), strict=True):
        cells = (numbers.replayed, numbers.live) if values else ()
        rows.append((audit.name_of(policy.policy), *cells, numbers.bias, _judged(policy), _held(policy, 1)))
    return doc.table(("policy", *(("replayed", "live") if values else ()), "bias", "verdict", "held"), rows)


def _tables(audit: Audit, layout: doc.Layout) -> Iterator[doc.Section]:
    values = [
        (audit.name_of(policy.policy), f"{policy.rounds:,.0f}", *numbers, _judged(policy), _digits(policy.spread))
        for policy, numbers in zip(audit.policies, _values_of(audit, layout), strict=True)
    ]
    columns = ("policy", "rounds", "replayed", "live", "bias", "verdict", "spread")
    yield doc.section("Does the replayed value equal the live one?", doc.table(columns, values))
    yield doc.section("Do the intervals hold?", _intervals(audit))
    if not audit.pairs:
        return
    pairs = [
        (_name(pair, audit), live, _difference(pair), _digits(pair.spread), _ranked(pair), _apart(pair))
        for pair, live in zip(audit.pairs, _live_differences(audit.pairs, layout), strict=True)
    ]
    yield doc.section(
        _question(audit), doc.table(("pair", "live", "replayed", "spread", "ranked", "told apart"), pairs)
    )
    powers = [
        ("" if i else _name(pair, audit), name, *_detects(detected, layout), _share(detected, audit))
        for pair in audit.pairs
        for i, (name, detected) in enumerate(_cases(pair, audit))
    ]
    shown = doc.table(("pair", "test", "detects", "", "shown"), powers)
    yield doc.section("How large a difference shows on 80 % of such logs?", shown)


def _lists(audit: Audit, layout: doc.Layout) -> Iterator[doc.Section]:
    """Yield the numbers of the tables as lists, for narrow terminals."""
    for policy, values in zip(audit.policies, _values_of(audit, layout), strict=True):
        rows = [
            ("rounds", f"{policy.rounds:,.0f}"),
            ("replayed", values.replayed),
            ("live", values.live),
            ("bias", f"{values.bias}, {_judged(policy).text}"),
            ("spread", _digits(policy.spread)),
            *(
                (
                    f"{name} held",
                    f"{coverage.share:.1%}{' too low' if coverage.too_low else ''}, width {_width(coverage)}",
                )
                for name, coverage in _coverages(policy).items()
            ),
        ]
        yield doc.named(audit.name_of(policy.policy), rows)
    if audit.pairs:
        yield doc.section(_question(audit))
    for pair, live in zip(audit.pairs, _live_differences(audit.pairs, layout), strict=True):
        rows = [
            ("live", live),
            ("replayed", f"{_difference(pair)}, spread {_digits(pair.spread)}, ranked {_ranked(pair)}"),
            *(
                (name, f"{' '.join(_detects(detected, layout))}, shown {_share(detected, audit)}")
                for name, detected in _cases(pair, audit)
            ),
            ("told apart", _apart(pair).text),
        ]
        yield doc.named(_name(pair, audit), rows)


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


def _intervals(audit: Audit) -> doc.Grid:
    rows = []
    for policy in audit.policies:
        cells: list[doc.Wordable] = [audit.name_of(policy.policy)]
        for coverage in _coverages(policy).values():
            cells += [doc.run(f"{coverage.share:.1%}", _alarm(coverage)), _width(coverage)]
        rows.append(cells)
    return doc.table(("policy", "value", "width", "regret", "width", "uplift", "width"), rows)


def _question(audit: Audit) -> str:
    return f"Which differences show after {audit.common_rounds:,} rounds?"


class _Values(NamedTuple):
    """Values of a policy as text: replayed, live, and the difference of the two."""

    replayed: str
    live: str
    bias: str


def _values_of(audit: Audit, layout: doc.Layout) -> list[_Values]:
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


def _live_differences(pairs: Sequence[PairAudit], layout: doc.Layout) -> list[str]:
    """Return the live difference of each pair, in the decimals of its column."""
    digits = column_digits((pair.live_standard_error for pair in pairs), least=_DIGITS)
    sign = layout.plus_minus
    return [error_text(pair.live_difference, pair.live_standard_error, digits, sign, sign=True) for pair in pairs]


def _judged(policy: PolicyAudit) -> doc.Run:
    if policy.biased:
        return doc.run("BIASED", "bold red")
    return doc.run(f"none seen above {significant_text(policy.detectable_bias, 2)}")


def _digits(number: float) -> str:
    return significant_text(number, 2)


def _width(coverage: Coverage) -> str:
    return significant_text(coverage.mean_width, 3)


def _alarm(coverage: Coverage) -> str:
    return "bold red" if coverage.too_low else ""


def _name(pair: PairAudit, audit: Audit) -> str:
    return f"{audit.name_of(pair.first)} - {audit.name_of(pair.second)}"


def _difference(pair: PairAudit) -> str:
    return significant_text(pair.difference, 2, sign=True)


def _ranked(pair: PairAudit) -> str:
    return "?" if pair.ranked_rightly is None else f"{pair.ranked_rightly:.0%}"


def _apart(pair: PairAudit) -> doc.Run:
    answers = {True: ("yes", "green"), False: ("no", "yellow"), None: ("perhaps", "yellow")}
    alone, ranked = answers[pair.told_apart], answers[pair.told_apart_ranked]
    if alone == ranked:
        return doc.run(*ranked)
    return doc.run(f"{ranked[0]}, alone {alone[0]}", ranked[1])


def _detects(detected: DetectableDifference, layout: doc.Layout) -> tuple[str, str]:
    if math.isnan(detected.difference):
        return "none", "(same displays)"
    difference, error = significant_text(detected.difference, 2), significant_text(detected.standard_error, 1)
    return significant_text(detected.high, 2), f"({difference} {layout.plus_minus} {error})"


def _share(detected: DetectableDifference, audit: Audit) -> str:
    error = (detected.shown * (1.0 - detected.shown) / audit.options.twins) ** 0.5
    return f"{detected.shown:.0%}" + (f" ({error:.0%})" if error > 0 else "")
