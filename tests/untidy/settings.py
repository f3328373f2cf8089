"""What an untidy log is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DAY_S, HOUR_S = 86_400, 3_600


@dataclass(frozen=True, kw_only=True)
class Untidy:
    """Settings of the traffic, of its truth, of the logger, and of what is wrong with the log. The default is tidy.

    Parameters
    ----------
    displays, days
        Of the traffic, and how long it takes.
    means
        Conversion rate of each action, in the first context and at a neutral time.
    contexts
        1, or 2: in the second the rates are .7 times those of the actions in reverse order.
    rhythm
        Amplitude of the daily rhythm of the arrivals, in [0, 1); the log starts at a random hour.
    growth
        Factor by which the traffic jumps halfway.
    drift
        Rates change linearly with time from 1 - drift to 1 + drift times theirs.
    rate_by_hour
        Amplitude by which rates follow the hour, highest in the middle of the afternoon.
    longest_s
        Delays are uniform up to so long, or with a `tail` Pareto from a minute on: P(D > s) = (s / 60)^-tail.
    slowness
        Factor of each action's delays; None for 1.
    mean_values, log_sd
        Mean value of each action's conversions and the standard deviation of their logarithms; None for values of 1.
    launches, retirements
        Share of the time from which, and until which, each action can be shown; None for always.
    logger
        Probabilities with which actions are shown; None for uniform. Renormalised over those that can be shown.
    logger_by_hour
        Tilt of the logger towards the last action in the afternoon, away from it at night, in [0, 1).
    hole
        The last action is never shown in the second context.
    logger_changes
        Halfway the logger takes its probabilities in reverse order.
    users
        Number of users, with very different numbers of displays, each of whom buys whatever action converts more often
        than a number of his own: his outcomes are one. 0 for independent displays. The truth is that of these users.
    sets
        Chance of each action to be eligible at a display, which the log says; one at least is. 0 for no sets.
    visitors
        Number of users, alike and independent of each other, whose outcomes are independent but for `wear_out`.
    wear_out
        A user's chance to convert by an action falls by the factor exp(-wear_out) times the root of the number of times
        that he saw it before. What policies earn then depends on what they showed before.
    claim
        Propensities that the log claims: right, constant (those of `logger`, whatever else decided), swapped (of the
        first and the last action), stale (of before the change).
    sampled
        Share of the traffic that is in the log.
    attribution_s
        Attribution window; None for none.
    stamp_s
        Times are rounded down to it.
    by_action
        Displays of one time are in the order of their actions.
    copied, conversions_copied
        Share of the displays that converted (a join that repeats rows), and of the conversions, that are there twice.
    refunded
        Share of the conversions that are taken back within half a day, at a cost of half their value.
    outage_h
        Conversions of so many hours, in the middle of the log, are lost.
    gap_h
        Displays of so many hours, in the middle of the log, are lost, and the conversions of that time.
    stray_h
        One conversion comes so many hours after the last display.
    in_files
        Whether the defect lives in files: the log is written and read again.
    """

    displays: int = 12_000
    days: float = 5.0
    means: tuple[float, ...] = (0.2, 0.4, 0.6)
    contexts: int = 1
    rhythm: float = 0.0
    growth: float = 1.0
    drift: float = 0.0
    rate_by_hour: float = 0.0
    longest_s: float = 55 * 60
    tail: float | None = None
    slowness: tuple[float, ...] | None = None
    mean_values: tuple[float, ...] | None = None
    log_sd: float = 0.0
    launches: tuple[float, ...] | None = None
    retirements: tuple[float, ...] | None = None
    logger: tuple[float, ...] | None = None
    logger_by_hour: float = 0.0
    hole: bool = False
    logger_changes: bool = False
    users: int = 0
    sets: float = 0.0
    visitors: int = 0
    wear_out: float = 0.0
    claim: Literal["right", "constant", "swapped", "stale"] = "right"
    sampled: float = 1.0
    attribution_s: int | None = HOUR_S
    stamp_s: int = 1
    by_action: bool = False
    copied: float = 0.0
    conversions_copied: float = 0.0
    refunded: float = 0.0
    outage_h: float = 0.0
    gap_h: float = 0.0
    stray_h: float = 0.0
    in_files: bool = False

    @property
    def n_actions(self) -> int:
        """K."""
        return len(self.means)
