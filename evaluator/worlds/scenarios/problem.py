"""Bandit problems with known truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evaluator.delays.laws import DelayLaw
from evaluator.errors import ParameterError
from evaluator.worlds.scenarios.scenario import Flight, flight_parts

DEFAULT_HORIZON = 10_000
# When a policy hears of a zero reward: when the window closes, by the silence until then; or it is told, after a delay.
Zeros = Literal["window", "told"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BernoulliProblem:
    """Arms without context: arm k converts with probability ``means[k]``, after a delay of law ``laws[k]``.

    Parameters
    ----------
    name
        Name of the scenario.
    means
        Conversion rates of the arms, K of them; conversions that never come count in them.
    laws
        Delay laws: one for all arms, or one an arm.
    horizon, window
        Number of rounds and window, in rounds, of a simulation that names none; window None cuts nothing off.
    zeros
        Rule for zero rewards. ``window``: nobody is told of a zero, as in a log of conversions. ``told``: policies that
        take zeros (`evaluator.policies.base.Policy.takes_zeros`) are told of each, after a delay of the arm's law.
    flights
        Rounds between which arms are eligible (`evaluator.worlds.scenarios.scenario.Flight`): an arm arrives, retires,
        and may come again; one without any is always eligible, and in every round one is.

    Raises
    ------
    ParameterError
        There are fewer than two arms, a rate is outside [0, 1], or the laws are neither one nor as many as the arms; or
        a flight is of no arm or ends before it begins, or no arm is left.
    """

    name: str
    means: tuple[float, ...]
    laws: tuple[DelayLaw, ...]
    horizon: int = DEFAULT_HORIZON
    window: int | None = None
    zeros: Zeros = "window"
    flights: tuple[Flight, ...] = ()

    def __post_init__(self) -> None:
        """Check the arms."""
        k = len(self.means)
        if k < 2 or not all(0 <= mean <= 1 for mean in self.means) or len(self.laws) not in (1, k):
            raise ParameterError(
                f"{self.name}: means {self.means} and {len(self.laws)} delay laws.",
                remedy="give two or more rates in [0, 1], and one delay law or one an arm.",
            )
        _check_flights(self)

    @property
    def n_actions(self) -> int:
        """Number of arms K."""
        return len(self.means)

    @property
    def dimension(self) -> int:
        """Length of the contexts: none."""
        return 0

    @property
    def eventual(self) -> npt.NDArray[np.float64]:
        """Expected number of conversions of a pull that ever come, shape (K,)."""
        return np.array(self.means) * [law.reach for law in self.laws]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProblem:
    """Fresh action vectors every round, uniform on [0, 1]^d and scaled to unit length; theta = 1/sqrt(d).

    An action a converts with probability <a, theta>. Vernade et al. 2020, Section 8.

    Parameters
    ----------
    name
        Name of the scenario.
    n_actions, dimension
        Number of actions K and length d of the vectors.
    laws
        Delay law of all actions, one entry.
    horizon, window, zeros, flights
        Number of rounds, window (None cuts nothing off), rule for zero rewards, and rounds between which actions are
        eligible, as in `BernoulliProblem`.

    Raises
    ------
    ParameterError
        There are fewer than two actions, no dimension, or several laws; or flights that cannot be.
    """

    name: str
    n_actions: int
    dimension: int
    laws: tuple[DelayLaw, ...]
    horizon: int = DEFAULT_HORIZON
    window: int | None = None
    zeros: Zeros = "window"
    flights: tuple[Flight, ...] = ()

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.n_actions < 2 or self.dimension < 1 or len(self.laws) != 1:
            raise ParameterError(
                f"{self.name}: {self.n_actions} actions, {self.dimension} dimensions, {len(self.laws)} delay laws.",
                remedy="give two or more actions, one or more dimensions, one delay law.",
            )
        _check_flights(self)


Problem = BernoulliProblem | LinearProblem


def _check_flights(problem: Problem) -> None:
    try:
        flight_parts(problem.flights, problem.n_actions)
    except ValueError as error:
        raise ParameterError(
            f"{problem.name}: {error}.", remedy="in every round, also after the last, one action or more is eligible."
        ) from None
