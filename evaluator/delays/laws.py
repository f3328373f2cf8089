"""Delay laws of known form on whole rounds, and the one way delays are drawn from them: by inversion of the CDF.

Laws of continuous variables are rounded up: a conversion is revealed at the end of the round in which it comes, so that
P(D <= a) is the continuous CDF at a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evaluator.delays.cdf import DelayCDF, law_moments, stating_the_rest
from evaluator.delays.law_names import LAWS, NamedLaw, grammar
from evaluator.errors import DataError, ParameterError
from evaluator.escape import shortened

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NEVER = -1
# Later than any round of any log, yet a time that int64 holds when added to another.
LONGEST = 2**53
# Draws beyond this many rounds are found by bisection instead of in a table.
_TABLE = 2**16
# A multiple of the steps that policies are told, so that these are the same as from all steps.
_QUANTILES = 4096
# Steps that policies are told: tau is off by at most 1/256, and a round costs no more than 256 additions.
CDF_STEPS = 256


@dataclass(frozen=True, eq=False)
class DelayLaw:
    """A delay distribution in closed form.

    `tau` takes ages a >= 0 in rounds, an int64 array of any shape, and gives tau_a = P(D <= a), float64 of the same
    shape; nondecreasing. `source` says for reports what law it is, `reach` is the share of conversions that come at
    all, P(D < infinity), and `closed` the law as a `DelayCDF` of closed form, where there is one.

    >>> pareto(0.5)(np.array([0, 1, 4, 100]))
    array([0. , 0. , 0.5, 0.9])
    """

    tau: Callable[[Ints], Floats]
    source: str
    reach: float = 1.0
    closed: DelayCDF | None = None

    def __call__(self, ages: ArrayLike) -> Floats:
        """Return tau_a, float64 of the shape of `ages`, whole rounds; 0 below age 0."""
        a = np.asarray(ages, np.int64)
        return np.where(a < 0, 0.0, self.tau(np.maximum(a, 0)))

    def table(self, longest: int) -> Floats:
        """Return tau_a for a = 0, ..., `longest`, shape (longest + 1,)."""
        return self(np.arange(longest + 1))

    def draw(self, uniform: Floats) -> Ints:
        """Return delays in rounds by inversion: the smallest a with tau_a > u, int64 of the shape (n,) of u in [0, 1).

        `NEVER` stands for conversions that do not come, and `LONGEST` for those that take longer than that many rounds,
        which no log follows. A live run inverts the same table with the same `numpy.searchsorted`,
        and stops at its end.
        """
        tau = self.table(_TABLE)
        delay = np.searchsorted(tau, uniform, side="right").astype(np.int64)
        late = np.flatnonzero(delay > _TABLE)
        delay[late] = self._beyond_table(uniform[late])
        delay[uniform >= self.reach] = NEVER
        return delay

    def _beyond_table(self, uniform: Floats) -> Ints:
        low, high = np.full(uniform.shape, _TABLE), np.full(uniform.shape, LONGEST)
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            enough = self(middle) > uniform
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def delay_cdf(self, longest: int) -> DelayCDF:
        """Return what a policy is told of the law: its steps up to `longest` rounds, or its closed form.

        A law without any step that early keeps its first step, so that the policy sees nothing come, which is true.
        Far steps lie at evenly spaced quantiles, flat in between: memory does not grow with the rounds of a log. Its
        moments are then the law's, not those of the steps.
        """
        if self.closed is not None:
            return self.closed
        rising = np.flatnonzero(np.diff(self.table(min(longest, _TABLE)), prepend=0.0) > 0)
        far = self._far_steps(longest) if longest > _TABLE else rising[:0]
        rising = np.append(rising, far)
        if not rising.size:
            rising = self._first_step(longest)
        moments = law_moments(self, int(far[-1])) if far.size else None
        # The last bit of a sum may depend on how many are summed beside it.
        return DelayCDF(delays=rising, cdf=np.maximum.accumulate(self(rising)), source=self.source, moments=moments)

    def _far_steps(self, longest: int) -> Ints:
        """Return the delays in (`_TABLE`, `longest`] at which tau first reaches a multiple of tau_longest / 4096."""
        levels = float(self(longest)) * np.arange(1, _QUANTILES + 1) / _QUANTILES
        levels = levels[levels > float(self(_TABLE))]
        low, high = np.full(levels.shape, _TABLE), np.full(levels.shape, longest)
        while (high - low > 1).any():
            middle = low + (high - low) // 2
            enough = self(middle) >= levels
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.unique(high)

    def _first_step(self, low: int) -> Ints:
        high = LONGEST
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if float(self(middle)) > 0 else (middle, high)
        if float(self(high)) == 0.0:
            raise ParameterError(f"Of {self.source}, none comes within 2^53 rounds.", remedy="give shorter delays.")
        return np.array([high])


def geometric(mean: float, *, start: int = 0) -> DelayLaw:
    """Return the geometric law; see `DelayCDF.geometric`."""
    return _closed(DelayCDF.geometric(mean, start=start))


def fixed(delay: int) -> DelayLaw:
    """Return the law of a delay that is always the same number of rounds."""
    return _closed(DelayCDF.fixed(delay))


def exponential(mean: float) -> DelayLaw:
    """Return the exponential law rounded up, tau_a = 1 - exp(-a / mean): geometric on {1, 2, ...}.

    >>> bool(abs(exponential(50)(50) - (1 - np.exp(-1))) < 1e-15)
    True
    """
    ratio = math.exp(-1.0 / _positive("exponential", "mean", mean))
    cdf = DelayCDF(
        delays=np.empty(0, np.int64),
        cdf=np.empty(0),
        source=f"exponential delays with mean {mean:g} rounds, rounded up (given)",
        geometric_ratio=ratio,
        start=1,
    )
    return _closed(cdf)


def uniform(low: int, high: int) -> DelayLaw:
    """Return the uniform law on {low, ..., high}.

    >>> uniform(1, 4)([0, 1, 3, 9])
    array([0.  , 0.25, 0.75, 1.  ])
    """
    if not (0 <= low <= high <= LONGEST and low == int(low) and high == int(high)):
        raise ParameterError(
            f"A uniform delay is from {shortened(str(low))} to {shortened(str(high))}.",
            remedy="give whole rounds, 0 <= low <= high <= 2^53.",
        )
    n = high - low + 1
    return DelayLaw(
        lambda a: np.clip((a - low + 1) / n, 0.0, 1.0),
        f"uniform delays from {low} to {high} rounds (given)",
    )


def poisson(mean: float) -> DelayLaw:
    """Return the Poisson law."""
    from scipy.special import pdtr

    _positive("poisson", "mean", mean)
    return DelayLaw(lambda a: pdtr(a, mean), f"Poisson delays with mean {mean:g} rounds (given)")


def half_normal(mean: float) -> DelayLaw:
    """Return the law of ceil(|Z|), Z normal with mean 0 and E|Z| = `mean`: tau_a = erf(a / (mean sqrt(pi)))."""
    from scipy.special import erf

    width = _positive("half-normal", "mean", mean) * math.sqrt(math.pi)
    return DelayLaw(lambda a: erf(a / width), f"half-normal delays with mean {mean:g} rounds, rounded up (given)")


def pareto(alpha: float, *, factor: float = 1.0, shift: float = 0.0) -> DelayLaw:
    """Return the Pareto law of type I with x_min = 1, rounded up (Manegueu et al. 2020).

    tau_a = 1 - factor (a v 1 + shift)^-alpha, by default tau_0 = 0 and tau_a = 1 - a^-alpha. Factor 0.7 and shift 1
    give the first arm of that paper's Section 8.3.
    """
    _positive("pareto", "alpha", alpha)
    if not (0 < factor <= 1 and 0 <= shift < math.inf):
        raise ParameterError(
            f"A Pareto delay has factor {factor:g} and shift {shift:g}.", remedy="factor in (0, 1], shift at least 0."
        )
    more = "" if factor == 1 and shift == 0 else f", factor {factor:g}, shift {shift:g}"
    return DelayLaw(
        lambda a: 1.0 - factor * (np.maximum(a, 1) + shift) ** -alpha,
        f"Pareto delays with tail index {alpha:g}{more}, rounded up (given)",
    )


def lognormal_mixture(weights: Sequence[float], medians: Sequence[float], sigmas: Sequence[float]) -> DelayLaw:
    """Return the law of ceil(X), X lognormal with these medians (rounds) and log-scale deviations, mixed by weight.

    >>> float(lognormal_mixture([1], [100], [2])(100))
    0.5
    """
    from scipy.special import ndtr

    w, m, s = (np.asarray(part, np.float64) for part in (weights, medians, sigmas))
    sizes = {w.size, m.size, s.size}
    if len(sizes) > 1 or not w.size or not (w > 0).all() or abs(w.sum() - 1) > 1e-6 or min(m.min(), s.min()) <= 0:
        raise ParameterError(
            f"A lognormal mixture has weights {list(weights)}, medians {list(medians)}, sigmas {list(sigmas)}.",
            remedy="give as many of each, all above 0, the weights with sum 1.",
        )
    w = w / w.sum()

    def tau(ages: Ints) -> Floats:
        with np.errstate(divide="ignore"):
            z = (np.log(ages)[..., None] - np.log(m)) / s
        return np.asarray(np.minimum(ndtr(z) @ w, 1.0))

    parts = ", ".join(f"{a:.3g} x ({b:.4g}, {c:.3g})" for a, b, c in zip(w, m, s, strict=True))
    return DelayLaw(tau, f"lognormal mixture of weight x (median, sigma): {parts}, rounds rounded up (given)")


def packet_loss(lost: float, *, retry: int | None = None) -> DelayLaw:
    """Return the law of conversions that come at once, but for a share that is lost: late by `retry`, or never.

    >>> packet_loss(0.25)([0, 10**9]), packet_loss(0.25, retry=3)([2, 3])
    (array([0.75, 0.75]), array([0.75, 1.  ]))
    """
    if not 0 < lost < 1 or (retry is not None and (retry < 1 or not float(retry).is_integer())):
        raise ParameterError(
            f"Packet loss has share {lost:g} and retry {retry}.", remedy="a share in (0, 1), a retry of whole rounds."
        )
    fate = "never comes" if retry is None else f"comes {retry} rounds late"
    return DelayLaw(
        lambda a: np.where(a >= (math.inf if retry is None else retry), 1.0, 1.0 - lost),
        f"immediate, but for a share {lost:g} that {fate} (given)",
        reach=1.0 if retry is not None else 1.0 - lost,
    )


def empirical(delays: ArrayLike, cdf: ArrayLike, *, source: str) -> DelayLaw:
    """Return the law of delays whose CDF is known at points, rounded up; flat between them.

    `cdf` is P(delay <= point) at each of `delays`, in rounds, nondecreasing, not necessarily whole; both have shape
    (n,). Where it ends below 1, the rest never converts, and the law's source says so. Raises DataError where the
    numbers are no CDF.
    """
    points, tau = np.asarray(delays, np.float64), np.asarray(cdf, np.float64)
    if points.ndim != 1 or points.shape != tau.shape or not points.size:
        raise DataError(
            f"A delay CDF has {points.size} delays and {tau.size} values.", remedy="pass as many of each, at least 1."
        )
    wrong = ~((points >= np.append(0.0, points[:-1])) & (tau >= np.append(0.0, tau[:-1])) & (tau <= 1 + 1e-9))
    wrong |= points > LONGEST
    if wrong.any():
        first = int(wrong.argmax())
        raise DataError(
            f"Row {first + 1} of a delay CDF is (delay {points[first]:g}, cdf {tau[first]:g}).",
            remedy="delays and cdf never fall; delays are at least 0, cdf lies in [0, 1].",
        )
    rounds = np.ceil(points).astype(np.int64)
    last = np.append(np.diff(rounds) > 0, True) & (tau > 0)
    if not last.any():
        raise DataError("A delay CDF is 0 throughout.", remedy="no conversion would ever come: check its columns.")
    top = np.minimum(tau[last], 1.0)
    top = np.where(top > 1 - 1e-9, 1.0, top)
    steps = DelayCDF(delays=rounds[last], cdf=top, source=stating_the_rest(source, float(top[-1])))
    return _closed(steps)


def parse_law(text: str) -> DelayLaw:
    """Return the law that a word of the command line names: ``geometric:500``, ``uniform:0:100``, ``pareto:0.7``...

    `evaluator.delays.law_names.LAWS` says which laws have a word, and with which numbers. Raises ParameterError where
    the text is none of these, or its numbers are out of range.

    >>> parse_law("pareto:0.5").source
    'Pareto delays with tail index 0.5, rounded up (given)'
    """
    name, *words = text.strip().split(":")
    law = LAWS.get(name)
    if law is not None and words and len(law.numbers) - law.optional <= len(words) <= len(law.numbers):
        try:
            given = {number.parameter: number.read(word) for number, word in zip(law.numbers, words, strict=False)}
            return law_of(law, given)
        except ParameterError:
            raise
        except ValueError:
            pass
    raise ParameterError(
        f"Expected a delay distribution, got {shortened(text)!r}.", remedy=f"write {grammar()}, in rounds."
    )


def law_of(law: NamedLaw, arguments: dict[str, Any]) -> DelayLaw:
    """Return the law that a name's function makes of these arguments."""
    made: DelayLaw = globals()[law.make](**arguments)
    return made


