"""What a log read from files says about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.datasets.spec import FileSpec
from evaluator.log.contract import LogMeta, PropensityKind

FILTERED_ACTIONS = "Actions were filtered: logged propensities are those of the full action set."


def tick_of(spec: FileSpec) -> str:
    """Return the tick of the log: the unit of integer times, us for datetimes."""
    return "us" if spec.time.unit == "datetime" else spec.time.unit


def log_meta(
    spec: FileSpec,
    *,
    counts: Mapping[str, float],
    fingerprint: str,
    observed_until: int | None,
    attribution_window: int | None,
    notes: Sequence[str] = (),
    filtered: bool,
) -> LogMeta:
    """Return the metadata of a log read by `spec`.

    Parameters
    ----------
    spec
        Dataset spec.
    counts, fingerprint
        What the adapter counted, and the hash of the files.
    observed_until, attribution_window
        In ticks.
    notes
        Sentences beside those of the spec.
    filtered
        Whether only some actions were kept.
    """
    notes = [*spec.notes, *notes]
    kind: PropensityKind = "absent"
    if spec.display.propensity is not None:
        kind = "logged"
        if filtered:
            notes.append(FILTERED_ACTIONS)
    elif spec.display.propensity_kind == "uniform":
        kind = "uniform"
    if counts.get("quarantined"):
        notes.append(f"{counts['quarantined']:g} rows broke a rule and were left out.")
    return LogMeta(
        name=spec.name,
        tick=tick_of(spec),
        observed_until=observed_until,
        attribution_window=attribution_window,
        propensity=kind,
        reward_max=spec.log.reward_max,
        fingerprint=fingerprint,
        counts=dict(counts),
        notes=tuple(notes),
    )
