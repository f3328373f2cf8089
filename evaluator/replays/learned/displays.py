"""What a learned policy is told of a display: its vectors, and which of its actions are eligible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError
from evaluator.escape import shortened
from evaluator.log.encoder import ContextEncoder
from evaluator.policies.base import Setting
from evaluator.policies.running import refuse_choosing_among

# A display as a mapping of column values, or the vectors that it becomes.
Display: TypeAlias = npt.ArrayLike | Mapping[str, object]
# Indices of actions.
Eligible: TypeAlias = Sequence[int] | npt.NDArray[np.integer]

Truths = npt.NDArray[np.bool_]


def told_eligible(policy: Any, setting: Setting, eligible: Eligible | None) -> Truths | None:
    """Return which actions are eligible, shape (K,); None where all are and the policy knows nothing else.

    Raise ParameterError if they are not the indices of one or more actions, or a policy must be told them, or has no
    answer to them.
    """
    if eligible is None:
        if setting.among:
            raise ParameterError(
                f"{policy.name} learned from a log in which not every action is always eligible: say which are.",
                remedy="give their indices: choose(display, eligible=[0, 2]).",
            )
        return None
    stated, k = np.asarray(eligible), setting.n_actions
    whole = stated.ndim == 1 and stated.size > 0 and stated.dtype.kind in "iu"
    if not whole or stated.min() < 0 or stated.max() >= k:
        raise ParameterError(
            f"`eligible` is {shortened(repr(eligible))}.",
            remedy=f"give the indices of one action or more, from 0 to {k - 1}: eligible=[0, 2].",
        )
    own = np.zeros(k, np.bool_)
    own[stated] = True
    if own.all() and not policy.among:
        return None
    refuse_choosing_among(policy, "`eligible` leaves some out")
    return own


def display_vectors(
    policy: Any, setting: Setting, encoder: ContextEncoder | None, context: Display | None, own: Truths | None = None
) -> npt.NDArray[np.float64]:
    """Return the vectors of a display as a caller gives it, shape (1, 0), (1, d) or (K, d).

    Where some actions alone are eligible (`own`, shape (K,)), vectors may be theirs alone, in their order, and those of
    the others are 0. Raise ParameterError if the context has another shape, is not finite or cannot be encoded.
    """
    rows = setting.rows
    if rows == 0:
        return np.zeros((1, 0))
    if isinstance(context, Mapping):
        context = _encoded(policy.name, setting, encoder, context)
    shape = setting.context_shape
    vectors = np.array(np.nan if context is None else context, np.float64)
    part = None if own is None or rows == 1 else (int(own.sum()), setting.dimension)
    if vectors.shape not in (shape, part) or not np.isfinite(vectors).all():
        or_part = "" if part is None else f" (or {part}, those of the eligible)"
        raise ParameterError(
            f"{policy.name} reads {'a context' if rows == 1 else 'action vectors'} of shape {shape}{or_part}, finite; "
            f"got shape {vectors.shape}.",
            remedy="encode it as the log's"
            + ("." if encoder is None else ", or give the display itself, a value for each context column."),
        )
    if vectors.shape == shape or own is None:
        return vectors.reshape(rows, setting.dimension)
    whole = np.zeros(shape)
    whole[own] = vectors
    return whole


def shown_vectors(
    policy: Any, setting: Setting, encoder: ContextEncoder | None, context: Display | None, action: int
) -> npt.NDArray[np.float64]:
    """Return the vectors of a display that showed this action: its own alone where displays have their own sets."""
    alone = setting.rows > 1 and not isinstance(context, Mapping) and np.ndim(np.asarray(context)) == 1
    if alone and policy.among:
        return display_vectors(policy, replace(setting, rows=1), None, context)
    vectors = display_vectors(policy, setting, encoder, context)
    return vectors[action : action + 1] if setting.among and len(vectors) > 1 else vectors


def _encoded(
    policy: str, setting: Setting, encoder: ContextEncoder | None, display: Mapping[str, object]
) -> npt.ArrayLike:
    if encoder is not None:
        return encoder.encode(display)
    if setting.rows > 1:
        raise ParameterError(
            f"{policy} reads a vector for each action, which no columns of a display are.",
            remedy=f"give the action vectors, shape {setting.context_shape}.",
        )
    raise ParameterError(
        f"The log that {policy} learned from does not say how its contexts were encoded: it was made by "
        "hand, or converted or replayed by an earlier version.",
        remedy=f"convert it again, replay and save; or give the encoded context, shape {setting.context_shape}.",
    )
