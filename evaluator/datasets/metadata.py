"""What a log read from files says about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluator.datasets.labels import KeptPropensities
from evaluator.datasets.spec import FileSpec
from evaluator.log.encoder import ContextEncoder
from evaluator.log.meta import EventKind, LogMeta, PropensityKind
from evaluator.units import Tick


def tick_of(spec: FileSpec) -> Tick:
    """Return the tick of the log: the unit of integer times, us for datetimes."""
    return "us" if spec.time.unit == "datetime" else spec.time.unit


def propensity_kind(spec: FileSpec) -> PropensityKind:
    """Return where the propensities of the log come from."""
    if spec.display.propensity is not None or (spec.candidates is not None and spec.candidates.propensity is not None):
        return "logged"
    return "uniform" if spec.display.propensity_kind == "uniform" else "absent"


def design_note(spec: FileSpec) -> list[str]:
    """Return the sentence that tells a reader that propensities were stated, not logged; none where they were not."""
    design = spec.display.design
    if design is None:
        return []
    each = [f"{label} {p:g}" for label, p in design.items()] if isinstance(design, dict) else [f"{design:g} each"]
    more = f" and {len(each) - 8} more" if len(each) > 8 else ""
    return [f"Propensities are those that the spec states, by design: {', '.join(each[:8])}{more}."]


def log_meta(
    spec: FileSpec,
    *,
    counts: Mapping[str, float],
    kinds: Sequence[EventKind],
    notes: Sequence[str] = (),
    propensities: KeptPropensities,
    encoder: ContextEncoder | None = None,
) -> LogMeta:
    """Return the metadata of a log read by `spec`.

    The conversions are first among the `kinds`, which say how long they were followed. `encoder` says how context
    columns became vectors, None for a log without.
    """
    notes = [*spec.notes, *design_note(spec), *notes, *propensities.notes]
    return LogMeta(
        name=spec.name,
        tick=tick_of(spec),
        observed_until=kinds[0].observed_until,
        attribution_window=kinds[0].attribution_window,
        propensity=propensities.kind,
        reward_max=kinds[0].value_max,
        reward_min=kinds[0].value_min,
        objective=spec.log.objective,
        sampling_rate=spec.log.sampling_rate,
        kept_share=propensities.kept_share,
        counts=dict(counts),
        notes=tuple(notes),
        encoder=encoder,
        outcomes=tuple(kinds[1:]),
    )
