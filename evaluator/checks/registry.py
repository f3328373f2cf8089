"""Every check, in the order of the report. Adding one is its file, which ends with its record, and its line here."""

from __future__ import annotations

from evaluator.checks import (
    conversion_rates,
    copies,
    delay_groups,
    dependence,
    eligibility,
    propensities,
    shares,
    steadiness,
    value_drift,
)

CHECKS = (
    propensities.LOGGER_REPLAY,
    propensities.UNIFORMITY,
    propensities.CALIBRATION,
    eligibility.SHOWN_OF_SETS,
    eligibility.ELIGIBILITY_AFTER_DISPLAYS,
    eligibility.ELIGIBILITY_AFTER_REWARDS,
    propensities.OVERLAP,
    propensities.INDEPENDENCE,
    shares.SHARE_DRIFT,
    shares.RHYTHM,
    conversion_rates.RATE_DRIFT,
    conversion_rates.ACTION_RATES,
    value_drift.VALUE_DRIFT,
    delay_groups.DELAY_DRIFT,
    delay_groups.DELAYS_OF_DAYS,
    delay_groups.DELAYS_OF_ACTIONS,
    copies.ORDER_WITHIN_TIES,
    copies.DUPLICATED_DISPLAYS,
    copies.NEAR_COPIES,
    copies.DEAD_VECTORS,
    copies.COLUMN_SCALES,
    copies.SHARED_CONVERSIONS,
    steadiness.IMMATURE,
    steadiness.LAST_DAY,
    delay_groups.YOUNG_DELAYS,
    steadiness.OUTAGES,
    steadiness.TRAFFIC,
    value_drift.REWARDS,
    dependence.DEPENDENCE,
    dependence.KEPT_ACTIONS,
    dependence.WEAR_OUT,
)

# Those of rewards that see conversions alone, whatever else counts as a reward.
OF_CONVERSIONS = (
    eligibility.ELIGIBILITY_AFTER_REWARDS,
    copies.SHARED_CONVERSIONS,
    steadiness.LAST_DAY,
    steadiness.OUTAGES,
    value_drift.REWARDS,
    dependence.DEPENDENCE,
    dependence.WEAR_OUT,
)


def number_tested(*, clustered: bool, users: bool = False) -> int:
    """Return how many checks share the false alarms: those that test, two alternatives among them counted as one.

    The check of clusters applies, and takes a share, only where the user names clusters (`clustered`); the check of
    users only where a column of users is known (`users`).
    """
    absent = {name for name, known in (("clusters", clustered), ("users", users)) if not known}
    tested = [check for check in CHECKS if check.tested and not absent & set(check.needs)]
    return len({check.instead_of or check.name for check in tested})


def table() -> list[str]:
    """Return the checks as a Markdown table: what each is called, and what it finds."""
    return ["| check | finds |", "|---|---|", *(f"| {check.name} | {check.finds} |" for check in CHECKS)]
