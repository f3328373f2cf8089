"""A policy's state as arrays by their names, and back.

A state is started for the setting that a file states, and filled with the file's arrays. A setting is a few numbers,
which may be any: what it would start is found out by starting smaller ones first.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.errors import EvaluatorError, SourceError
from evaluator.policies.base import Policy, Setting
from evaluator.replays.learned.about import Arrays

_OTHER = "replay and save the policy with this version."
# The state of a shorter setting may be larger by a few sizes that compiled code then knows, not more.
_SLACK = 1 << 12
# Growing each number fourfold grows a state, d² at most in one of them, by 16.
_GROWTH = 4


def state_arrays(state: Any, name: str = "state") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield every array and scalar of a state, nested or not, by its path."""
    if isinstance(state, tuple):
        for field, part in _parts(state):
            yield from state_arrays(part, f"{name}.{field}")
    else:
        yield name, np.asarray(state)


def refuse_nan(arrays: Arrays) -> None:
    """Raise where an array is not all numbers: no policy can go on from there.

    Raises
    ------
    SourceError
        An array holds NaN; the message names it.
    """
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise SourceError(f"{name} holds NaN.", remedy="replay the policy with other parameters and save it again.")


def restored(policy: Policy, setting: Setting, saved: Arrays) -> Any:
    """Return a started state that holds what was saved, which is taken out of `saved`.

    Memory is a small multiple of what was saved, whatever the setting says. The actions and the delay CDF of the
    setting must have been read from the file, not merely be stated there.

    Raises
    ------
    SourceError
        The arrays are not those of this policy's state in this setting.
    KeyError
        An array is missing.
    """
    refuse_nan(saved)
    nbytes = sum(array.nbytes for array in saved.values())
    for smaller in _growing(setting):
        started = _started(policy, smaller)
        if sum(array.nbytes for _, array in state_arrays(started)) > nbytes + _SLACK:
            raise SourceError(
                f"{policy.name} keeps more than the {nbytes:,} bytes of its state in a setting of {_numbers(setting)}.",
                remedy=_OTHER,
            )
    return _filled("state", _started(policy, setting), saved)


def copied(policy: Policy, setting: Setting, state: Any) -> Any:
    """Return a state that shares no memory with the given one, of a policy in this setting."""
    return _filled("state", _started(policy, setting), dict(state_arrays(state)))


def _growing(setting: Setting) -> Iterator[Setting]:
    """Yield settings that grow into this one, of which each policy's state is at least as large as of those before.

    The window stays below the horizon if it is below, since some states are empty if no window closes. Delays grow with
    both, since some states reach back to the longest one that comes in time.
    """
    size, closes = 1, setting.window < setting.horizon
    largest = max(setting.dimension, setting.window if closes else 0, setting.horizon)
    while size < largest:
        yield replace(
            setting,
            dimension=min(setting.dimension, size),
            window=min(setting.window, size) if closes else setting.window,
            horizon=min(setting.horizon, size + 1),
            delay_cdf=_up_to(size, setting),
        )
        size *= _GROWTH


def _up_to(size: int, setting: Setting) -> DelayCDF | None:
    """Return the delay CDF with its steps later than `size` at that age, or right after where no window sees them."""
    law = setting.delay_cdf
    if law is None or law.geometric_ratio is not None:
        return law
    delays, cdf = (column[law.delays <= setting.horizon] for column in (law.delays, law.cdf))
    if delays.size == 0 or delays[-1] <= size:
        return law
    sooner = np.where(delays <= size, delays, np.where(delays <= setting.window, size, size + 1))
    last = np.append(np.diff(sooner) > 0, True)
    return replace(law, delays=sooner[last], cdf=cdf[last])


def _started(policy: Policy, setting: Setting) -> Any:
    try:
        return policy.start(setting)
    except (ArithmeticError, ValueError, MemoryError) as error:
        if isinstance(error, EvaluatorError):
            raise
        raise SourceError(
            f"{policy.name} cannot be started in a setting of {_numbers(setting)} ({error}).", remedy=_OTHER
        ) from error


def _numbers(setting: Setting) -> str:
    return (
        f"{setting.n_actions:,} actions, {setting.dimension:,} dimensions, window {setting.window:,} and horizon "
        f"{setting.horizon:,}"
    )


def _parts(state: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield each part of a state with its name; those of a plain tuple, such as a size, are numbered."""
    return zip(getattr(state, "_fields", range(len(state))), state, strict=True)


def _filled(name: str, started: Any, saved: Arrays) -> Any:
    """Return a started state that holds what was saved.

    Its arrays are filled in place, because fields may share one. Its scalars never change in a policy's life, nor do
    arrays that are among its ``fixed_fields``: those saved must be those started. Of its ``later_fields``
    those that are not saved are those started. What earlier versions saved in their place, its ``read_earlier`` reads.
    """
    if isinstance(started, tuple):
        if hasattr(started, "read_earlier"):
            try:
                started.read_earlier(name, saved)
            except np.linalg.LinAlgError as error:
                raise SourceError(f"{name} holds what no regression leaves ({error}).", remedy=_OTHER) from error
        fixed, later = getattr(started, "fixed_fields", ()), getattr(started, "later_fields", ())
        parts = []
        for field, part in _parts(started):
            if field in fixed:
                _refuse_other(f"{name}.{field}", part, saved[f"{name}.{field}"])
            absent = field in later and f"{name}.{field}" not in saved
            parts.append(part if absent else _filled(f"{name}.{field}", part, saved))
        return type(started)(*parts) if hasattr(started, "_fields") else tuple(parts)
    array = saved.pop(name)
    if np.shape(started) != array.shape or np.asarray(started).dtype != array.dtype:
        raise SourceError(
            f"{name} has shape {array.shape} and type {array.dtype}, this version's has {np.shape(started)} and "
            f"{np.asarray(started).dtype}.",
            remedy=_OTHER,
        )
    if isinstance(started, np.ndarray):
        started[...] = array
        return started
    _refuse_other(name, started, array)
    return array.item()


def _refuse_other(name: str, started: Any, saved: npt.NDArray[Any]) -> None:
    """Raise unless what a setting fixes is what it says, to the rounding of another machine."""
    expected = np.asarray(started)
    if expected.shape != saved.shape or not np.allclose(saved, expected, rtol=1e-9, atol=0.0):
        raise SourceError(
            f"{name} is {reprlib.repr(saved.tolist())}, this version's is {reprlib.repr(expected.tolist())}.",
            remedy=_OTHER,
        )
