"""What can be asked of a comparison beside the options of its replays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.options.declaration import Options, documented, option
from evaluator.options.shared import BOOTSTRAP, DECIDES, ESTIMATE, LEARN_FROM, SCHEDULES, TRIED, WINDOWS

if TYPE_CHECKING:
    from evaluator.comparisons.rule import Look, ShipRule


@documented
@dataclass(frozen=True, kw_only=True)
class CompareOptions(Options):
    """Options of a comparison that no replay has."""

    windows: Sequence[str | int | None] | None = WINDOWS.field()
    schedules: Sequence[str | int] | None = SCHEDULES.field()
    learn_from: Sequence[str] | None = LEARN_FROM.but(
        more="Each policy that learns is replayed with every one; value, regret, uplift and guardrails stay those of "
        "the rewards. The window holds for what the policy is told; events have their own delays and follow-up."
    ).field()
    baseline: str | None = option(
        None,
        "One of the policies, to compare the others with. Default: the logging policy",
        question=TRIED,
        flags=("-b",),
    )
    study: str | Path | None = option(
        None,
        "TOML file that says what to compare; options beside it win",
        more="`evaluator.comparisons.study_file` shows one.",
        example="study.toml",
        question=TRIED,
    )
    ship_if: str | None = option(
        None,
        "What must be told of the difference to the baseline before a policy ships, stated before the run. Default: "
        "'uplift > 0'",
        more="'uplift > 0.002': the interval of the difference lies above 0.002 per round; 'uplift > 2%': above 2 % of "
        "what the baseline earns, whose own interval is allowed for.",
        example="'uplift > 0.002'",
        question=DECIDES,
    )
    look: str | None = option(
        None,
        "Which look at a growing log this is, of how many planned ones, which share one verdict's error. Default: one",
        more="'3 of 5', or 3/5, is the third of five planned looks. Its level is so high that all five together are "
        "wrong no more often than one verdict is. What two runs earned holds at any number of looks, and keeps its "
        "level.",
        example="'3 of 5'",
        panel=ESTIMATE,
    )
    bootstrap: int | None = BOOTSTRAP.but(
        default=None,
        help="Resampled logs to replay for differences of expected values over logs and seeds. Default: as many as the "
        "verdict on policies that learn needs",
        more="That is 100 to 200, until the spread of the values that decide is known to 7.5 % (one standard error); "
        "none where no policy learns, or where the verdict would wait whatever is expected. A number is taken as it "
        "is: 0 for none, else 20 at least.",
    ).field()

    def __post_init__(self) -> None:
        """Check the rule and the look; ParameterError, which says how one is written."""
        super().__post_init__()
        _ = self.rule, self.asked_look

    @property
    def rule(self) -> ShipRule | None:
        """The rule by which a policy ships; None where none was stated."""
        from evaluator.comparisons.rule import parse_ship_rule  # that describes documents, and help needs none

        return None if self.ship_if is None else parse_ship_rule(self.ship_if)

    @property
    def asked_look(self) -> Look | None:
        """The planned look that it is; None for one alone."""
        from evaluator.comparisons.rule import parse_look

        return None if self.look is None else parse_look(self.look)

    @property
    def replaying(self) -> dict[str, Any]:
        """What it says of all replays, as options of these."""
        return {} if self.learn_from is None else {"learn_from": ",".join(self.learn_from)}

    @property
    def asked_windows(self) -> tuple[str | int | None, ...] | None:
        """The cut-offs, None where nothing is cut off."""
        if self.windows is None:
            return None
        return tuple(None if window == "none" else window for window in self.windows)
