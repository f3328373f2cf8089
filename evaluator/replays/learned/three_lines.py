"""A learned policy in three lines: what it is, what it learned from, how to use it."""

from __future__ import annotations

from typing import Any

from evaluator.log.encoder import ContextEncoder
from evaluator.policies.base import Setting
from evaluator.replays.learned.learned_from import LearnedFrom
from evaluator.units import NO_WINDOW
from evaluator.visible import visible


def three_lines(
    policy: Any,
    told: Setting,
    rounds: int,
    waiting: int,
    encoder: ContextEncoder | None,
    learned_from: tuple[LearnedFrom, ...],
) -> str:
    """Return what ``print`` shows of a learned policy.

    Parameters
    ----------
    policy, told, rounds
        Description of the policy, setting that it was told, and number of rounds that it has lived.
    waiting
        Number of conversions still to be revealed.
    encoder, learned_from
        Encoder of displays, None without; and displays that it learned from.
    """
    parameters = ", ".join(f"{name}={value!r}" for name, value in policy.parameters.items())
    window = "no window" if told.window == NO_WINDOW else f"window {told.window:,} rounds"
    logs = " and ".join(dict.fromkeys(repr(source.log) for source in learned_from))
    log = f" on log {logs}" if logs else ""
    given = [_context(told, encoder), "eligible=[...]" if told.among else ""]
    choice = f"policy.labels[policy.choose({', '.join(filter(None, given))})]"
    lines = (
        f"{policy.name}{f' with {parameters}' if parameters else ''}: {told.n_actions:,} actions, {window}",
        f"learned in {rounds:,} rounds{log}; {waiting:,} conversion{'s' * (waiting != 1)} still to come",
        f"{choice} is its choice; then .displayed(), .converted(), .save()",
    )
    return "\n".join(map(visible, lines))


def _context(told: Setting, encoder: ContextEncoder | None) -> str:
    """Return what it is asked with."""
    if told.rows == 0:
        return ""
    if encoder is not None:
        return f"{{{', '.join(f'{column.name!r}: ...' for column in encoder.columns)}}}"
    return f"<vectors of shape {told.context_shape}>"
