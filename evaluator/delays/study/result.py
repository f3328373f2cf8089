"""How late conversions come: everything that `evaluate delays` says about a log, with its Arrow tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa

from evaluator.delays.nonparametric import NonparametricFit, Quantile
from evaluator.delays.study.changes import DelayDrift
from evaluator.delays.study.fitting import spikes
from evaluator.delays.study.goodness import FamilyChoice
from evaluator.delays.study.heterogeneity import GroupDelays, Heterogeneity
from evaluator.delays.study.joint_rate import JointStudy
from evaluator.delays.study.options import DelayOptions
from evaluator.delays.study.surrogates import Surrogate
from evaluator.delays.study.tail import TailIndex
from evaluator.delays.study.window_advice import NewestDelays, WindowAdvice, WindowShare
from evaluator.log.delay_rows import DelayRows
from evaluator.log.times import COARSE_S, TOLD_APART, PeriodName
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.results.json_documents import (
    Count,
    JsonDocument,
    NotNegative,
    NotNegativeOrNull,
    Positive,
    called,
    in_document,
    omitted,
    several,
)
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, arrow_table
from evaluator.units import Tick, ticks_words

# Fewer conversions say nothing of a law's shape, and are no group of their own.
FEWEST = 50
_NAMED = 5
_QUANTILE = dict.fromkeys(("level", "naive", "corrected", "low", "high"), NUMBER)
_CURVE = ("cdf", "naive", "low", "high", "band_low", "band_high")


@dataclass(frozen=True)
class StudyWindow:
    """A window as asked for, and its share of the conversions.

    Parameters
    ----------
    text
        Text of the window, as the user wrote it.
    ticks, rounds
        The window in ticks and in rounds of full traffic: one is as asked, the other at the traffic's mean rate; rounds
        are None where the rate is unknown.
    share
        Share of the conversions that come within it: by their delays in time where it is a duration, in displays where
        it is in rounds.
    in_rounds
        Whether it was asked for in rounds.
    """

    text: str
    ticks: NotNegative
    rounds: NotNegative | None
    share: WindowShare
    in_rounds: bool

    def label(self, rows: DelayRows) -> str:
        """Return the window in its own unit, as tables name it."""
        own = words(rows, self.ticks)
        return f"{self.rounds:,.0f} rounds, {own} on average" if self.in_rounds and rows.tick_seconds else own


@dataclass(frozen=True)
class PeriodRate:
    """Conversions per display of one period.

    Parameters
    ----------
    period
        Number of the period.
    displays, conversions
        Number of its displays, and of their conversions.
    seen
        Conversions per display seen so far.
    corrected
        Conversions per display given a follow-up as long as the longest, sum of 1 / tau(limit) over the conversions,
        divided by the displays; None where the period is too new to say.
    """

    period: Count
    displays: Count
    conversions: Count
    seen: NotNegativeOrNull
    corrected: NotNegative | None


@dataclass(frozen=True, eq=False)
class DelayStudy(JsonDocument, ShownInNotebooks):
    """What the conversions of a log say about their delays (`study_delays`). Delays in ticks.

    To keep it: ``json.dumps(study.to_dict())``. ``evaluate delays --out`` writes the tables, the charts and the
    ``fit.json`` that `replay` takes as its delays.

    Parameters
    ----------
    rows
        Delays that were studied, and the limits up to which they were seen.
    options
        Options of the study, as they were asked for.
    sight
        Sentences that say what the log can see of delays, and what it cannot.
    fit
        Product limit of the delays, with bands.
    quantiles
        Quantiles of the delays in ticks, naive and corrected.
    choice
        Fits of the laws by AIC, and whether the best fits; None where there are too few conversions.
    windows
        Windows that were asked for, with what each keeps.
    advice
        The recommended window, and that of twice the mean delay.
    groups
        Delays of each group, largest first, the pooled ones last.
    heterogeneity
        Test of one law in all groups; None without groups.
    tail
        Tail index of the delays; None where it could not be had.
    drift
        Quantiles by period, and whether a change is flagged; None where there are no periods.
    newest
        Delays of the newest displays where a change is flagged: `windows` and `advice` rest on these. None otherwise.
    rates
        Conversion rate of each period.
    missing
        Parts of the study that could not be had, by name, each with the reason.
    joint
        Conversion rate corrected on context; None where not asked for, or withheld (`missing` says why).
    refunds
        Study of the refunds alone, conversions with a value below 0: all else is of sales. None without refunds.
    outcomes
        Study of each outcome of which the log has events, by its name; what it calls conversions are these events.
    surrogates
        How much earlier than the reward each outcome comes, and how often the reward follows it. Rewards are the
        conversions, or sales; no outcome whose values may be below 0 is among them.
    """

    schema: ClassVar[str] = "evaluate.delays/1"

    rows: Annotated[DelayRows, *omitted]
    options: DelayOptions
    sight: tuple[str, ...]
    fit: NonparametricFit
    quantiles: Annotated[tuple[Quantile, ...], several]
    choice: Annotated[FamilyChoice | None, called("laws")]
    windows: tuple[StudyWindow, ...]
    advice: WindowAdvice
    groups: tuple[GroupDelays, ...]
    heterogeneity: Heterogeneity | None
    tail: TailIndex | None
    drift: DelayDrift | None
    newest: NewestDelays | None
    rates: Annotated[tuple[PeriodRate, ...], called("conversion_rates")]
    missing: dict[str, str]
    joint: JointStudy | None = None
    refunds: DelayStudy | None = None
    outcomes: Mapping[str, DelayStudy] = field(default_factory=dict)
    surrogates: tuple[Surrogate, ...] = ()

    @in_document
    @property
    def dataset(self) -> str:
        """Name of the log or file."""
        return self.rows.name

    @in_document
    @property
    def tick(self) -> Tick:
        """Unit of all times."""
        return self.rows.tick

    @in_document
    @property
    def displays(self) -> Count | None:
        """Number of displays; None where only conversions are known."""
        return self.rows.displays

    @in_document
    @property
    def displays_per_tick(self) -> NotNegativeOrNull:
        """Displays of the whole traffic per tick; nan where unknown."""
        return self.rows.rate

    @in_document
    @property
    def by(self) -> str:
        """Name of what the groups are of; empty without groups."""
        return self.rows.by

    @in_document
    @property
    def period(self) -> PeriodName | None:
        """What a period is: a day, or a tenth of the displays; None where there are no periods."""
        return None if self.rows.periods is None else self.rows.periods.name

    @in_document
    @property
    def conversions(self) -> Positive:
        """Number of conversions studied."""
        return len(self.rows.delay)

    @property
    def drawable(self) -> bool:
        """Whether there is a delay above 0, without which a logarithmic axis shows nothing."""
        return bool(self.fit.delays[-1] > 0)

    @property
    def cdf_table(self) -> pa.Table:
        """The CDF, one row a step: delay, cdf, naive, and the ends of the pointwise and of the simultaneous band."""
        return pa.table({"delay": self.fit.delays, **{name: getattr(self.fit, name) for name in _CURVE}})

    @property
    def quantile_table(self) -> pa.Table:
        """`quantiles`: level, naive, corrected, low, high."""
        return arrow_table(_QUANTILE, (vars(quantile) for quantile in self.quantiles))

    @property
    def law_table(self) -> pa.Table:
        """The laws that were fitted, the best by AIC first, with their parameters."""
        columns = {
            "family": TEXT, "aic": NUMBER, "bic": NUMBER, "log_likelihood": NUMBER, "free_parameters": COUNT,
            "conversions": COUNT, "parameters": pa.map_(TEXT, NUMBER), "converged": FLAG,
        }  # fmt: skip
        fits = () if self.choice is None else self.choice.comparison.fits
        return arrow_table(columns, ({**vars(fit), "parameters": list(fit.parameters.items())} for fit in fits))

    @property
    def window_table(self) -> pa.Table:
        """`windows`: ticks, rounds, the share of the conversions that each keeps with its ends, the share it loses."""
        columns = {"window": TEXT, **dict.fromkeys(("ticks", "rounds", "keeps", "low", "high", "loses"), NUMBER)}
        shares = [(window, window.share) for window in self.windows]
        rows = ({**vars(w), **vars(of), "window": w.text, "keeps": of.tau, "loses": of.lost} for w, of in shares)
        return arrow_table(columns, rows)

    @property
    def group_table(self) -> pa.Table:
        """Quantiles of each group's delays: group, conversions, level, naive, corrected, low, high."""
        rows = (
            {"group": group.label, "conversions": group.conversions, **vars(quantile)}
            for group in self.groups
            for quantile in group.quantiles
        )
        return arrow_table({"group": TEXT, "conversions": COUNT, **_QUANTILE}, rows)

    @property
    def group_cdf_table(self) -> pa.Table:
        """The CDF of each group: group, delay, cdf, low, high."""
        names = {"delay": "delays", "cdf": "cdf", "low": "low", "high": "high"}
        parts = [
            pa.table({name: getattr(group.fit, field) for name, field in names.items()}).add_column(
                0, "group", pa.array([group.label] * group.fit.delays.size, pa.string())
            )
            for group in self.groups
        ]
        empty = arrow_table({"group": TEXT, **dict.fromkeys(names, NUMBER)}, [])
        return pa.concat_tables(parts) if parts else empty

    @property
    def period_table(self) -> pa.Table:
        """Conversion rates and quantiles of the delays by period."""
        levels = () if self.drift is None else self.drift.levels
        quantiles = [f"q{100 * level:g}" for level in levels]
        days = {} if self.drift is None else {day.day: day.quantiles for day in self.drift.days}
        columns = {"period": COUNT, "displays": COUNT, "conversions": COUNT, "seen": NUMBER, "corrected": NUMBER}
        rows = [
            {**vars(rate), **dict(zip(quantiles, map(float, days.get(rate.period, ())), strict=False))}
            for rate in self.rates
        ]
        return arrow_table({**columns, **dict.fromkeys(quantiles, NUMBER)}, rows)

    def __repr__(self) -> str:
        median = next(q for q in self.quantiles if q.level == 0.5)
        return (
            f"DelayStudy({self.rows.name}: {self.conversions:,} conversions, median "
            f"{words(self.rows, median.corrected)} {between(self.rows, median.low, median.high)}, "
            f"recommended window {words(self.rows, self.advice.recommended)})"
        )


