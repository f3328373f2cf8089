"""Confidence sequence for the value of a policy that learns: valid at every time, whatever the drift.

While a policy learns, its rounds have no common mean. What a replay estimates after t rounds is the running
mean of conditional means,

    mu_t = (1/t) sum_{i<=t} E[X_i | F_{i-1}],

the value of the choices made so far, given what was known when they were made. Sequences for a *constant*
mean (the predictable plug-in empirical Bernstein and the betting sequences of Waudby-Smith and Ramdas 2024)
bet more on some rounds than on others; when the mean drifts, the first covers a mean weighted by its bets and
the second promises nothing. The sequence here weighs all rounds alike, and so covers mu_t.

Martingales also tell whether displays were accepted as often as they should be, and shown as often as their
propensities say. A replay whose sampler is right accepts each display it reads with a known probability, whatever its
policy does. So the number accepted is tested against it at any time, however the replay ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from evaluator.errors import DataError, ParameterError
from evaluator.results.json_documents import Count, Level

Floats = NDArray[np.float64]
Counts = npt.NDArray[np.int64]
ANYTIME = "anytime-valid empirical Bernstein (Howard et al. 2021)"
EXACT = "exact (Clopper, Pearson 1934)"
UNKNOWN = "empirical Bernstein on the range of the rewards seen: not valid if a display can earn outside it"
# Where the interval is tightest, in units of variance times rounds: 100 is 400 rounds at a conversion rate of
# .5, 10,000 at .01. From 40 to 250,000 it is 1.7 to 2.1 times as wide as a normal interval at one time.
TUNED_FOR = 100.0
# Trigamma at 0 (never asked for), 1, ..., 31.
_TRIGAMMA = np.concatenate(
    ([np.inf], math.pi**2 / 6 - np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1.0, 31) ** 2))))
)
# So many of them are made at a time.
_BLOCK = 65_536
# Fewer rounds than one in so many are looked up one by one.
_SEARCHED = 64


@dataclass(frozen=True)
class Interval:
    """An estimate with the interval that goes with it.

    Parameters
    ----------
    estimate
        Estimate of the quantity, a single number; nan when `n` is 0.
    low, high
        Ends of the interval, in the unit of the estimate.
    n
        Number of observations behind it.
    level
        Probability with which the interval holds, such as 0.95.
    kind
        Name, in reports, of how the interval was made.
    """

    estimate: float
    low: float
    high: float
    n: Count
    level: Level
    kind: str


def with_honest_kind(interval: Interval) -> Interval:
    """Return an interval, of a replay whose largest or smallest reward nobody knows, that claims no more than holds."""
    return replace(interval, kind=UNKNOWN)


def mean_interval(
    x: ArrayLike | SparseRewards, *, upper: float, lower: float = 0.0, alpha: float = 0.05, tuned_for: float = TUNED_FOR
) -> Interval:
    """Return the mean of `x` with an interval that holds at whatever time the observation stopped.

    The last interval of the confidence sequence `mean_sequence`, which states formula, validity and errors.

    Parameters
    ----------
    x
        Rewards of the rounds in order, shape (n,), each in [`lower`, `upper`], all or those that are not zero. No
        rounds give an estimate of nan and the interval [`lower`, `upper`].
    upper, lower
        Largest and smallest reward a round can have, known before looking at the data.
    alpha
        Probability that the interval ever fails.
    tuned_for
        Sum of variances, in units of `upper` - `lower` squared, where the interval is tightest; fixed before seeing
        `x`.

    Examples
    --------
    >>> interval = mean_interval([0, 1, 0, 0, 1] * 200, upper=1)
    >>> f"{interval.estimate:.3f} in [{interval.low:.3f}, {interval.high:.3f}]"
    '0.400 in [0.349, 0.451]'
    """
    if isinstance(x, SparseRewards):
        return _sparse_interval(x, upper=upper, lower=lower, alpha=alpha, tuned_for=tuned_for)
    return mean_intervals(x, upper=upper, lower=lower, alphas=[alpha], tuned_for=tuned_for)[0]


def mean_intervals(
    x: ArrayLike, *, upper: float, lower: float = 0.0, alphas: Sequence[float], tuned_for: float = TUNED_FOR
) -> list[Interval]:
    """Return the interval of `mean_interval` at each of several errors, in one pass over the rewards of all rounds."""
    x = _checked(x, upper, lower)
    at = np.array([x.size])
    sums, variation = sums_until(at, x, upper, lower)
    estimate = float(x.mean()) if x.size else math.nan
    ends = (
        interval_ends(sums, variation, at, upper=upper, lower=lower, alpha=alpha, tuned_for=tuned_for)
        for alpha in alphas
    )
    return [
        Interval(estimate, float(low[0]), float(high[0]), x.size, 1.0 - alpha, ANYTIME)
        for alpha, (low, high) in zip(alphas, ends, strict=True)
    ]


def share_interval(cases: int, n: int, *, alpha: float = 0.05) -> Interval:
    """Return the share of `n` independent trials that are cases, with its exact interval (Clopper, Pearson 1934).

    Each end fails with a probability of at most `alpha` / 2, whatever the share and however few the trials.

    >>> interval = share_interval(3, 10)
    >>> interval.estimate, round(interval.low, 3), round(interval.high, 3)
    (0.3, 0.067, 0.652)
    """
    from scipy.special import betaincinv

    low = float(betaincinv(cases, n - cases + 1, alpha / 2)) if cases else 0.0
    high = float(betaincinv(cases + 1, n - cases, 1.0 - alpha / 2)) if cases < n else 1.0
    return Interval(cases / n if n else math.nan, low, high, n, 1.0 - alpha, EXACT)


def _sparse_interval(rewards: SparseRewards, *, upper: float, lower: float, alpha: float, tuned_for: float) -> Interval:
    """Return the interval of rewards mostly zero; cost and memory are those of the others."""
    n = rewards.n
    if n == 0:
        _checked(rewards.value, upper, lower)
        return mean_interval([], upper=upper, lower=lower, alpha=alpha, tuned_for=tuned_for)
    total, variation = rewards.sums(upper, lower)
    low, high = interval_ends([total], [variation], [n], upper=upper, lower=lower, alpha=alpha, tuned_for=tuned_for)
    return Interval(rewards.total / n, float(low[0]), float(high[0]), n, 1.0 - alpha, ANYTIME)


def _running_sums(rewards: SparseRewards, upper: float, lower: float) -> tuple[float, float]:
    """Return the sum S of rewards mostly zero, in units of their range, and that of the squares V around its mean.

    Between two rewards the running sum S stands still, so the rounds i of the gap add (M + S)^2 sum 1/i^2 to V, M the
    `middle`, and the sum of 1/i^2 over a < i < b is trigamma(a + 1) - trigamma(b).
    """
    value, at, start = _checked(rewards.value, upper, lower), rewards.at, middle(lower, upper)
    if at.size < rewards.n:
        _checked([0.0], upper, lower)
    of_rewards, of_gaps = np.empty(at.size), np.empty(at.size + 1)
    total, last = 0.0, 0.0
    for first in range(0, at.size, _BLOCK):  # there may be millions
        here = slice(first, first + _BLOCK)
        x, number = value[here] / (upper - lower), at[here].astype(np.float64) + 1.0
        sums = np.cumsum(np.concatenate(([total], x)))
        before, total = start + sums[:-1], float(sums[-1])
        of_rewards[here] = (x - before / number) ** 2
        gap = _trigamma(np.concatenate(([last + 1.0], number[:-1] + 1.0)))
        gap -= _trigamma(number)
        of_gaps[first : first + number.size] = before**2 * gap
        last = float(number[-1])
    before, gap = start + np.array([total]), _trigamma(np.array([last + 1.0, rewards.n + 1.0]))
    of_gaps[-1:] = before**2 * -np.diff(gap)
    return float(before[0] - start), float(of_rewards.sum() + of_gaps.sum())


def _trigamma(x: Floats) -> Floats:
    """Return the sum of 1/i^2 over i >= x, for whole x >= 1, to 1e-15: thirty times faster than SciPy's."""
    found = np.empty(x.size)
    for start in range(0, x.size, _BLOCK):  # so that what is made on the way stays in the cache
        part = x[start : start + _BLOCK]
        y = 1.0 / part
        square = y * y
        # The first term left out is 5/(66 x^11).
        series = y + square * (0.5 + y * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30))))
        small = part < _TRIGAMMA.size
        series[small] = _TRIGAMMA[part[small].astype(np.int64)]
        found[start : start + _BLOCK] = series
    return found


