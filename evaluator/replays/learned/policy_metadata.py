"""What a policy file says of its arrays, as JSON: written from a description, and checked word by word when read."""

from __future__ import annotations

import json
import math
import reprlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evaluator.delays.cdf import DelayCDF, DelayMoments
from evaluator.engine.eligible_choice import NO_KEY
from evaluator.engine.kernels.argmax import LOWEST_FIRST
from evaluator.engine.pending import PendingConversions
from evaluator.errors import DataError, ParameterError, SourceError
from evaluator.escape import escape
from evaluator.log.encoder import ContextEncoder, encoder_of
from evaluator.options.deployment import EVENT
from evaluator.policies.base import Setting
from evaluator.streams import stream_at
from evaluator.units import NO_WINDOW
from evaluator.version import __version__

# Arrays of a file by their names.
Arrays = dict[str, npt.NDArray[Any]]

SCHEMA = "evaluate.policy/5"
# The fourth kept inverses of regressions. The third said neither how contexts were encoded nor what it learned from.
# Those before compressed their arrays. Policies of the first were told rewards as they were: a
# `reward_max` of 1.
_READ = (SCHEMA, "evaluate.policy/4", "evaluate.policy/3", "evaluate.policy/2", "evaluate.policy/1")
_BITS_32 = 2**32 - 1
_SIZES = ("n_actions", "dimension", "rows", "window", "horizon")


class LearnedFrom(NamedTuple):
    """The displays that a replay went through: of a log, and of its source by a hash, with so many `displays` in all.

    `first_display` and `end_display` are the numbers of the first, and of the first after them, `first_time` and
    `last_time` the times of the first and the last, in ticks. The window is what was asked for: rounds, a duration, or
    ``none``. What taught the policy is `taught_by`, an option's words; it learned by a schedule, in the words of
    `learns`, after so many rounds that `explored` as the option writes them, "" for none.
    """

    log: str
    fingerprint: str
    displays: int
    first_display: int
    end_display: int
    first_time: int
    last_time: int
    window: str
    taught_by: str = "objective"
    learns: str = EVENT
    explored: str = ""

    def shares(self, other: LearnedFrom) -> bool:
        """Return whether some displays may be those of `other`: of one source, and neither all before nor all after."""
        same = self.fingerprint != "" and self.fingerprint == other.fingerprint
        return same and not (self._before(other) or other._before(self))

    def _before(self, other: LearnedFrom) -> bool:
        """Whether its displays end before the others begin; those of one time are told apart within one log."""
        if self.last_time != other.first_time:
            return self.last_time < other.first_time
        return self.displays == other.displays and self.end_display <= other.first_display


@dataclass(eq=False, repr=False)
class PolicyContent:
    """What a file holds of a learned policy, and what this is made of; fields are those of `LearnedPolicy`.

    Where nobody noted it the encoder is None, and `learned_from` is empty.
    """

    policy: Any
    setting: Setting
    labels: tuple[str, ...]
    rounds: int
    state: Any
    prepared: bool
    rng: np.random.Generator
    pending: PendingConversions
    encoder: ContextEncoder | None = None
    learned_from: tuple[LearnedFrom, ...] = ()
    tie_key: int = NO_KEY


class SavedWords(NamedTuple):
    """What a file says in words: the policy's spec, parameters by name and class, and fields of its `PolicyContent`.

    The class is empty where nobody noted it. The fields are all but the policy, its state and what is pending.
    """

    spec: str
    parameters: dict[str, Any]
    of_class: str
    fields: dict[str, Any]


def written(content: PolicyContent) -> bytes:
    """Return what `read_metadata` reads."""
    policy, setting, cdf = content.policy, content.setting, content.setting.delay_cdf
    about = {
        "schema": SCHEMA,
        "version": __version__,
        "policy": policy.spec,
        "class": type(policy).__name__,
        "parameters": policy.parameters,
        "labels": list(content.labels),
        "rounds": content.rounds,
        "prepared": content.prepared,
        "stream": content.rng.bit_generator.state,
        **({} if content.tie_key == NO_KEY else {"tie_key": content.tie_key}),
        "setting": {name: getattr(setting, name) for name in (*_SIZES, "reward_max", "reward_min")}
        | ({"playable": setting.playable} if setting.among else {})
        | ({"waits": setting.waits} if setting.waits else {}),
        "delay_cdf": None
        if cdf is None
        else {
            "source": cdf.source,
            "geometric_ratio": cdf.geometric_ratio,
            "start": cdf.start,
            "moments": cdf.moments and cdf.moments._asdict(),
        },
        "encoder": content.encoder and content.encoder.to_dict(),
        "learned_from": [_source(source) for source in content.learned_from],
    }
    return json.dumps(about).encode()


