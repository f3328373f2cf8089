"""Offline evaluation of bandit policies under delayed, censored feedback.

The command line and this module are twins: ``evaluate replay`` is `replay`, ``evaluate delays`` is
`study_delays`, ``evaluate check`` is `check`, ``evaluate datasets show`` is `load`, ``evaluate report`` is
`report_runs`, ``evaluate explain`` is `explain`.

>>> from evaluator import load, replay
>>> log = load("synthetic", limit=20_000)
>>> result = replay(log, "otflinucb", window=500)
>>> result.rounds == result.trajectory.num_rows
True
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evaluator.frame_roles import MadeFromFrames
from evaluator.results.in_notebooks import ShownInNotebooks
from evaluator.version import __version__

if TYPE_CHECKING:
    from evaluator.api import audit, check, compare, load, plan, replay, simulate, study_delays
    from evaluator.audits.result import Audit
    from evaluator.checks.run import CheckReport
    from evaluator.comparisons.result import Comparison
    from evaluator.delays.study.result import DelayStudy
    from evaluator.findings.catalogue import explain
    from evaluator.findings.finding import Finding
    from evaluator.log import EventKind, Log, LogMeta
    from evaluator.policies import Policy
    from evaluator.replays.learned.policy import LearnedPolicy, load_policy
    from evaluator.replays.plan import ReplayPlan
    from evaluator.replays.result import ReplayResult
    from evaluator.reports.result_files import report_runs
    from evaluator.simulations.result import Simulation
    from evaluator.worlds.world import World

__all__ = [
    "Audit",
    "CheckReport",
    "Comparison",
    "DelayStudy",
    "EventKind",
    "Finding",
    "LearnedPolicy",
    "Log",
    "LogMeta",
    "Policy",
    "ReplayPlan",
    "ReplayResult",
    "Simulation",
    "World",
    "__version__",
    "audit",
    "check",
    "compare",
    "explain",
    "load",
    "load_policy",
    "plan",
    "replay",
    "report_runs",
    "simulate",
    "study_delays",
]

# Names resolve on first use, so that `evaluate --help` starts without polars and numba.
_HOMES = {
    "Audit": "evaluator.audits.result",
    "CheckReport": "evaluator.checks.run",
    "Comparison": "evaluator.comparisons.result",
    "DelayStudy": "evaluator.delays.study.result",
    "Finding": "evaluator.findings.finding",
    "explain": "evaluator.findings.catalogue",
    "audit": "evaluator.api",
    "check": "evaluator.api",
    "compare": "evaluator.api",
    "load": "evaluator.api",
    "LearnedPolicy": "evaluator.replays.learned.policy",
    "load_policy": "evaluator.replays.learned.policy",
    "plan": "evaluator.api",
    "replay": "evaluator.api",
    "report_runs": "evaluator.reports.result_files",
    "study_delays": "evaluator.api",
    "Log": "evaluator.log",
    "LogMeta": "evaluator.log",
    "EventKind": "evaluator.log",
    "Policy": "evaluator.policies",
    "ReplayPlan": "evaluator.replays.plan",
    "ReplayResult": "evaluator.replays.result",
    "Simulation": "evaluator.simulations.result",
    "World": "evaluator.worlds.world",
    "simulate": "evaluator.api",
}


def _as_text(result: Any) -> str:
    from evaluator.reports.documents import document_of
    from evaluator.reports.terminal import text_of

    return text_of(document_of(result)).rstrip("\n")


def _as_html(result: Any) -> str:
    from evaluator.reports.html import notebook_html

    return notebook_html(result)


def _as_page(result: Any) -> str:
    from evaluator.reports.documents import chapter_of
    from evaluator.reports.html import page_of

    return page_of([chapter_of(result)])


def _as_chart(result: Any, name: str | None) -> Any:
    from evaluator.reports.documents import chart_of

    return chart_of(result, name)


def _read_frames(*given: Any) -> Any:
    from evaluator.reading.from_frames import read_frames

    return read_frames(*given)


ShownInNotebooks._as_text = staticmethod(_as_text)
ShownInNotebooks._as_html = staticmethod(_as_html)
ShownInNotebooks._as_page = staticmethod(_as_page)
ShownInNotebooks._as_chart = staticmethod(_as_chart)
MadeFromFrames._read_frames = staticmethod(_read_frames)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'evaluator' has no attribute {name!r}")
    # Loading makes a million objects and no garbage; looking for it would take a tenth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return getattr(import_module(_HOMES[name]), name)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return __all__
