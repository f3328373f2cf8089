"""The delay CDF that a user gives a policy: a law in a word, or a fit in a file; and with how few steps it is told."""

from __future__ import annotations

import math
from collections.abc import Callable

from evaluator.delays.cdf import DelayCDF

# Steps that policies are told: tau is off by at most 1/256, and a round costs no more than 256 additions.
CDF_STEPS = 256


def given_cdf(text: str, *, reach: int, ticks_per_round: Callable[[str], float], share: float = 1.0) -> DelayCDF:
    """Return the CDF that ``--delays`` names.

    Parameters
    ----------
    text
        A word of `evaluator.delays.laws.parse_law`, or a ``.json`` file of `evaluator.delays.fit_file.save_fit`.
    reach
        Longest delay of interest in rounds; laws without closed form have steps to there, and those of a file their
        moments.
    ticks_per_round
        Function that turns the unit that a file names into how many of them a round takes; raises where there is no
        telling.
    share
        Number of rounds in what a word counts, in (0, 1].

    Raises
    ------
    DataError
        The file cannot be read, or breaks its schema.
    ParameterError
        The text is no law, or its numbers are out of range.

    Examples
    --------
    >>> given_cdf("uniform:1:4", reach=3, ticks_per_round=float).cdf
    array([0.25, 0.5 , 0.75])
    """
    # Of these a run takes one or the other, and most take neither.
    if text.endswith(".json"):
        from evaluator.delays.fit_file import load_fit

        saved = load_fit(text)
        return saved.delay_cdf(ticks_per_round=ticks_per_round(saved.tick), limit=reach)
    from evaluator.delays.laws import parse_law

    law = parse_law(text)
    if share == 1.0:
        return law.delay_cdf(reach)
    # Rounding to the nearest round brings those of half a round more within reach.
    return law.delay_cdf(math.ceil((reach + 0.5) / share)).scaled(share)


def told_cdf(cdf: DelayCDF, reach: int) -> DelayCDF:
    """Return the CDF with few steps, where it has any within reach: a policy that sees nothing is bad, but no error.

    Its moments are those from before, of the delays within reach: few steps held flat make delays longer than they are.
    """
    if cdf.geometric_ratio is not None or cdf(reach) == 0.0:
        return cdf
    return cdf.coarsened(CDF_STEPS, limit=reach)
