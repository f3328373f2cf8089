"""What can be asked of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluator.options.declaration import Options, documented, option
from evaluator.options.deployment import Deployment, deployment_of
from evaluator.options.shared import (
    DELAYS,
    EXPLORE_FIRST,
    HORIZON,
    INTERVALS,
    JOBS,
    LEARN_EVERY,
    LEARN_LAG,
    SEED,
    TRIED,
    WINDOW,
)
from evaluator.units import rounds_of_window


@documented
@dataclass(frozen=True, kw_only=True)
class SimulateOptions(Options):
    """Options of a simulation."""

    runs: int = option(
        100, "Independent runs of each policy", example="400", question=INTERVALS, flags=("-n", "--repeats"), at_least=1
    )
    horizon: int | None = HORIZON.but(help="Rounds of a run. Default: the scenario's", panel="", question=TRIED).field()
    window: str | int | None = WINDOW.but(
        help="Cut-off in rounds, or none. Default: the scenario's", more="", example="500"
    ).field()
    learn_every: str | int | None = LEARN_EVERY.but(
        help="When what happened reaches the policy: event (at once), or every 500 rounds. Default: as the scenario "
        "says, else event",
        more="Displays and events wait for the push, and the policy serves from what it had.",
        example="500",
    ).field()
    learn_lag: str | int | None = LEARN_LAG.but(
        help="How old the newest of what a push brings is, in rounds. Default: 0",
        example="100",
        panel="",
        question=TRIED,
    ).field()
    explore_first: str | int | None = EXPLORE_FIRST.but(
        help="How many first rounds show actions uniformly at random, or as the scenario's logger: 500:logger. "
        "Default: the scenario's, else none",
        more="Policies that learn do so from these rounds, too.",
        example="500",
        panel="",
        question=TRIED,
    ).field()
    delays: str = DELAYS.but(
        default="known",
        help="Delay CDF that policies are told: known (the scenario's), a law in rounds (geometric:500, fixed:30, "
        "pareto:0.7...), or a file of evaluate delays in rounds: how-late/fit.json",
        more="`evaluator.delays.laws.parse_law` lists the laws.",
        panel="",
        question=TRIED,
    ).field()
    seed: int = SEED.but(panel="", question=INTERVALS).field()
    jobs: int = JOBS.but(panel="").field()

    def __post_init__(self) -> None:
        """Check every option."""
        super().__post_init__()
        self.window_rounds(None)
        self.deployed({})

    def deployed(self, stated: Mapping[str, str]) -> Deployment:
        """Return how policies are deployed: as is asked, else as their scenario has stated."""
        return deployment_of(vars(self), stated, by="scenario")

    def window_rounds(self, recommended: int | None) -> int | None:
        """Return the window in rounds, None when nothing is cut off."""
        return rounds_of_window(self.window, recommended)
