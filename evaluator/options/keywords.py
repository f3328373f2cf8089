"""The options of the public functions, as types. Written by `docs/keywords.py`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict


class ReadingKeywords(TypedDict, total=False):
    """Options of `evaluator.load`."""

    path: str | Path | None
    actions: str | Sequence[str] | None
    features: str | None
    deduplicate: Literal["last_click", "first_click", "all", "share"] | None
    attributed_only: bool | None
    limit: int | None
    seed: int | None
    sort: bool | None
    attribution_window: str | int | None
    on_error: Literal["stop", "quarantine"]
    quarantine_at_most: str | float
    keep: str | Sequence[str]
    sampling_rate: float | None


class BareReplayKeywords(TypedDict, total=False):
    """Options of a replay that all who replay share."""

    horizon: int | None
    clock: Literal["traffic", "wall"]
    traffic_share: float
    deployment: str | None
    learn_lag: str | int | None
    explore_first: str | int | None
    keep_for: str | None
    sampler: Literal["rejection", "keep", "queue"] | None
    propensity: Literal["column", "uniform", "estimate", "estimate:context"] | None
    accept_quantile: float
    delays: str
    delays_from: str | None
    final: str | None
    final_policy: Literal["greedy", "exploring"]
    doubly_robust: bool
    reward: Literal["eventual", "observed"]
    immature: str
    seed: int
    repeats: int
    jobs: int
    level: float
    objective: Literal["profit", "revenue"] | None


class SharedKeywords(BareReplayKeywords, total=False):
    """Options of a replay that those of a comparison share."""

    warm_start: str | Path | None
    cluster_by: str | None
    by: str | None
    reward_max: float | None
    reward_min: float | None
    cap: float | None
    guardrails: str | Sequence[str] | None
    guardrail: str


class ReplayKeywords(SharedKeywords, total=False):
    """Options of `evaluator.replay` and `evaluator.plan`."""

    window: str | int | None
    learn_every: str | int | None
    bootstrap: int
    learn_from: str | None
    guardrail: str


class CompareKeywords(SharedKeywords, total=False):
    """Options of `evaluator.compare`."""

    windows: str | int | Sequence[str | int | None] | None
    schedules: str | int | Sequence[str | int] | None
    learn_from: str | Sequence[str] | None
    study: str | Path | None
    ship_if: str | None
    look: str | None
    bootstrap: int | None
    window: str | int | None
    learn_every: str | int


class AuditKeywords(BareReplayKeywords, total=False):
    """Options of `evaluator.audit`."""

    window: str | int | None
    learn_every: str | int | None
    bootstrap: int
    learn_from: str | None
    twins: int
    displays: int | None


class SimulateKeywords(TypedDict, total=False):
    """Options of `evaluator.simulate`."""

    runs: int
    horizon: int | None
    window: str | int | None
    learn_every: str | int | None
    learn_lag: str | int | None
    explore_first: str | int | None
    delays: str
    seed: int
    jobs: int


class DelayKeywords(TypedDict, total=False):
    """Options of `evaluator.study_delays`."""

    windows: str | int | Sequence[str | int] | None
    families: str | Sequence[str] | None
    groups: int
    share: float
    bootstraps: int
    level: float
    seed: int
    joint: bool
    jobs: int | None
    window: str | int
    family: str


class CheckKeywords(TypedDict, total=False):
    """Options of `evaluator.check`."""

    propensity: Literal["column", "uniform", "estimate", "estimate:context"] | None
    false_alarms: float
    seed: int
    cluster_by: str | None
