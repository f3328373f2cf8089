"""Every chart of a study of delays."""

from __future__ import annotations

from evaluator.delays.study.result import DelayStudy
from evaluator.report.delay_charts import Spec, cdf_chart, density_chart, groups_chart
from evaluator.report.rate_charts import calibration_chart, rates_chart


def charts_of(study: DelayStudy) -> dict[str, Spec]:
    """Return the charts by name of their files; none of delays if all are 0."""
    charts: dict[str, Spec | None] = {}
    if study.drawable:
        charts = {"cdf": cdf_chart(study), "density": density_chart(study), "groups": groups_chart(study)}
    charts |= {"rates": rates_chart(study), "calibration": calibration_chart(study)}
    return {name: chart for name, chart in charts.items() if chart is not None}
