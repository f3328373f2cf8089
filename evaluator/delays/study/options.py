"""What can be asked of a study of delays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import DECIDES, ESTIMATE, JOBS, LEVEL, SEED, STUDY, TRIED, WINDOWS


@documented
@dataclass(frozen=True, kw_only=True)
class DelayOptions(Options):
    """Options of a study of delays."""

    windows: Sequence[str | int] | None = WINDOWS.but(
        help="Cut-offs to judge, each in rounds or as a duration. Default: 1h,1d,7d,30d, or 100 to 5,000 rounds",
        example="1h,1d,7d,30d,2000",
        panel=STUDY,
    ).field()
    families: Sequence[str] | None = option(
        None, "Laws to fit: weibull,lognormal. Default: all", panel=STUDY, question=TRIED, singular="family"
    )
    groups: int = option(
        10,
        "So many of the largest groups stand alone and are compared in pairs",
        more="Those with the most conversions; the test of one law for all is of all groups with at least 50.",
        example="10",
        panel=STUDY,
        at_least=2,
    )
    share: float = option(
        0.9, "Share of the conversions that the recommended window keeps", example="0.9", panel=STUDY, question=DECIDES,
        above=0.0, below=1.0,
    )  # fmt: skip
    bootstraps: int = option(
        99, "Bootstraps of the goodness of fit", flags=("--bootstrap",),
        more="The smallest p-value is 1 / (bootstraps + 1).", example="999", panel=ESTIMATE, at_least=19,
    )  # fmt: skip
    level: float = LEVEL.field()
    seed: int = SEED.but(panel=ESTIMATE).field()
    joint: bool = option(
        False,
        "Correct the conversion rate too, by the contexts of a log",
        more="See `evaluator.delays.study.joint_rate.study_joint`.",
        panel=STUDY,
    )
    jobs: int | None = JOBS.but(
        default=None, help="Threads; no result depends on it. Default: as many as there are processors", panel=STUDY
    ).field()

    def __post_init__(self) -> None:
        """Check every option.

        Raises
        ------
        ParameterError
            A value is out of range.
        UnknownNameError
            There is no such law.
        """
        super().__post_init__()
        if self.families is not None:
            from evaluator.delays.families import family_named

            for name in self.families:
                family_named(name)
