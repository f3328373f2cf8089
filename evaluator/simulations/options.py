"""What can be asked of a simulation; the command line's options are these fields."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.errors import ParameterError
from evaluator.units import parse_whole, refuse_not_whole
from evaluator.visible import shortened


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """Options of a simulation.

    Parameters
    ----------
    runs
        Independent runs of each policy.
    horizon
        Rounds of a run; None for what the scenario recommends.
    window
        Cut-off in rounds (``1000``), ``"none"`` for none, None for what the scenario recommends.
    delays
        Delay CDF that policies are told: ``known`` (the scenario's own), a law such as ``geometric:500``
        (`evaluator.delays.laws.parse_law`), or a ``.json`` file of `evaluate delays` that counts rounds.
    seed
        Of the worlds' and the policies' streams.
    jobs
        Threads.

    Raises
    ------
    ParameterError
        Naming the option, the value and what it takes.
    """

    runs: int = 100
    horizon: int | None = None
    window: str | int | None = None
    delays: str = "known"
    seed: int = 0
    jobs: int = 1

    def __post_init__(self) -> None:
        """Check every option's range."""
        refuse_not_whole(self, runs=1, horizon=1, seed=0, jobs=1)
        word = str(self.window).strip()
        if self.window is not None and word != "none" and not parse_whole(word):
            raise ParameterError(
                f"--window {shortened(repr(self.window))} is no number of rounds.",
                hint="take 1 round or more, or none.",
            )

    def window_rounds(self, recommended: int | None) -> int | None:
        """Return the window in rounds, None when nothing is cut off."""
        if self.window is None:
            return recommended
        word = str(self.window).strip()
        return None if word == "none" else parse_whole(word)
