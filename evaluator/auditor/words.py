"""What an audit says in words."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.auditor.result import PairAudit, PolicyAudit

_NAMED = 3
# A live difference within so many standard errors of 0 is none that a number should be put to.
_UNKNOWN = 2.0


def verdict(policies: Sequence[PolicyAudit], pairs: Sequence[PairAudit]) -> str:
    """Return the one sentence that an audit ends with."""
    biased = [policy for policy in policies if policy.biased]
    start = "On a log like this one, `evaluate replay` "
    if biased:
        off = _listed([f"{p.policy} (off by {p.bias:+.2g} per round)" for p in biased])
        return f"{start}as asked for here is biased for {off}: do not decide by it."
    if not pairs:
        (policy,) = policies
        return (
            f"{start}tells the value of {policy.policy} to within {1.96 * policy.spread:.2g} per round on 95 of 100 "
            "such logs; name a second policy to learn which difference it could tell."
        )
    told, untold = [p for p in pairs if p.told_apart], [p for p in pairs if not p.told_apart]
    does = [
        f"{p.first} from {p.second} (they differ by {abs(p.live_difference):.2g} per round, it could detect "
        f"{p.detectable:.2g})"
        for p in told
    ]
    does_not = [f"{p.first} from {p.second} ({_how_far(p)}, it could detect {p.detectable:.2g})" for p in untold]
    if not told:
        return f"{start}cannot tell {_listed(does_not)}."
    return f"{start}tells {_listed(does)}" + (f", but not {_listed(does_not)}." if untold else ".")


def warnings(
    policies: Sequence[PolicyAudit], pairs: Sequence[PairAudit], rounds: Sequence[int], common: int
) -> list[str]:
    """Return what must be read before the numbers."""
    said = []
    for policy in policies:
        if policy.biased:
            said.append(
                f"{policy.policy}: the replayed value is off the live one by {policy.bias:+.3g}, {abs(policy.z):.1f} "
                "standard errors. What was asked for (clock, sampler, propensities, young displays) does not tell what "
                "the policy earns live."
            )
        for name, coverage in (
            ("value", policy.value_coverage),
            ("regret", policy.regret_coverage),
            ("uplift", policy.uplift_coverage),
        ):
            if coverage.too_low:
                said.append(
                    f"{policy.policy}: the interval of the {name} holds on {coverage.share:.1%} of the twins only, and "
                    f"promises {coverage.level:.0%}."
                )
    for pair in pairs:
        if pair.coverage.too_low:
            said.append(
                f"{pair.first} and {pair.second}: the interval of their difference holds on {pair.coverage.share:.1%} "
                f"of the twins only, and promises {pair.coverage.level:.0%}."
            )
    short = sum(t < common for t in rounds)
    if short and pairs:
        said.append(f"{short} twins have fewer than the common {common:,} rounds, and compare at the rounds they have.")
    return said


def _how_far(pair: PairAudit) -> str:
    if abs(pair.live_difference) < _UNKNOWN * pair.live_standard_error:
        return f"they differ by less than {abs(pair.live_difference) + _UNKNOWN * pair.live_standard_error:.2g}"
    if pair.live_difference == 0.0:
        return "they do not differ"
    return f"they differ by {abs(pair.live_difference):.2g}"


def _listed(words: Sequence[str]) -> str:
    more = len(words) - _NAMED
    shown = [*words[:_NAMED], *([f"{more} other pairs" if more > 1 else "another pair"] if more > 0 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
