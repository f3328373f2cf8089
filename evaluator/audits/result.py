"""What an audit found."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

import pyarrow as pa

from evaluator.audits.options import AuditOptions
from evaluator.checks.result import CheckResult
from evaluator.engine.log_replay import SamplerName
from evaluator.findings.finding import Finding, WithFindings
from evaluator.replays.options import ObjectiveName
from evaluator.replays.plan import with_label
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import (
    Count,
    JsonDocument,
    Level,
    NotNegative,
    Share,
    at_least,
    in_document,
    omitted,
    several,
    written_as,
)
from evaluator.results.tabular import FLAG, NUMBER, TEXT, arrow_table

# What adding up leaves of two values that are the same, relative to them.
_ROUNDING = 1e-8
# Fewer twins say nothing of an interval.
Twins = Annotated[int, at_least(10)]
# Chance that a replay without bias is called biased: three standard deviations, with as many twins as one likes.
BIASED = 0.0027


@dataclass(frozen=True)
class Coverage:
    """How often intervals held what is true of the displays shown.

    Parameters
    ----------
    held, twins
        Number of intervals that held what is true, and number of all.
    level
        Share of the intervals that should hold it, such as 0.95.
    mean_width
        Mean width of the intervals, in the unit of what they estimate.
    """

    held: Count
    twins: Twins
    level: Level
    mean_width: float

    @in_document
    @property
    def share(self) -> Share:
        """Share of the twins."""
        return self.held / self.twins

    @in_document
    @property
    def too_low(self) -> bool:
        """Whether the share is below the level by more than three of its standard errors."""
        return self.share < self.level - 3.0 * math.sqrt(self.level * (1.0 - self.level) / self.twins)


@dataclass(frozen=True)
class PolicyAudit:
    """How well the replay of a policy tells its value.

    Parameters
    ----------
    policy, sampler
        Spec of the policy, and name of the sampler of its replays.
    rounds
        Mean number of rounds of a replay.
    acceptance_rate
        Share of the displays that a replay accepted, mean over the twins.
    value
        Replayed value in reward per round, mean over the twins.
    live_value, live_standard_error
        Value of the live policy over as many rounds, in reward per round, and its standard error; known exactly for the
        logging policy.
    bias, bias_standard_error
        Mean of the replayed value less the live value, and its standard error, in reward per round.
    spread
        Standard deviation of the replayed value over the twins: what one replay cannot tell about the expected value.
    value_coverage, regret_coverage, uplift_coverage
        Coverage of what is true by the replay's intervals of value, regret and uplift.
    """

    policy: str
    sampler: SamplerName
    rounds: NotNegative
    acceptance_rate: float
    value: float
    live_value: float
    live_standard_error: float
    bias: float
    bias_standard_error: float
    spread: float
    value_coverage: Coverage
    regret_coverage: Coverage
    uplift_coverage: Coverage

    @in_document
    @property
    def z(self) -> float:
        """The bias in its standard errors; 0 where there is neither, but for rounding."""
        rounding = _ROUNDING * max(abs(self.live_value), 1.0)
        if self.bias_standard_error <= rounding:
            return 0.0 if abs(self.bias) <= rounding else math.copysign(math.inf, self.bias)
        return self.bias / self.bias_standard_error

    @in_document
    @property
    def biased(self) -> bool:
        """Whether the replay is further off the live value than chance explains; if not, it may be biased by less.

        By Student's law: of few twins the standard error itself is hardly known.
        """
        return abs(self.z) > self._limit

    @in_document
    @property
    def detectable_bias(self) -> float:
        """The bias that would be seen on four of five such audits; a smaller one would go unseen more often."""
        return (self._limit + _Z80) * self.bias_standard_error

    @property
    def bias_range(self) -> tuple[float, float]:
        """Biases that the audit does not rule out: without 0, it is called biased."""
        half = self._limit * self.bias_standard_error
        return self.bias - half, self.bias + half

    @property
    def _limit(self) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.value_coverage.twins - 1, 1.0 - BIASED / 2))


_Z80 = 0.8416212335729143
_COVERAGES = ("value_coverage", "regret_coverage", "uplift_coverage")


@dataclass(frozen=True)
class DetectableDifference:
    """The smallest difference that is told from 0, with its sign, on 80 % of such logs.

    All but `shown` are nan where both policies showed the same displays on every twin.

    Parameters
    ----------
    difference
        Estimate of the smallest difference, in reward per round, from the spread over the twins.
    standard_error
        Standard error of `difference` that comes from the number of the twins.
    low, high
        Lower and upper limit of the smallest difference, each with a confidence of 95 %: at `high` the power is 80 % or
        more.
    shown
        Share of the twins on which the pair's own difference was told from 0.
    """

    difference: float
    standard_error: float
    low: float
    high: float
    shown: Share

    def tells(self, difference: float, error: float) -> bool | None:
        """Whether a difference known with this standard error is told on 80 % of such logs; None if not known."""
        if abs(difference) - 2.0 * error >= self.high:
            return True
        return False if abs(difference) + 2.0 * error < self.low else None


@dataclass(frozen=True)
class PairAudit:
    """How well replays tell one policy from another.

    Parameters
    ----------
    first, second
        Specs of the two policies.
    live_difference, live_standard_error
        Expected value of the first less that of the second, live, after the audit's common rounds.
    difference, spread
        The replayed difference of the same two: its mean and its standard deviation over the twins.
    ranked_rightly
        Share of the twins on which the better policy has the higher replayed value; None where live runs do not tell
        which is better.
    coverage
        Coverage of what is true by the interval of the realised difference.
    alone, ranked
        Smallest difference that a comparison tells from 0 by what the two runs showed: of this pair alone, and in the
        ranking of all the audit's pairs, adjusted by Holm's method.
    expected, expected_ranked
        Smallest difference that a comparison tells from 0 by expected values, alone and in the ranking, where it has a
        bootstrap whose standard error is the spread.
    """

    first: str
    second: str
    live_difference: float
    live_standard_error: float
    difference: float
    spread: float
    ranked_rightly: float | None
    coverage: Coverage
    alone: DetectableDifference
    ranked: DetectableDifference
    expected: DetectableDifference
    expected_ranked: DetectableDifference

    @in_document
    @property
    def told_apart(self) -> bool | None:
        """Whether the pair alone is told apart on 80 % of such logs; None where twins and live runs do not decide."""
        return self.alone.tells(self.live_difference, self.live_standard_error)

    @in_document
    @property
    def told_apart_ranked(self) -> bool | None:
        """Whether the pair is told apart in the ranking of all pairs."""
        return self.ranked.tells(self.live_difference, self.live_standard_error)


@dataclass(frozen=True, kw_only=True)
class NotInTwins:
    """What a check of the log failed or warned about."""

    code: str
    name: str
    verdict: Literal["fail", "warn"]
    number: str
    what: str
    remedy: str


def _not_in_twins(of: CheckResult) -> NotInTwins:
    return NotInTwins(**{field.name: getattr(of, field.name) for field in fields(NotInTwins)})


@dataclass(frozen=True, eq=False)
class Audit(JsonDocument, ShownInNotebooks, WithFindings):
    """What replays can tell on a log like this one.

    To keep it, as ``evaluate audit --out`` does: ``json.dumps(found.to_dict())`` is its ``result.json``, and
    ``pyarrow.parquet.write_table(found.twins, ...)`` its ``twins.parquet``.

    Parameters
    ----------
    dataset, displays, actions
        Name of the log, number of displays of a twin, and number of actions K.
    objective
        What all values are of, ``profit`` or ``revenue``.
    options
        Options of the audit, as they were asked for.
    live_runs
        Number of live runs of each policy.
    common_rounds
        Number of rounds after which policies are compared.
    truth
        Sentences that say what the twins are drawn from.
    policies, pairs
        Findings on each policy, and on each pair of them.
    not_in_twins
        What checks of the log failed or warned about, and its twins are drawn without: no number here shows what that
        does to a replay of the log itself.
    verdict
        One sentence that sums the audit up.
    findings
        What to read before the numbers, and what they rest on.
    twins, differences
        Tables of the raw numbers: one row a twin and policy, and one row a twin and pair.
    live
        Table of the live runs, one row a run and policy.
    labels
        Labels of the actions.
    """

    schema: ClassVar[str] = "evaluate.audit/2"

    dataset: str
    displays: Count
    actions: Annotated[int, at_least(2)]
    objective: ObjectiveName
    options: AuditOptions
    live_runs: Count
    common_rounds: Count
    truth: tuple[str, ...]
    policies: Annotated[tuple[PolicyAudit, ...], several]
    pairs: tuple[PairAudit, ...]
    not_in_twins: tuple[Annotated[CheckResult, written_as(_not_in_twins)], ...]
    verdict: str
    findings: tuple[Finding, ...]
    twins: Annotated[pa.Table, *omitted]
    differences: Annotated[pa.Table, *omitted]
    live: Annotated[pa.Table, *omitted]
    labels: Annotated[tuple[str, ...], *omitted] = ()

    def name_of(self, policy: str) -> str:
        """Return the spec of a policy as reports write it, with the label of a fixed action."""
        return with_label(policy, self.labels)

    @in_document(alias="twins")
    @property
    def n_twins(self) -> Twins:
        """Number of twins."""
        return self.options.twins

    @property
    def policy_table(self) -> pa.Table:
        """`policies`, one row each; how often the intervals of value, regret and uplift held, and their mean width."""
        numbers = ("rounds", "acceptance_rate", "value", "live_value", "live_standard_error", "bias",
                   "bias_standard_error", "spread", "detectable_bias")  # fmt: skip
        held = [name.replace("_coverage", end) for name in _COVERAGES for end in ("_held", "_width")]
        columns = {"policy": TEXT, "sampler": TEXT, **dict.fromkeys((*numbers, *held), NUMBER), "biased": FLAG}
        rows = []
        for policy in self.policies:
            coverages = [getattr(policy, name) for name in _COVERAGES]
            cells = (cell for of in coverages for cell in (of.share, of.mean_width))
            rows.append(
                {name: getattr(policy, name) for name in columns if name not in held}
                | dict(zip(held, cells, strict=True))
            )
        return arrow_table(columns, rows)

    @property
    def pair_table(self) -> pa.Table:
        """`pairs`, one row each, with the difference that each test detects, and whether the pair is told apart."""
        own = ("live_difference", "live_standard_error", "difference", "spread", "ranked_rightly")
        tests = ("alone", "ranked", "expected", "expected_ranked")
        detects = {f"detects_{name}": name for name in tests}
        columns = {"first": TEXT, "second": TEXT, **dict.fromkeys((*own, *detects), NUMBER),
                   "told_apart": FLAG, "told_apart_ranked": FLAG}  # fmt: skip
        rows = (
            {name: getattr(pair, name) for name in columns if name not in detects}
            | {name: getattr(pair, test).high for name, test in detects.items()}
            for pair in self.pairs
        )
        return arrow_table(columns, rows)

    def __repr__(self) -> str:
        return self.verdict