def mean_sequence(
    x: ArrayLike,
    *,
    upper: float,
    lower: float = 0.0,
    alpha: float = 0.05,
    at: NDArray[np.integer],
    tuned_for: float = TUNED_FOR,
) -> tuple[Floats, Floats]:
    """Return the ends of the confidence sequence for the running mean of conditional means.

    With a = `lower`, b = `upper`, w = b - a, X^_i = ((a + b)/2 + X_1 + ... + X_{i-1}) / i and
    V_t = sum_{i<=t} (X_i - X^_i)^2, the interval at time t is

        [a, b] and mean(X_1..X_t) +- (w/t) u(V_t / w^2),    u = `gamma_exponential_boundary` at alpha/2.

    P(mu_t is inside for every t >= 1) >= 1 - alpha for any adapted X in [a, b], independent or not, drifting
    or not. Each interval is for its own mu_t: intersecting earlier intervals with later ones would be wrong,
    and is not done. O(n) time and memory, plus one root a checkpoint.

    Parameters
    ----------
    x
        Rewards of the rounds in order, shape (n,), each in [`lower`, `upper`].
    upper, lower
        Largest and smallest reward a round can have, known before looking at the data.
    alpha
        Probability that any interval of the sequence fails.
    at
        Checkpoints in numbers of rounds, shape (k,), 0 to n. At 0 the interval is [`lower`, `upper`].
    tuned_for
        Sum of variances, in units of `upper` - `lower` squared, where the sequence is tightest; fixed before seeing
        `x`.

    Returns
    -------
    lows, highs
        Lower and upper ends, shape (k,) each, in the unit of `x`.

    Raises
    ------
    DataError
        An observation lies outside [`lower`, `upper`] or is nan; the first such index is named.
    ParameterError
        `upper`, `lower`, `alpha`, `tuned_for` or a checkpoint is out of range.

    References
    ----------
    Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals
    of Statistics 49(2), 2021: Theorem 4 with the boundary of Proposition 9.

    Examples
    --------
    >>> import numpy as np
    >>> lows, highs = mean_sequence([0, 1] * 500, upper=1, at=np.array([0, 100, 1000]))
    >>> np.round(highs - lows, 2)
    array([1.  , 0.39, 0.1 ])
    """
    x = _checked(x, upper, lower)
    at = np.asarray(at, dtype=np.int64)
    if at.size and (at.min() < 0 or at.max() > x.size):
        raise ParameterError(
            f"Checkpoints run from {at.min()} to {at.max()}, but there are {x.size} observations.",
            remedy=f"checkpoints are numbers of observations, 0 to {x.size}.",
        )
    sums, variation = sums_until(at, x, upper, lower)
    return interval_ends(sums, variation, at, upper=upper, lower=lower, alpha=alpha, tuned_for=tuned_for)


