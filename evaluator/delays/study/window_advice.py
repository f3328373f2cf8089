"""What a system's window keeps of the conversions, which window to use, and the newest displays it may rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from evaluator.delays.families import DelayFit
from evaluator.delays.nonparametric import NonparametricFit, fit_nonparametric, two_sided_quantile
from evaluator.delays.product_limit import Ints, Observed
from evaluator.delays.study.changes import DelayDrift, DelayScores, compare_days
from evaluator.errors import ParameterError
from evaluator.results.json_documents import (
    Count,
    Level,
    NotNegative,
    NotNegativeOrNull,
    Share,
    ShareOrNull,
    in_document,
    omitted,
)

# Fewer conversions are not tested once more for a change.
_FEWEST = 50


@dataclass(frozen=True)
class WindowShare:
    """What a window keeps.

    Parameters
    ----------
    window
        Length of the window in the unit of the delays: ticks, or displays.
    tau, low, high
        Share of the conversions that come within it, tau_m = P(D <= window) given a delay of at most `longest`, and its
        pointwise interval. 1 by definition of a window as long as `longest`; nan of a longer one, of which nothing is
        known.
    lost
        Share of conversions that come too late to be seen, 1 - tau.
    slowdown
        Factor by which the bounds of Vernade et al. (2020) grow, 1 / tau; inf when the window keeps nothing.
    identified, longest
        Whether the log looked as long as the window, and the longest observable delay, in the same unit; inf where
        nothing was cut off.
    """

    window: NotNegative
    tau: ShareOrNull
    low: ShareOrNull
    high: ShareOrNull
    lost: ShareOrNull
    slowdown: NotNegativeOrNull
    identified: bool
    longest: NotNegativeOrNull


@dataclass(frozen=True)
class WindowAdvice:
    """Windows compared and one recommended (`advise_window`). Delays in ticks.

    Parameters
    ----------
    windows
        Share that each window keeps, in the order given.
    recommended, reason
        Length of the recommended window, and the sentence that says why it is recommended.
    share
        Share of conversions that the recommended window should keep.
    mean, mean_source
        Mean delay, None where it does not exist or is not known, and what it is of, or why there is none.
    twice_mean
        Window m = 2 x mean (Vernade et al. 2020, Section 4); None without a mean.
    longest
        Longest observable delay: all shares are of the conversions that come within it. inf where nothing was cut off.
    """

    windows: tuple[WindowShare, ...]
    recommended: NotNegative
    reason: str
    share: Level
    mean: NotNegative | None
    mean_source: str
    twice_mean: NotNegative | None
    longest: NotNegativeOrNull


def window_shares(fit: NonparametricFit, windows: Iterable[float]) -> tuple[WindowShare, ...]:
    """Return what each window (in the unit of the fit, >= 0) keeps of the conversions, with pointwise intervals.

    >>> from evaluator.delays.nonparametric import fit_nonparametric
    >>> [share] = window_shares(fit_nonparametric([0, 1, 1, 2, 5], 9), [2])
    >>> share.tau, round(share.low, 2), round(share.high, 2), round(share.lost, 2)
    (0.8, 0.28, 0.99, 0.2)
    """
    out = []
    for window in windows:
        if not window >= 0:
            raise ParameterError(f"A window is {window}.", remedy="0 ticks or more.")
        tau = float(fit(window))
        (low,), (high,) = ([float(end)] for end in fit.interval(window))
        identified = window <= fit.longest
        if window >= fit.longest:
            # The CDF is conditional on a delay within this range.
            tau = low = high = 1.0 if identified else math.nan
        out.append(
            WindowShare(
                window, tau, low, high, 1.0 - tau, 1.0 / tau if tau else math.inf, identified, float(fit.longest)
            )
        )
    return tuple(out)


def advise_window(
    fit: NonparametricFit,
    windows: Iterable[float] = (),
    *,
    law: DelayFit | None = None,
    share: float = 0.9,
    shortest: float = 0.0,
    newest: NewestDelays | None = None,
) -> WindowAdvice:
    """Return tau_m for windows (ticks) and recommend the shortest one that surely keeps `share` of the conversions.

    A window costs memory and patience, losing 1 - tau_m of the conversions multiplies the number of rounds needed by
    about 1 / tau_m. Recommended is the shortest delay at which the lower end of tau's interval reaches `share`; where
    no delay does, the longest observable one or, where nothing was cut off, the longest one seen. It is at least
    `shortest` ticks: what the time stamps tell apart.

    Where delays changed along the log, shares and mean are those of the newest displays, and the recommended window is
    the longer of two: the shortest delay at which the lower end of their interval, times `NewestDelays.within`, reaches
    `share`, where there is one; and the window of the displays before, times the largest factor by which the log allows
    delays to have become longer (`NewestDelays.high`). The first knows nothing beyond what the newest displays were
    followed for, the second takes the law as stretched alike.

    The mean is that of `law`, a fit that is believed beyond `longest`, if it is given and finite. A law without mean
    has none. Without a law the mean delay given one of at most `longest` is reported, which says nothing about longer
    ones. Raises ParameterError where a window is below 0, or the share is not in (0, 1).
    """
    if not 0 < share < 1:
        raise ParameterError(f"share is {share}.", remedy="a share in (0, 1), such as 0.9.")
    endless = math.isinf(fit.longest)
    surely = f"{share:.0%} of the conversions at {fit.confidence:.0%} confidence"
    reaching = _reaching(fit, share)
    if newest is not None:
        recommended, reason = _after_change(fit, newest, share, surely)
        recommended = max(recommended, shortest)
    elif reaching is not None:
        recommended = max(reaching, shortest)
        of = "those seen" if endless else f"those within {fit.longest:,} ticks"
        reason = f"the shortest window that keeps {surely} (it keeps {float(fit(recommended)):.1%} of {of})"
    elif endless:
        recommended = max(float(fit.delays[-1]), shortest)
        reason = f"no window is sure to keep {surely}, so few conversions were there: the longest delay seen"
    else:
        recommended = float(fit.longest)
        reason = f"no shorter window is sure to keep {surely}: the longest delay that the log could show"
    shown = fit if newest is None else newest.fit
    mean, source = _mean(shown, law if newest is None else None)
    return WindowAdvice(
        windows=window_shares(shown, windows),
        recommended=recommended,
        reason=reason,
        share=share,
        mean=mean,
        mean_source=source,
        twice_mean=None if mean is None else 2.0 * mean,
        longest=float(shown.longest),
    )


def _reaching(fit: NonparametricFit, share: float) -> float | None:
    """Return the shortest delay at which the lower end of the interval reaches a share; None where there is none."""
    # At the longest limit the lower end is 1 by definition: no evidence.
    reaching = (fit.low >= share) & (fit.delays < fit.longest)
    return float(fit.delays[int(reaching.argmax())]) if reaching.any() else None


def _after_change(fit: NonparametricFit, newest: NewestDelays, share: float, surely: str) -> tuple[float, str]:
    """Return the recommended window where delays changed, and why."""
    top = float(fit.delays[-1] if math.isinf(fit.longest) else fit.longest)
    own = _reaching(newest.fit, share / newest.within) if newest.within > share else None
    before = _reaching(newest.before, share)
    stretched = math.inf if before is None else math.ceil(before * newest.high) if newest.high < math.inf else math.inf
    factor = f"{newest.high:.2g}, the largest factor by which the log allows them to have become longer"
    if max(own or 0.0, stretched) >= top:
        longest = "seen" if math.isinf(fit.longest) else "that the log could show"
        return top, f"no shorter window is sure to keep {surely} since delays changed: the longest delay {longest}"
    if own is None:
        return float(stretched), (
            f"the displays since delays changed were not followed long enough to show which window keeps {surely}: "
            f"that of the displays before, times {factor}, if short and long ones did alike"
        )
    if own < stretched:
        return float(stretched), (
            f"delays changed: of the displays since, {own:,.0f} ticks keep {surely}; recommended is the window of the "
            f"displays before, times {factor}"
        )
    return own, f"the shortest window that keeps {surely}, of the displays since delays changed"


def _mean(fit: NonparametricFit, law: DelayFit | None) -> tuple[float | None, str]:
    if law is not None:
        if math.isfinite(law.mean):
            return law.mean, f"mean of the fitted {law.family} law"
        return None, f"the fitted {law.family} law has no mean"
    steps = fit.cdf.copy()
    steps[1:] -= fit.cdf[:-1]
    given = "of those seen" if math.isinf(fit.longest) else f"given one of at most {fit.longest:,} ticks"
    return float((fit.delays * steps).sum()), f"mean delay {given}"


@dataclass(frozen=True, eq=False)
class NewestDelays:
    """Delays of the newest displays, where delays change along the log (`newest_delays`). Delays in ticks.

    Parameters
    ----------
    since
        Number of the first period of these displays.
    fit, before
        Product limit of their delays, and of those of the displays before.
    ratio, low, high
        Factor by which delays became longer if the whole law was stretched alike, and its interval; `high` is inf where
        a factor above 20 is possible.
    within
        Share of the conversions of at most `before.longest` that come within `fit.longest`, which is all that the log
        can tell of the newest displays: by the law before, stretched by `high`.
    """

    since: Count
    fit: Annotated[NonparametricFit, *omitted]
    before: Annotated[NonparametricFit, *omitted]
    ratio: NotNegativeOrNull
    low: NotNegativeOrNull
    high: NotNegativeOrNull
    within: Share

    @in_document
    @property
    def conversions(self) -> Count:
        """Number of their conversions."""
        return self.fit.conversions

    @in_document
    @property
    def longest(self) -> NotNegativeOrNull:
        """Longest delay, in ticks, that the log can see of them; inf where nothing is cut off."""
        return float(self.fit.longest)

    def reach(self, ratio: float) -> float:
        """Return the share of conversions within `fit.longest` by the law before, stretched by a factor."""
        if self.fit.longest >= ratio * self.before.longest:
            return 1.0
        return float(self.before(self.fit.longest / ratio))


def newest_delays(
    seen: Observed, days: Ints, drift: DelayDrift, *, confidence: float, rows: int, seed: int
) -> NewestDelays | None:
    """Return what the log can tell of the newest displays after a change of delays; None where none is flagged.

    The newest displays are those after the latest likely change. While a change is flagged among these, too, those
    after that.
    """
    if drift.change_by is None:
        return None
    after = drift.change_by
    new = days > after
    while new.sum() >= _FEWEST:
        again = compare_days(
            seen.take(new), days[new],
            false_alarms=drift.false_alarms, permutations=drift.permutations, rows=rows, seed=seed,
        )  # fmt: skip
        if again.p > drift.false_alarms:
            break
        after = again.at_latest
        new = days > after
    old, newest = seen.take(~new), seen.take(new)
    fit = fit_nonparametric(*newest, confidence=confidence)
    before = fit_nonparametric(*old, confidence=confidence)
    ratio, low, high = _ratio(old, newest, confidence)
    found = NewestDelays(after + 1, fit, before, ratio, low, high, 1.0)
    return NewestDelays(after + 1, fit, before, ratio, low, high, found.reach(high))


def _ratio(old: Observed, new: Observed, confidence: float) -> tuple[float, float, float]:
    """Return the factor at which the law before gives the newest scores, and its interval."""
    law, size = DelayScores.of(old), new.delay.size
    total = float(law.scores(new.delay).sum())

    def ratio_of(total: float) -> float:
        found = law.ratio_of(new.limit, size, total)
        return math.inf if found is None else found

    ratio = ratio_of(total)
    at = 1.0 if math.isinf(ratio) else ratio
    variance = float(law.moments(new.limit, size, ratio=at)[1].sum())
    # The law before is estimated too.
    known = float(law.moments(old.limit, old.delay.size)[1].sum())
    error = two_sided_quantile(confidence) * math.sqrt(variance * (1.0 + variance / max(known, 1e-300)))
    return ratio, ratio_of(total - error), ratio_of(total + error)
