"""What a simulation found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import (
    Count,
    Finite,
    JsonDocument,
    NotNegative,
    Positive,
    Share,
    anything,
    called,
    in_place_of,
    omitted,
    several,
)
from evaluator.results.tabular import COUNT, NUMBER, TEXT, arrow_table
from evaluator.worlds.scenarios.scenario import Flight

# Of the horizon, where tables and JSON state the regret; the curves hold every checkpoint.
STATED = (0.1, 0.25, 0.5, 1.0)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """One policy's regret along the rounds, averaged over the runs.

    Parameters
    ----------
    policy
        Spec of the policy.
    regret, regret_se
        Eventual pseudo-regret R(t) = sum over s <= t of the gap of the action of round s, and its standard error, at
        the checkpoints, shape (C,), float64. Gaps are those of the conversions that ever come, to the best action, or
        the best one that is eligible in round s; without contexts this is what the best fixed order of the actions
        shows, the first eligible one.
    observed, observed_se
        Regret observed by round t, L(t), in conversions revealed within the window by then (Vernade et al. 2017, eq. 1
        and 3), and its standard error, at the checkpoints, shape (C,), float64: each gap weighs tau_min(m, t - s).
    difference, difference_se
        Final regret R(T) minus that of the first policy, paired run by run, and its standard error; 0 for the first
        itself.
    conversions
        Number of conversions of all runs together, by fate: generated = delivered + pending + expired + lost.
    """

    policy: str
    regret: Floats
    regret_se: Floats
    observed: Floats
    observed_se: Floats
    difference: float
    difference_se: float
    conversions: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class RegretAt:
    """Regret of a policy after some rounds.

    Parameters
    ----------
    round
        Number of rounds.
    regret, standard_error
        Regret R(t), and its standard error; null of a single run.
    observed_regret, observed_standard_error
        Regret in conversions revealed by then, L(t), and its standard error; null of a single run.
    lower_bound, observed_lower_bound
        Asymptotic lower bounds of the two; null where none is known.
    """

    round: Positive
    regret: Finite
    standard_error: NotNegative | None
    observed_regret: Finite
    observed_standard_error: NotNegative | None
    lower_bound: float | None
    observed_lower_bound: float | None


@dataclass(frozen=True)
class RegretDifference:
    """Regret after all rounds less that of the first policy, paired run by run."""

    estimate: Finite
    standard_error: NotNegative | None


@dataclass(frozen=True, kw_only=True)
class ConversionCounts:
    """Conversions of all runs: generated = delivered + pending + expired + lost."""

    generated: Count
    delivered: Count
    pending: Count
    expired: Count
    lost: Count


@dataclass(frozen=True, kw_only=True)
class PolicyRegret:
    """What a policy did.

    Parameters
    ----------
    policy
        Spec of the policy.
    regret
        Regret at a tenth, a quarter, half and all of the horizon.
    difference_to_first
        Difference of its regret to that of the first policy.
    conversions
        Numbers of its conversions, by fate.
    """

    policy: str
    regret: Annotated[tuple[RegretAt, ...], several]
    difference_to_first: RegretDifference
    conversions: ConversionCounts


@dataclass(frozen=True)
class EligibleRounds:
    """Rounds between which an action was eligible.

    Parameters
    ----------
    action
        Index of the action.
    start
        Number of rounds that are over when it arrives.
    until
        Number of rounds that are over when it retires; null where it never does.
    """

    action: Count
    start: Annotated[Count, called("from")]
    until: Positive | None


@dataclass(frozen=True, eq=False)
class Simulation(JsonDocument, ShownInNotebooks):
    """Live runs of policies on one problem.

    To keep it, as ``evaluate simulate --out`` does: ``json.dumps(found.to_dict())`` is its ``result.json``, and
    ``pyarrow.parquet.write_table(found.curve_table, ...)`` its ``curves.parquet``.

    Parameters
    ----------
    scenario
        Name of the problem.
    n_actions, horizon, runs, seed
        Number of actions K, rounds T, runs of each policy, and seed.
    window
        Window m in rounds; None when nothing is cut off.
    tau_window
        Share of the conversions within the window: one number, or one an action if laws differ.
    laws
        Sentences that name the delay laws, one or one an action.
    told
        Sentence that names the delay CDF that policies are told; empty when there is none.
    told_zeros
        Specs of the policies that are told of each zero reward, after a delay of its own.
    learns
        Words on when policies learn; empty where they do at each event.
    explores, explores_as_logger
        Number of first rounds in which actions are drawn uniformly, or where the other says so by the logging policy.
    flights
        Rounds between which actions were eligible, where they came and went; empty where all always were.
    rounds
        Checkpoints in rounds, shape (C,), int64, the last T.
    curves
        Regret curve of each policy, in the order of the policies.
    lower_bound, observed_lower_bound
        Lower bounds of R and of L at the checkpoints, shape (C,), float64, for Bernoulli problems with one delay law;
        None otherwise. Asymptotic (`evaluator.simulations.runs.lower_bound`).
    """

    schema: ClassVar[str] = "evaluate.simulate/1"

    scenario: str
    n_actions: Annotated[Positive, called("actions")]
    horizon: Positive
    window: Annotated[Count | None, called("window_rounds")]
    tau_window: Annotated[tuple[Share, ...], several]
    runs: Positive
    seed: Count
    laws: Annotated[tuple[str, ...], several, called("delays")]
    told: Annotated[str, called("policy_delays")]
    told_zeros: tuple[str, ...]
    learns: str
    explores: Count
    explores_as_logger: bool
    flights: tuple[Flight, ...]
    curves: Annotated[tuple[RegretCurve, ...], anything, called("policies")]
    rounds: Annotated[npt.NDArray[np.int64], *omitted]
    lower_bound: Annotated[Floats | None, *omitted]
    observed_lower_bound: Annotated[Floats | None, *omitted]

    @property
    def stated(self) -> list[int]:
        """Indices of the checkpoints nearest to a tenth, a quarter, a half and all of the horizon."""
        wanted = [int(np.abs(self.rounds - share * self.horizon).argmin()) for share in STATED]
        return list(dict.fromkeys(wanted))

    @property
    def curve_table(self) -> pa.Table:
        """The curves, one row a policy and checkpoint; bounds are null where there is none."""
        return pa.concat_tables([self._rows(curve) for curve in self.curves])

    @property
    def policy_table(self) -> pa.Table:
        """One row a policy: regret after all rounds, its difference to the first policy's, and its conversions."""
        counts = ("generated", "delivered", "pending", "expired", "lost")
        numbers = ("regret", "regret_se", "observed_regret", "observed_regret_se", "difference", "difference_se")
        rows = (
            {
                "policy": curve.policy,
                "regret": float(curve.regret[-1]),
                "regret_se": float(curve.regret_se[-1]),
                "observed_regret": float(curve.observed[-1]),
                "observed_regret_se": float(curve.observed_se[-1]),
                "difference": curve.difference,
                "difference_se": curve.difference_se,
                **curve.conversions,
            }
            for curve in self.curves
        )
        return arrow_table({"policy": TEXT, **dict.fromkeys(numbers, NUMBER), **dict.fromkeys(counts, COUNT)}, rows)

    def _rows(self, curve: RegretCurve) -> pa.Table:
        none = pa.nulls(len(self.rounds), pa.float64())
        return pa.table(
            {
                "policy": pa.array([curve.policy] * len(self.rounds), pa.string()),
                "round": pa.array(self.rounds),
                "regret": pa.array(curve.regret),
                "regret_se": pa.array(curve.regret_se),
                "observed_regret": pa.array(curve.observed),
                "observed_regret_se": pa.array(curve.observed_se),
                "lower_bound": none if self.lower_bound is None else pa.array(self.lower_bound),
                "observed_lower_bound": none
                if self.observed_lower_bound is None
                else pa.array(self.observed_lower_bound),
            }
        )

    @in_place_of("told")
    def _policy_delays(self, told: str) -> str | None:
        return told or None

    @in_place_of("flights")
    def _eligible_rounds(self, flights: tuple[Flight, ...]) -> tuple[EligibleRounds, ...]:
        return tuple(EligibleRounds(*flight) for flight in flights)

    @in_place_of("curves")
    def _policy_regrets(self, curves: tuple[RegretCurve, ...]) -> Annotated[tuple[PolicyRegret, ...], several]:
        return tuple(
            PolicyRegret(
                policy=curve.policy,
                regret=tuple(self._regret_at(curve, i) for i in self.stated),
                difference_to_first=RegretDifference(curve.difference, curve.difference_se),
                conversions=ConversionCounts(**curve.conversions),
            )
            for curve in curves
        )

    def _regret_at(self, curve: RegretCurve, i: int) -> RegretAt:
        bound, observed_bound = self.lower_bound, self.observed_lower_bound
        return RegretAt(
            round=int(self.rounds[i]),
            regret=float(curve.regret[i]),
            standard_error=float(curve.regret_se[i]),
            observed_regret=float(curve.observed[i]),
            observed_standard_error=float(curve.observed_se[i]),
            lower_bound=None if bound is None else float(bound[i]),
            observed_lower_bound=None if observed_bound is None else float(observed_bound[i]),
        )

    def __repr__(self) -> str:
        return "\n".join(
            f"{c.policy} on {self.scenario}: regret {c.regret[-1]:.4g} +- {c.regret_se[-1]:.2g} "
            f"after {self.horizon:,} rounds, {self.runs} runs"
            for c in self.curves
        )
