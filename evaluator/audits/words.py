"""What an audit says in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evaluator.audits.result import Audit, DetectableDifference, PairAudit, PolicyAudit
from evaluator.checks.registry import CHECKS
from evaluator.checks.result import CheckResult
from evaluator.checks.run import CheckReport
from evaluator.findings.codes import BIASED_REPLAY, LOW_COVERAGE, NOT_IN_TWINS, SHORT_TWINS
from evaluator.findings.finding import Finding

_NAMED = 3
# A live difference within so many standard errors of 0 is none that a number should be put to.
_UNKNOWN = 2.0


def found_beside_twins(found: CheckReport) -> tuple[CheckResult, ...]:
    """Return what checks of the log failed or warned about, in this order, and its twins are drawn without."""
    shared = {check.name for check in CHECKS if check.twins_have_it}
    return tuple(of for of in (*found.having("fail"), *found.having("warn")) if of.name not in shared)


def verdict(policies: Sequence[PolicyAudit], pairs: Sequence[PairAudit], beside: Sequence[CheckResult]) -> str:
    """Return the sentences that an audit ends with; `beside` is what checks found, and twins are drawn without."""
    said = _verdict(policies, pairs)
    failed = [of.name for of in beside if of.verdict == "fail"]
    if failed:
        return (
            f"The log failed {_checks(failed)}, and its twins are drawn without that defect: no number here shows what "
            "it does to a replay of this log, so repair it before you decide by one. Of a log without it: "
            f"{said[0].lower()}{said[1:]}"
        )
    if beside:
        said += f" The log's warnings of {_checks([of.name for of in beside])} are about what no twin has."
    return said


def _checks(names: Sequence[str]) -> str:
    return f"the check{'s' * (len(names) > 1)} {_listed(names, 'checks')}"


def _verdict(policies: Sequence[PolicyAudit], pairs: Sequence[PairAudit]) -> str:
    biased = [policy for policy in policies if policy.biased]
    start = "On a log like this one, `evaluate replay` "
    if biased:
        off = _listed([f"{p.policy} (off by {p.bias:+.2g} per round)" for p in biased])
        return f"{start}as asked for here is biased for {off}: do not decide by it."
    if not pairs:
        (policy,) = policies
        return (
            f"{start}tells the value of {policy.policy} to within {_within(policy)} per round on 95 of 100 such logs "
            f"(no bias was seen, and {_unseen(policies)}); name a second policy to learn which difference it could "
            "tell."
        )
    of: dict[bool | None, list[str]] = {True: [], None: [], False: []}
    for pair in pairs:
        of[pair.told_apart_ranked].append(f"{pair.first} from {pair.second} ({_how_far(pair)}, {_could(pair, pairs)})")
    told, unsure, untold = (of[key] for key in (True, None, False))
    does = [
        *([f"tells {_listed(told)}"] if told else []),
        *([f"may or may not tell {_listed(unsure)}"] if unsure else []),
        *([f"cannot tell {_listed(untold)}"] if untold else []),
    ]
    start = "On a log like this one, `evaluate compare` of these policies "
    return f"{start}{'; it '.join(does)}. No bias was seen, and {_unseen(policies)}."


def _within(policy: PolicyAudit) -> str:
    half = 1.96 * policy.spread
    return f"{half:.2g} (standard error {half / (2.0 * (policy.value_coverage.twins - 1)) ** 0.5:.1g})"


def _could(pair: PairAudit, pairs: Sequence[PairAudit]) -> str:
    if math.isnan(pair.alone.difference):
        return "both showed the same displays on every twin"
    if len(pairs) == 1:
        return f"it could detect {_detects(pair.alone)}"
    return f"it could detect {_detects(pair.ranked)}, and {_detects(pair.alone)} as the only pair"


def _detects(of: DetectableDifference) -> str:
    return f"{of.high:.2g}"


def _unseen(policies: Sequence[PolicyAudit]) -> str:
    return f"a bias below {max(p.detectable_bias for p in policies):.2g} per round may have gone unseen"


def warnings(
    policies: Sequence[PolicyAudit],
    pairs: Sequence[PairAudit],
    beside: Sequence[CheckResult],
    rounds: Sequence[int],
    common: int,
) -> list[Finding]:
    """Return what must be read before the numbers."""
    said = [
        NOT_IN_TWINS.found(
            f"Check {of.name} ({of.verdict}), of the log and not of its twins: {of.what}", of.remedy, about=of.name
        )
        for of in beside
    ]
    for policy in policies:
        if policy.biased:
            said.append(
                BIASED_REPLAY.found(
                    f"{policy.policy}: the replayed value is off the live one by {policy.bias:+.3g}, "
                    f"{abs(policy.z):.1f} "
                    "standard errors. What was asked for (clock, sampler, propensities, young displays) does not "
                    "tell what the policy earns live.",
                    about=policy.policy,
                    bias=policy.bias,
                    z=policy.z,
                )
            )
        for name, coverage in (
            ("value", policy.value_coverage),
            ("regret", policy.regret_coverage),
            ("uplift", policy.uplift_coverage),
        ):
            if coverage.too_low:
                said.append(
                    LOW_COVERAGE.found(
                        f"{policy.policy}: the interval of the {name} holds on {coverage.share:.1%} of the twins "
                        f"only, and promises {coverage.level:.0%}.",
                        about=policy.policy,
                        share=coverage.share,
                        level=coverage.level,
                    )
                )
    for pair in pairs:
        if pair.coverage.too_low:
            said.append(
                LOW_COVERAGE.found(
                    f"{pair.first} and {pair.second}: the interval of their difference holds on "
                    f"{pair.coverage.share:.1%} of the twins only, and promises {pair.coverage.level:.0%}.",
                    about=f"{pair.first} and {pair.second}",
                    share=pair.coverage.share,
                    level=pair.coverage.level,
                )
            )
    short = sum(t < common for t in rounds)
    if short and pairs:
        have, they = ("twin has", "it has") if short == 1 else ("twins have", "they have")
        fewer = f"{short} {have} fewer than the common {common:,} rounds, compared at the rounds that {they}."
        said.append(SHORT_TWINS.found(fewer, twins=short, rounds=common))
    return said


def _how_far(pair: PairAudit) -> str:
    found, error = abs(pair.live_difference), pair.live_standard_error
    if found < _UNKNOWN * error:
        return f"they differ by less than {found + _UNKNOWN * error:.2g}"
    if found == 0.0:
        return "they do not differ"
    return f"they differ by {found:.2g} per round, standard error {error:.1g}"


def _listed(words: Sequence[str], things: str = "pairs") -> str:
    more = len(words) - _NAMED
    shown = [
        *words[:_NAMED],
        *([f"{more} other {things}" if more > 1 else f"another {things[:-1]}"] if more > 0 else []),
    ]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def reading_guide(audit: Audit) -> list[str]:
    """Return how to read the numbers of an audit."""
    level = audit.options.level
    sentences = [
        "replayed: mean value over the twins. live: expected value of as many live rounds on the same truth. bias: the "
        "one less the other, with its standard error; called biased where chance does so in 1 of 370 audits at most. "
        "None seen above a number: a bias as large would be seen on 80 % of such audits, a smaller one may be there",
        "spread: standard deviation of the replayed value from twin to twin, what one replay cannot tell about the "
        "expected value",
        f"intervals: share of the twins whose {level:.0%} interval holds the mean expected reward of what the replay "
        "showed, and mean width; they hold at any stopping time, and so hold oftener than promised at one",
    ]
    if audit.pairs:
        sentences += [
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
    return sentences


def _explain_pairs(audit: Audit) -> str:
    pairs = len(audit.pairs)
    if pairs == 1:
        return ""
    return (
        f" alone: as if nothing else were compared; in {pairs:,} pairs: adjusted by Holm's method for all "
        "differences of these policies, as compare does."
    )