def _closed(cdf: DelayCDF) -> DelayLaw:
    reach = 1.0 if cdf.geometric_ratio is not None else float(cdf.cdf[-1])
    return DelayLaw(lambda a: np.asarray(cdf(a)), cdf.source, reach=reach, closed=cdf)


def _positive(law: str, name: str, value: float) -> float:
    # Beyond, its reciprocal, by which ages are multiplied, is none.
    if not 1e-300 < value < 1e300:
        raise ParameterError(f"A {law} delay has {name} {value:g}.", remedy=f"give a {name} above 0, and below 1e300.")
    return value


def given_cdf(text: str, *, reach: int, ticks_per_round: Callable[[str], float], share: float = 1.0) -> DelayCDF:
    """Return the CDF that ``--delays`` names: by a word of `parse_law`, or as a ``.json`` file of `fit_file.save_fit`.

    Laws without closed form have steps up to `reach` rounds, and those of a file their moments. `ticks_per_round` turns
    the unit that a file names into how many of them a round takes, and raises where there is no telling; `share` is the
    number of rounds, in (0, 1], in what a word counts. Raises DataError where the file cannot be read, and
    ParameterError where the text is no law.

    >>> given_cdf("uniform:1:4", reach=3, ticks_per_round=float).cdf
    array([0.25, 0.5 , 0.75])
    """
    # Of these a run takes one or the other, and most take neither.
    if text.endswith(".json"):
        from evaluator.delays.fit_file import load_fit

        saved = load_fit(text)
        return saved.delay_cdf(ticks_per_round=ticks_per_round(saved.tick), limit=reach)

    law = parse_law(text)
    if share == 1.0:
        return law.delay_cdf(reach)
    # Rounding to the nearest round brings those of half a round more within reach.
    return law.delay_cdf(math.ceil((reach + 0.5) / share)).scaled(share)


def told_cdf(cdf: DelayCDF, reach: int) -> DelayCDF:
    """Return the CDF with few steps, where it has any within reach: a policy that sees nothing is bad, but no error.

    Its moments are those from before, of the delays within reach: few steps held flat make delays longer than they are.
    """
    if cdf.geometric_ratio is not None or cdf(reach) == 0.0:
        return cdf
    return cdf.coarsened(CDF_STEPS, limit=reach)
