"""A learned policy in a file: the arrays of its state by their names, and what they mean as JSON; no pickle.

Whoever wrote the file: reading it runs none of its code, and takes no more memory than a small multiple of its size.

*Arrays.* A file is a zip archive of ``.npy`` members, as `numpy.savez` writes it. Members are stored as they are, so
that what a file unpacks to is what it weighs. Those of earlier versions are compressed, and held to `LARGEST_UNPACKED`.

*State.* A state is started for the setting that a file states, and filled with the file's arrays. A setting is a few
numbers, which may be any: what it would start is found out by starting smaller ones first.
"""

from __future__ import annotations

import hashlib
import io
import math
import reprlib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF
from evaluator.engine.pending import ACTION, DELAY, DUE, PendingConversions, nothing_pending, push
from evaluator.errors import EvaluatorError, ParameterError, SourceError, UnknownNameError, UsageError, nearest_file
from evaluator.policies.base import Policy, Setting
from evaluator.policies.registry import resolve
from evaluator.policies.running import is_plain_python
from evaluator.replays.learned.policy_metadata import Arrays, PolicyContent, SavedWords, read_metadata, written

_WAITING = ("due", "delay", "action", "value", "vector")
# Of a file with compressed members, all together. A kilobyte of them may stand for a megabyte.
LARGEST_UNPACKED = 1 << 28
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_OTHER = "replay and save the policy with this version."
# The state of a shorter setting may be larger by a few sizes that compiled code then knows, not more.
_SLACK = 1 << 12
# Growing each number fourfold grows a state, d² at most in one of them, by 16.
_GROWTH = 4


def refuse_unsavable(policy: Any) -> None:
    """Raise UsageError, before a replay, if its policy could not be saved after it; the message says why."""
    if is_plain_python(policy):
        raise UsageError(
            f"{policy.name} is a plain Python class: what it knows cannot be saved without pickling it.",
            remedy="write it as a Policy, whose state is arrays (evaluator/policies/base.py).",
        )
    if policy.name == "logging":
        raise UsageError("logging follows its log and learns nothing to save.", remedy="take another policy.")


def fill_file(part: Path, content: PolicyContent) -> None:
    """Write a policy that can be saved (`refuse_unsavable`), with a state without NaN, to a file reserved for it."""
    arrays = arrays_of(content)
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def arrays_of(content: PolicyContent) -> Arrays:
    """Return all that a file holds, by name; errors as of `fill_file`."""
    arrays: Arrays = dict(state_arrays(content.state))
    refuse_nan(arrays)
    arrays |= {f"pending.{name}": column for name, column in _waiting(content.pending).items()}
    cdf = content.setting.delay_cdf
    if cdf is not None:
        arrays |= {"delay_cdf.delays": cdf.delays, "delay_cdf.cdf": cdf.cdf}
    arrays["about"] = np.frombuffer(written(content), np.uint8)
    return arrays


