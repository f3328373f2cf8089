"""What can be asked of a check of a log."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import CLUSTER_BY, DECIDES, PROPENSITY, SEED, WHICH_LOG, PropensityMode


@documented
@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """Options of a check."""

    propensity: PropensityMode | None = PROPENSITY.but(
        help="As replay will be given: column, uniform, estimate (frequencies) or estimate:context. Default: the log's "
        "own or, where it has none, estimate",
        panel="",
        question=WHICH_LOG,
    ).field()
    false_alarms: float = option(
        0.04,
        "Chance that a test warns about a clean log, over all tests",
        more="Split evenly over the warnings and failures that rest on a test.",
        example="0.01",
        question=DECIDES,
        at_least=1e-4,
        below=1.0,
    )
    seed: int = SEED.but(panel="").field()
    cluster_by: str | None = CLUSTER_BY.but(
        help="Source column whose displays may hang together, such as the user, or every:1d: how much wider intervals "
        "are to be. Default: not looked at",
        panel="",
    ).field()