def words(rows: DelayRows, ticks: float) -> str:
    """Return a delay as a duration, or as a number of rounds where the log counts these.

    >>> import numpy as np
    >>> seconds = DelayRows("log", "s", np.array([5]), None, None, "")
    >>> words(seconds, 272160), words(seconds, 0)
    ('3.15 d', '0 s')
    """
    return ticks_words(ticks, rows.tick_seconds)


def between(rows: DelayRows, low: float, high: float) -> str:
    """Return the interval of a delay, which may have no upper end.

    >>> import numpy as np
    >>> rounds = DelayRows("log", "round", np.array([5]), None, None, "")
    >>> between(rounds, 3, 9), between(rounds, 3, np.inf)
    ('[3 rounds, 9 rounds]', 'at least 3 rounds')
    """
    return f"at least {words(rows, low)}" if math.isinf(high) else f"[{words(rows, low)}, {words(rows, high)}]"


def last_shown(fit: NonparametricFit) -> float:
    """Return the delay (ticks) at which pictures end: the longest the log could show, or saw if nothing was cut off."""
    return float(fit.longest if math.isfinite(fit.longest) else fit.delays[-1])


def first_positive(fit: NonparametricFit) -> float:
    """Return the smallest delay above 0 (ticks), where a logarithmic axis can start."""
    return float(fit.delays[fit.delays > 0][0])


