"""Values of outcomes that no policy sees; they, and answers to guardrails, as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from evaluator.estimates.confidence import Interval
from evaluator.replays.guardrails import GuardrailAnswer
from evaluator.results.tabular import COUNT, NUMBER, TEXT, arrow_table, interval_cells, interval_columns


@dataclass(frozen=True)
class OutcomeValue:
    """Value of an outcome, per round, with intervals as those of the rewards.

    Parameters
    ----------
    outcome
        Name of the outcome.
    value
        Realised value: mean over the rounds whose display was followed for long enough, its n.
    uplift
        Difference of that to the logging policy's value.
    logging_value
        Mean of the logged displays that were followed for long enough.
    """

    outcome: str
    value: Interval
    uplift: Interval
    logging_value: Interval


def outcome_table(values: Iterable[OutcomeValue]) -> pa.Table:
    """Return one row an outcome: its values, each with its interval, and the number of rounds behind them."""
    names = ("value", "uplift", "logging_value")
    rows = (
        {
            "outcome": of.outcome,
            **{key: cell for name in names for key, cell in interval_cells(name, getattr(of, name)).items()},
            "n": of.value.n,
            "level": of.value.level,
        }
        for of in values
    )
    return arrow_table({"outcome": TEXT, **interval_columns(*names), "n": COUNT, "level": NUMBER}, rows)


def guardrail_table(answers: Iterable[GuardrailAnswer]) -> pa.Table:
    """Return one row a guardrail: what it limits, the answer, and the interval that gave it."""
    columns = {
        "guardrail": TEXT, "outcome": TEXT, "quantity": TEXT, "limit": NUMBER, "answer": TEXT,
        **interval_columns("estimate"), "n": COUNT, "level": NUMBER, "tests": COUNT,
    }  # fmt: skip
    rows = (
        {
            **{name: getattr(of, name) for name in ("guardrail", "outcome", "quantity", "limit", "answer", "tests")},
            **interval_cells("estimate", of.interval),
            "n": of.interval.n,
            "level": of.interval.level,
        }
        for of in answers
    )
    return arrow_table(columns, rows)
