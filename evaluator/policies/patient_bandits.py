"""PatientBandits: UCB with an allowance for conversions on their way, under heavy tails (Manegueu et al. 2020).

The delays of every arm satisfy |1 - tau(a)| <= a^-alpha. mu^ = conversions seen / T_k, T_k pulls of arm k, T horizon:

    mu^ + width_scale sqrt(2 log(2 K T³) / T_k) + bias_scale 2 T_k^-min(alpha, 1/2).

The printed width (`width_scale=1`) is large, 2 log(2 K T³) = 51 at T = 3000, K = 2: the curves of Figure 4 appear only
with a smaller one. Theorem 1 uses the union bound over K arms and T rounds that the width carries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.kernels.compiling import inlinable
from evaluator.policies.base import Need, Policy, Setting, parameter
from evaluator.policies.indices import count_conversion, count_pull, implement_computed, mean_conversions
from evaluator.units import NO_WINDOW


class PatientState(NamedTuple):
    """Pulls T_k, conversions and indices, shape (K,), held choice, shape (1,), and 2 log(2 K T³)."""

    pulls: npt.NDArray[np.float64]
    conversions: npt.NDArray[np.float64]
    indices: npt.NDArray[np.float64]
    choice: npt.NDArray[np.int64]
    log_term: float
    alpha: float
    width_scale: float
    bias_scale: float
    random_ties: bool


@dataclass(frozen=True, kw_only=True)
class PatientBandits(Policy):
    """UCB with a bias term for delays of known tail index, whatever the arms' own distributions."""

    name = "patient-bandits"
    among = True
    delays = "allows for a heavy tail of known index, whatever each arm's delays; needs the horizon"
    unit_rewards = True
    paper = "Manegueu et al. 2020, Algorithm 1"
    needs = (Need.HORIZON,)
    note = (
        "T is `horizon`; without it a number of rounds that the replay reaches all but surely. A window cuts off the "
        "tail that alpha describes: conversions beyond it count as failures for ever."
    )
    alpha: float = parameter(0.5, "tail index of the delays, or a lower bound on it; above 1/2 it acts as 1/2", above=0)
    width_scale: float = parameter(1.0, "factor of the confidence width; 1 as printed", at_least=0)
    bias_scale: float = parameter(1.0, "factor of the bias term; 1 as printed, 0 leaves it out", at_least=0)
    ties: Literal["random", "lowest"] = parameter("random", "rule among equal indices")

    def start(self, setting: Setting) -> PatientState:
        """Return the state before the first round."""
        pulls, conversions, indices = np.zeros((3, setting.n_actions))
        return PatientState(
            pulls, conversions, indices, np.zeros(1, np.int64), log_term(setting, policy=self.name), self.alpha,
            self.width_scale, self.bias_scale, self.ties == "random",
        )  # fmt: skip


def log_term(setting: Setting, *, policy: str) -> float:
    """Return 2 log(2 K T³); raise `ParameterError`, which names the policy, where the setting has no horizon T."""
    if setting.horizon == NO_WINDOW:
        raise Need.HORIZON.missing(policy)
    return 2.0 * (math.log(2.0 * setting.arms) + 3.0 * math.log(max(setting.horizon, 1)))


@inlinable
def patient_index(conversions: float, pulls: float, alpha: float, width: float, bias_scale: float) -> float:
    """Return conversions / pulls + width / sqrt(pulls) + 2 bias_scale pulls^-min(alpha, 1/2)."""
    return conversions / pulls + width / math.sqrt(pulls) + 2.0 * bias_scale * pulls ** -min(alpha, 0.5)


@inlinable
def _width(state: PatientState) -> float:
    return state.width_scale * math.sqrt(state.log_term)


@inlinable
def _index(state: PatientState, k: int, width: float) -> float:
    n = state.pulls[k]
    return patient_index(state.conversions[k], n, state.alpha, width, state.bias_scale) if n > 0.0 else np.inf


implement_computed(
    PatientState, index=_index, begin=_width, shown=count_pull, told=count_conversion, estimate=mean_conversions
)
