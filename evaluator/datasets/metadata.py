"""What a log read from files says about itself."""

from __future__ import annotations

from collections.abc import Mapping

from evaluator.datasets.actions import KeptPropensities
from evaluator.datasets.spec import FileSpec
from evaluator.errors import SpecError
from evaluator.log.contract import LogMeta, PropensityKind
from evaluator.units import ROUND, SECONDS, parse_duration


def tick_of(spec: FileSpec) -> str:
    """Return the tick of the log: the unit of integer times, us for datetimes."""
    return "us" if spec.time.unit == "datetime" else spec.time.unit


def propensity_kind(spec: FileSpec) -> PropensityKind:
    """Return where the propensities of the log come from."""
    if spec.display.propensity is not None:
        return "logged"
    return "uniform" if spec.display.propensity_kind == "uniform" else "absent"


def log_meta(
    spec: FileSpec, *, counts: Mapping[str, float], fingerprint: str, last_seen: int, propensities: KeptPropensities
) -> LogMeta:
    """Return the metadata of a log read by `spec`.

    Parameters
    ----------
    spec
        Dataset spec.
    counts, fingerprint
        What the adapter counted, and the hash of the files.
    last_seen
        Latest time (ticks) of a display or conversion.
    propensities
        What choosing actions made of the propensities.
    """
    notes = [*spec.notes, *propensities.notes]
    if counts.get("quarantined"):
        notes.append(f"{counts['quarantined']:g} rows broke a rule and were left out.")
    return LogMeta(
        name=spec.name,
        tick=tick_of(spec),
        observed_until=_observed_until(spec, last_seen),
        attribution_window=_window_ticks(spec),
        propensity=propensity_kind(spec),
        reward_max=spec.log.reward_max,
        sampling_rate=spec.log.sampling_rate,
        kept_share=propensities.kept_share,
        fingerprint=fingerprint,
        counts=dict(counts),
        notes=tuple(notes),
    )


def judged_until(spec: FileSpec, last_seen: int) -> int | None:
    """Return the time (ticks) of the last display that was followed long enough; None where all were."""
    until = _observed_until(spec, last_seen)
    return None if until is None else until - (_window_ticks(spec) or 0)


def _observed_until(spec: FileSpec, last_seen: int) -> int | None:
    until = spec.log.observed_until
    return None if until == "complete" else last_seen if until == "end" else int(until)


def _window_ticks(spec: FileSpec) -> int | None:
    window, tick = spec.log.attribution_window, tick_of(spec)
    if window is None or isinstance(window, int):
        return window
    if tick == ROUND:
        raise SpecError(
            f"{spec.name}: attribution_window = {window!r}, but times are rounds.",
            hint="give it as a number of rounds.",
        )
    return round(parse_duration(window) / SECONDS[tick])