def _source(source: LearnedFrom) -> dict[str, Any]:
    """Return a source as the file says it: what earlier versions did not have is said where it is another."""
    usual = LearnedFrom._field_defaults
    return {name: value for name, value in source._asdict().items() if name not in usual or value != usual[name]}


def read_metadata(text: bytes, arrays: Arrays) -> SavedWords:
    """Return what a file says, after checking every word; the arrays of its delay CDF are taken out of `arrays`.

    A word that is missing, of another type or out of range is a SourceError that names it; a missing array is a
    KeyError.
    """
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"`about` is no JSON ({error}).", remedy="save the policy again.") from error
    schema = _word(said, "schema", str)
    if schema not in _READ:
        raise SourceError(
            f"It has schema {_short(schema)}.", remedy=f"this version reads {', '.join(_READ[:-1])} and {_READ[-1]}."
        )
    labels = _word(said, "labels", list)
    if not labels or not all(isinstance(label, str) for label in labels):
        raise SourceError("`labels` are not the names of actions.", remedy="save the policy again.")
    new = schema in _READ[:2]
    setting = _setting(_word(said, "setting", dict), len(labels), _delay_cdf(said, arrays))
    spec, parameters = _word(said, "policy", str), _word(said, "parameters", dict)
    fields = {
        "labels": tuple(labels),
        "rounds": _whole(said, "rounds"),
        "prepared": _word(said, "prepared", bool),
        "rng": _stream(_word(said, "stream", dict)),
        "setting": setting,
        "encoder": _encoder(_word(said, "encoder", dict, or_none=True), setting) if new else None,
        "learned_from": tuple(map(_learned_from, _word(said, "learned_from", list))) if new else (),
    }
    of_class = _word(said, "class", str) if new else ""
    fields["tie_key"] = _tie_key(said) if "tie_key" in said else NO_KEY
    return SavedWords(spec, parameters, of_class, fields)


def _setting(said: dict[str, Any], n_actions: int, cdf: DelayCDF | None) -> Setting:
    """Return the setting, whose number of actions is that of the labels."""
    sizes: dict[str, Any] = {name: _whole(said, name) for name in _SIZES}
    if sizes["n_actions"] != n_actions:
        raise SourceError(f"n_actions is {sizes['n_actions']:,}, of {n_actions:,} labels.", remedy="save it again.")
    if sizes["rows"] not in (0, 1, n_actions):
        raise SourceError(f"rows is {sizes['rows']:,}.", remedy=f"it is 0, 1 or one an action, {n_actions:,}.")
    reward_max = _number(said, "reward_max") if "reward_max" in said else 1.0
    reward_min = _number(said, "reward_min") if "reward_min" in said else 0.0
    if reward_min > 0.0:
        raise SourceError(f"reward_min is {reward_min:g}.", remedy="it is 0 or below.")
    if reward_max <= reward_min:
        raise SourceError(f"reward_max is {reward_max:g}.", remedy=f"it is above reward_min, {reward_min:g}.")
    playable = _whole(said, "playable") if "playable" in said else None
    if playable is not None and playable > n_actions:
        raise SourceError(f"playable is {playable:,}, of {n_actions:,} actions.", remedy="save the policy again.")
    waits = _whole(said, "waits") if "waits" in said else 0
    return Setting(**sizes, delay_cdf=cdf, reward_max=reward_max, reward_min=reward_min, playable=playable, waits=waits)


def _tie_key(said: dict[str, Any]) -> int:
    key: int = _word(said, "tie_key", int)
    if not LOWEST_FIRST <= key <= _BITS_32:
        raise SourceError(f"`tie_key` is {_short(key)}.", remedy=f"it is from {LOWEST_FIRST} to {_BITS_32:,}.")
    return key


