"""The log contract: displays, conversions, actions and metadata as Arrow tables."""

from evaluator.log.breaches import Breach, find_breaches
from evaluator.log.contract import Log
from evaluator.log.meta import EventKind, LogMeta, PropensityKind
from evaluator.log.stored import Selection, StoredLog
from evaluator.log.ties import shuffle_ties

__all__ = [
    "Breach",
    "EventKind",
    "Log",
    "LogMeta",
    "PropensityKind",
    "Selection",
    "StoredLog",
    "find_breaches",
    "shuffle_ties",
]
