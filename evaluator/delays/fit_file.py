"""Fitted delay laws as a file: what it must hold, and the step CDFs that replays and policies take from it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evaluator.delays.cdf import DelayCDF, law_moments, stating_the_rest
from evaluator.delays.families import FAMILIES, DelayFit
from evaluator.delays.nonparametric import NonparametricFit
from evaluator.delays.product_limit import Floats, Ints
from evaluator.errors import DataError, ParameterError
from evaluator.escape import shortened
from evaluator.input_files import open_regular
from evaluator.outputs.atomic import whole_file
from evaluator.outputs.staging import writing
from evaluator.units import ROUND, parse_duration, without_ticks

# Delays in rounds are whole numbers in floating point up to here.
_LAST_ROUND = 2.0**53
# A step takes some 40 of them.
MOST_BYTES = 128 * 1024 * 1024
SCHEMA = "delay-fit/1"
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
Delay = Annotated[float, Field(ge=0, le=2**53)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True, eq=False)
class SavedFit:
    """A delay law read from a file (`load_fit`).

    The `tick` of its delays is a duration such as ``"1 s"``, or ``"round"``. `law` is a parametric fit, None for a
    nonparametric one, whose CDF `cdf` rises at `delays`, in ticks, shape (J,), empty for a parametric one. Delays are
    of at most `longest` ticks, inf when nothing was cut off. `source` says for reports where the law comes from.
    """

    tick: str
    law: DelayFit | None
    delays: Floats
    cdf: Floats
    longest: float
    source: str

    def delay_cdf(
        self,
        *,
        ticks_per_round: float = 1.0,
        max_steps: int = 1024,
        extrapolate: bool = False,
        limit: int | None = None,
    ) -> DelayCDF:
        """Return the law as replays take it, in whole rounds: `law_cdf`, or `steps_cdf`, which needs no limit."""
        if self.law is None:
            cdf = steps_cdf(self.delays, self.cdf, self.source, ticks_per_round=ticks_per_round)
        else:
            cdf = law_cdf(
                self.law, ticks_per_round=ticks_per_round, max_steps=max_steps, extrapolate=extrapolate, limit=limit
            )
        return replace(cdf, source=without_ticks(cdf.source, None if self.tick == ROUND else parse_duration(self.tick)))


def law_cdf(
    fit: DelayFit,
    *,
    ticks_per_round: float = 1.0,
    max_steps: int = 1024,
    extrapolate: bool = False,
    limit: int | None = None,
) -> DelayCDF:
    """Return a fitted law as a step CDF on a clock of rounds of so many ticks: P(floor(X / ticks_per_round) <= a).

    Steps lie at `max_steps` evenly spaced quantiles, at least 2, where the CDF is exact, and it is held flat in
    between: low by less than 1 / `max_steps`, so that a policy credits its displays with no more time than they had
    (`DelayCDF.coarsened`); its moments are the law's. A geometric law, and an exponential one, not conditioned on any
    limit, stays geometric, whose steps never end.

    The CDF is that given a delay of at most the longest limit or, with `extrapolate`, the law itself beyond what the
    log speaks for. Steps and moments are of the delays up to `limit` rounds, if there are any; None takes all. Raises
    ParameterError where a number is out of range.

    >>> from evaluator.delays.study.fitting import fit_family
    >>> fit = fit_family([0, 2, 1, 7, 3], family="exponential")
    >>> law_cdf(fit).mean.__round__(6), law_cdf(fit, ticks_per_round=2).geometric_ratio.__round__(4)
    (2.6, 0.5216)
    """
    if not 0 < ticks_per_round < math.inf or max_steps < 2:
        raise ParameterError(
            f"ticks_per_round is {ticks_per_round}, max_steps is {max_steps}.", remedy="above 0, and at least 2."
        )
    family, parameters = fit.law
    given = None if extrapolate or math.isinf(fit.longest) else fit.longest
    what = f"{fit.family} law fitted to {fit.conversions:,} delays"
    if given is None:
        geometric = _geometric(fit, ticks_per_round, what)
        if geometric is not None:
            return geometric
    end = math.inf if given is None else given + (fit.width if fit.rounding == "floor" else 0.0)
    total = 1.0 if given is None else float(family.cdf(np.array(end), parameters))

    def tau(ages: Ints) -> Floats:
        by = np.minimum((ages + 1.0) * ticks_per_round, end)
        return np.asarray(np.minimum(family.cdf(by, parameters) / total, 1.0))

    last = int(_LAST_ROUND) if limit is None or tau(np.array(limit)) <= 0 else limit
    levels = total * float(tau(np.array(last))) * np.arange(1, max_steps + 1) / max_steps
    # No quantile is 1 for an endless law.
    levels[-1] = min(levels[-1], 1.0 - 1e-10)
    x = np.minimum(family.quantile(levels, parameters), min(end, _LAST_ROUND * ticks_per_round))
    rounds = np.unique(np.minimum(np.floor(x / ticks_per_round).astype(np.int64), last))
    rounds = rounds[tau(rounds) > 0]
    span = "" if given is None else f", given at most {given:,.0f} ticks"
    return DelayCDF(
        delays=rounds,
        cdf=tau(rounds),
        source=f"{what}{span}, at {max_steps:,} quantiles",
        moments=law_moments(tau, int(rounds[-1])),
    )


def _geometric(fit: DelayFit, ticks_per_round: float, source: str) -> DelayCDF | None:
    """Return the law as a geometric one if it is one on this clock."""
    if fit.family == "exponential":
        ratio, start = math.exp(-ticks_per_round / fit.parameters["scale"]), 0
    elif fit.family == "geometric" and (ticks_per_round == 1 or fit.parameters["start"] == 0):
        start = int(fit.parameters["start"])
        excess = fit.parameters["mean"] - start
        ratio = (excess / (1.0 + excess)) ** ticks_per_round
    else:
        return None
    if not 0 < ratio < 1:
        return None
    empty: Ints = np.empty(0, np.int64)
    return DelayCDF(delays=empty, cdf=np.empty(0), source=source, geometric_ratio=ratio, start=start)


def steps_cdf(delays: Floats, cdf: Floats, source: str, *, ticks_per_round: float = 1.0) -> DelayCDF:
    """Return steps in ticks as steps in whole rounds, floor(delay / ticks_per_round).

    Steps that end below 1 leave a rest that never converts; their source says so.
    """
    if not 0 < ticks_per_round < math.inf:
        raise ParameterError(f"ticks_per_round is {ticks_per_round}.", remedy="a number above 0.")
    rounds = np.floor(np.asarray(delays) / ticks_per_round).astype(np.int64)
    # Of the steps that fall into one round the last holds the mass of all; mass lost to underflow is none.
    kept = np.append(np.diff(rounds) > 0, True) & (np.asarray(cdf) > 0)
    steps = DelayCDF(delays=rounds[kept], cdf=np.asarray(cdf)[kept], source=source)
    return replace(steps, source=stating_the_rest(source, float(steps.cdf[-1])))


def save_fit(path: str | Path, fit: DelayFit | NonparametricFit, *, tick: str) -> None:
    """Write a fit as JSON, whole or not at all, in the place of any file of that name.

    The `tick` is the unit of its delays: a duration such as ``"1 s"``, or ``"round"``.
    """
    target = Path(path)
    with whole_file(target) as part, writing(target):
        fill_fit_file(part, fit, tick=tick)


def fill_fit_file(part: Path, fit: DelayFit | NonparametricFit, *, tick: str) -> None:
    """Write a fit, as `save_fit` does, to a file that is reserved for it."""
    longest = fit.longest if math.isfinite(fit.longest) else None
    out: dict[str, Any] = {"schema": SCHEMA, "tick": tick, "longest": longest, "law": None, "steps": None}
    if isinstance(fit, DelayFit):
        out["law"] = fit.to_dict()
        out["source"] = f"{fit.family} law fitted to {fit.conversions:,} delays"
    else:
        out["source"] = fit.source
        out["steps"] = {"delays": fit.delays.tolist(), "cdf": fit.cdf.tolist()}
    with part.open("w", encoding="utf-8") as file:
        json.dump(out, file, allow_nan=False, indent=1)


def load_fit(path: str | Path) -> SavedFit:
    """Read what `save_fit` wrote; raises DataError where the file is missing, no JSON, or breaks its schema."""
    try:
        read = _read_json(Path(path))
    except (OSError, ValueError, RecursionError) as error:
        reason = (
            "it is too deeply nested"
            if isinstance(error, RecursionError)
            else getattr(error, "strerror", None) or str(error)
        )
        raise DataError(
            f"Delay fit {path} cannot be read: {reason}.", remedy="write one with `evaluate delays`."
        ) from None
    schema = read.get("schema") if isinstance(read, dict) else None
    if schema != SCHEMA:
        raise DataError(
            f"Delay fit {path} has schema {shortened(repr(schema))}.", remedy=f"this version reads {SCHEMA}."
        )
    try:
        file = FitFile.model_validate(read)
        saved = SavedFit(
            tick=file.tick,
            law=None if file.law is None else _law(file.law),
            delays=np.array([] if file.steps is None else file.steps.delays, np.float64),
            cdf=np.array([] if file.steps is None else file.steps.cdf, np.float64),
            longest=math.inf if file.longest is None else file.longest,
            source=file.source,
        )
        with np.errstate(all="ignore"):
            saved.delay_cdf()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}, got {shortened(repr(first['input']))}"
        raise DataError(f"Delay fit {path} breaks schema {SCHEMA}: {reason}.", remedy="write it anew.") from None
    except (ArithmeticError, ValueError) as error:
        raise DataError(f"Delay fit {path} breaks schema {SCHEMA}: {error}.", remedy="write it anew.") from None
    return saved


def _read_json(path: Path) -> Any:
    with open_regular(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return json.loads(content.decode("utf-8"), object_pairs_hook=_each_key_once)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key is given twice")
    return read


def _law(read: LawFile) -> DelayFit:
    family = FAMILIES[read.family]
    if tuple(read.parameters) != family.parameters:
        raise ValueError(f"{family.name} has parameters {', '.join(family.parameters)}")
    values = np.array(list(read.parameters.values()))
    positive = np.array(family.positive)
    if family.name == "geometric":
        # It may start at 0, and its mean lies above.
        values[1] = values[0] - values[1] if values[1] in (0.0, 1.0) else math.nan
    if not np.isfinite(values).all() or (values[positive] <= 0).any():
        raise ValueError(f"no {family.name} law has parameters {read.parameters}")

    def number(value: float | None) -> float:
        return math.nan if value is None else value

    return DelayFit(
        **{
            **read.model_dump(),
            "standard_errors": {name: number(value) for name, value in read.standard_errors.items()},
            "covariance": tuple(tuple(map(number, row)) for row in read.covariance),
            "log_likelihood": number(read.log_likelihood),
            "aic": number(read.aic),
            "bic": number(read.bic),
            "longest": math.inf if read.longest is None else read.longest,
            "notes": tuple(read.notes),
        }
    )


class _Part(BaseModel):
    # Null stands for what JSON has no word for.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class LawFile(_Part):
    """A fitted law as JSON: the fields of `DelayFit`."""

    family: Literal[tuple(FAMILIES)]  # type: ignore[valid-type]
    parameters: dict[str, Number]
    standard_errors: dict[str, Number | None]
    covariance: list[list[Number | None]]
    log_likelihood: Number | None
    aic: Number | None
    bic: Number | None
    free_parameters: Count
    conversions: Count
    rounding: Literal["floor", "none"]
    longest: Delay | None
    converged: bool
    notes: list[str] = []
    width: Annotated[Delay, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _shapes_fit(self) -> LawFile:
        n = len(self.parameters)
        if list(self.standard_errors) != list(self.parameters) or [n] * n != [len(row) for row in self.covariance]:
            raise ValueError("standard errors and covariance are of other parameters")
        return self


class StepsFile(_Part):
    """A nonparametric fit as JSON."""

    delays: list[Delay]
    cdf: list[Annotated[float, Field(ge=0, le=1)]]

    @model_validator(mode="after")
    def _shapes_fit(self) -> StepsFile:
        if len(self.delays) != len(self.cdf) or not self.delays:
            raise ValueError(f"{len(self.delays)} delays and {len(self.cdf)} values of the cdf")
        return self


class FitFile(_Part):
    """What a file of `save_fit` holds."""

    schema_: Annotated[str, Field(alias="schema")]
    tick: str
    longest: Delay | None
    law: LawFile | None
    steps: StepsFile | None
    source: str

    @field_validator("tick")
    @classmethod
    def _is_a_unit(cls, tick: str) -> str:
        if tick != ROUND and not parse_duration(tick) > 0:
            raise ValueError("a tick takes time")
        return tick
