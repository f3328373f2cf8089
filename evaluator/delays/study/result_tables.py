"""A study of delays as Arrow tables; delays in ticks of the log."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.study.changes import DelayDrift
from evaluator.delays.study.goodness import FamilyChoice
from evaluator.delays.study.heterogeneity import GroupDelays
from evaluator.delays.study.records import PeriodRate, Quantile, StudyWindow
from evaluator.results.tabular import COUNT, FLAG, NUMBER, TEXT, arrow_table

_CURVE = ("cdf", "naive", "low", "high", "band_low", "band_high")


def cdf_table(fit: NonparametricFit) -> pa.Table:
    """Return the CDF, one row a step: corrected, as seen, and the ends of its pointwise and simultaneous bands."""
    return pa.table({"delay": fit.delays, **{name: getattr(fit, name) for name in _CURVE}})


def group_cdf_table(groups: Sequence[GroupDelays]) -> pa.Table:
    """Return the CDF of every group, one row a step."""
    parts = [
        pa.table(
            {
                "group": pa.array([group.label] * group.fit.delays.size, pa.string()),
                "delay": group.fit.delays,
                **{name: getattr(group.fit, name) for name in ("cdf", "low", "high")},
            }
        )
        for group in groups
    ]
    names = {"group": TEXT, "delay": NUMBER, "cdf": NUMBER, "low": NUMBER, "high": NUMBER}
    return pa.concat_tables(parts) if parts else arrow_table(names, [])


def quantile_table(quantiles: Sequence[Quantile]) -> pa.Table:
    """Return one row a quantile: as seen, corrected, and its interval."""
    columns = dict.fromkeys(("level", "naive", "corrected", "low", "high"), NUMBER)
    return arrow_table(columns, (vars(quantile) for quantile in quantiles))


def law_table(choice: FamilyChoice | None) -> pa.Table:
    """Return one row a law that was fitted, the best by AIC first."""
    columns = {
        "family": TEXT, "aic": NUMBER, "bic": NUMBER, "log_likelihood": NUMBER, "free_parameters": COUNT,
        "conversions": COUNT, "parameters": pa.map_(TEXT, NUMBER), "converged": FLAG,
    }  # fmt: skip
    fits = () if choice is None else choice.comparison.fits
    return arrow_table(columns, ({**vars(fit), "parameters": list(fit.parameters.items())} for fit in fits))


def window_table(windows: Sequence[StudyWindow]) -> pa.Table:
    """Return one row a window: its ticks and rounds, the share of the conversions it keeps, and the share it loses."""
    columns = {"window": TEXT, **dict.fromkeys(("ticks", "rounds", "keeps", "low", "high", "loses"), NUMBER)}
    rows = [
        {
            "window": window.text, "ticks": window.ticks, "rounds": window.rounds, "keeps": window.share.tau,
            "low": window.share.low, "high": window.share.high, "loses": window.share.lost,
        }
        for window in windows
    ]  # fmt: skip
    return arrow_table(columns, rows)


def group_table(groups: Sequence[GroupDelays]) -> pa.Table:
    """Return one row a group and quantile, with the interval of the quantile."""
    rows = (
        {"group": group.label, "conversions": group.conversions, **vars(quantile)}
        for group in groups
        for quantile in group.quantiles
    )
    names = dict.fromkeys(("level", "naive", "corrected", "low", "high"), NUMBER)
    return arrow_table({"group": TEXT, "conversions": COUNT, **names}, rows)


def period_table(rates: Sequence[PeriodRate], drift: DelayDrift | None) -> pa.Table:
    """Return one row a period: displays, conversions, its conversion rates, and the quantiles of its delays."""
    levels = () if drift is None else drift.levels
    quantiles = [f"q{100 * level:g}" for level in levels]
    days = {} if drift is None else {day.day: day.quantiles for day in drift.days}
    columns = {"period": COUNT, "displays": COUNT, "conversions": COUNT, "seen": NUMBER, "corrected": NUMBER}
    rows = [
        {**vars(rate), **dict(zip(quantiles, map(float, days.get(rate.period, ())), strict=False))} for rate in rates
    ]
    return arrow_table({**columns, **dict.fromkeys(quantiles, NUMBER)}, rows)