def sums_until(at: NDArray[np.integer], x: Floats, upper: float, lower: float) -> tuple[Floats, Floats]:
    """Return the sum of the rewards, and V_t of `mean_sequence`, up to each checkpoint, in units of their range."""
    sums, variation = np.zeros(at.shape), np.zeros(at.shape)
    total, spread = np.zeros(1), np.zeros(1)
    for start in range(0, x.size, _BLOCK):  # so that what is made on the way stays in the cache
        scaled = x[start : start + _BLOCK] / (upper - lower)
        end = start + scaled.size
        total = np.concatenate((total[-1:], scaled))
        np.cumsum(total, out=total)
        predicted = middle(lower, upper) + total[:-1]
        predicted /= np.arange(start + 1.0, end + 1.0)
        scaled -= predicted
        scaled *= scaled
        scaled[0] += spread[-1]
        spread = np.cumsum(scaled, out=scaled)
        here = (at > start) & (at <= end)
        sums[here], variation[here] = total[at[here] - start], spread[at[here] - start - 1]
    return sums, variation


def interval_ends(
    sums: ArrayLike,
    variation: ArrayLike,
    at: ArrayLike,
    *,
    upper: float,
    lower: float = 0.0,
    alpha: float,
    tuned_for: float = TUNED_FOR,
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of `mean_sequence` from what they need of the rewards.

    That is the sum of the rewards, and V_t, up to each checkpoint, shape (k,), in units of `upper` - `lower`, and the
    checkpoints in numbers of rounds, shape (k,). Bounds, error and tuning are those of `mean_sequence`.
    """
    sums, at = np.asarray(sums, dtype=np.float64), np.asarray(at)
    rounds = np.maximum(at, 1)
    width = upper - lower
    # Before any round the interval is all of [a, b]: the boundary is never below log(2/alpha) > 1/2.
    mean = np.where(at > 0, sums / rounds, middle(lower, upper))
    radius = gamma_exponential_boundary(variation, alpha=alpha / 2, tuned_for=tuned_for) / rounds
    return width * np.maximum(mean - radius, lower / width), width * np.minimum(mean + radius, upper / width)


def middle(lower: float, upper: float) -> float:
    """Return the middle of a range of rewards in units of its width: where a mean is expected before any round."""
    return 0.5 + lower / (upper - lower)


def gamma_exponential_boundary(v: ArrayLike, *, alpha: float, tuned_for: float = TUNED_FOR) -> Floats:
    """Return the boundary that a sub-exponential process of scale 1 crosses with probability at most `alpha`.

    Let S_t be the centred sum of observations in [0, 1], or its negative, and V_t as in `mean_sequence`. For
    every lambda in [0, 1), exp(lambda S_t - psi(lambda) V_t) with psi(lambda) = -log(1 - lambda) - lambda is
    a nonnegative supermartingale that starts at 1 (Fan, Grama, Liu 2015). So is its mixture m(S_t, V_t) over
    a gamma density of 1 - lambda truncated to (0, 1], and by Ville's inequality m ever reaches 1/alpha with
    probability at most alpha. In closed form, with a = v + rho and the regularised lower incomplete gamma
    function P,

        m(s, v) = [rho^rho / (Gamma(rho) P(rho, rho))] [Gamma(a) P(a, a + s) / (a + s)^a] exp(s + v).

    The boundary u(v) solves m(u, v) = 1/alpha and increases with v. It is one-sided: spend alpha/2 on a side.

    Parameters
    ----------
    v
        Intrinsic times V_t >= 0, shape (k,).
    alpha
        Probability of crossing the boundary, in (0, 1/2).
    tuned_for
        Intrinsic time at which the boundary is lowest, compared with other rho.

    Returns
    -------
    u
        Boundary at each time, shape (k,), in units of the sum S_t.

    References
    ----------
    Howard et al. 2021, Proposition 9 (c = 1); rho by the rule for normal mixtures, as in their software.

    Examples
    --------
    >>> float(gamma_exponential_boundary([2500.0], alpha=0.025)[0].round(1))
    173.4
    """
    v = np.asarray(v, dtype=np.float64)
    return crossing_boundary(v, threshold=-math.log(_one_sided(alpha)), rho=mixture_rho(alpha, tuned_for))


def mixture_rho(alpha: float, tuned_for: float = TUNED_FOR) -> float:
    """Return the rho of the mixture whose boundary at one-sided `alpha` is lowest at intrinsic time `tuned_for`."""
    if not 0 < tuned_for < math.inf:
        raise ParameterError(f"tuned_for is {tuned_for:g}.", remedy="give a positive number, e.g. 100.")
    optimum = 2.0 * math.log(0.5 / _one_sided(alpha))
    return tuned_for / (optimum + math.log1p(optimum))


def _one_sided(alpha: float) -> float:
    if not 0 < alpha < 0.5:
        raise ParameterError(
            f"One-sided alpha is {alpha:g}.", remedy="a two-sided alpha lies between 0 and 1, e.g. 0.05."
        )
    return alpha


def crossing_boundary(v: Floats, *, threshold: Floats | float, rho: float) -> Floats:
    """Return the boundary of one mixture for several levels: `gamma_exponential_boundary` with its rho held.

    Intrinsic times V_t >= 0 are of any shape; the threshold log(1/alpha) of each, one-sided, broadcasts against that,
    and the boundary increases with it. The parameter rho is that of `mixture_rho`.
    """
    target = np.asarray(threshold)
    u = target + np.sqrt(2.0 * target * (v + rho))
    # log m is convex and increasing in s: after one step Newton is right of the root and comes down to it, so
    # that stopping early could only make the boundary longer.
    for _ in range(100):
        value, slope = log_mixture(u, v, rho)
        step = (value - target) / slope
        u = u - step
        if np.all(np.abs(step) <= 1e-12 * u):
            break
    return np.asarray(u, dtype=np.float64)


def log_mixture(s: Floats, v: Floats, rho: float) -> tuple[Floats, Floats]:
    """Return log m(s, v) and its derivative in s, for s > 0.

    Written with e(a) = log Gamma(a) - a log a + a, so that the terms of size v log v cancel on paper instead
    of in floating point, where at v = 1e8 they would leave only six decimals.
    """
    from scipy.special import gammainc

    a = v + rho
    gap = s - a * np.log1p(s / a)
    cut = gammainc(a, a + s)
    excess = _stirling_excess(a)
    normaliser = _stirling_excess(np.asarray(rho)) + math.log(gammainc(rho, rho))
    density = np.exp(-gap - excess) / (a + s)
    return gap + excess + np.log(cut) - normaliser, s / (a + s) + density / cut


def _stirling_excess(a: Floats) -> Floats:
    """Return log Gamma(a) - a log a + a, with absolute error below 1e-10."""
    from scipy.special import gammaln

    # The first term left out of the series is 1/(360 a^3) < 3e-15.
    series = 0.5 * np.log(2.0 * np.pi / a) + 1.0 / (12.0 * a)
    return np.where(a < 1e4, gammaln(a) - a * np.log(a) + a, series)


def _checked(x: ArrayLike, upper: float, lower: float) -> Floats:
    """Return `x` as float64 after checking that every value lies in [`lower`, `upper`]."""
    if not lower < upper < math.inf:
        raise ParameterError(
            f"upper is {upper:g}.", remedy=f"give the largest reward a round can have, above {lower:g}."
        )
    if not -math.inf < lower:
        raise ParameterError(f"lower is {lower:g}.", remedy="give the smallest reward a round can have.")
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1:
        raise DataError(f"Observations have shape {x.shape}.", remedy="pass one number a round, shape (n,).")
    if x.size and not (x.min() >= lower and x.max() <= upper):
        outside = ~((x >= lower) & (x <= upper))
        first = int(outside.argmax())
        raise DataError(
            f"Observation {first} is {x[first]:g}, outside [{lower:g}, {upper:g}] ({outside.sum()} such in all).",
            remedy="set `lower` and `upper` to the smallest and largest reward a round can have, known before "
            "looking at the data.",
        )
    return x


@dataclass(frozen=True, eq=False)
class SparseRewards:
    """Rewards of n rounds, stored where they are not zero: conversions are rare, and logs are long.

    The rounds with a reward are counted from 0, strictly increasing, shape (c,), and so are their rewards, shape (c,).
    """

    n: int
    at: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    _sums: dict[tuple[float, float], tuple[float, float]] = field(init=False, default_factory=dict, repr=False)

    @cached_property
    def _bits(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Which rounds have a reward, a bit each, and how many of them there are before each word of 64 bits."""
        marked = np.zeros(-(-self.n // 64) * 64, np.bool_)
        marked[self.at] = True
        bits = np.packbits(marked, bitorder="little").view("<u8").astype(np.uint64, copy=False)
        counts = np.bitwise_count(bits).astype(np.int64)
        return bits, np.cumsum(counts) - counts

    def sums(self, upper: float, lower: float) -> tuple[float, float]:
        """Return what intervals at any level are made of, `_running_sums`, computed once."""
        if (upper, lower) not in self._sums:
            self._sums[upper, lower] = _running_sums(self, upper, lower)
        return self._sums[upper, lower]

    @classmethod
    def of(cls, rewards: npt.ArrayLike) -> SparseRewards:
        """Return the rewards of an array of shape (n,)."""
        dense = np.asarray(rewards, np.float64)
        at = np.flatnonzero(dense != 0.0)
        return cls(len(dense), at, dense[at])

    @property
    def total(self) -> float:
        """Sum of all rewards."""
        return float(self.value.sum())

    def taken(self, rounds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the rewards of some rounds, in the order asked for."""
        out = np.zeros(len(rounds))
        if not len(self.at) or not len(rounds):
            return out
        rising = bool((rounds[1:] > rounds[:-1]).all())
        if rising and rounds[-1] - rounds[0] < len(rounds):
            low, high = np.searchsorted(self.at, [rounds[0], rounds[-1] + 1])
            out[self.at[low:high] - rounds[0]] = self.value[low:high]
        elif rising and len(self.at) < len(rounds):
            place = np.minimum(np.searchsorted(rounds, self.at), len(rounds) - 1)
            found = rounds[place] == self.at
            out[place[found]] = self.value[found]
        elif _SEARCHED * len(rounds) > self.n:
            bits, before = self._bits
            for start in range(0, len(rounds), _BLOCK):  # so that what is made on the way stays in the cache
                of = rounds[start : start + _BLOCK]
                word, bit = bits[of >> 6], (of & 63).astype(np.uint64)
                found = np.flatnonzero((word >> bit) & np.uint64(1))
                lower = word[found] & ((np.uint64(1) << bit[found]) - np.uint64(1))
                out[start + found] = self.value[before[of[found] >> 6] + np.bitwise_count(lower)]
        else:
            place = np.minimum(np.searchsorted(self.at, rounds), len(self.at) - 1)
            found = self.at[place] == rounds
            out[found] = self.value[place[found]]
        return out


def log_evidence(accepted: Counts, read: Counts, probability: Floats) -> Floats:
    """Return the log of the evidence against an acceptance probability c in (0, 1], shape of the arguments.

    E = B(1 + t, b + n - t) / B(1, b) / (c^t (1 - c)^(n - t)), b = (1 - c) / c: the likelihood of t accepted of n
    displays read under acceptance probabilities drawn from a Beta distribution of mean c, over that under c. Where c is
    right, E is a martingale of mean 1: it ever reaches 1 / alpha with probability alpha at most (Ville), wherever the
    replay stops.
    """
    from scipy.special import betaln, xlog1py, xlogy

    t, n, c = (np.asarray(x, np.float64) for x in (accepted, read, probability))
    certain = c >= 1.0
    c = np.where(certain, 0.5, c)
    b = (1.0 - c) / c
    log_e = betaln(1.0 + t, b + n - t) - betaln(1.0, b) - xlogy(t, c) - xlog1py(n - t, -c)
    return np.where(certain, np.where(t == n, 0.0, np.inf), log_e)


def combined(log_evidences: Floats) -> float:
    """Return the log of the evidence of several: half their product, which adds up small ones, half their mean.

    Both halves are martingales of mean 1 where each evidence moves while the others rest.
    """
    if not len(log_evidences):
        return 0.0
    mean = float(np.logaddexp.reduce(log_evidences)) - np.log(len(log_evidences))
    return float(np.logaddexp(log_evidences.sum(), mean) - np.log(2.0))


def log_tail(total: Floats, squares: Floats, displays: int, *, expected: float | Floats, largest: Floats) -> Floats:
    """Return a bound of the log probability of a mean of 1/p as far off as this one, two-sided, shape (K,).

    Of N displays the mean of 1[a = k] / p_k is 1 where the propensities are right and no context lacks action k, or
    what is expected of each. The bounds are those for sums of numbers in [0, b], b the largest value of 1/p of the
    action, with second moment v: exp(-N d² / 2v) for d below, Bernstein's exp(-N d² / (2v + 2bd/3)) above; v is that of
    the displays, by the sums of 1/p and of 1/p² over those of each action, shape (K,).
    """
    off = total / displays - expected
    # As 1/p is 1 at least, so is its mean over the displays at which the action is eligible: few that were shown with a
    # large p do not say that it hardly varies.
    second = np.maximum(squares / displays, np.maximum(expected, expected**2))
    with np.errstate(over="ignore", invalid="ignore"):  # propensities next to 0 bound nothing
        width = 2.0 * second + np.where(off > 0, 2.0 * largest * off / 3.0, 0.0)
        log_p: Floats = np.log(2.0) - displays * off**2 / width
    return np.where(np.isfinite(width), np.minimum(log_p, 0.0), 0.0)
