"""A learned policy in a file: the arrays of its state by their names, and what they mean as JSON; no pickle."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluator import __version__
from evaluator.delays.cdf import DelayCDF
from evaluator.delays.moments import DelayMoments
from evaluator.errors import ParameterError, SourceError, UsageError
from evaluator.outputs.whole import refuse_outputs, whole_files
from evaluator.policies.base import Policy, Setting
from evaluator.policies.registry import resolve
from evaluator.replayer.learned import LearnedPolicy
from evaluator.replayer.pending import Pending, nothing_pending, push

SCHEMA = "evaluate.policy/2"
# Policies of the first were told rewards as they were, which is a `reward_max` of 1.
_READ = (SCHEMA, "evaluate.policy/1")
_SETTING = ("n_actions", "dimension", "rows", "window", "horizon", "reward_max")
_WAITING = ("due", "delay", "action", "value", "vector")

Arrays = dict[str, npt.NDArray[Any]]


def refuse_unsavable(policy: Any) -> None:
    """Raise before a replay whose policy could not be saved after it.

    Raises
    ------
    UsageError
        Naming the policy and the reason.
    """
    if not isinstance(policy, Policy):
        raise UsageError(
            f"{policy.name} is a plain Python class: what it knows cannot be saved without pickling it.",
            hint="write it as a Policy, whose state is arrays (evaluator/policies/base.py).",
        )
    if policy.name == "logging":
        raise UsageError("logging follows its log and learns nothing to save.", hint="take another policy.")


def write_policy(path: Path, learned: LearnedPolicy) -> None:
    """Write a learned policy to a new file, whole or not at all."""
    refuse_unsavable(learned.policy)
    refuse_outputs([path])
    learned.end_round()
    arrays: Arrays = dict(_arrays("state", learned.state))
    arrays |= {f"pending.{name}": column for name, column in _waiting(learned.pending).items()}
    cdf = learned.setting.delay_cdf
    if cdf is not None:
        arrays |= {"delay_cdf.delays": cdf.delays, "delay_cdf.cdf": cdf.cdf}
    about = {
        "schema": SCHEMA,
        "version": __version__,
        "policy": learned.policy.spec,
        "parameters": learned.policy.parameters,
        "labels": list(learned.labels),
        "rounds": learned.rounds,
        "prepared": learned.fresh,
        "stream": learned.rng.bit_generator.state,
        "setting": {name: getattr(learned.setting, name) for name in _SETTING},
        "delay_cdf": None
        if cdf is None
        else {
            "source": cdf.source,
            "geometric_ratio": cdf.geometric_ratio,
            "start": cdf.start,
            "moments": cdf.moments and cdf.moments._asdict(),
        },
    }
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with whole_files([path]) as (part,), part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_policy(path: str | Path, *, policy: Policy | None = None) -> LearnedPolicy:
    """Read a policy that `LearnedPolicy.save` or ``evaluate replay --save-policy`` wrote.

    Parameters
    ----------
    path
        The file.
    policy
        Its description, where it is a class of your own that no installed package registers; with the parameters it
        was saved with.

    Returns
    -------
    LearnedPolicy
        It goes on as if it had never been saved.

    Raises
    ------
    SourceError
        No such file, or it is damaged, or not one of a learned policy, or of another version's state.
    UnknownNameError, ParameterError
        The policy is not known here, or `policy` is another one.
    """
    path = Path(path)
    arrays = _read(path)
    try:
        about = json.loads(bytes(arrays.pop("about")))
        if about["schema"] not in _READ:
            raise SourceError(
                f"{path} has schema {about['schema']!r}.", hint=f"this version reads {' and '.join(_READ)}."
            )
        description = resolve(about["policy"]) if policy is None else policy
        if description.spec != about["policy"] or description.parameters != about["parameters"]:
            raise ParameterError(
                f"{path} holds {about['policy']} with {about['parameters']}, not {description!r}.",
                hint="give the policy with the parameters it was saved with.",
            )
        told = about["delay_cdf"]
        cdf = told and DelayCDF(
            delays=arrays.pop("delay_cdf.delays"),
            cdf=arrays.pop("delay_cdf.cdf"),
            **{**told, "moments": told.get("moments") and DelayMoments(**told["moments"])},
        )
        setting = Setting(**about["setting"], delay_cdf=cdf)
        pending = _calendar({name: arrays.pop(f"pending.{name}") for name in _WAITING}, about["rounds"])
        rng = np.random.default_rng()
        rng.bit_generator.state = about["stream"]
        state = _filled("state", description.start(setting), arrays)
    except KeyError as error:
        raise SourceError(f"{path} lacks {error}: it is not a whole policy file.", hint="save it again.") from error
    if arrays:
        raise SourceError(
            f"{path} was saved by version {about['version']}, whose {about['policy']} also keeps {sorted(arrays)[0]}.",
            hint="replay and save it with this version.",
        )
    return LearnedPolicy(
        policy=description,
        setting=setting,
        labels=tuple(about["labels"]),
        rounds=about["rounds"],
        state=state,
        prepared=about["prepared"],
        rng=rng,
        pending=pending,
    )


def _read(path: Path) -> Arrays:
    if not path.is_file():
        raise SourceError(f"No policy file {str(path)!r}.", hint="evaluate replay --save-policy FILE writes one.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError) as error:
        raise SourceError(
            f"{path} is no policy file, or damaged ({error}).", hint="evaluate replay --save-policy FILE writes one."
        ) from error


def _arrays(name: str, state: Any) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """Yield every array and scalar of a state, nested or not, by its path."""
    if isinstance(state, tuple):
        for field, part in _parts(state):
            yield from _arrays(f"{name}.{field}", part)
    else:
        yield name, np.asarray(state)


def _parts(state: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield each part of a state with its name; those of a plain tuple, such as a size, are numbered."""
    return zip(getattr(state, "_fields", range(len(state))), state, strict=True)


def _filled(name: str, started: Any, saved: Arrays) -> Any:
    """Return a started state that holds what was saved.

    Its arrays are filled in place, because fields may share one.
    """
    if isinstance(started, tuple):
        parts = [_filled(f"{name}.{field}", part, saved) for field, part in _parts(started)]
        return type(started)(*parts) if hasattr(started, "_fields") else tuple(parts)
    array = saved.pop(name)
    if np.shape(started) != array.shape or np.asarray(started).dtype != array.dtype:
        raise SourceError(
            f"{name} has shape {array.shape} and type {array.dtype}, this version's has {np.shape(started)} and "
            f"{np.asarray(started).dtype}.",
            hint="replay and save the policy with this version.",
        )
    if isinstance(started, np.ndarray):
        started[...] = array
        return started
    return array.item()


def _waiting(pending: Pending) -> Arrays:
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


def _calendar(waiting: Arrays, rounds: int) -> Pending:
    n = len(waiting["due"])
    reach = int(waiting["due"].max(initial=rounds)) - rounds
    pending = nothing_pending(n, waiting["vector"].shape[1], reach=reach)
    for i in range(n):
        push(
            pending, int(waiting["due"][i]), int(waiting["delay"][i]), int(waiting["action"][i]),
            float(waiting["value"][i]), waiting["vector"], i,
        )  # fmt: skip
    return pending