def _encoder(said: dict[str, Any] | None, setting: Setting) -> ContextEncoder | None:
    """Return the encoder, whose vectors are as long as those that the policy reads."""
    if said is None:
        return None
    encoder = encoder_of(said)
    if setting.rows != 1 or encoder.dimensions != setting.dimension:
        raise SourceError(
            f"Its encoder makes one vector of {encoder.dimensions:,} coordinates, and its policy reads "
            f"{setting.rows:,} of {setting.dimension:,}.",
            remedy="save the policy again.",
        )
    return encoder


def _learned_from(said: Any) -> LearnedFrom:
    words: dict[str, Any] = {name: _word(said, name, str) for name in ("log", "fingerprint")}
    words |= {name: _whole(said, name) for name in ("displays", "first_display", "end_display")}
    words |= {name: _word(said, name, int) for name in ("first_time", "last_time")}
    words |= {name: _word(said, name, str) for name in LearnedFrom._field_defaults if name in said}
    return LearnedFrom(**words, window=_word(said, "window", str))


def _delay_cdf(about: dict[str, Any], arrays: Arrays) -> DelayCDF | None:
    said = _word(about, "delay_cdf", dict, or_none=True)
    if said is None:
        return None
    told: dict[str, Any] | None = _word(said, "moments", dict, or_none=True) if "moments" in said else None
    moments = None if told is None else DelayMoments(*(_number(told, name) for name in DelayMoments._fields))
    ratio = None if _word(said, "geometric_ratio", float, or_none=True) is None else _number(said, "geometric_ratio")
    try:
        return DelayCDF(
            delays=arrays.pop("delay_cdf.delays"),
            cdf=arrays.pop("delay_cdf.cdf"),
            source=_word(said, "source", str),
            geometric_ratio=ratio,
            start=_whole(said, "start"),
            moments=moments,
        )
    except SourceError:
        raise
    except (DataError, ParameterError) as error:
        raise SourceError(f"Its delay CDF is none: {error.what}", remedy=error.remedy) from error


def _stream(state: dict[str, Any]) -> np.random.Generator:
    try:
        return stream_at(state)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise SourceError(f"`stream` is no state of a generator ({error}).", remedy="save the policy again.") from error


def _word(said: Any, name: str, kind: type, *, or_none: bool = False) -> Any:
    if not isinstance(said, dict) or name not in said:
        raise SourceError(f"`{name}` is missing: it is not a whole policy file.", remedy="save the policy again.")
    value = said[name]
    if or_none and value is None:
        return None
    # JSON writes 1.0 as 1 where another program rewrote it, and Python counts booleans among the whole numbers.
    fits = isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits:
        raise SourceError(f"`{name}` is {_short(value)}, not a {kind.__name__}.", remedy="save the policy again.")
    return value


def _whole(said: dict[str, Any], name: str) -> int:
    value: int = _word(said, name, int)
    if not 0 <= value <= NO_WINDOW:
        raise SourceError(f"`{name}` is {_short(value)}.", remedy=f"it is from 0 to {NO_WINDOW:,}.")
    return value


def _number(said: dict[str, Any], name: str) -> float:
    value = _word(said, name, float)
    if not -1e308 <= value <= 1e308 or math.isnan(value):
        raise SourceError(f"`{name}` is {_short(value)}.", remedy="it is a number.")
    return float(value)


def _short(value: object) -> str:
    """Return a value as it is written in Python, in no more than a line."""
    return reprlib.repr(value)


def summary(
    policy: Any,
    told: Setting,
    rounds: int,
    waiting: int,
    encoder: ContextEncoder | None,
    learned_from: tuple[LearnedFrom, ...],
) -> str:
    """Return what ``print`` shows of a learned policy, with so many conversions `waiting` to be revealed."""
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
    return "\n".join(map(escape, lines))


def _context(told: Setting, encoder: ContextEncoder | None) -> str:
    """Return what it is asked with."""
    if told.rows == 0:
        return ""
    if encoder is not None:
        return f"{{{', '.join(f'{column.name!r}: ...' for column in encoder.columns)}}}"
    return f"<vectors of shape {told.context_shape}>"
