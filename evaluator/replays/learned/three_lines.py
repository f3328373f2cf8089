"""A learned policy in three lines: what it is, what it learned from, how to use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluator.units import NO_WINDOW
from evaluator.visible import visible

if TYPE_CHECKING:
    from evaluator.replays.learned.policy import LearnedPolicy


def three_lines(learned: LearnedPolicy) -> str:
    """Return what ``print`` shows of a learned policy."""
    told, source, waiting = learned.setting, learned.learned_from, int(learned.pending.size[0])
    parameters = ", ".join(f"{name}={value!r}" for name, value in learned.policy.parameters.items())
    window = "no window" if told.window == NO_WINDOW else f"window {told.window:,} rounds"
    log = "" if source is None else f" on log {source.log!r}"
    lines = (
        f"{learned.policy.name}{f' with {parameters}' if parameters else ''}: {told.n_actions:,} actions, {window}",
        f"learned in {learned.rounds:,} rounds{log}; {waiting:,} conversion{'s' * (waiting != 1)} still to come",
        f"policy.labels[policy.choose({_context(learned)})] is its choice; then .displayed(), .converted(), .save()",
    )
    return "\n".join(map(visible, lines))


def _context(learned: LearnedPolicy) -> str:
    """Return what it is asked with."""
    if learned.setting.rows == 0:
        return ""
    if learned.encoder is not None:
        return f"{{{', '.join(f'{column.name!r}: ...' for column in learned.encoder.columns)}}}"
    return f"<vectors of shape {learned.context_shape}>"
