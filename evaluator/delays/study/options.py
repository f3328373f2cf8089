"""Options of a study of delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.errors import ParameterError
from evaluator.units import refuse_not_whole


@dataclass(frozen=True, kw_only=True)
class DelayOptions:
    """Options of a study of delays.

    Parameters
    ----------
    windows
        In rounds (``"2000"``) or as durations (``"7d"``); None takes 1 h, 1 d, 7 d and 30 d, or 100 to 5,000 rounds.
    families
        Delay laws to fit; None for all.
    groups
        At most so many groups stand alone in tables and charts and are compared in pairs, those with the most
        conversions; the test of one law for all is of all groups with at least 50.
    share
        Of the conversions that the recommended window keeps, in (0, 1).
    bootstraps
        Of the goodness of fit, 19 at least: the smallest p-value is 1 / (bootstraps + 1).
    level
        Of the intervals.
    seed
        Of samples, bootstrap and permutations.
    joint
        Also correct the conversion rate by the log's contexts (`evaluator.delays.study.joint_rate.study_joint`).
    """

    windows: Sequence[str | int] | None = None
    families: Sequence[str] | None = None
    groups: int = 10
    share: float = 0.9
    bootstraps: int = 99
    level: float = 0.95
    seed: int = 0
    joint: bool = False

    def __post_init__(self) -> None:
        """Check every option's range.

        Raises
        ------
        ParameterError
            Naming the option, the value and what it takes.
        """
        refuse_not_whole(self, groups=2, bootstraps=19, seed=0)
        for name in ("level", "share"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ParameterError(f"--{name} {getattr(self, name):g} is out of range.", hint="take one in (0, 1).")