def content_hash(content: PolicyContent) -> str:
    """Return the SHA-256, in hex, of all that a policy knows: the same of its file once it is read."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays_of(content).items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read_file(path: Path, policy: Policy | None) -> PolicyContent:
    """Read what `fill_file` wrote; arguments and errors as of `evaluator.load_policy`."""
    if policy is not None and not isinstance(policy, Policy):
        raise ParameterError(
            f"policy = {policy!r} is no description of a policy.",
            remedy="pass one: load_policy(path, policy=MyPolicy()).",
        )
    arrays = read_arrays(path)
    try:
        saved = read_metadata(arrays.pop("about").tobytes(), arrays)
        description = _description(path, saved) if policy is None else policy
        if description.spec != saved.spec or description.parameters != saved.parameters:
            told = reprlib.repr(saved.parameters)
            raise ParameterError(
                f"{path} holds {reprlib.repr(saved.spec)} with {told}, not {description!r}.",
                remedy="give the policy with the parameters it was saved with.",
            )
        setting, waiting = saved.fields["setting"], {name: arrays.pop(f"pending.{name}") for name in _WAITING}
        pending = _calendar(waiting, saved.fields["rounds"], setting)
        state = restored(description, setting, arrays)
        if arrays:
            raise SourceError(
                f"It also keeps {sorted(arrays)[0]!r}, which {description.name} of this version does not.",
                remedy="replay and save it with this version.",
            )
    except KeyError as error:
        if isinstance(error, EvaluatorError):
            raise
        raise SourceError(f"{path} lacks {error}: it is not a whole policy file.", remedy="save it again.") from error
    except SourceError as error:
        raise SourceError(f"{path}: {error.what}", remedy=error.remedy) from error
    return PolicyContent(policy=description, state=state, pending=pending, **saved.fields)


def _description(path: Path, saved: SavedWords) -> Policy:
    """Return the description of a policy that is registered here."""
    try:
        description = resolve(saved.spec, files=False)
    except UnknownNameError as error:
        named = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in saved.parameters.items())
        call = f"{saved.of_class or 'MyPolicy'}({named})"
        raise UnknownNameError(
            f"{path} holds {reprlib.repr(saved.spec)}, which is registered neither here nor by an installed package.",
            remedy=f"it is a class of your own? load_policy({str(path)!r}, policy={call}).",
        ) from error
    refuse_unsavable(description)
    assert isinstance(description, Policy)
    return description


def _waiting(pending: PendingConversions) -> Arrays:
    """Return the pending conversions in the order in which they will be revealed."""
    order = pending.waiting()
    slots = pending.slots[order]
    return {
        "due": slots[:, DUE].copy(), "delay": slots[:, DELAY].copy(), "action": slots[:, ACTION].copy(),
        "value": pending.value[order], "vector": pending.vector[order],
    }  # fmt: skip


def _calendar(waiting: Arrays, rounds: int, setting: Setting) -> PendingConversions:
    """Return the calendar of a file's pending conversions; raise SourceError at the first that cannot be."""
    n = len(waiting["due"]) if waiting["due"].ndim == 1 else -1
    for name, column in waiting.items():
        kind = np.float64 if name in ("value", "vector") else np.int64
        shape = (n, setting.dimension) if name == "vector" else (n,)
        if column.shape != shape or column.dtype != kind:
            raise SourceError(
                f"pending.{name} has shape {column.shape} and type {column.dtype}, not {shape} and {np.dtype(kind)}.",
                remedy="save the policy again.",
            )
    due, delay, action, value, vector = (waiting[name] for name in _WAITING)
    # Shown in a round that was, and revealed in one to come; the second bound keeps the difference in range.
    wrong = (due <= rounds) | (delay < 0) | (delay > setting.window) | (due - rounds > delay) | (due - delay < 1)
    wrong |= (action < 0) | (action >= setting.n_actions) | ~np.isfinite(value) | ~np.isfinite(vector).all(axis=1)
    if wrong.any():
        i = int(wrong.argmax())
        raise SourceError(
            f"Pending conversion {i} is of action {action[i]}, delay {delay[i]}, value {value[i]}, due in round "
            f"{due[i]}, after {rounds} rounds.",
            remedy="save the policy again.",
        )
    pending = nothing_pending(n, setting.dimension, reach=int(due.max(initial=rounds)) - rounds)
    for i in range(n):
        push(pending, int(due[i]), int(delay[i]), int(action[i]), float(value[i]), vector, i)
    return pending


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a file by their names; SourceError if it is damaged, or unpacks to more than it holds."""
    hint = nearest_file(path, "evaluate replay --save-policy FILE writes one.")
    if not path.is_file():
        raise SourceError(f"No policy file {str(path)!r}.", remedy=hint)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_size(path, members)
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except SourceError:
        raise
    except Exception as error:  # which one a damaged archive or header ends in, its readers do not say
        raise SourceError(f"{path} is no policy file, or damaged ({error}).", remedy=hint) from error


def _check_size(path: Path, members: list[zipfile.ZipInfo]) -> None:
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise ValueError("two members of one name")
    size = path.stat().st_size
    packed, unpacked = (sum(getattr(m, name) for m in members) for name in ("compress_size", "file_size"))
    kinds = {member.compress_type for member in members}
    if kinds - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:  # others take a dictionary of the size that they state
        raise ValueError("members packed as no version packed them")
    if packed > size or (kinds <= {zipfile.ZIP_STORED} and unpacked > size):
        raise ValueError(f"{max(packed, unpacked):,} bytes in {size:,}")
    if unpacked > LARGEST_UNPACKED and zipfile.ZIP_DEFLATED in kinds:
        raise SourceError(
            f"{path} is compressed and unpacks to {unpacked:,} bytes, more than {LARGEST_UNPACKED:,}.",
            remedy="replay and save the policy with this version, which compresses nothing.",
        )


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return a member's array, after its checksum and its header were found to fit what it holds."""
    content = archive.read(member)
    file = io.BytesIO(content)
    shape, column_major, kind = _HEADERS[np.lib.format.read_magic(file)](file)
    if kind.kind not in "biuf" or not kind.isnative:
        raise ValueError(f"{member.filename} holds {kind}, not numbers of this machine")
    if any(n < 0 for n in shape) or math.prod(shape) * kind.itemsize != len(content) - file.tell():
        raise ValueError(f"{member.filename} says that its shape is {shape}, in {len(content):,} bytes")
    flat = np.frombuffer(content, kind, offset=file.tell())
    return flat.reshape(shape, order="F" if column_major else "C")


def state_arrays(state: Any, name: str = "state") -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield every array and scalar of a state, nested or not, by its path."""
    if isinstance(state, tuple):
        for field, part in _parts(state):
            yield from state_arrays(part, f"{name}.{field}")
    else:
        yield name, np.asarray(state)


def refuse_nan(arrays: Arrays) -> None:
    """Raise SourceError if an array holds NaN: no policy can go on from there."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise SourceError(f"{name} holds NaN.", remedy="replay the policy with other parameters and save it again.")


def restored(policy: Policy, setting: Setting, saved: Arrays) -> Any:
    """Return a started state that holds what was saved, which is taken out of `saved`.

    Memory is a small multiple of what was saved, whatever the setting says. The actions and the delay CDF of the
    setting must have been read from the file, not merely be stated there. Raise SourceError if the arrays are not those
    of this policy's state in this setting, KeyError if one is missing.
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
