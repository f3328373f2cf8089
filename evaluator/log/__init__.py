"""The log contract: displays, conversions, actions and metadata as Arrow tables."""

from evaluator.log.breaches import Breach, find_breaches
from evaluator.log.contract import Log, shuffle_ties
from evaluator.log.log_tables import EventKind, LogMeta, PropensityKind
from evaluator.log.stored import Selection, StoredLog

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
