"""Every check, in the order of the report. Adding one is its file, which ends with its record, and its line here."""

from __future__ import annotations

from evaluator.checks import (
    contexts,
    copies,
    delays,
    dependence,
    eligibility,
    propensities,
    rates,
    rewards,
    shares,
    steadiness,
    ties,
    timeline,
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
    rates.RATE_DRIFT,
    rates.ACTION_RATES,
    rewards.VALUE_DRIFT,
    delays.DELAY_DRIFT,
    delays.DELAYS_OF_DAYS,
    delays.DELAYS_OF_ACTIONS,
    ties.ORDER_WITHIN_TIES,
    copies.DUPLICATED_DISPLAYS,
    copies.NEAR_COPIES,
    contexts.DEAD_VECTORS,
    contexts.COLUMN_SCALES,
    copies.SHARED_CONVERSIONS,
    timeline.IMMATURE,
    steadiness.LAST_DAY,
    delays.YOUNG_DELAYS,
    steadiness.OUTAGES,
    steadiness.TRAFFIC,
    rewards.REWARDS,
    dependence.DEPENDENCE,
    dependence.WEAR_OUT,
)

# Those of rewards that see conversions alone, whatever else counts as a reward.
OF_CONVERSIONS = (
    eligibility.ELIGIBILITY_AFTER_REWARDS,
    copies.SHARED_CONVERSIONS,
    steadiness.LAST_DAY,
    steadiness.OUTAGES,
    rewards.REWARDS,
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