def period_words(rows: DelayRows, period: int) -> str:
    """Return a period of the displays: a date, or its kind and number."""
    assert rows.periods is not None
    label = rows.periods.label(period, rows.tick_seconds)
    return f"{rows.periods.name} {label}" if label.isdecimal() else label


def mixture(rows: DelayRows, newest: NewestDelays | None) -> tuple[str, ...]:
    """Return what rests on which displays where delays change along the log."""
    if newest is None:
        return ()
    followed = "to their end" if rows.limit is None else f"for at most {words(rows, newest.fit.longest)}"
    return (
        "Delays change along the log, which breaks that assumption. Windows and the recommended one rest on the "
        f"{newest.fit.conversions:,} conversions of displays since {period_words(rows, newest.since)}, followed "
        f"{followed}; quantiles, law, tail and groups mix the delays before and since, and are those of no display to "
        "come.",
    )


def sight(rows: DelayRows, fit: NonparametricFit) -> tuple[str, ...]:
    """Return sentences about the delays that a log can show, and those that it cannot."""
    said = []
    if rows.limit is None:
        said.append("Every display was followed to its end: no delay was cut off.")
        said.append(
            f"The longest delay seen is {words(rows, float(fit.delays[-1]))}; of conversions to come, up to "
            f"{1.0 - fit.low[-1]:.2g} of all may be later ({fit.confidence:.0%} confidence, as {fit.conversions:,} "
            "were seen)."
        )
    else:
        least, most = int(rows.limit.min()), int(rows.limit.max())
        longest = words(rows, fit.longest)
        if least == most:
            said.append(f"Every display that converted was followed for {longest}.")
        else:
            said.append(
                f"Displays that converted were followed for {words(rows, least)} to {words(rows, most)}: later "
                "conversions are cut off, which makes the delays seen too short."
            )
            said.append("All this assumes that delays do not depend on when a display was shown.")
        span = f"{words(rows, fit.shortest)} <= delay" if fit.shortest else "delay"
        said.append(f"All that follows is conditional on {span} <= {longest}.")
        said.append(f"The share of conversions later than {longest} is unknown: the log cannot tell.")
    if rows.left_out:
        said.append(rows.left_out)
    if rows.deduplicated:
        said.append(
            f"{rows.deduplicated:,} more rows of the same conversions were dropped (de-duplication). Near the ends of "
            "the log fewer displays compete for a conversion, so that rates and delays differ there for that reason "
            "alone; `deduplicate='all'` keeps every row."
        )
    if rows.shared:
        said.append(
            "Several displays carry the same conversion (no de-duplication): their delays are not independent, which "
            "intervals and p-values take them to be."
        )
    coarse = rows.stamp * (rows.tick_seconds or 0.0) >= COARSE_S
    if coarse and fit.delays[-1] > 0 and float(np.median(rows.delay)) < TOLD_APART * rows.stamp:
        said.append(
            f"Times are multiples of {words(rows, rows.stamp)}, and half of the delays are shorter than {TOLD_APART} "
            "of these: a delay is known up to one. Shares, quantiles, laws and means below are those of time stamps; "
            f"the true ones may be off by as much as {words(rows, rows.stamp)} makes, which no interval allows for."
        )
    if fit.delays[-1] == 0:
        said.append(
            f"Every conversion came within the time stamp of its display ({words(rows, rows.stamp)}): all delays are "
            "0, every window keeps all that were seen, and there is no picture to draw."
        )
    for spike in spikes(rows.delay, rows.stamp)[:_NAMED]:
        said.append(
            f"{spike.share:.0%} of the conversions seen have a delay of exactly {words(rows, spike.delay)}, more than "
            "any other within a tenth of it: a rule of some system rather than people, of which a law knows nothing."
        )
    if fit.left_out:
        said.append(
            f"{fit.left_out:,} of {len(rows.delay):,} conversions are left out: displays that converted early were not "
            "followed long enough to say what they weigh."
        )
    return tuple(said)
