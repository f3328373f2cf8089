"""What a simulation found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import Count, Finite, JsonDocument, NotNegative, Positive, Share, called, several
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


@dataclass(frozen=True, eq=False)
class Simulation(ShownInNotebooks):
    """Live runs of policies on one problem.

    To keep it, as ``evaluate simulate --out`` does: ``json.dumps(found.to_dict())`` is its ``result.json``, and
    ``pyarrow.parquet.write_table(found.curve_table, ...)`` its ``curves.parquet``.

    Parameters
    ----------
    scenario
        Name of the problem.
    n_actions, horizon, window, runs, seed
        Number of actions K, rounds T, window m in rounds (None when nothing is cut off), runs of each policy, and seed.
    tau_window
        Share of the conversions within the window: one number, or one an action if laws differ.
    laws
        Sentences that name the delay laws, one or one an action.
    told
        Sentence that names the delay CDF that policies are told; empty when there is none.
    told_zeros
        Specs of the policies that are told of each zero reward, after a delay of its own.
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

    scenario: str
    n_actions: int
    horizon: int
    window: int | None
    runs: int
    seed: int
    tau_window: tuple[float, ...]
    laws: tuple[str, ...]
    told: str
    told_zeros: tuple[str, ...]
    flights: tuple[Flight, ...]
    rounds: npt.NDArray[np.int64]
    curves: tuple[RegretCurve, ...]
    lower_bound: Floats | None
    observed_lower_bound: Floats | None

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

    def to_dict(self) -> dict[str, Any]:
        """Return the result at the stated checkpoints, as JSON values."""
        return SimulationDocument(
            scenario=self.scenario,
            actions=self.n_actions,
            horizon=self.horizon,
            window_rounds=self.window,
            tau_window=self.tau_window,
            runs=self.runs,
            seed=self.seed,
            delays=self.laws,
            policy_delays=self.told or None,
            told_zeros=self.told_zeros,
            flights=tuple(EligibleRounds(action=f.action, start=f.start, until=f.until) for f in self.flights),
            policies=tuple(
                PolicyRegret(
                    policy=curve.policy,
                    regret=tuple(self._regret_at(curve, i) for i in self.stated),
                    difference_to_first=RegretDifference(curve.difference, float(curve.difference_se)),
                    conversions=ConversionCounts(**curve.conversions),
                )
                for curve in self.curves
            ),
        ).to_dict()

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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class SimulationDocument(JsonDocument):
    """Result of evaluate simulate --json.

    Parameters
    ----------
    scenario
        Name of the problem.
    actions, horizon, runs, seed
        Number of actions K, rounds T, runs of each policy, and seed.
    window_rounds
        Window in rounds; null where nothing is cut off.
    tau_window
        Share of the conversions within the window, one an action where laws differ.
    delays
        Delay laws, one an action where they differ.
    policy_delays
        Delay CDF that policies are told; null where there is none.
    told_zeros
        Policies that are told of each zero reward.
    flights
        Rounds between which actions were eligible, an action without any always; [] where all always were.
    policies
        What each policy did.
    """

    schema: ClassVar[str] = "evaluate.simulate/1"

    scenario: str
    actions: Positive
    horizon: Positive
    window_rounds: Count | None
    tau_window: Annotated[tuple[Share, ...], several]
    runs: Positive
    seed: Count
    delays: Annotated[tuple[str, ...], several]
    policy_delays: str | None
    told_zeros: tuple[str, ...]
    flights: tuple[EligibleRounds, ...]
    policies: Annotated[tuple[PolicyRegret, ...], several]
