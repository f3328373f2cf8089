"""The newest displays over which delays do not change any more, and what the log can tell of their delays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from evaluator.delays.nonparametric import NonparametricFit, fit_nonparametric, two_sided_quantile
from evaluator.delays.study.changes import DelayDrift, DelayScores, compare_days
from evaluator.delays.usable import Ints, Ticks
from evaluator.results.json_documents import Count, NotNegativeOrNull, Share, in_document, omitted

# Fewer conversions are not tested once more for a change.
_FEWEST = 50


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
    delay: Ticks, limit: Ticks | None, days: Ints, drift: DelayDrift, *, confidence: float, rows: int, seed: int
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
            delay[new], None if limit is None else limit[new], days[new],
            false_alarms=drift.false_alarms, permutations=drift.permutations, rows=rows, seed=seed,
        )  # fmt: skip
        if again.p > drift.false_alarms:
            break
        after = again.at_latest
        new = days > after
    old = ~new
    new_limit, old_limit = (None, None) if limit is None else (limit[new], limit[old])
    fit = fit_nonparametric(delay[new], new_limit, confidence=confidence)
    before = fit_nonparametric(delay[old], old_limit, confidence=confidence)
    ratio, low, high = _ratio(delay[old], old_limit, delay[new], new_limit, confidence)
    found = NewestDelays(after + 1, fit, before, ratio, low, high, 1.0)
    return NewestDelays(after + 1, fit, before, ratio, low, high, found.reach(high))


def _ratio(
    old: Ticks, old_limit: Ticks | None, new: Ticks, new_limit: Ticks | None, confidence: float
) -> tuple[float, float, float]:
    """Return the factor at which the law before gives the newest scores, and its interval."""
    law = DelayScores.of(old, old_limit)
    total = float(law.scores(new).sum())

    def ratio_of(total: float) -> float:
        found = law.ratio_of(new_limit, new.size, total)
        return math.inf if found is None else found

    ratio = ratio_of(total)
    at = 1.0 if math.isinf(ratio) else ratio
    variance = float(law.moments(new_limit, new.size, ratio=at)[1].sum())
    # The law before is estimated too.
    known = float(law.moments(old_limit, old.size)[1].sum())
    error = two_sided_quantile(confidence) * math.sqrt(variance * (1.0 + variance / max(known, 1e-300)))
    return ratio, ratio_of(total - error), ratio_of(total + error)
