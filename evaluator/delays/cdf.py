"""The delay CDF that policies weigh their displays with: steps on whole rounds, or a geometric law.

Mean, variance and bound of the delays that come in time are taken before a CDF is given fewer steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.errors import DataError, ParameterError
from evaluator.escape import shortened

# A law of so many more steps has its moments summed in bins.
_MOST_STEPS = 1 << 20
# Above this, 1 - cdf is rounding of a sum of a million terms, not missing mass.
_COMPLETE = 1.0 - 1e-9
# Whole numbers in floating point end here.
_LAST_ROUND = 2**53
T = TypeVar("T", bound=np.generic)
# Delays up to here are summed one by one; later ones in bins, each shorter than a part in 2,000 of its delays for as
# long as the last delay is below 2^30.
_EXACT = 2**16
_BINS = 2**14


class Steps(NamedTuple):
    """Steps of a delay CDF up to a limit m.

    `delays` int64 (J,), strictly increasing, in rounds; `weights` float64 (J,), P(D = delay) > 0; `tau`,
    their sum tau_m = P(D <= m).
    """

    delays: NDArray[np.int64]
    weights: NDArray[np.float64]
    tau: float


@dataclass(frozen=True, eq=False)
class DelayCDF:
    """Probability tau_a = P(D <= a) that a conversion has come by age a, in rounds.

    Either steps (`delays`, `cdf`) or a geometric law (`geometric_ratio`), whose steps never end and which is
    therefore evaluated in closed form. Read both through the methods.

    Parameters
    ----------
    delays
        Delays at which the CDF rises, in rounds, shape (J,), int64, >= 0, strictly increasing. Empty for a geometric
        law.
    cdf
        P(D <= delay) for each of `delays`, shape (J,), float64, nondecreasing, in (0, 1]. Below 1 at the end, the rest
        never converts within the support. Empty for a geometric law.
    source
        Sentence for reports that says where the CDF comes from.
    geometric_ratio
        Ratio lambda = P(D > a + 1) / P(D > a) in (0, 1): tau_a = 1 - lambda^(a + 1 - start). None for steps.
    start
        Smallest delay of a geometric law in rounds, 0 or 1.
    moments
        Mean, variance and bound of the delays up to the last step, given that they come by then, where steps were left
        out: held flat in between, those left make delays longer than they are. None: they are the steps' own.

    Raises
    ------
    DataError
        The arrays are not a CDF on whole delays.
    ParameterError
        The ratio or the start is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> tau = DelayCDF(delays=np.array([0, 3]), cdf=np.array([0.25, 1]), source="by hand")
    >>> tau(2), tau([-1, 0, 3])
    (0.25, array([0.  , 0.25, 1.  ]))
    >>> round(DelayCDF.geometric(500)(499), 4)
    0.6318
    """

    delays: NDArray[np.int64]
    cdf: NDArray[np.float64]
    source: str
    geometric_ratio: float | None = None
    start: int = 0
    moments: DelayMoments | None = None

    def __post_init__(self) -> None:
        delays, cdf = _frozen(self.delays, np.int64), _frozen(self.cdf, np.float64)
        if self.geometric_ratio is None:
            _check_steps(delays, cdf, self.delays)
        elif not 0 < self.geometric_ratio < 1 or self.start not in (0, 1) or delays.size or cdf.size:
            raise ParameterError(
                f"A geometric law has ratio {self.geometric_ratio:g}, start {self.start}, {cdf.size} steps.",
                remedy="ratio in (0, 1), start 0 or 1, no steps; DelayCDF.geometric(mean) sets them.",
            )
        object.__setattr__(self, "delays", delays)
        object.__setattr__(self, "cdf", cdf)

    @classmethod
    def geometric(cls, mean: float, *, start: int = 0) -> DelayCDF:
        """Return the geometric law with this mean, in rounds.

        Start 0 (Vernade et al. 2017): lambda = mean / (1 + mean), tau_a = 1 - lambda^(a+1).
        Start 1 (Vernade et al. 2020): lambda = 1 - 1/mean, tau_a = 1 - lambda^a. A mean equal to the start is
        a fixed delay.

        >>> round(DelayCDF.geometric(100, start=1)(100), 3)
        0.634
        """
        if start not in (0, 1):
            raise ParameterError(
                f"A geometric delay cannot start at {shortened(str(start))}.", remedy="start is 0 or 1."
            )
        excess = mean - start
        # Beyond 1e15 the ratio would round to 1.
        if not 0 <= excess < 1e15:
            raise ParameterError(
                f"The mean of a geometric delay is {mean:g}.",
                remedy=f"give a mean of at least {start} and below 1e15 rounds.",
            )
        if excess == 0:
            return cls.fixed(start)
        source = f"geometric delays on {{{start}, {start + 1}, ...}} with mean {mean:g} rounds (given)"
        return cls(
            delays=np.empty(0, np.int64),
            cdf=np.empty(0),
            source=source,
            geometric_ratio=excess / (1.0 + excess),
            start=start,
        )

    @classmethod
    def fixed(cls, delay: int) -> DelayCDF:
        """Return the law of a delay that is always the same number of rounds."""
        if not 0 <= delay <= _LAST_ROUND or delay != int(delay):
            raise ParameterError(
                f"The fixed delay is {shortened(str(delay))}.", remedy="give a whole number of rounds, from 0 to 2^53."
            )
        return cls(
            delays=np.array([int(delay)]),
            cdf=np.ones(1),
            source=f"every conversion {int(delay)} rounds late (given)",
        )

    @overload
    def __call__(self, age: float) -> float: ...
    @overload
    def __call__(self, age: ArrayLike) -> NDArray[np.float64]: ...
    def __call__(self, age: ArrayLike) -> float | NDArray[np.float64]:
        """Return tau_a = P(D <= a), same shape as `age` (rounds); 0 before the first step. O(log J) each."""
        ages = np.asarray(age)
        if self.geometric_ratio is None:
            padded = np.concatenate(([0.0], self.cdf))
            tau = padded[np.searchsorted(self.delays, ages, side="right")]
        else:
            tau = 1.0 - self.geometric_ratio ** np.maximum(np.floor(ages) + 1.0 - self.start, 0.0)
        return float(tau) if ages.ndim == 0 else np.asarray(tau)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DelayCDF):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.delays.tobytes(), self.cdf.tobytes(), self.source, self.geometric_ratio, self.start, self.moments

    @property
    def mean(self) -> float | None:
        """Mean delay in rounds; None when the CDF ends below 1, since the missing delays are then unknown."""
        if self.geometric_ratio is not None:
            return self.start + self.geometric_ratio / (1.0 - self.geometric_ratio)
        if self.cdf[-1] < _COMPLETE:
            return None
        if self.moments is not None:
            return self.moments.mean
        return float(self.delays @ np.diff(self.cdf, prepend=0.0) / self.cdf[-1])

    def quantiles(self, levels: ArrayLike) -> NDArray[np.int64]:
        """Return the smallest delay a with tau_a >= level, for each level in (0, 1], shape (k,), in rounds.

        Levels above the last step give the last step's delay. For a geometric law, level 1 gives the delay from which
        tau_a is 1 in floating point, about 37 means. O(log J) or O(log mean) a level.
        """
        level = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((level > 0) & (level <= 1)).all():
            raise ParameterError(f"Quantile levels are {level}.", remedy="levels lie in (0, 1].")
        if self.geometric_ratio is None:
            return self.delays[np.minimum(np.searchsorted(self.cdf, level), self.delays.size - 1)]
        # 1 - ratio^k rounds to 1 once ratio^k is at most 2^-54.
        last = math.ceil(-54 * math.log(2) / math.log(self.geometric_ratio)) - 1 + self.start
        # Bisection, since a quantile from logarithms would be rounds off where tau is within rounding of 1.
        below, reached = np.full(level.shape, self.start - 1), np.full(level.shape, last)
        while (reached - below > 1).any():
            middle = (below + reached) // 2
            enough = self(middle) >= level
            below, reached = np.where(enough, below, middle), np.where(enough, middle, reached)
        return reached

    def steps(self, limit: int | None = None) -> Steps:
        """Return the steps with delay <= `limit` (rounds): what a system with that window can see.

        Cost O(J); for a geometric law O(min(limit, 37 mean)) time and memory, beyond which tau is 1 in
        floating point.

        >>> DelayCDF.fixed(3).steps(2)
        Steps(delays=array([], dtype=int64), weights=array([], dtype=float64), tau=0.0)
        """
        if self.geometric_ratio is None:
            delays, cdf = self.delays, self.cdf
            if limit is not None:
                cut = np.searchsorted(delays, limit, side="right")
                delays, cdf = delays[:cut], cdf[:cut]
        else:
            last = int(self.quantiles([1.0])[0])
            delays = np.arange(self.start, (last if limit is None else min(limit, last)) + 1)
            cdf = self(delays)
        weights = np.diff(cdf, prepend=0.0)
        rising = weights > 0
        return Steps(delays[rising], weights[rising], float(cdf[-1]) if cdf.size else 0.0)

    def moments_within(self, limit: int | None = None) -> DelayMoments:
        """Return mean, variance and bound of the delays <= `limit` (rounds), given that they are; zeros without any.

        Exact for a coarsened CDF too, unless the limit is below its last step: then they are those of its few steps.
        Cost as in `steps`, and of a geometric law no more than that of a million, however long its delays.

        >>> DelayCDF.fixed(3).moments_within(10)
        DelayMoments(mean=3.0, variance=0.0, bound=3.0)
        """
        if self.moments is not None and (limit is None or limit >= self.delays[-1]):
            return self.moments
        if self.geometric_ratio is not None:
            last = int(self.quantiles([1.0])[0])
            last = last if limit is None else min(limit, last)
            if last > _MOST_STEPS:
                return law_moments(self, last)
        delays, weights, tau = self.steps(limit)
        return DelayMoments(0.0, 0.0, 0.0) if tau == 0.0 else step_moments(delays.astype(float), weights, delays[-1])

    def scaled(self, share: float) -> DelayCDF:
        """Return the CDF of the delays times `share`, in whole rounds: the same law on a slower clock.

        >>> round(DelayCDF.geometric(500).scaled(0.1).mean, 9)
        50.0
        >>> DelayCDF.fixed(30).scaled(0.1).delays
        array([3])
        """
        if self.geometric_ratio is None:
            delays = np.rint(self.delays * share).astype(np.int64)
            # Of the steps that fall into one round the last holds the mass of all.
            last = np.append(np.diff(delays) > 0, True)
            found = self.moments
            # Left without their rounding to whole rounds: such laws are far wider than a round.
            slower = found and DelayMoments(found.mean * share, found.variance * share**2, float(delays[-1]))
            return DelayCDF(delays=delays[last], cdf=self.cdf[last], source=self.source, moments=slower)
        mean = (self.start + self.geometric_ratio / (1.0 - self.geometric_ratio)) * share
        # Delays on {1, 2, ...} have a mean above 1.
        return DelayCDF.geometric(mean, start=self.start if mean > 1 else 0)

    def coarsened(self, max_steps: int, *, limit: int | None = None) -> DelayCDF:
        """Return a CDF with at most `max_steps` steps, for policies whose cost grows with their number.

        Keeps the support points at the `max_steps` evenly spaced quantiles up to tau_limit, with their exact tau, and
        holds tau flat in between: tau_a - tau_limit / max_steps < coarsened tau_a <= tau_a for every a <= limit, and
        the two agree at every kept point, the last of which reaches tau_limit. Conservative: a policy credits its
        displays with no more time to convert than they had. Beyond `limit` (rounds, e.g. the window; None keeps all)
        the result stays at tau_limit. Steps that are few enough are all kept. `moments` are those before: of all delays
        up to `limit`.

        >>> DelayCDF.geometric(500).coarsened(4, limit=1000).delays
        array([ 121,  283,  523, 1000])
        """
        if max_steps < 1:
            raise ParameterError(f"max_steps is {max_steps}.", remedy="keep at least one step.")
        end = math.inf if limit is None else limit
        tau = self(end)
        if tau == 0:
            raise ParameterError(
                f"No delay is as short as {limit} rounds.",
                remedy="raise the limit: the window sees no conversion.",
            )
        if self.geometric_ratio is None or end < max_steps:
            delays = self.steps(limit).delays
            if delays.size <= max_steps:
                moments = self.moments and self.moments_within(limit)
                return DelayCDF(delays=delays, cdf=self(delays), source=self.source, moments=moments)
        levels = tau * (np.arange(1, max_steps + 1) / max_steps)
        delays = np.unique(self.quantiles(levels))
        return DelayCDF(
            delays=delays,
            cdf=self(delays),
            source=f"{self.source}; coarsened to {delays.size} steps, low by at most {tau / max_steps:.2g}",
            moments=self.moments_within(limit),
        )


def stating_the_rest(source: str, end: float) -> str:
    """Return a source that also says what becomes of the rest, where its CDF ends below 1.

    >>> stating_the_rest("by hand", 0.75)
    'by hand; it ends below 1: 25% of the conversions never come'
    """
    return (
        source
        if end >= _COMPLETE
        else f"{source}; it ends below 1: {100 * (1.0 - end):.3g}% of the conversions never come"
    )


def _frozen(values: ArrayLike, dtype: type[T]) -> NDArray[T]:
    """Return a read-only copy."""
    with np.errstate(invalid="ignore"):
        copy = np.array(values).astype(dtype)
    copy.flags.writeable = False
    return copy


def _check_steps(delays: NDArray[np.int64], cdf: NDArray[np.float64], given: ArrayLike) -> None:
    """Raise `DataError` unless the arrays are the steps of a CDF on whole delays >= 0."""
    if delays.ndim != 1 or delays.shape != cdf.shape or not delays.size:
        raise DataError(
            f"A delay CDF has delays of shape {delays.shape} and cdf of shape {cdf.shape}.",
            remedy="pass two arrays of one length, at least 1.",
        )
    before, tau_before = np.concatenate(([-1], delays[:-1])), np.concatenate(([0.0], cdf[:-1]))
    # Written so that nan counts as wrong.
    wrong = ~((delays > before) & (np.asarray(given) == delays) & (cdf > 0) & (cdf >= tau_before) & (cdf <= 1))
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"Step {first} of a delay CDF is (delay {np.asarray(given)[first]}, cdf {cdf[first]:g}), "
            f"after (delay {before[first]}, cdf {tau_before[first]:g}).",
            remedy="delays are whole, >= 0 and strictly increasing; cdf never falls and lies in (0, 1].",
        )


class DelayMoments(NamedTuple):
    """Mean, variance and bound (the largest) of the delays that come in time, given that they do, in rounds."""

    mean: float
    variance: float
    bound: float


def step_moments(delays: NDArray[np.float64], weights: NDArray[np.float64], bound: float) -> DelayMoments:
    """Return the moments of delays with these weights, not all 0, shape (J,) each."""
    total = weights.sum()
    mean = float(delays @ weights / total)
    return DelayMoments(mean, float((delays - mean) ** 2 @ weights / total), float(bound))


def law_moments(tau: Callable[[NDArray[np.int64]], NDArray[np.float64]], bound: int) -> DelayMoments:
    """Return the moments of the delays <= `bound` of a law, given that they are, from its CDF at whole rounds.

    `tau` gives P(D <= a) of ages a >= 0, int64 of any shape, in rounds; it is above 0 at the bound. Exact but for
    rounding up to 65,536 rounds. Later delays count as the middle of their bin. Costs 2^16 + 2^14 values of the CDF at
    most, however late the bound.

    >>> law_moments(lambda ages: (ages + 1) / 10, 4)
    DelayMoments(mean=2.0, variance=2.0, bound=4.0)
    """
    ends = np.arange(min(bound, _EXACT) + 1)
    if bound > _EXACT:
        far = np.geomspace(_EXACT, bound, _BINS + 1)[1:].astype(np.int64)
        far[-1] = bound
        ends = np.append(ends, np.unique(far))
    starts = np.append(0, ends[:-1] + 1)
    # Where tau has come to rest, rounding may let it fall.
    weights = np.maximum(np.diff(tau(ends), prepend=0.0), 0.0)
    return step_moments((starts + ends) / 2.0, weights, bound)
