"""A learned policy in a file: the arrays of its state by their names, and what they mean as JSON; no pickle.

Whoever wrote the file: reading it runs none of its code, and takes no more memory than a small multiple of its size.

Arrays in a file that anybody may have written: no pickle, and no more memory than the file itself takes.

A file is a zip archive of ``.npy`` members, as `numpy.savez` writes it. Members are stored as they are, so that what a
file unpacks to is what it weighs. Those of earlier versions are compressed, and held to `LARGEST_UNPACKED`.
"""

from __future__ import annotations

import hashlib
import io
import math
import reprlib
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.engine.pending import PendingConversions, nothing_pending, push
from evaluator.errors import EvaluatorError, ParameterError, SourceError, UnknownNameError, UsageError, nearest_file
from evaluator.policies.base import Policy, Setting
from evaluator.policies.registry import resolve
from evaluator.policies.running import is_plain_python
from evaluator.replays.learned.about import Arrays, PolicyDescription, read_about, written
from evaluator.replays.learned.state import refuse_nan, restored, state_arrays

_WAITING = ("due", "delay", "action", "value", "vector")
# Of a file with compressed members, all together. A kilobyte of them may stand for a megabyte.
LARGEST_UNPACKED = 1 << 28
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def refuse_unsavable(policy: Any) -> None:
    """Raise before a replay whose policy could not be saved after it.

    Raises
    ------
    UsageError
        The policy cannot be saved; the message names it and the reason.
    """
    if is_plain_python(policy):
        raise UsageError(
            f"{policy.name} is a plain Python class: what it knows cannot be saved without pickling it.",
            remedy="write it as a Policy, whose state is arrays (evaluator/policies/base.py).",
        )
    if policy.name == "logging":
        raise UsageError("logging follows its log and learns nothing to save.", remedy="take another policy.")


class PolicyContent(NamedTuple):
    """What a file holds: the policy's description, what is said of it, its state, and what it is still to be told."""

    policy: Any
    about: PolicyDescription
    state: Any
    pending: PendingConversions


def fill_file(part: Path, content: PolicyContent) -> None:
    """Write a policy that can be saved (`refuse_unsavable`) to a file that is reserved for it.

    Raises
    ------
    SourceError
        The policy's state holds NaN.
    """
    arrays = arrays_of(content)
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def arrays_of(content: PolicyContent) -> Arrays:
    """Return all that a file holds, by name; errors as of `fill_file`."""
    arrays: Arrays = dict(state_arrays(content.state))
    refuse_nan(arrays)
    arrays |= {f"pending.{name}": column for name, column in _waiting(content.pending).items()}
    cdf = content.about.setting.delay_cdf
    if cdf is not None:
        arrays |= {"delay_cdf.delays": cdf.delays, "delay_cdf.cdf": cdf.cdf}
    arrays["about"] = np.frombuffer(written(content.about), np.uint8)
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
        about = read_about(arrays.pop("about").tobytes(), arrays)
        description = _description(path, about) if policy is None else policy
        if description.spec != about.policy or description.parameters != about.parameters:
            told = reprlib.repr(about.parameters)
            raise ParameterError(
                f"{path} holds {reprlib.repr(about.policy)} with {told}, not {description!r}.",
                remedy="give the policy with the parameters it was saved with.",
            )
        pending = _calendar({name: arrays.pop(f"pending.{name}") for name in _WAITING}, about.rounds, about.setting)
        state = restored(description, about.setting, arrays)
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
    return PolicyContent(description, about, state, pending)


def _description(path: Path, about: PolicyDescription) -> Policy:
    """Return the description of a policy that is registered here."""
    try:
        description = resolve(about.policy, files=False)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{path} holds {reprlib.repr(about.policy)}, which is registered neither here nor by an installed package.",
            remedy=f"it is a class of your own? load_policy({str(path)!r}, policy={_call(about)}).",
        ) from error
    refuse_unsavable(description)
    assert isinstance(description, Policy)
    return description


def _call(about: PolicyDescription) -> str:
    """Return what makes the description, as one writes it in Python."""
    named = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in about.parameters.items())
    return f"{about.of_class or 'MyPolicy'}({named})"


def _waiting(pending: PendingConversions) -> Arrays:
    """Return the pending conversions in the order in which they will be revealed."""
    slots = []
    for at in range(len(pending.first)):
        slot = int(pending.first[at])
        while slot >= 0:
            slots.append(slot)
            slot = int(pending.following[slot])
    order = np.array(slots, np.int64)
    order = order[np.argsort(pending.due[order], kind="stable")]
    return {name: getattr(pending, name)[order] for name in _WAITING}


def _calendar(waiting: Arrays, rounds: int, setting: Setting) -> PendingConversions:
    """Return the calendar of a file's pending conversions, after finding that they can be.

    Raises
    ------
    SourceError
        A pending conversion cannot be; the message names the first.
    """
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
    """Return the arrays of a file by their names.

    Raises
    ------
    SourceError
        There is no such file, or it is damaged, or holds something else, or unpacks to more than `LARGEST_UNPACKED`.
    """
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
